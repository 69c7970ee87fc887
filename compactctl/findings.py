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

MEANINGS: dict[str, str] = {
    "unreadable-line": "no JSON reader accepts the line; it is kept as it is and never edited",
    "glued-records": "several records on one line, or one with something behind it",
    "nul-run": "zero bytes, as a crash leaves them",
    "torn-tail": "the last line is cut off; it never stays at the end of an output",
    "result-without-call": "a tool result whose call is not in its exchange",
    "call-without-result": "a tool call that nothing answers, though the session went on",
    "duplicate-result": "a second result for one call",
    "bad-call-id": "a call or a result without an id",
    "parent-cycle": "records that are each other's ancestors",
    "missing-spill": "a spilled file that is not there, or not as it was written",
    "empty-session": "recognised, but no message is in context",
    "invalid-utf8": "bytes that are not UTF-8",
    "lone-surrogate": "half of a surrogate pair, which providers refuse",
    "dangling-parent": "a record names a parent that is not in the file",
    "stale-usage": "recorded usage that no longer says how full the context is",
    "blank-summary": "a compaction whose summary is empty",
    "unfinished-call": "the session ends before a tool call is answered",
    "result-out-of-place": "another message stands between a call and its result",
    "no-final-newline": "the last line has no newline; an output has one",
    "unknown-record": "a kind of record that this version does not know; kept as it is",
    "replayed-records": "records that stand in the file twice",
    "no-usage": "no provider usage to start an estimate from",
    "byte-order-mark": "the file starts with a byte order mark",
    "non-json-number": "NaN, Infinity, or an integer too long to read",
}
"""Every rule in words."""


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
