"""Compaction in place and under a new session id, slimming and targets, on whole files."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from compactctl import run
from compactctl.options import Options
from compactctl.settings import Settings, with_changes
from tests.builders import claude, codex, pi
from tests.builders.big_chat import big_chat, call, text

IN_PLACE = Options(apply=True, place="in place")
BACK = Options(apply=True, place="in place")


def only(batch):
    assert len(batch.outcomes) == 1
    return batch.outcomes[0]


def spill(path, options=IN_PLACE, **more):
    return only(run.spill([str(path)], msgspec.structs.replace(options, **more)))


def restore(path, options=BACK, **more):
    return only(run.restore([str(path)], msgspec.structs.replace(options, **more)))


def grow(path, call_id, size=80_000):
    with path.open("ab") as file:
        for record in (call(call_id), {"role": "tool", "tool_call_id": call_id, "content": text(size)}):
            file.write(json.dumps(record).encode() + b"\n")


def files_in(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


# in place ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backup", "kept"), [("zst", "original.1.jsonl.zst"), ("copy", "original.1.jsonl")])
def test_the_original_is_kept_whole_and_the_session_keeps_mode_and_time(tmp_path, write_session, backup, kept):
    path = write_session(big_chat())
    source = path.read_bytes()
    path.chmod(0o640)
    os.utime(path, ns=(1_700_000_000_000_000_000, 1_700_000_000_123_456_789))
    outcome = spill(path, backup=backup)
    assert (outcome.status, outcome.output.session) == ("applied", str(path))
    assert outcome.disk.before == len(source)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.stat().st_mtime_ns == 1_700_000_000_123_456_789
    assert path.stat().st_size < len(source) / 10
    assert files_in(tmp_path) == [
        "s.compacted.report.json",
        f"s.compacted/{kept}",
        "s.compacted/report.1.json",
        "s.compacted/tool-results/call_0.txt",
        "s.compacted/tool-results/call_2.txt",
        "s.jsonl",
    ]
    assert only(run.verify([str(tmp_path)], Options())).exit_code == 0
    assert restore(path).status == "applied"
    assert path.read_bytes() == source


def test_without_a_backup_the_replaced_values_give_the_original_back(tmp_path, write_session):
    path = write_session(big_chat())
    source = path.read_bytes()
    spill(path, backup="none")
    assert "s.compacted/originals.1.jsonl" in files_in(tmp_path)
    assert not any("original.1" in name for name in files_in(tmp_path))
    restore(path)
    assert path.read_bytes() == source


def test_a_second_run_over_it_changes_nothing(tmp_path, write_session):
    path = write_session(big_chat())
    spill(path)
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}
    assert spill(path).status == "unchanged"
    assert {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)} == before


def test_generations_count_up_and_are_undone_one_by_one(tmp_path, write_session):
    path = write_session(big_chat())
    states = [path.read_bytes()]
    for number in range(3):
        if number:
            grow(path, f"later_{number}")
            states.append(path.read_bytes())
        assert spill(path).status == "applied"
        states.append(path.read_bytes())
    kept = [name for name in files_in(tmp_path) if "original." in name or "report." in name]
    assert kept == [
        "s.compacted.report.json",
        *(f"s.compacted/original.{n}.jsonl.zst" for n in (1, 2, 3)),
        *(f"s.compacted/report.{n}.json" for n in (1, 2, 3)),
    ]
    assert restore(path).status == "applied"
    assert path.read_bytes() == states[4]
    refused = restore(path)
    assert (refused.exit_code, refused.error.code) == (6, "write_error")
    assert "appended" in refused.error.message
    assert restore(path, discard_new=True).status == "applied"
    assert path.read_bytes() == states[2]
    assert (tmp_path / "s.appended.jsonl").read_bytes() == states[4][len(states[3]) :]
    assert restore(path, discard_new=True).status == "applied"
    assert path.read_bytes() == states[0]
    assert restore(path).error.code == "no_receipt"


def test_restoring_beside_keeps_the_session_and_what_was_appended(tmp_path, write_session):
    path = write_session(big_chat())
    source = path.read_bytes()
    spill(path)
    grow(path, "later")
    grown = path.read_bytes()
    restore(path, Options(apply=True))
    assert path.read_bytes() == grown
    assert (tmp_path / "s.restored.jsonl").read_bytes() == source
    assert grown.endswith((tmp_path / "s.appended.jsonl").read_bytes())


def test_a_session_that_was_rewritten_since_says_where_its_original_is(tmp_path, write_session):
    path = write_session(big_chat())
    spill(path, Options(apply=True, place="in place"))
    path.write_bytes(b'{"role":"user","content":"Another."}\n' + path.read_bytes())
    outcome = restore(path, Options(apply=True, place="in place"))
    assert (outcome.exit_code, outcome.error.code) == (7, "not_restorable")
    assert outcome.error.message.endswith(f"its original is kept whole in {tmp_path}/s.compacted/original.1.jsonl.zst")


def test_a_session_held_open_by_another_process_is_refused(tmp_path, write_session):
    path = write_session(big_chat())
    source = path.read_bytes()
    command = [
        sys.executable,
        "-c",
        "import sys; f = open(sys.argv[1], 'ab'); print('open', flush=True); sys.stdin.read()",
    ]
    holder = subprocess.Popen([*command, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"open\n"
        outcome = spill(path)
    finally:
        holder.communicate()
    assert (outcome.status, outcome.exit_code, outcome.error.code) == ("failed", 6, "write_error")
    assert str(holder.pid) in outcome.error.message
    assert path.read_bytes() == source
    assert spill(path).status == "applied"


def test_a_session_that_changes_while_it_is_read_is_refused(tmp_path, write_session, monkeypatch):
    from compactctl import commit

    path = write_session(big_chat())
    real = commit.write_spills

    def meanwhile(job):
        real(job)
        grow(path, "meanwhile")

    monkeypatch.setattr("compactctl.commit.write_spills", meanwhile)
    outcome = spill(path)
    assert (outcome.exit_code, outcome.error.code) == (6, "source_changed")
    assert b"meanwhile" in path.read_bytes()


def test_a_plain_output_and_a_compaction_in_place_do_not_lose_each_others_receipts(tmp_path, write_session):
    path = write_session(big_chat())
    source = path.read_bytes()
    spill(path, Options(apply=True))
    spill(path)
    assert run.verify([str(tmp_path)], Options()).exit_code == 0
    assert len(run.verify([str(tmp_path)], Options()).outcomes) == 2
    run.restore([str(tmp_path / "s.compacted.jsonl")], Options(apply=True))
    assert (tmp_path / "s.restored.jsonl").read_bytes() == source
    restore(path)
    assert path.read_bytes() == source


def test_a_backup_folder_elsewhere_is_used_and_found_again(tmp_path, write_session):
    path = write_session(big_chat())
    source = path.read_bytes()
    spill(path, backup_dir=str(tmp_path / "backups"))
    assert files_in(tmp_path / "backups") == ["s.compacted/original.1.jsonl.zst"]
    restore(path)
    assert path.read_bytes() == source


def test_a_link_to_a_session_stays_a_link(tmp_path, write_session):
    path = write_session(big_chat(), folder=tmp_path / "real")
    size = path.stat().st_size
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    assert spill(link).disk.before == size
    assert link.is_symlink()
    assert path.stat().st_size < 20_000


def test_in_place_goes_with_neither_out_nor_a_packed_session(tmp_path, write_session):
    import zstandard

    path = write_session(big_chat())
    with pytest.raises(run.UsageError):
        spill(path, out=str(tmp_path / "o"))
    packed = tmp_path / "p.jsonl.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    assert spill(packed).exit_code == 2


# targets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "reached"), [("30000", True), ("10%", True), ("12k", True), ("100", False)])
def test_a_target_is_met_or_the_smallest_result_is_written_with_exit_4(tmp_path, write_session, target, reached):
    path = write_session(big_chat((20_000, 30_000, 40_000, 45_000)))
    outcome = spill(path, Options(apply=True), target=target)
    tokens = {"30000": 30_000, "10%": 12_800, "12k": 12_000, "100": 100}[target]
    assert (outcome.tokens.after <= tokens) == reached
    assert outcome.exit_code == (0 if reached else 4)
    assert outcome.status == "applied"
    assert {note.reason for note in outcome.layer1.spills} == {"target"}
    assert run.verify([str(tmp_path)], Options()).exit_code == 0
    assert spill(path, Options(apply=True), target=target).status == "unchanged"


def test_a_target_spills_no_more_than_it_needs(write_session):
    path = write_session(big_chat((20_000, 30_000, 40_000, 45_000)))
    outcome = spill(path, Options(), target="30000")
    assert [note.call_id for note in outcome.layer1.spills] == ["call_3"]
    assert outcome.exit_code == 0


@pytest.mark.parametrize("target", ["half", "-5", "", "%", "9" * 400, "9" * 400 + "%", "1e3"])
def test_a_target_that_is_no_number_is_wrong_usage(write_session, target):
    with pytest.raises(run.UsageError, match="--target"):
        spill(write_session(big_chat()), target=target)


def test_check_says_by_its_exit_code_whether_there_is_something_to_do(tmp_path, write_session):
    assert spill(write_session(big_chat(), "a.jsonl"), Options(check=True)).exit_code == 1
    assert spill(write_session(big_chat((5,)), "b.jsonl"), Options(check=True)).exit_code == 0
    assert files_in(tmp_path) == ["a.jsonl", "b.jsonl"]


# new sessions, slimming ----------------------------------------------------------------------------


def claude_session():
    session = claude.Session()
    session.user("Run the tests.")
    for number in range(3):
        session.assistant(claude.call(f"toolu_{number}"), usage=claude.usage(9_000 * (number + 1), out=5))
        session.progress()
        session.progress()
        size = 60_000 if number == 1 else 5_000
        session.results(claude.result(f"toolu_{number}", text(size)), copy={"stdout": text(size), "stderr": ""})
    session.assistant("Done.")
    return session.bytes()


def codex_session():
    rows = [codex.meta(), codex.turn(), codex.said(codex.user("Run the tests."))]
    for number, size in enumerate((60_000, 20_000)):
        rows += [codex.said(codex.call(f"call_{number}")), codex.said(codex.output(f"call_{number}", text(size)))]
        rows.append(codex.event("exec_command_end", call_id=f"call_{number}", aggregated_output=text(size)))
    return codex.jsonl(*rows, codex.said(codex.assistant("Done.")))


def pi_session():
    session = pi.Session()
    session.say("u0000001", pi.user("Run the tests."))
    session.say("a0000001", pi.assistant(pi.call("c1"))).say("r0000001", pi.result("c1", text(60_000)))
    return session.say("a0000002", pi.assistant("Done.")).jsonl()


SESSIONS = {"claude-code": claude_session, "codex": codex_session, "pi": pi_session}


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


def test_it_is_said_where_something_else_relies_on_the_bytes_of_a_session_in_place(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(codex_session())
    for options in (Options(place="in place"), IN_PLACE):
        assert any("history_base" in note for note in spill(path, options).notes)
