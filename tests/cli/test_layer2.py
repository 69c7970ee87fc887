"""The command line of Layer 2: what it is told, what it prints, and what it says before anything is sent."""

import json
import re

import pytest

from compactctl.__main__ import exit_code
from compactctl.cli import asking
from compactctl.errand import Errand
from compactctl.outcome import PriceNote
from tests.builders.long_chat import long_chat, small_window

SMALL = ["--window", "4000", *(word for change in small_window() for word in ("--set", change))]
CONFIG = """
[providers.fast]
kind = "openai"
model = "gpt-4.1"
base_url = "http://someone:hunter2pass@127.0.0.1:1/v1"
api_key_env = "NO_SUCH_KEY"

[providers.own]
kind = "command"
command = ["sh", "-c", "cat >/dev/null; echo '<summary>From a program.</summary>'"]
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "conf" / "compactctl.toml"
    path.parent.mkdir()
    path.write_text(CONFIG)
    return ["--config", str(path)]


def test_summarize_writes_at_once_and_prints_the_summary(tmp_path, write_session, capsys):
    assert exit_code(["summarize", str(write_session(long_chat())), *SMALL]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("applied and verified\n")
    assert re.search(r"^summary   \d+ messages -> [\d,]+ tokens by extract \(no model\)$", printed, re.MULTILINE)
    assert (tmp_path / "s.compacted/summary.md").read_text().splitlines()[0] in printed.splitlines()


def test_all_that_was_written_is_named_from_the_same_folder(tmp_path, write_session, capsys, monkeypatch):
    path = write_session(long_chat())
    monkeypatch.chdir(path.parent)
    assert exit_code(["summarize", path.name, *SMALL]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("wrote"))
    assert [line[10:] for line in lines[first : first + 4]] == [
        "s.compacted.jsonl",
        "s.compacted.report.json",
        "s.compacted/summary.md",
        "s.compacted/history.jsonl",
    ]


def test_compact_shows_a_plan_unless_told_to_apply(tmp_path, write_session, capsys):
    path = str(write_session(long_chat()))
    assert exit_code(["compact", path, *SMALL]) == 0
    assert capsys.readouterr().out.startswith("dry run: nothing was written\n")
    assert not (tmp_path / "s.compacted.jsonl").exists()
    assert exit_code(["compact", path, *SMALL, "--apply", "-o", "json"]) == 0
    [session] = json.loads(capsys.readouterr().out)["sessions"]
    assert (session["layer2"]["due"], session["layer2"]["ran"], session["layer2"]["reason"]) == (True, True, "due")


@pytest.mark.parametrize("command", ["summarize", "compact"])
def test_check_changes_nothing_and_ends_with_1_where_there_is_something_to_do(command, tmp_path, write_session, capsys):
    assert exit_code([command, str(write_session(long_chat())), *SMALL, "--check"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


def test_a_program_can_write_the_summary_and_what_it_will_get_is_said_first(tmp_path, write_session, config, capsys):
    path = str(write_session(long_chat()))
    assert exit_code(["summarize", path, *SMALL, *config, "--provider", "own", "-q"]) == 0
    printed = capsys.readouterr()
    assert "From a program." in printed.out
    assert printed.err.startswith("to be summarised: 1 session, about ")
    assert " by own at " in printed.err


def test_a_choice_is_asked_for_where_several_are_configured(write_session, config, capsys):
    assert exit_code(["summarize", str(write_session(long_chat())), *SMALL, *config]) == 2
    assert "several providers are configured (fast, own)" in capsys.readouterr().err
    assert exit_code(["summarize", "x.jsonl", *config, "--provider", "fats"]) == 2
    assert "no provider fats is configured" in capsys.readouterr().err


def test_the_list_of_providers_says_what_is_missing_and_shows_no_secret(config, capsys):
    assert exit_code(["providers", *config, "-o", "json"]) == 0
    printed = capsys.readouterr().out
    listed = {each["provider"]: each for each in json.loads(printed)["providers"]}
    assert list(listed) == ["fast", "own", "extract (no model)"]
    assert "NO_SUCH_KEY is not set" in listed["fast"]["missing"]
    assert "hunter2pass" not in printed


def test_a_missing_key_fails_the_session_with_its_variable_and_writes_nothing(tmp_path, write_session, config, capsys):
    assert exit_code(["summarize", str(write_session(long_chat())), *SMALL, *config, "--provider", "fast"]) == 5
    printed = capsys.readouterr()
    assert "NO_SUCH_KEY" in printed.err
    assert "hunter2pass" not in printed.out + printed.err
    assert not (tmp_path / "s.compacted.jsonl").exists()


ERRAND = Errand(3, 412_000, "fast (gpt-4.1)", "https://api.example.org/v1", True, PriceNote(1.25, "2026-11"))


def test_what_is_sent_is_told_in_one_line():
    assert asking.told(ERRAND) == (
        "to be summarised: 3 sessions, about 412,000 tokens, by fast (gpt-4.1) at https://api.example.org/v1; "
        "about $1.2500 (list prices of 2026-11)"
    )


@pytest.mark.parametrize(
    "terminal, yes, answer, goes_on",
    [(True, False, "n", False), (True, False, "y", True), (True, True, "n", True), (False, False, "n", True)],
)
def test_a_person_at_a_terminal_is_asked_unless_yes(terminal, yes, answer, goes_on, monkeypatch, capsys):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    monkeypatch.setattr(asking.streams, "is_terminal", lambda stream: terminal)
    assert asking.approver(yes=yes)(ERRAND) is goes_on
