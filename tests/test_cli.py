"""The command line: in this process against a stand-in for `run`, and as a process where streams and pipes matter."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from compactctl import run
from compactctl.__main__ import exit_code
from compactctl.cli import streams
from compactctl.cli.batch import _applying
from compactctl.cli.commands import app
from compactctl.cli.options import tokens
from compactctl.errors import OutputCollision, UsageError
from compactctl.options import Options, Selection
from compactctl.outcome import Batch, Bytes
from tests.builders.outcomes import HOSTILE, batch, failed, finding, outcome, spilled

SAMPLES = Path(__file__).parents[1] / "sample_sessions"
PATH_COMMANDS = ("inspect", "estimate", "spill", "summarize", "compact", "restore", "verify")
COMMANDS = (*PATH_COMMANDS, "settings", "providers", "formats", "rules")


class FakeRun:
    """Stands in for `run`: gives the batch it was made with, and keeps what it was asked."""

    def __init__(self, made: Batch | BaseException) -> None:
        self.made = made
        self.asked: list[tuple] = []

    def __call__(self, paths, options, how):
        self.asked.append((paths, options, how.jobs))
        if isinstance(self.made, BaseException):
            raise self.made
        for number, item in enumerate(self.made.outcomes, start=1):
            how.on_outcome(item)
            how.progress(number, len(self.made.outcomes), item.path)
        return self.made


@pytest.fixture
def fake(monkeypatch):
    """Let every command find this batch (or this error)."""

    def install(made: Batch | BaseException) -> FakeRun:
        stand_in = FakeRun(made)
        for command in PATH_COMMANDS:
            monkeypatch.setattr(run, command, stand_in)
        return stand_in

    return install


def process(*arguments, stdin="", **environment):
    """Run compactctl as a process of its own and return what came of it."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("NO_COLOR", "PYTHONIO"))}
    return subprocess.run(
        [sys.executable, "-m", "compactctl", *map(str, arguments)],
        env={**plain, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


# help --------------------------------------------------------------------------------------------


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


# options -----------------------------------------------------------------------------------------


def test_options_reach_the_run(fake):
    stand_in = fake(batch())
    arguments = ["a", "b", "--from", "codex", "--estimator", "heuristic", "--no-anchor", "--window", "1m"]
    more = ["--model", "m", "--set", "layer1.single_limit_bytes=7", "--set", "layer1.round_limit_bytes=8"]
    exit_code(["spill", *arguments, *more, "--apply", "--out", "dir", "-j", "3", "--allow-empty", "--debug"])
    [(paths, options, jobs)] = stand_in.asked
    assert (paths, jobs) == (["a", "b"], 3)
    assert (options.format, options.anchored, options.window_tokens, options.model) == ("codex", False, 1_000_000, "m")
    assert (options.settings.layer1.single_limit_bytes, options.settings.layer1.round_limit_bytes) == (7, 8)
    assert (options.apply, options.out, options.allow_empty, options.debug) == (True, "dir", True, True)


@pytest.mark.parametrize(
    "arguments, applies",
    [
        (["spill", "x"], False),
        (["estimate", "x"], False),
        (["spill", "x", "--apply"], True),
        (["restore", "x"], True),
        (["restore", "x", "--dry-run"], False),
    ],
)
def test_what_writes_unless_told_otherwise(arguments, applies, fake):
    stand_in = fake(batch())
    exit_code(arguments)
    assert stand_in.asked[0][1].apply is applies


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["spill", "a b"], "compactctl spill 'a b' --apply"),
        (["spill", "--dry-run", "x", "-q"], "compactctl spill x -q --apply"),
        (["spill", "x", "--check"], "compactctl spill x --apply"),
        (["spill", "-q", "--", "-x"], "compactctl spill -q --apply -- -x"),
        (["spill", "--", "--apply"], "compactctl spill --apply -- --apply"),
        (["spill", "-"], "compactctl spill - --out DIR --apply"),
        (["spill", "-", "--out=x"], "compactctl spill - --out=x --apply"),
    ],
)
def test_the_command_that_writes_what_was_shown(arguments, said):
    assert _applying(arguments) == said


@pytest.mark.parametrize(
    "text, number", [("200000", 200_000), ("200,000", 200_000), ("200k", 200_000), ("1M", 1_000_000), (None, None)]
)
def test_tokens_are_written_as_people_write_them(text, number):
    assert tokens(text, "--window") == number


@pytest.mark.parametrize("text", ["0", "-1", "many", "200kb", "", "1.5", "9" * 20, "9" * 5000])
def test_what_is_no_number_of_tokens_is_wrong_usage(text):
    with pytest.raises(UsageError, match="--window"):
        tokens(text, "--window")


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["spil", "x"], "No such command 'spil'. Did you mean 'spill'?"),
        (["spill", "x", "--aply"], "no such option --aply; did you mean --apply?"),
        (["spill"], "missing argument 'PATH...'"),
        (["inspect", "x", "-o", "tabel"], "unknown output 'tabel'; did you mean table?"),
        (["inspect", "x", "--from", "claude"], "unknown format 'claude'; did you mean claude-code?"),
        (["inspect", "x", "--color", "blue"], "unknown --color 'blue'; it is one of auto, always, never"),
        (["inspect", "x", "--window", "big"], "--window big: write a number of tokens, e.g. 200000 or 200k"),
        (["inspect", "x", "-j", "0"], "--jobs 0: write a number from 1"),
        (["inspect", "x", "-j", "9" * 5000], "write a number from 1"),
        (["spill", "x", "--out", ""], "--out: name a folder"),
        (["inspect", "x", "--set", "single_limit=3"], "unknown setting single_limit"),
        (["inspect", "x", "--set", "layer1.single_limit_bytes=big"], "layer1.single_limit_bytes"),
        (["inspect", "x", "--limit", "0"], "--limit 0: write a number from 1"),
        (["inspect", "x", "--limit", "2", "--all"], "--all and --limit: choose one"),
        (["inspect", "x", "--sort", "sise"], "unknown --sort 'sise'; did you mean size?"),
        (["inspect", "x", "--since", "today"], "--since today: write a date, e.g. 2026-06-01"),
        (["inspect", "x", "--since", "2026-02-02", "--until", "2026-02-01"], "no time is both"),
        (["settings", "--set", "layer1.single=3"], "did you mean layer1.single_limit_bytes?"),
        (["inspect", "x", "--config", "/none/x.toml"], "/none/x.toml: settings can't be read: no such file"),
        (["formats", "-o", "csv"], "unknown output 'csv'"),
    ],
)
def test_wrong_usage_is_one_line_and_the_nearest_name(arguments, said, capsys, fake):
    fake(batch())
    assert exit_code(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert said.lower() in printed.err.lower()


# settings ----------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A working folder below a compactctl.toml, and what writes that file."""
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    return (tmp_path / "compactctl.toml").write_text


@pytest.mark.parametrize("command", ["inspect", "estimate", "spill"])
def test_settings_of_all_places_reach_the_run(command, project, fake, monkeypatch, tmp_path):
    project("[layer1]\nsingle_limit_bytes = 1\nround_limit_bytes = 1\n")
    (tmp_path / "named.toml").write_text("[layer1]\nsingle_limit_bytes = 2\npreview_style = 'seed'\n")
    monkeypatch.setenv("COMPACTCTL_LAYER2__RECENT_KEEP_TOKENS", "3")
    stand_in = fake(batch())
    assert (
        exit_code([command, "x", "--config", str(tmp_path / "named.toml"), "--set", "layer1.preview_head_lines=4"]) == 0
    )
    layer1, layer2 = stand_in.asked[0][1].settings.layer1, stand_in.asked[0][1].settings.layer2
    assert (layer1.single_limit_bytes, layer1.round_limit_bytes, layer1.preview_style) == (2, 1, "seed")
    assert (layer1.preview_head_lines, layer2.recent_keep_tokens) == (4, 3)


def test_a_found_file_that_sets_more_than_limits_is_wrong_usage_unless_trusted(project, fake, capsys):
    project('layer1.preview_style = "seed"\n')
    stand_in = fake(batch())
    assert exit_code(["spill", "x"]) == 2
    assert "compactctl.toml:1: layer1.preview_style is no limit" in capsys.readouterr().err
    assert exit_code(["spill", "x", "--trust-project"]) == 0
    assert stand_in.asked[0][1].settings.layer1.preview_style == "seed"


@pytest.mark.parametrize("command", ["verify", "restore"])
def test_what_undoes_is_not_stopped_by_settings(command, project, fake):
    project("nonsense\n")
    fake(batch())
    assert exit_code([command, "x"]) == 0


def test_verbose_names_the_files_of_settings(project, fake, capsys, tmp_path):
    project("layer1.single_limit_bytes = 1\n")
    fake(batch(outcome()))
    exit_code(["inspect", "x", "-v"])
    assert capsys.readouterr().err == f"settings from the found file: {tmp_path / 'compactctl.toml'}\n"


def test_settings_lists_each_value_and_where_it_comes_from(project, capsys, tmp_path):
    project("layer1.single_limit_bytes = 20_000\n")
    place = f"{tmp_path / 'compactctl.toml'}:1"
    assert exit_code(["settings", "--set", "window.fallback_tokens=1", "-o", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["schema"], made["files"]) == (
        "compactctl.settings/1",
        [{"source": "found_file", "path": str(tmp_path / "compactctl.toml")}],
    )
    assert {
        item["key"]: (item["value"], item["default"], item["source"], item["place"]) for item in made["settings"]
    } | {
        "layer1.single_limit_bytes": (20_000, 50_000, "found_file", place),
        "layer1.round_limit_bytes": (200_000, 200_000, "default", None),
        "window.fallback_tokens": (1, None, "option", "--set"),
    } == {item["key"]: (item["value"], item["default"], item["source"], item["place"]) for item in made["settings"]}
    assert exit_code(["settings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"layer1.single_limit_bytes +20000 +50000 +found file, {re.escape(place)}", lines[1])
    assert lines[-1].endswith("compactctl/compactctl.toml (not there)")


# many sessions -----------------------------------------------------------------------------------


@pytest.fixture
def terminal(monkeypatch):
    """Let both streams be terminals."""
    monkeypatch.setattr(streams, "is_terminal", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", "1")


def many(count=25):
    """Return a batch of sessions, each larger than the one before."""
    return batch(*(outcome(f"{number}.jsonl", bytes=Bytes(1000 + number, 1000 + number)) for number in range(count)))


def shown(capsys):
    """Return the names of the sessions in a list at a terminal."""
    return re.findall(r"^2026-03-02 +\S+ +(\d+)\.jsonl", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments, names",
    [
        ([], range(24, 4, -1)),
        (["--limit", "3"], [24, 23, 22]),
        (["--all"], range(24, -1, -1)),
        (["--sort", "modified", "--limit", "2"], [0, 1]),
    ],
)
def test_a_terminal_shows_the_first_twenty_unless_told_otherwise(arguments, names, terminal, fake, capsys):
    fake(many())
    assert exit_code(["inspect", "x", *arguments]) == 0
    assert shown(capsys) == [str(name) for name in names]


def test_what_is_not_shown_is_in_the_totals_and_said(terminal, fake, capsys):
    fake(many())
    exit_code(["inspect", "x", "-q"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "25 sessions · 25.3 kB"
    assert "...20 of 25, by size; --all, --limit N, --sort, --since DATE show others" in lines
    assert len(lines) < 30


def test_a_pipe_gets_all_of_them_in_their_order(fake, capsys):
    fake(many())
    exit_code(["inspect", "x"])
    assert re.findall(r"^(\d+)\.jsonl", capsys.readouterr().out, re.MULTILINE) == [str(name) for name in range(25)]


@pytest.mark.parametrize("output", ["json", "jsonl", "csv"])
def test_what_machines_read_has_all_of_them_at_a_terminal_too(output, terminal, fake, capsys):
    fake(many())
    exit_code(["inspect", "x", "-o", output])
    assert len(re.findall(r"\d+\.jsonl", capsys.readouterr().out)) == 25


def test_a_limit_holds_for_what_machines_read_and_the_totals_are_still_of_all(fake, capsys):
    fake(many())
    exit_code(["inspect", "x", "-o", "json", "--sort", "size", "--limit", "2"])
    made = json.loads(capsys.readouterr().out)
    assert [session["path"] for session in made["sessions"]] == ["24.jsonl", "23.jsonl"]
    assert made["totals"]["sessions"] == 25


def test_many_errors_do_not_scroll_everything_away(fake, capsys):
    fake(batch(*(failed(f"{number}.txt") for number in range(30))))
    exit_code(["inspect", "x"])
    said = capsys.readouterr().err.splitlines()
    assert (len(said), said[-1]) == (21, "and 10 more errors (-v says them all, -o json has them)")
    exit_code(["inspect", "x", "-v"])
    assert len(capsys.readouterr().err.splitlines()) == 30


def test_a_batch_that_is_printed_as_it_comes_keeps_no_outcome():
    taken = []
    made = run.inspect([str(SAMPLES)], Options(), run.How(on_outcome=taken.append))
    assert (made.outcomes, made.tally.sessions) == ([], len(taken))


def test_workers_give_the_same_outcomes_in_the_same_order(tmp_path):
    shutil.copytree(SAMPLES, tmp_path / "s")
    odd = os.fsencode(tmp_path) + b"/s/caf\xe9.jsonl"
    try:
        shutil.copy(os.fsencode(SAMPLES / "chat.jsonl"), odd)
    except OSError:
        pytest.skip("the file system takes no such name")
    alone, together = (run.inspect([str(tmp_path / "s")], Options(), run.How(jobs=jobs)) for jobs in (1, 3))
    assert len(alone.outcomes) > 8
    assert alone == together


@pytest.mark.parametrize("command", PATH_COMMANDS)
def test_every_command_chooses_by_name_and_date(command, fake):
    stand_in = fake(batch())
    exit_code([command, "x", "--exclude", "a/", "--exclude", "b", "--since", "1970-01-02", "--until", "1970-01-02"])
    day_ns = 86_400 * 1_000_000_000
    assert stand_in.asked[0][1].selection == Selection(("a", "b"), day_ns, 2 * day_ns - 1)


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


# exit codes and streams --------------------------------------------------------------------------


@pytest.mark.parametrize("command", PATH_COMMANDS)
@pytest.mark.parametrize("code", [0, 1, 3, 6, 7, 70])
def test_the_exit_code_is_the_batch_s(command, code, fake):
    fake(batch(outcome(), exit_code=code))
    assert exit_code([command, "x"]) == code


@pytest.mark.parametrize(
    "error, code, said",
    [
        (OutputCollision("a and b would both write c"), 2, "a and b would both write c"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("oh\x1b no"), 70, r"a bug: ValueError: oh\x1b no"),
    ],
)
def test_a_way_out_without_a_result(error, code, said, fake, capsys):
    fake(error)
    assert exit_code(["spill", "x", "-o", "json"]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert "Traceback" not in printed.err


def test_a_bug_shows_its_traceback_only_when_asked(fake, capsys):
    fake(batch(failed(exit_code=70, traceback="Traceback (most recent call last):\n  in x\n")))
    exit_code(["inspect", "x"])
    assert "Traceback" not in capsys.readouterr().err
    exit_code(["inspect", "x", "--debug"])
    assert "Traceback (most recent call last):\n  in x\n" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_standard_output_is_the_document_alone(output, fake, capsys):
    fake(batch(outcome(findings=(finding(),)), failed(), not_sessions=["x"], problems=["a folder that loops"]))
    exit_code(["inspect", "x", "-o", output, "-v"])
    printed = capsys.readouterr()
    assert [json.loads(text) for text in ([printed.out] if output == "json" else printed.out.splitlines())]
    assert "warning: a folder that loops" not in printed.out
    assert printed.err.splitlines()[0] == "error: notes.txt: no format recognises it: plain text"


def test_quiet_leaves_errors_only(fake, capsys):
    fake(batch(outcome(), failed(), not_sessions=["x"], problems=["a folder that loops"]))
    exit_code(["inspect", "x", "-q", "-v"])
    assert capsys.readouterr().err == "error: notes.txt: no format recognises it: plain text\n"


def test_a_batch_that_found_nothing_says_so_even_when_quiet(fake, capsys):
    fake(batch(problems=["no session found"], exit_code=3))
    assert exit_code(["inspect", "x", "-q"]) == 3
    assert capsys.readouterr().err == "error: no session found\n"


def test_verbose_names_the_files_that_are_no_sessions(fake, capsys):
    fake(batch(outcome(), not_sessions=["x\x1b"]))
    exit_code(["inspect", "x", "-v"])
    assert capsys.readouterr().err == "not a session: x\\x1b\n"


def test_a_dry_run_prints_the_command_that_writes(fake, capsys, monkeypatch):
    arguments = ["spill", "a b.jsonl", "--dry-run", "--set", "layer1.single_limit_bytes=7"]
    monkeypatch.setattr(sys, "argv", ["compactctl", *arguments])
    fake(batch(spilled(), command="spill"))
    exit_code(arguments)
    said = "to write it: compactctl spill 'a b.jsonl' --set layer1.single_limit_bytes=7 --apply\n"
    assert capsys.readouterr().out.endswith(said)


@pytest.mark.parametrize("path", ["::error::x", "##vso[x]", "a\x1b[2Jb", "a\u202eb", HOSTILE])
def test_standard_error_is_safe_to_read(path, fake, capsys):
    fake(batch(failed(path), problems=[path], not_sessions=[path]))
    exit_code(["inspect", path, "-v", "--from", path])
    exit_code(["inspect", path, "-v"])
    exit_code([path])
    said = capsys.readouterr().err
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", said)
    assert not re.search(r"^\s*::|##\w*\[", said, re.MULTILINE)


# as a process ------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv", "markdown"])
def test_a_closed_pipe_ends_the_program_quietly(output, unbuffered):
    command = [sys.executable, "-m", "compactctl", "inspect", str(SAMPLES / "chat.jsonl"), "-o", output]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            command, stdout=write_end, stderr=subprocess.PIPE, env=environment, text=True, check=False
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("head") is None, reason="needs head")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_head_gets_its_line_and_no_traceback(unbuffered):
    command = f"{sys.executable} -m compactctl rules | head -n1; {sys.executable} -m compactctl --help | head -n1"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, check=True)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["rule", "severity", "group", "meaning"],
        ["Usage:", "compactctl", "COMMAND", "[OPTIONS]", "PATH..."],
    ]
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_a_full_disk_under_standard_output_is_said(output):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "compactctl", "inspect", str(SAMPLES / "chat.jsonl"), "-o", output]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 6
    assert done.stderr == "compactctl: standard output: No space left on device\n"


@pytest.mark.parametrize("output", ["table", "json", "markdown"])
def test_a_console_of_another_encoding_is_no_crash(output, tmp_path):
    path = tmp_path / "測試 👩.jsonl"
    shutil.copy(SAMPLES / "chat.jsonl", path)
    command = [sys.executable, "-m", "compactctl", "inspect", str(path), "-o", output]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stderr == b""
    if output == "table":
        assert rb"\u6e2c\u8a66" in done.stdout
    else:
        assert "測試 👩" in done.stdout.decode()


@pytest.mark.parametrize(
    "arguments, environment, colored",
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_a_pipe_has_colour_only_on_request(arguments, environment, colored):
    done = process("inspect", SAMPLES / "damaged.jsonl", *arguments, **environment)
    assert ("\x1b[" in done.stdout) is colored
    assert "\x1b" not in done.stderr


def test_a_terminal_has_colour_and_a_bar_unless_no_color_or_quiet():
    pty = pytest.importorskip("pty")

    def seen(*arguments, **environment):
        main_end, child_end = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "compactctl", "inspect", "-j", "1", str(SAMPLES), *arguments],
            stdout=child_end,
            stderr=child_end,
            env={**os.environ, "TERM": "xterm", **environment},
        )
        os.close(child_end)
        text = b""
        try:
            while piece := os.read(main_end, 4096):
                text += piece
        except OSError:  # how a terminal says that nobody writes any more
            pass
        process.wait()
        os.close(main_end)
        return text.decode()

    everything = seen()
    assert "\x1b[1m" in everything or "\x1b[3" in everything
    assert "[####" in everything
    assert "[####" not in seen("-q")
    assert "\x1b[3" not in seen("-q", NO_COLOR="1")


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


def test_an_interrupt_ends_with_130_and_no_traceback(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(
        "import os, signal, sys\n"
        "from compactctl import __main__, run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run.inspect = lambda *arguments: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['compactctl', 'inspect', 'x']\n"
        "__main__.main()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, "interrupted\n", "")


@pytest.fixture
def interrupted(tmp_path):
    """Run compactctl on 12 sessions that have a result to spill; Ctrl-C comes while the one in `place` is worked on.

    With two workers it waits until the other one has begun what comes next: what stands before is done by then.
    """
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number in range(12):
        shutil.copy(SAMPLES / "long.jsonl", folder / f"{number:02}.jsonl")

    meeting = tmp_path / "meeting"
    if hasattr(os, "mkfifo"):
        os.mkfifo(meeting)

    def run_it(*arguments, jobs, place="06", to_all=True):
        script = tmp_path / "interrupted.py"
        script.write_text(
            "import os, signal, sys, time\n"
            "from compactctl import __main__, run, workers\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "real = run._spill_one\n"
            "def work(item, options):\n"
            f"    if {jobs > 1} and item.path.endswith('{int(place) + 1:02}.jsonl'):\n"
            f"        open({str(meeting)!r}, 'wb').close()\n"
            f"    if item.path.endswith('{place}.jsonl'):\n"
            f"        {jobs > 1} and open({str(meeting)!r}, 'rb').close()\n"
            f"        {'os.killpg(0, signal.SIGINT)' if to_all else 'os.kill(START, signal.SIGINT)'}\n"
            "        time.sleep(30)\n"
            "    return real(item, options)\n"
            "if os.environ.get('START'):\n"
            "    START = int(os.environ['START'])\n"
            "else:\n"
            "    START = os.getpid()\n"
            "    os.environ['START'] = str(START)\n"
            "run._spill_one = work\n"
            "workers.STOPPING_S = 0.2\n"
            f"sys.argv = ['compactctl', 'spill', '-j', '{jobs}', {str(folder)!r}, *{list(arguments)!r}]\n"
            "if __name__ == '__main__':\n"
            "    __main__.main()\n"
        )
        return subprocess.run(
            [sys.executable, script], capture_output=True, text=True, check=False, start_new_session=True, timeout=25
        )

    run_it.folder = folder
    return run_it


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("to_all", [True, False], ids=["the terminal's group", "the main process alone"])
@pytest.mark.parametrize("output", ["json", "table"])
def test_an_interrupt_shows_what_is_done_and_no_traceback(output, to_all, jobs, interrupted):
    done = interrupted("-o", output, jobs=jobs, to_all=to_all)
    assert done.returncode == 130
    far = re.fullmatch(r"error: stopped after (\d+) of 12 files; .*\ninterrupted\n", done.stderr)
    assert far, done.stderr
    assert 6 <= int(far[1]) < 12
    if output == "json":
        totals = json.loads(done.stdout)["totals"]
        assert (totals["sessions"], totals["exit_code"]) == (int(far[1]), 130)
    else:
        assert f"{far[1]} sessions" in done.stdout


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_after_an_interrupt_goes_on_and_leaves_what_is_right(jobs, interrupted):
    first = json.loads(interrupted("--apply", "-o", "json", jobs=jobs).stdout)
    applied = {session["path"] for session in first["sessions"] if session["status"] == "applied"}
    written = {path: path.read_bytes() for path in interrupted.folder.rglob("*") if path.is_file()}
    assert not [path for path in written if path.name.endswith(".part")]
    again = json.loads(process("spill", interrupted.folder, "--apply", "-o", "json").stdout)
    assert again["totals"]["exit_code"] == 0
    unchanged = {session["path"] for session in again["sessions"] if session["status"] == "unchanged"}
    assert len(applied) >= 6
    assert applied <= unchanged
    assert {session["status"] for session in again["sessions"]} == {"applied", "unchanged"}
    assert {path: path.read_bytes() for path in written} == written


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_was_started_to_ignore_interrupts_goes_on(jobs, tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number in range(4):
        shutil.copy(SAMPLES / "chat.jsonl", folder / f"{number}.jsonl")
    script = tmp_path / "ignoring.py"
    script.write_text(
        "import os, signal, sys\n"
        "from compactctl import __main__, run\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "real = run._inspect_one\n"
        "def work(item, options):\n"
        "    os.killpg(0, signal.SIGINT)\n"
        "    return real(item, options)\n"
        "run._inspect_one = work\n"
        f"sys.argv = ['compactctl', 'inspect', '-j', '{jobs}', {str(folder)!r}, '-o', 'json']\n"
        "if __name__ == '__main__':\n"
        "    __main__.main()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, start_new_session=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["totals"]["sessions"] == 4


def test_formats_and_rules_are_lists(capsys):
    from compactctl.findings import RULES
    from compactctl.formats import FORMATS

    assert exit_code(["formats", "-o", "json"]) == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)["formats"]] == list(FORMATS)
    assert exit_code(["rules", "-o", "json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert {item["rule"]: item["severity"] for item in rules} == RULES
    assert all(item["meaning"] for item in rules)
