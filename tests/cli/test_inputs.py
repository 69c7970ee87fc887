"""What a command is given to work on: files, folders without sessions, ids, standard input."""

import json
import shutil

import pytest

from compactctl.__main__ import exit_code
from tests.cli.running import PATH_COMMANDS, SAMPLES, process


@pytest.mark.parametrize("command", PATH_COMMANDS)
@pytest.mark.parametrize("chosen", [[], ["--exclude", "*.jsonl"], ["--since", "2999-01-01"]])
def test_nothing_found_is_exit_3_unless_that_is_allowed(command, chosen, tmp_path, capsys):
    if chosen:
        shutil.copy(
            SAMPLES / "chat.jsonl", tmp_path / ("s.compacted.jsonl" if command in ("verify", "restore") else "s.jsonl")
        )
    assert exit_code([command, str(tmp_path), *chosen]) == 3
    why = " (left out by --exclude, --since or --until: 1)" if chosen else ""
    assert capsys.readouterr().err == f"error: no session found{why}\n"
    assert exit_code([command, str(tmp_path), *chosen, "--allow-empty"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", PATH_COMMANDS)
def test_allowing_nothing_does_not_allow_a_named_file_to_be_missing(command, tmp_path):
    assert exit_code([command, str(tmp_path / "gone.jsonl"), "--allow-empty"]) == 3


def test_a_file_that_is_no_session_is_exit_3(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("just words\n")
    done = process("inspect", path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"error: {path}: ")
    assert done.stderr.count("\n") == 1


def test_standard_input_is_a_session():
    done = process("inspect", "-", "-o", "json", stdin=(SAMPLES / "chat.jsonl").read_text())
    assert json.loads(done.stdout)["sessions"][0]["format"] == "chat"


@pytest.fixture
def agent_home(tmp_path, monkeypatch):
    """A folder of Claude Code with two sessions whose ids start alike."""
    folder = tmp_path / "claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    for part in ("0001", "0002"):
        shutil.copy(SAMPLES / "long.jsonl", folder / f"5c3a83f2-{part}-4cec-acdc-ae1668adf92e.jsonl")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.partition("_")[0].lower()))
    return folder


def test_a_session_is_named_by_the_start_of_its_id(agent_home, capsys):
    path = agent_home / "5c3a83f2-0001-4cec-acdc-ae1668adf92e.jsonl"
    assert exit_code(["inspect", "5c3a83f2-0001", "-o", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["sessions"][0]["path"] == str(path)
    assert printed.err == f"note: 5c3a83f2-0001 is {path}\n"
    assert exit_code(["spill", "5c3a83f2-0001", "--apply", "-q"]) == 0
    assert exit_code(["verify", "5c3a83f2-0001", "-q"]) == 0
    assert exit_code(["restore", "5c3a83f2-0001", "-q"]) == 0
    assert path.read_bytes() == path.with_name(f"{path.stem}.restored.jsonl").read_bytes()


@pytest.mark.parametrize("command", PATH_COMMANDS[:3])
def test_an_id_of_several_is_wrong_usage_and_one_of_none_is_not_found(command, agent_home, capsys):
    assert exit_code([command, "5c3a83f2"]) == 2
    assert "5c3a83f2 is how 2 session ids start" in capsys.readouterr().err
    assert exit_code([command, "99999999"]) == 3
    assert "no session of this id in" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["verify", "restore"])
def test_an_id_of_a_session_that_was_never_compacted_says_so(command, agent_home, capsys):
    assert exit_code([command, "5c3a83f2-0001", "-o", "json"]) == 3
    printed = capsys.readouterr()
    assert json.loads(printed.out)["sessions"][0]["error"]["code"] == "no_receipt"
    assert "not a compacted session" in printed.err


def test_what_came_from_standard_input_is_said_so_when_it_is_restored(tmp_path):
    source = (SAMPLES / "long.jsonl").read_text()
    process("spill", "-", "--apply", "--out", tmp_path, stdin=source)
    done = process("restore", tmp_path / "stdin.compacted.jsonl", "-q")
    assert "stdin.restored.jsonl is what came from standard input, byte for byte (" in done.stdout
    assert (tmp_path / "stdin.restored.jsonl").read_text() == source
