"""Which CI system a run is in, and what it is told there besides the result.

GitHub gets annotations, on standard error so that they never stand in a result (its runner reads both streams), and
Markdown at the end of the file that GITHUB_STEP_SUMMARY names. GitLab takes neither; its report is a file (`--save`).
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from compactctl.outcome import Outcome
    from compactctl.outputs import View
    from compactctl.totals import Batch

CHOICES = ("auto", "github", "gitlab", "none")

SUMMARY_FILE = "GITHUB_STEP_SUMMARY"


class Sink(Protocol):
    """A report that goes elsewhere than to standard output."""

    def start(self, command: str, view: "View") -> None:
        """Begin the report of one run."""
        ...

    def outcome(self, outcome: "Outcome") -> None:
        """Take an outcome."""
        ...

    def end(self, batch: "Batch") -> None:
        """Write what the report came to. Raises WriteError."""
        ...


def system(choice: str, environment: Mapping[str, str]) -> str:
    """Return `github`, `gitlab` or `none`: as chosen, or for `auto` as the CI's own variables say."""
    if choice != "auto":
        return choice
    if environment.get("GITHUB_ACTIONS") == "true":
        return "github"
    return "gitlab" if environment.get("GITLAB_CI") == "true" else "none"


def sinks(choice: str, environment: Mapping[str, str], output: str) -> "Sequence[Sink]":
    """Return what else is told in this CI; nothing twice that standard output has already."""
    if system(choice, environment) != "github":
        return ()
    made: list[Sink] = [] if output == "github" else [Annotating()]
    summary = environment.get(SUMMARY_FILE)
    if summary and output != "summary":
        made.append(Appending(summary))
    return made


class _Report:
    """A report of one kind, kept until the end."""

    kind: str

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def start(self, command: str, view: "View") -> None:
        from dataclasses import replace

        from compactctl import outputs

        self._printer = outputs.load(self.kind).printer(command, replace(view, color=False, terminal=False))

    def outcome(self, outcome: "Outcome") -> None:
        self._pieces.append(self._printer.outcome(outcome))

    def text(self, batch: "Batch") -> str:
        return "".join([*self._pieces, self._printer.end(batch)])


class Annotating(_Report):
    """Annotations, printed on standard error."""

    kind = "github"

    def end(self, batch: "Batch") -> None:
        sys.stderr.write(self.text(batch))
        sys.stderr.flush()


class Appending(_Report):
    """A summary, appended to the file of the step."""

    kind = "summary"

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = Path(path)

    def end(self, batch: "Batch") -> None:
        """Append the summary. Raises WriteError."""
        from compactctl import store

        store.append(self._path, self.text(batch).encode("utf-8", "backslashreplace"))
