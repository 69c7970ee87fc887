"""`-o csv`: a row a session, for spreadsheets and data frames.

Text of a session is never a formula: where a spreadsheet would take it for one, an apostrophe stands in front.
"""

import csv
import io
from typing import Any

from msgspec import UNSET

from compactctl.outcome import SEVERITIES, Batch, Outcome
from compactctl.outputs import View
from compactctl.outputs.safe import visible

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
    "errors",
    "warnings",
    "notes",
    "output",
    "exit_code",
)
"""The columns that every command prints; `estimate` adds one an estimator."""


def outcome(outcome: Outcome) -> str:
    return ""


def batch(batch: Batch, view: View) -> str:
    estimators = list(dict.fromkeys(name for item in batch.outcomes for name in _estimates(item)))
    text = io.StringIO()
    writer = csv.DictWriter(text, [*COLUMNS, *(f"tokens_{_cell(name)}" for name in estimators)], lineterminator="\n")
    writer.writeheader()
    for item in batch.outcomes:
        writer.writerow({key: _cell(value) for key, value in _row(item).items()})
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
        **{f"tokens_{_cell(name)}": value for name, value in _estimates(outcome).items()},
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
    if outcome.output is not None:
        row["output"] = outcome.output.session
    return row


def _estimates(outcome: Outcome) -> dict[str, int | None]:
    return {} if outcome.estimates is UNSET else outcome.estimates


def _cell(value: object) -> str:
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
