"""Compaction under a new session id: what goes along, and that the old session stays."""

import json
import os
from pathlib import Path

import msgspec
import pytest
import zstandard

from compactctl import run
from compactctl.errors import OutputCollision
from compactctl.options import Options
from compactctl.settings import Layer1, Settings
from tests.builders import claude
from tests.builders.agents import SESSIONS, claude_session, pi_session
from tests.builders.big_chat import big_chat
from tests.runs import only, restore, spill


@pytest.mark.parametrize("name", SESSIONS)
def test_a_new_session_has_a_derived_id_and_the_same_context_and_the_old_one_stays(tmp_path, name):
    path = tmp_path / f"{claude.SESSION_ID}.jsonl"
    path.write_bytes(SESSIONS[name]())
    source = path.read_bytes()
    old = only(run.inspect([str(path)], Options()))
    outcome = spill(path, Options(apply=True, place="new session"))
    assert (outcome.status, outcome.exit_code) == ("applied", 0), outcome.error
    assert path.read_bytes() == source
    new = only(run.inspect([outcome.output.session], Options()))
    assert new.session_id not in (None, old.session_id)
    assert new.session_id in os.path.basename(outcome.output.session)
    assert (new.messages, new.rounds, new.tool_results) == (old.messages, old.rounds, old.tool_results)
    assert run.verify([str(tmp_path)], Options()).exit_code == 0
    again = spill(path, Options(apply=True, place="new session"))
    assert (again.status, again.output.session) == ("unchanged", outcome.output.session)
    restore(outcome.output.session, Options(apply=True, out=str(tmp_path / "back")))
    [restored] = (tmp_path / "back").iterdir()
    assert restored.read_bytes() == source


@pytest.mark.parametrize("out", [None, "elsewhere"])
def test_a_new_session_takes_its_folder_along_and_the_agents_stores_only_where_the_agent_looks(tmp_path, out):
    path = tmp_path / "projects/x" / f"{claude.SESSION_ID}.jsonl"
    folder = path.with_suffix("")
    for file, told in (
        (path, claude_session()),
        (folder / "subagents/agent-a1.jsonl", f'{{"sessionId":"{claude.SESSION_ID}"}}\n'.encode()),
        (folder / "tool-results/b1.txt", claude.SESSION_ID.encode()),
        (tmp_path / "file-history" / claude.SESSION_ID / "1@v1", b"before"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(told)
    outcome = spill(path, Options(apply=True, place="new session", out=out and str(tmp_path / out)))
    new = os.path.basename(outcome.output.session).removesuffix(".jsonl")
    beside = tmp_path / out if out else path.parent
    assert (beside / new / "subagents/agent-a1.jsonl").read_text() == f'{{"sessionId":"{new}"}}\n'
    assert (beside / new / "tool-results/b1.txt").read_text() == claude.SESSION_ID
    stores = [path.parent.name for path in tmp_path.rglob("1@v1")]
    assert sorted(stores) == sorted([claude.SESSION_ID] if out else [claude.SESSION_ID, new])


@pytest.mark.parametrize("id", ["../secrets", "/etc", ".", "..", "s", "secrets", "x" * 400])
def test_an_id_that_is_none_takes_nothing_along(tmp_path, id):
    path = tmp_path / "projects/s.jsonl"
    for secret in (tmp_path / "secrets/key", tmp_path / "projects/secrets/key"):
        secret.parent.mkdir(parents=True)
        secret.write_bytes(b"secret")
    path.write_bytes(claude_session().replace(claude.SESSION_ID.encode(), id.encode()))
    before = set(tmp_path.rglob("key"))
    outcome = spill(path, Options(apply=True, place="new session"))
    assert (outcome.status, outcome.error, set(tmp_path.rglob("key"))) == ("applied", None, before)


def test_lines_of_a_side_file_keep_what_only_looks_like_a_short_id(tmp_path):
    path = tmp_path / f"{claude.SESSION_ID}.jsonl"
    path.write_bytes(claude_session().replace(b'"' + claude.SESSION_ID.encode() + b'"', b'"e"'))
    side = path.with_suffix("") / "agent.jsonl"
    side.parent.mkdir()
    side.write_bytes(b'{"sessionId":"e","text":"every letter"}\n')
    outcome = spill(path, Options(apply=True, place="new session"))
    copied = Path(outcome.output.session).with_suffix("") / "agent.jsonl"
    assert (outcome.status, copied.read_bytes()) == ("applied", side.read_bytes())


def test_a_new_pi_session_names_the_file_that_it_comes_from(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(pi_session())
    outcome = spill(path, Options(apply=True, place="new session"))
    with open(outcome.output.session) as made:
        assert json.loads(made.readline())["parentSession"] == str(path)


def test_a_log_without_an_id_cannot_be_a_new_session(write_session):
    outcome = spill(write_session(big_chat()), Options(apply=True, place="new session"))
    assert (outcome.status, outcome.exit_code) == ("failed", 2)


@pytest.mark.parametrize("apply", [False, True])
def test_in_a_folder_what_has_no_id_of_its_own_is_skipped_and_said_and_the_others_go_on(tmp_path, write_session, apply):
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / f"{claude.SESSION_ID}.jsonl").write_bytes(claude_session())
    named = write_session(big_chat(), folder=folder)
    asked = Options(apply=apply, place="new session", out=str(tmp_path / "out"))
    for command in (run.spill, run.compact):
        batch = command([str(folder)], asked)
        told = {os.path.basename(made.path): made for made in batch.outcomes}
        assert batch.exit_code == 0
        assert told[f"{claude.SESSION_ID}.jsonl"].status != "skipped"
        skipped = told["s.jsonl"]
        assert (skipped.status, skipped.exit_code, skipped.error.code) == ("skipped", 0, "no_new_id")
        assert skipped.error.message.endswith("this chat file has no session id to give anew")
        alone = only(command([str(named)], asked))
        assert (alone.status, alone.exit_code, alone.error.code) == ("failed", 2, "no_new_id")


def test_two_files_that_would_become_one_new_session_are_told_before_anything_is_written(tmp_path):
    held = claude_session()
    (tmp_path / "a.jsonl").write_bytes(held)
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(held))
    (tmp_path / "c.jsonl").write_bytes(held[: held.rindex(b"\n", 0, -1) + 1])
    for apply in (False, True):
        with pytest.raises(OutputCollision, match=r"a\.jsonl and .*b\.jsonl\.zst hold the same"):
            run.spill([str(tmp_path)], Options(apply=apply, place="new session"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl.zst", "c.jsonl"]
    done = run.spill([str(tmp_path)], Options(apply=True, place="beside", out=str(tmp_path / "out")))
    assert done.exit_code == 0


def test_files_of_one_size_that_hold_something_else_or_no_session_are_no_collision(tmp_path):
    held = claude_session()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(held.replace(b"claude", b"clau" + name[:1].encode() + b"e", 1))
        (tmp_path / f"no-{name}").write_bytes(b'{"no": "session"}\n')
    batch = run.spill([str(tmp_path)], Options(apply=True, place="new session"))
    assert [outcome.status for outcome in batch.outcomes] == ["applied", "applied"]
    made = {outcome.output.session for outcome in batch.outcomes}
    assert len(made) == 2


@pytest.mark.parametrize("out", [None, "new"])
def test_a_new_session_is_not_compacted_in_one_run_with_its_source(tmp_path, out):
    path = tmp_path / "s.jsonl"
    path.write_bytes(claude_session())
    asked = Options(apply=True, place="new session", out=out and str(tmp_path / out))
    made = only(run.spill([str(tmp_path)], asked)).output.session
    lower = Settings(layer1=Layer1(single_limit_bytes=300))
    batch = run.spill([str(tmp_path)], msgspec.structs.replace(asked, settings=lower))
    assert [outcome.path for outcome in batch.outcomes] == [str(path)]
    assert batch.notes == [
        "left out: 1 made by --new-session of another session here (to compact it, leave that one out)"
    ]
    assert len(run.inspect([str(tmp_path)], Options()).outcomes) == 2
    for paths, read in (([str(path), made], [str(path)]), ([made], [made])):
        named = run.spill(paths, msgspec.structs.replace(asked, apply=False))
        assert [outcome.path for outcome in named.outcomes] == read
