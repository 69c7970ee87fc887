"""The rules that reading a session can find broken, in one table.

Rule names are final from the first release; messages may get better.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "note"]

RULES: dict[str, Severity] = {
    "unreadable-line": "error",
    "glued-records": "error",
    "nul-run": "error",
    "torn-tail": "error",
    "result-without-call": "error",
    "call-without-result": "error",
    "duplicate-result": "error",
    "bad-call-id": "error",
    "parent-cycle": "error",
    "missing-spill": "error",
    "empty-session": "error",
    "invalid-utf8": "warning",
    "lone-surrogate": "warning",
    "dangling-parent": "warning",
    "stale-usage": "warning",
    "blank-summary": "warning",
    "unfinished-call": "warning",
    "result-out-of-place": "warning",
    "no-final-newline": "note",
    "unknown-record": "note",
    "replayed-records": "note",
    "no-usage": "note",
    "byte-order-mark": "note",
    "non-json-number": "note",
}
"""Every rule and its severity."""


class Finding(Struct, frozen=True, order=True):
    """One broken rule: where (line from 1; None for the whole session) and in words."""

    line: int | None
    rule: str
    message: str

    @property
    def severity(self) -> Severity:
        return RULES[self.rule]


def sort(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings without repeats, by line; those of the whole session come first."""
    return tuple(sorted(set(findings), key=lambda f: (f.line or 0, f.rule, f.message)))
