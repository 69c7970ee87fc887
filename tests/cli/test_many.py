"""Many sessions at once: which are shown, and that nothing of the others is lost."""

import errno
import json
import os
import re
import shutil

import pytest

from compactctl import run, workers
from compactctl.__main__ import exit_code
from compactctl.inputs import Input
from compactctl.options import Options
from compactctl.outcome import Bytes
from tests.builders.outcomes import batch, failed, outcome
from tests.cli.running import SAMPLES


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


@pytest.mark.parametrize(
    ("sizes", "jobs", "most_files", "most_bytes"),
    [
        ([1_000] * 3_000, 2, 16, 16_000),
        ([1_000] * 40, 2, 2, 2_000),
        ([1_000_000] * 320, 2, 8, 8_000_000),
        ([1_000_000] * 64, 4, 2, 2_000_000),
        ([30_000_000, 1_000, 1_000, 30_000_000], 2, 1, 30_000_000),
        ([0] * 100, 2, 6, 0),
    ],
)
def test_workers_are_given_bundles_in_order_and_none_waits_long_for_another(sizes, jobs, most_files, most_bytes):
    files = [Input(str(index), str(index), is_explicit=False, size_bytes=size) for index, size in enumerate(sizes)]
    bundles = list(workers._bundles(files, jobs))
    assert [item for bundle in bundles for item in bundle] == files
    assert max(map(len, bundles)) == most_files
    assert max(sum(item.size_bytes for item in bundle) for bundle in bundles) == most_bytes


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


def of_one_job_and_of_three(folder):
    """Return the batches that one job and three make of a folder."""
    return [run.inspect([str(folder)], Options(), run.How(jobs=jobs)) for jobs in (1, 3)]


def test_workers_give_the_same_outcomes_in_the_same_order():
    alone, together = of_one_job_and_of_three(SAMPLES)
    assert len(alone.outcomes) > 7
    assert alone == together


def test_workers_take_a_file_whose_name_is_no_utf_8(tmp_path):
    shutil.copytree(SAMPLES, tmp_path / "s")
    odd = os.fsencode(tmp_path) + b"/s/caf\xe9.jsonl"
    try:
        shutil.copy(os.fsencode(SAMPLES / "chat.jsonl"), odd)
    except OSError as error:
        if error.errno not in (errno.EILSEQ, errno.EINVAL):
            raise
        pytest.skip("the file system takes no such name")
    alone, together = of_one_job_and_of_three(tmp_path / "s")
    assert len(alone.outcomes) > 8
    assert alone == together
