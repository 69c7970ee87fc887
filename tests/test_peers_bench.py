"""The benchmark of other tools: each runs in a home of its own, and none counts that did not find the sessions."""

import sys

import pytest

from tests.bench import peers
from tests.builders import chat

FINDS = 'echo "$0" >> "$HOME/changed"; printf \'{"sessions": [\'; ls "$CLAUDE_CONFIG_DIR"/projects/* | wc -l; echo "]}"'
FINDS_NOTHING = "echo '{\"sessions\": []}'"


@pytest.fixture
def ccusage(tmp_path, monkeypatch):
    """Return where the program stands that the benchmark takes for ccusage, over one session and once."""
    session = tmp_path / "bench" / "session-00.jsonl"
    session.parent.mkdir()
    session.write_bytes(chat.lines(chat.user("Mend src/rows.py.")))
    monkeypatch.setattr(peers, "FOLDER", session.parent)
    monkeypatch.setattr(peers, "RUNS", 1)
    monkeypatch.setattr(peers, "generate", lambda folder: [session])
    monkeypatch.setattr(sys, "argv", ["peers", str(tmp_path)])
    program = tmp_path / "node_modules" / ".bin" / "ccusage"
    program.parent.mkdir(parents=True)
    return program


def printed(program, script, capsys):
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    peers.main()
    return {line[:28].rstrip(): line[28:] for line in capsys.readouterr().out.splitlines()}


def test_a_tool_finds_the_sessions_and_changes_no_home_but_the_one_of_the_benchmark(ccusage, capsys):
    lines = printed(ccusage, FINDS, capsys)
    assert "s of CPU" in lines["ccusage"]
    assert (peers.FOLDER / "home" / "changed").exists()


def test_a_tool_that_found_nothing_has_no_figure(ccusage, capsys):
    lines = printed(ccusage, FINDS_NOTHING, capsys)
    assert lines["ccusage"] == "left out: found 0 of 1 sessions"
    assert "s of CPU" in lines["json.loads, every line"]
    assert lines["claude-context-cost"].startswith("left out: not installed")
