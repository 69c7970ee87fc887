"""`-o summary`: Markdown for the summary of a job: what was found, by rule, and the first findings one by one.

As in `markdown`, nothing from a session becomes markup. It stays small: GitHub takes a megabyte of a step.
"""

from collections import Counter

from compactctl.outcome import SEVERITIES, Outcome
from compactctl.outputs import View, reported, words
from compactctl.outputs.markdown import cell, table
from compactctl.outputs.reported import Told
from compactctl.outputs.safe import clipped
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"

FINDINGS_LIMIT = 100
"""So many findings are told one by one: errors first."""

MESSAGE_CHARACTERS = 400
PATH_CHARACTERS = 200


def printer(command: str, view: View) -> "Summary":
    return Summary(command, view)


class Summary:
    """Counts by rule, and of each severity no more findings than will be shown."""

    def __init__(self, command: str, view: View) -> None:
        self._command = command
        self._root = view.root
        self._counts: Counter[tuple[str, str]] = Counter()
        self._found: dict[str, list[tuple[str, Told]]] = {severity: [] for severity in SEVERITIES}
        self._known = 0
        self._mended: list[tuple[str, Told]] = []
        self._mended_count = 0

    def outcome(self, outcome: Outcome) -> str:
        path = reported.relative(outcome.path, self._root) or outcome.path
        mended = reported.mended(outcome)
        self._mended_count += len(mended)
        self._mended += [(path, item) for item in mended[: FINDINGS_LIMIT - len(self._mended)]]
        for item in reported.told(outcome):
            if item.is_known:
                self._known += 1
                continue
            self._counts[item.severity, item.rule] += 1
            if len(self._found[item.severity]) < FINDINGS_LIMIT:
                self._found[item.severity].append((path, item))
        return ""

    def end(self, batch: Batch) -> str:
        lines = [f"## compactctl {self._command}", "", words.found(batch)]
        if self._mended:
            lines += ["", *self._mends()]
        if self._counts:
            ordered = sorted(
                self._counts.items(), key=lambda each: (SEVERITIES.index(each[0][0]), -each[1], each[0][1])
            )
            rows = [[severity, cell(rule), f"{number:,}"] for (severity, rule), number in ordered]
            lines += ["", *table(("severity", "rule", "findings"), rows)]
            lines += ["", *self._one_by_one()]
        return "".join(f"{line}\n" for line in lines)

    def _mends(self) -> list[str]:
        rows = [
            [_place(path, item.line), cell(item.rule), cell(clipped(item.message, MESSAGE_CHARACTERS))]
            for path, item in self._mended
        ]
        rest = self._mended_count - len(rows)
        return [*table(("where", "rule", "mended"), rows), *(["", f"and {rest:,} more"] if rest else [])]

    def _one_by_one(self) -> list[str]:
        shown = [pair for pairs in self._found.values() for pair in pairs][:FINDINGS_LIMIT]
        rows = [
            [item.severity, _place(path, item.line), cell(item.rule), cell(clipped(item.message, MESSAGE_CHARACTERS))]
            for path, item in shown
        ]
        rest = sum(self._counts.values()) - len(shown)
        return [*table(("severity", "where", "rule", "what"), rows), *(["", f"and {rest:,} more"] if rest else [])]


def _place(path: str, line: int | None) -> str:
    return cell(clipped(path, PATH_CHARACTERS) + ("" if line is None else f":{line}"))
