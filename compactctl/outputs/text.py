"""`-o text`: a finding a line, `path:line: severity rule: text`, as compilers print: editors and CI find the place.

What failed to be read is a line of its own, `path: error CODE: text`; the last line counts.
"""

from collections.abc import Iterator

from msgspec import UNSET

from compactctl.outcome import Outcome
from compactctl.outputs import View, reported, words
from compactctl.outputs.pages import paint
from compactctl.outputs.reported import Told
from compactctl.outputs.safe import visible
from compactctl.totals import Batch

ENCODING: str | None = None


def printer(command: str, view: View) -> "Lines":
    return Lines(view)


class Lines:
    """The findings as they come. Those that a baseline knows are counted, and shown only to who wants to see more."""

    def __init__(self, view: View) -> None:
        self._view = view

    def outcome(self, outcome: Outcome) -> str:
        path = visible(outcome.path)
        told = reported.told(outcome)
        lines = [self._line(path, item) for item in told if item.is_failure]
        lines += _fixes(path, outcome)
        shown = (item for item in told if self._view.verbose or not item.is_known)
        lines += [self._line(path, item) for item in shown if not item.is_failure]
        return "".join(f"{line}\n" for line in lines)

    def _line(self, path: str, item: Told) -> str:
        return reported.line(path, item, paint(item.severity, item.severity, self._view))

    def end(self, batch: Batch) -> str:
        return f"{words.found(batch)}\n"


def _fixes(path: str, outcome: Outcome) -> Iterator[str]:
    """Yield what is mended, an edit a line, and where the mended session is."""
    for line, said, rule, text in words.mended(outcome):
        yield f"{path}:{line}: {said} {visible(rule)}: {visible(text)}"
    if outcome.fix is not UNSET:
        yield f"{path}: {words.mended_file(outcome)}"
