"""Claude Code goes on in a session that was compacted in place, and what it appends outlives the restore."""

import subprocess
import sys

import pytest

from tests.clients import mock
from tests.clients.home import FIRST, Home

pytestmark = pytest.mark.clients

BIG = "\n".join(f"line {number} of the journal" for number in range(1, 1001))

NEXT, AFTER = "Thank you.", "One more thing."


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
