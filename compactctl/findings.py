"""The rules that a session can break: one table of ids, groups and severities.

Ids are final from the first release; messages may get better. What each rule means, with an example and a way to
mend it, is in `rules`, which nothing but its own command and the reports that carry help has to load.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warning", "note"]
Group = Literal["reading", "resume", "size", "usage", "loss", "secrets", "gates"]

BY_GROUP: dict[Group, dict[str, Severity]] = {
    "reading": {
        "unreadable-line": "error",
        "glued-records": "error",
        "nul-run": "error",
        "torn-tail": "error",
        "empty-session": "error",
        "empty-file": "warning",
        "invalid-utf8": "warning",
        "lone-surrogate": "warning",
        "no-final-newline": "note",
        "unknown-record": "note",
        "replayed-records": "note",
        "byte-order-mark": "note",
        "non-json-number": "note",
    },
    "resume": {
        "result-without-call": "error",
        "call-without-result": "error",
        "duplicate-result": "error",
        "bad-call-id": "error",
        "parent-cycle": "error",
        "missing-spill": "error",
        "missing-header": "error",
        "missing-ordinal": "error",
        "ignored-compaction": "error",
        "edited-reasoning": "error",
        "dangling-parent": "warning",
        "blank-summary": "warning",
        "unfinished-call": "warning",
        "result-out-of-place": "warning",
        "refused-role": "warning",
        "empty-content": "warning",
        "hollow-reasoning": "warning",
        "unreachable-output": "note",
    },
    "size": {
        "over-window": "error",
        "over-threshold": "warning",
        "large-result": "warning",
        "large-round": "warning",
        "large-request": "warning",
        "large-image": "warning",
        "too-many-images": "warning",
        "heavy-results": "note",
    },
    "usage": {
        "stale-usage": "warning",
        "impossible-usage": "warning",
        "falling-usage": "note",
        "placeholder-output": "note",
        "repeated-usage": "note",
        "no-usage": "note",
        "no-estimate": "note",
        "estimator-error": "note",
    },
    "loss": {
        "lost-after-compaction": "note",
        "lost-instruction": "warning",
        "read-again": "note",
    },
    "secrets": {
        "secret": "error",
        "possible-secret": "warning",
    },
    "gates": {
        "max-tokens": "error",
        "max-context": "error",
        "max-compactions": "error",
        "max-result-bytes": "error",
        "max-estimator-error": "error",
    },
}
"""Every rule and its severity, by what it is about. A gate is broken where its option says so, and nowhere else."""

RULES: dict[str, Severity] = {rule: severity for rules in BY_GROUP.values() for rule, severity in rules.items()}
"""Every rule and its severity."""

GROUPS: dict[str, Group] = {rule: group for group, rules in BY_GROUP.items() for rule in rules}
"""Every rule and its group."""


class Finding(Struct, frozen=True, order=True):
    """One broken rule: where (line from 1; None for the whole session) and in words."""

    line: int | None
    rule: str
    message: str

    @property
    def severity(self) -> Severity:
        """The rule's own severity, whatever the settings make of it."""
        return RULES[self.rule]


def sort(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings without repeats, by line; those of the whole session come first."""
    return tuple(sorted(set(findings), key=lambda f: (f.line or 0, f.rule, f.message)))
