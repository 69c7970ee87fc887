"""`--slim` on whole files: copies go, and come back."""

import pytest

from compactctl import run
from compactctl.options import Options
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
