"""`--slim` on whole files: copies go, and come back."""

import pytest
from msgspec import UNSET

from compactctl import apply, run
from compactctl.options import Options
from compactctl.outcome import Disk
from compactctl.outputs import words
from compactctl.settings import Settings, with_changes
from tests.builders import claude
from tests.builders.agents import SESSIONS, claude_session
from tests.runs import restore, spill


@pytest.mark.parametrize("place", ["beside", "in place", "new session"])
@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_slimming_takes_copies_out_and_gives_them_back(tmp_path, name, place):
    path = tmp_path / f"{claude.SESSION_ID}.jsonl"
    path.write_bytes(SESSIONS[name]())
    source = path.read_bytes()
    plain = spill(path, Options(), place=place)
    slim = spill(path, Options(apply=True, slim=True), place=place)
    assert (slim.status, slim.exit_code) == ("applied", 0), slim.error
    assert slim.bytes.after < plain.bytes.after
    assert slim.disk.before == len(source)
    assert slim.disk.after == sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())
    assert run.verify([str(tmp_path)], Options()).exit_code == 0
    again = spill(slim.output.session, Options(apply=True, slim=True), place="beside" if place == "beside" else place)
    assert again.status == "unchanged"
    restore(slim.output.session, Options(apply=True, out=str(tmp_path / "back")))
    [restored] = (tmp_path / "back").iterdir()
    assert restored.read_bytes() == source


def test_slimming_alone_is_something_to_do(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(claude_session())
    settings = with_changes(Settings(), ["layer1.single_limit_bytes=1000000"])
    outcome = spill(path, Options(apply=True, slim=True, settings=settings))
    assert (outcome.status, outcome.layer1.spills) == ("applied", ())
    assert outcome.tokens.before == outcome.tokens.after
    assert (tmp_path / "s.compacted" / "copies.jsonl.zst").exists()
    assert outcome.output.spill_dir == ""


def test_slimming_says_what_it_takes_out(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(claude_session())
    slim = Options(slim=True, settings=with_changes(Settings(), ["layer1.single_limit_bytes=1000000"]))
    planned, applied = spill(path, slim), spill(path, slim, apply=True)
    saved = len(path.read_bytes()) - applied.bytes.after
    assert saved > 0
    assert planned.notes == (f"--slim would take out {saved:,} bytes that the model never sees",)
    assert applied.notes == (f"--slim took out {saved:,} bytes that the model never sees",)
    again = spill(applied.output.session, slim)
    assert again.notes == ("--slim found nothing to take out: no copy over 2,048 bytes, no progress line that may go",)


def test_a_session_that_takes_more_of_the_disk_afterwards_says_so(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(claude_session())
    larger = spill(path, Options(apply=True, slim=True), place="in place", backup="copy")
    assert larger.disk.after > larger.disk.before
    assert larger.notes[-1] == apply.LARGER


def test_the_disk_that_a_batch_takes_is_told_in_all(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(claude_session())
    batch = run.spill([str(tmp_path)], Options(apply=True, slim=True))
    totals = batch.totals()
    assert totals.disk == Disk(
        sum(outcome.disk.before for outcome in batch.outcomes), sum(outcome.disk.after for outcome in batch.outcomes)
    )
    assert f"disk {words.size(totals.disk.before)} -> {words.size(totals.disk.after)}" in words.summary(batch)
    assert run.spill([str(tmp_path)], Options(slim=True)).totals().disk is UNSET
