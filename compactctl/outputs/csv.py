"""`-o csv`: a row a session, or of an audit a row a finding, for spreadsheets and data frames.

Text of a session is never a formula: where a spreadsheet would take it for one, an apostrophe stands in front.
"""

import csv
import io
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from compactctl.findings import GROUPS
from compactctl.outcome import SEVERITIES, Outcome
from compactctl.outputs import Printer, View, words
from compactctl.outputs.safe import visible
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"

COLUMNS = (
    "path",
    "index",
    "format",
    "session_id",
    "model",
    "status",
    "error_code",
    "error_message",
    "messages",
    "rounds",
    "tool_results",
    "bytes_before",
    "bytes_after",
    "bytes_beside",
    "estimator",
    "anchored",
    "tokens_before",
    "tokens_after",
    "window",
    "threshold",
    "spills",
    "layer2_reason",
    "provider",
    "messages_summarized",
    "errors",
    "warnings",
    "notes",
    "output",
    "exit_code",
)
"""The columns that every command prints; `estimate` adds one an estimator."""


FINDING_COLUMNS = (
    "path",
    "index",
    "line",
    "severity",
    "group",
    "rule",
    "message",
    "known",
    "fingerprint",
    "format",
    "session_id",
)
"""The columns of an audit. What could not be read is a row, too: its rule is the code of the error. So is what `--fix`
mends: its severity is `fixed`, or `to fix`."""


def printer(command: str, view: View) -> Printer:
    if command == "accuracy":
        from compactctl.outputs import accuracy  # of all commands only one has need of it

        return accuracy.Rows()
    return FindingRows() if command == "audit" else Rows(has_estimates=command == "estimate")


class FindingRows:
    """A row a finding, as they come."""

    def __init__(self) -> None:
        self._is_begun = False

    def outcome(self, outcome: Outcome) -> str:
        return self._written(list(_findings(outcome)))

    def end(self, batch: Batch) -> str:
        return "" if self._is_begun else self._written([])

    def _written(self, rows: list[dict[str, Any]]) -> str:
        text = io.StringIO()
        writer = csv.DictWriter(text, FINDING_COLUMNS, lineterminator="\n")
        if not self._is_begun:
            writer.writeheader()
        self._is_begun = True
        for row in rows:
            writer.writerow({key: cell(value) for key, value in row.items()})
        return text.getvalue()


def _findings(outcome: Outcome) -> Iterator[dict[str, Any]]:
    whose = {
        "path": outcome.path,
        "index": outcome.index,
        "format": outcome.format,
        "session_id": outcome.session_id,
    }
    if outcome.error is not None:
        yield {
            **whose,
            "severity": outcome.error_severity,
            "rule": outcome.error.code,
            "message": outcome.error.message,
        }
    for line, said, rule, text in words.mended(outcome):
        yield {**whose, "line": line, "severity": said, "group": GROUPS.get(rule), "rule": rule, "message": text}
    for finding in outcome.findings:
        yield {
            **whose,
            "line": finding.line,
            "severity": finding.severity,
            "group": GROUPS.get(finding.rule),
            "rule": finding.rule,
            "message": finding.message,
            "known": finding.known,
            "fingerprint": finding.fingerprint,
        }


class Rows:
    """The rows, printed as they come; those before the first one that tells the estimators wait for it."""

    def __init__(self, has_estimates: bool) -> None:
        self._waits = has_estimates
        self._waiting: list[Outcome] = []
        self._columns: list[str] = []

    def outcome(self, outcome: Outcome) -> str:
        if self._waits and not _estimates(outcome):
            self._waiting.append(outcome)
            return ""
        return self._written([outcome])

    def end(self, batch: Batch) -> str:
        return "" if self._columns and not self._waiting else self._written([])

    def _written(self, outcomes: list[Outcome]) -> str:
        text = io.StringIO()
        is_first = not self._columns
        outcomes, self._waiting, self._waits = [*self._waiting, *outcomes], [], False
        if is_first:
            estimators = dict.fromkeys(name for item in outcomes for name in _estimates(item))
            self._columns = [*COLUMNS, *(f"tokens_{cell(name)}" for name in estimators)]
        writer = csv.DictWriter(text, self._columns, lineterminator="\n")
        if is_first:
            writer.writeheader()
        for item in outcomes:
            writer.writerow({key: cell(value) for key, value in _row(item).items()})
        return text.getvalue()


def _row(outcome: Outcome) -> dict[str, Any]:
    severities = [finding.severity for finding in outcome.findings]
    row: dict[str, Any] = {
        "path": outcome.path,
        "index": outcome.index,
        "format": outcome.format,
        "session_id": outcome.session_id,
        "model": outcome.model,
        "status": outcome.status,
        "messages": outcome.messages,
        "rounds": outcome.rounds,
        "tool_results": outcome.tool_results,
        "exit_code": outcome.exit_code,
        **{f"{severity}s": severities.count(severity) for severity in SEVERITIES},
        **{f"tokens_{cell(name)}": value for name, value in _estimates(outcome).items()},
    }
    if outcome.error is not None:
        row |= {"error_code": outcome.error.code, "error_message": outcome.error.message}
    if outcome.bytes is not UNSET:
        sizes = outcome.bytes
        row |= {"bytes_before": sizes.before, "bytes_after": sizes.after, "bytes_beside": sizes.beside}
    if outcome.tokens is not UNSET:
        tokens = outcome.tokens
        row |= {
            "estimator": tokens.estimator,
            "anchored": tokens.anchored,
            "tokens_before": tokens.before,
            "tokens_after": tokens.after,
            "window": tokens.window,
            "threshold": tokens.threshold,
        }
    if outcome.layer1 is not UNSET:
        row["spills"] = len(outcome.layer1.spills)
    if outcome.layer2 is not UNSET:
        note = outcome.layer2
        row |= {
            "layer2_reason": note.reason,
            "provider": note.provider,
            "messages_summarized": note.messages_summarized,
        }
    if outcome.output is not None:
        row["output"] = outcome.output.session
    return row


def _estimates(outcome: Outcome) -> dict[str, int | None]:
    return {} if outcome.estimates is UNSET else outcome.estimates


def cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            shown = visible(value)
            return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown
        case int() | float():
            return str(value)
    return ""
