"""The outputs that `-o` names. A new one is one file here, one line in this table, and its tests."""

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from compactctl.outcome import Outcome
    from compactctl.totals import Batch

OUTPUTS = {
    "table": "pages and tables for people",
    "json": "one object: sessions and totals",
    "jsonl": "one object a session, as each is done, and the totals last",
    "csv": "a row a session",
    "markdown": "for a pull request, an issue or a job summary",
}
"""Every output by name, in words. Each is the module of that name in this folder."""

REPORTS = {
    "text": "a finding a line, as compilers print",
    "sarif": "SARIF 2.1.0, for code scanning and editors",
    "junit": "JUnit XML, for test reports",
    "github": "annotations of GitHub Actions",
    "summary": "Markdown for the summary of a job",
    "gitlab": "code quality report of GitLab",
}
"""What `audit` prints besides: findings and nothing else. Each is a module here, too."""

AUDIT_OUTPUTS = {**REPORTS, **OUTPUTS}
"""Every output of `audit`."""


@dataclass(frozen=True, slots=True)
class View:
    """How a person is looking: what the command line knows and an output may use."""

    color: bool = False
    terminal: bool = False
    """Standard output is a terminal: short names do; else whole paths, for whatever reads on."""
    verbose: bool = False
    command_line: str = ""
    """The command as it was given, to build the next one from."""
    root: str = ""
    """The root of the repository, which paths are told from; empty: paths are told as they are."""
    fail_on: str = "error"
    """From which severity up a finding makes the run fail; `never`."""
    sort: str = ""
    """What the sessions are sorted by, in words; empty: they come in the order of the inputs."""


class Printer(Protocol):
    """One batch being printed. It keeps what it still needs, and no outcome for longer than that."""

    def outcome(self, outcome: "Outcome") -> str:
        """Return what is printed as soon as one session is done; empty where nothing is."""
        ...

    def end(self, batch: "Batch") -> str:
        """Return what is printed when all are done. Some sessions may have been left out: the totals know them."""
        ...


class Output(Protocol):
    """One way to print a batch. Modules serve as implementations."""

    ENCODING: str | None
    """What the text is encoded as; None: as the terminal wants it."""

    def printer(self, command: str, view: View) -> Printer:
        """Return what prints the outcomes of one run of a command."""
        ...


def load(name: str) -> Output:
    """Return an output by name; its module is imported only now."""
    return cast(Output, importlib.import_module(f"compactctl.outputs.{name}"))
