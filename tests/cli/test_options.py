"""Options: what reaches the run, and what is wrong usage."""

import pytest

from compactctl.__main__ import exit_code
from compactctl.cli.batch import _applying
from compactctl.cli.options import tokens
from compactctl.errors import UsageError
from compactctl.options import Selection
from tests.builders.outcomes import batch
from tests.cli.running import PATH_COMMANDS


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


@pytest.mark.parametrize("command", PATH_COMMANDS)
def test_every_command_chooses_by_name_and_date(command, fake):
    stand_in = fake(batch())
    exit_code([command, "x", "--exclude", "a/", "--exclude", "b", "--since", "1970-01-02", "--until", "1970-01-02"])
    day_ns = 86_400 * 1_000_000_000
    assert stand_in.asked[0][1].selection == Selection(("a", "b"), day_ns, 2 * day_ns - 1)


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
