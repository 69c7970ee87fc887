"""`-o text`: a finding a line, `path:line: severity rule: text`, as compilers print: editors and CI find the place.

What failed to be read is a line of its own, `path: error CODE: text`; the last line counts.
"""

from collections.abc import Iterator

from msgspec import UNSET

from compactctl.outcome import Batch, FindingNote, Outcome
from compactctl.outputs import View, words
from compactctl.outputs.pages import paint
from compactctl.outputs.safe import visible

ENCODING: str | None = None


def printer(command: str, view: View) -> "Lines":
    return Lines(view)


class Lines:
    """The findings as they come. Those that a baseline knows are counted, and shown only to who wants to see more."""

    def __init__(self, view: View) -> None:
        self._view = view

    def outcome(self, outcome: Outcome) -> str:
        path = visible(outcome.path)
        lines = []
        if outcome.error is not None:
            severity = "error" if outcome.status == "failed" else "note"
            said = visible(outcome.error.message.removeprefix(f"{outcome.path}: "))
            lines.append(f"{path}: {self._painted(severity)} {visible(outcome.error.code)}: {said}")
        lines += _fixes(path, outcome)
        lines += [
            self._line(path, finding) for finding in outcome.findings if self._view.verbose or not is_known(finding)
        ]
        return "".join(f"{line}\n" for line in lines)

    def _line(self, path: str, finding: FindingNote) -> str:
        place = path if finding.line is None else f"{path}:{finding.line}"
        known = " (known)" if is_known(finding) else ""
        said = f"{visible(finding.rule)}: {visible(finding.message)}{known}"
        return f"{place}: {self._painted(finding.severity)} {said}"

    def _painted(self, severity: str) -> str:
        return paint(severity, severity, self._view)

    def end(self, batch: Batch) -> str:
        return f"{words.found(batch)}\n"


def _fixes(path: str, outcome: Outcome) -> Iterator[str]:
    """Yield what is mended, an edit a line, and where the mended session is."""
    for line, said, rule, text in words.mended(outcome):
        yield f"{path}:{line}: {said} {visible(rule)}: {visible(text)}"
    if outcome.fix is not UNSET:
        yield f"{path}: {words.mended_file(outcome)}"


def is_known(finding: FindingNote) -> bool:
    """Return whether a baseline has the finding."""
    return finding.known is not UNSET and finding.known
