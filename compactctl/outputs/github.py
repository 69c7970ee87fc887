"""`-o github`: annotations, as the runner of GitHub Actions takes them from what a step prints.

Errors come first, and of each kind no more than a step may have; one plain line counts the rest. Findings that a
baseline knows are left out. A value is escaped as GitHub's toolkit does it, so that no text ends its command.
Source: GitHub's "Workflow commands for GitHub Actions".
"""

import re

from msgspec import Struct

from compactctl.outcome import SEVERITIES, Outcome
from compactctl.outputs import View, reported
from compactctl.outputs.reported import Told
from compactctl.outputs.safe import visible
from compactctl.outputs.words import count
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"

ANNOTATIONS_LIMIT = 10
"""So many annotations of a kind GitHub shows for a step."""

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}

MESSAGE_CHARACTERS = 2_000

_LINE_END = re.compile("([\r\n])")


def printer(command: str, view: View) -> "Annotations":
    return Annotations(view)


class _Kind(Struct):
    """Annotations of one severity: the first lines, and how many there are in all."""

    lines: list[str] = []
    found: int = 0


class Annotations:
    """What is to be annotated, by severity; no more lines are kept than will be printed."""

    def __init__(self, view: View) -> None:
        self._root = view.root
        self._kinds: dict[str, _Kind] = {severity: _Kind() for severity in SEVERITIES}

    def outcome(self, outcome: Outcome) -> str:
        for item in (*reported.told(outcome), *reported.mended(outcome)):
            if item.is_known:
                continue
            kind = self._kinds[item.severity]
            kind.found += 1
            if len(kind.lines) < ANNOTATIONS_LIMIT:
                kind.lines.append(_annotation(outcome.path, self._root, item))
        return ""

    def end(self, batch: Batch) -> str:
        lines = [line for kind in self._kinds.values() for line in kind.lines]
        rest = [
            count(kind.found - len(kind.lines), severity)
            for severity, kind in self._kinds.items()
            if kind.found > len(kind.lines)
        ]
        lines += [f"compactctl: {', '.join(rest)} more, not annotated"] if rest else []
        return "".join(f"{line}\n" for line in lines)


def _annotation(path: str, root: str, item: Told) -> str:
    place = reported.relative(path, root) or path
    properties = {"file": place, "line": "" if item.line is None else str(item.line), "title": item.rule}
    if path == reported.STANDARD_INPUT:
        properties = {"title": item.rule}
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{COMMANDS[item.severity]} {told}::{_data(item.message[:MESSAGE_CHARACTERS])}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Return a value for a property. What no terminal should see is spelled, line ends and separators are escaped."""
    shown = "".join(piece if piece in ("\r", "\n") else visible(piece) for piece in _LINE_END.split(text))
    return _data(shown).replace(":", "%3A").replace(",", "%2C")
