"""A home of Claude Code in which it goes on from one run to the next, and what it is asked first."""

from pathlib import Path

from tests.clients import real

COMMAND = "seq -f 'line %g of the journal' 1000"

FIRST = f"Please run `{COMMAND}`"


class Home:
    """A home of Claude Code that lasts, with a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("home", "work"):
            (folder / name).mkdir()

    def ask(self, *arguments: str) -> list[real.Json]:
        """Run the client once, and return the messages of the last request it sends."""
        log = self._folder / "requests.jsonl"
        log.unlink(missing_ok=True)
        command, environment = real.claude(self._folder / "home", *arguments)
        return real.requests(command, environment, log, self._folder / "work")[-1]

    def session(self) -> Path:
        """Return the one session that the client has written."""
        found = sorted((self._folder / "home/.claude/projects").glob("*/*.jsonl"))
        assert len(found) == 1, found
        return found[0]
