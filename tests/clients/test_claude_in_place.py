"""Claude Code goes on in a session that was compacted in place, and what it appends outlives the restore."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients import mock, real

pytestmark = pytest.mark.clients

COMMAND = "seq -f 'line %g of the journal' 1000"
BIG = "\n".join(f"line {number} of the journal" for number in range(1, 1001))
FIRST, NEXT, AFTER = f"Please run `{COMMAND}`", "Thank you.", "One more thing."


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


def compactctl(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "compactctl", *arguments], check=True, capture_output=True)


def test_turns_after_a_compaction_in_place_are_in_the_same_file_and_outlive_the_restore(tmp_path):
    home = Home(tmp_path)
    home.ask(FIRST)
    session = home.session()
    home.ask("--resume", session.stem, NEXT)
    original = session.read_bytes()
    compactctl("spill", "--apply", "--in-place", "--set", "layer1.single_limit_bytes=20000", str(session))
    compacted = session.read_bytes()
    assert len(compacted) < len(original) - len(BIG)

    sent = home.ask("--resume", session.stem, AFTER)
    [preview] = [message["text"] for message in sent if message.get("result_of") == mock.CALL_ID]
    assert preview.startswith("<persisted-output>")
    kept = session.parent / f"{session.stem}.compacted/tool-results/{mock.CALL_ID}.txt"
    assert str(kept) in preview
    assert kept.read_text() == BIG
    said = [message["text"] for message in sent if message["role"] == "user"]
    assert [any(text.endswith(question) for text in said) for question in (FIRST, NEXT, AFTER)] == [True] * 3
    grown = home.session().read_bytes()
    assert grown.startswith(compacted)
    assert AFTER.encode() in grown[len(compacted) :]
    assert mock.ANSWER.encode() in grown[len(compacted) :]

    compactctl("restore", "--apply", "--in-place", "--discard-new", str(session))
    assert session.read_bytes() == original
    [appended] = session.parent.rglob("*appended*")
    assert appended.read_bytes() == grown[len(compacted) :]
