"""What the command line says of itself: its first screen, its help, its lists; and how little it loads for that."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from compactctl.__main__ import exit_code
from compactctl.cli.commands import app
from compactctl.findings import RULES
from compactctl.formats import FORMATS
from tests.cli.running import COMMANDS, SAMPLES


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_the_first_screen_names_every_command_and_ends_well(arguments, capsys):
    assert exit_code(arguments) == 0
    printed = capsys.readouterr()
    assert [name for name in COMMANDS if name not in printed.out] == []
    assert printed.err == ""


def test_the_first_screen_groups_commands_by_what_they_do(capsys):
    exit_code(["--help"])
    lines = capsys.readouterr().out.splitlines()
    groups = [line for line in lines if line in ("Look (read only)", "Undo") or line.startswith("Make smaller")]
    assert groups == [
        "Look (read only)",
        "Make smaller (shows a plan; --apply writes)",
        "Make smaller (writes a new file; --dry-run shows the plan)",
        "Undo",
    ]


@pytest.mark.parametrize(
    "command, usage",
    [("inspect", "[OPTIONS] PATH..."), ("rules", "[OPTIONS] [RULE]"), ("settings", "[OPTIONS]")],
)
def test_the_usage_line_says_what_a_command_takes(command, usage, capsys):
    exit_code([command, "--help"])
    assert capsys.readouterr().out.splitlines()[0] == f"Usage: compactctl {command} {usage}"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_the_help_of_a_command_lists_its_options(command, flag, capsys):
    assert exit_code([command, flag]) == 0
    said = capsys.readouterr().out
    import typer

    options = typer.main.get_command(app).commands[command].params
    names = [name for option in options for name in (*option.opts, *option.secondary_opts) if name.startswith("-")]
    assert [name for name in names if name not in said] == []


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_one_line(flag, capsys):
    assert exit_code([flag]) == 0
    assert re.fullmatch(r"compactctl \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_formats_and_rules_are_lists(capsys):
    assert exit_code(["formats", "-o", "json"]) == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)["formats"]] == list(FORMATS)
    assert exit_code(["rules", "-o", "json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert {item["rule"]: item["severity"] for item in rules} == RULES
    assert all(item["meaning"] for item in rules)


# what is imported ---------------------------------------------------------------------------------


SDKS = {"openai", "anthropic", "genai_prices", "tiktoken", "rich", "tabulate"}

AUDITS = {"compactctl.checks", "compactctl.formats.claude_code.checks"}

SELDOM = {"zstandard", "imagesize", "tomllib", "concurrent.futures", "multiprocessing", *AUDITS}

PYDANTIC = {"pydantic"} if version("typer") < "0.29" else set()
"""Not in the range of typer that we ask for; a newer one brings it into every command."""


def imported_by(*arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "compactctl", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
        env={**os.environ, "XDG_CONFIG_HOME": str(cwd), "PYTHONPATH": str(SAMPLES.parent)},
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


@pytest.mark.parametrize("arguments", [["--help"], ["spill", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments, tmp_path):
    own = {"orjson", "msgspec", "compactctl.run", "compactctl.document"}
    assert imported_by(*arguments, cwd=tmp_path) & {*SDKS, *SELDOM, *PYDANTIC, *own} == set()


@pytest.mark.parametrize("command", ["inspect", "spill"])
def test_a_plain_session_is_read_without_what_only_some_need(command, tmp_path):
    arguments = [command, str(SAMPLES / "long.jsonl"), "-o", "json"]
    assert imported_by(*arguments, cwd=tmp_path) & {*SDKS, *SELDOM, *PYDANTIC} == set()
