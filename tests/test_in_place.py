"""Compaction in place: the original is kept, and each generation can be undone."""

import json
import os
import stat
import subprocess
import sys

import pytest

from compactctl import run
from compactctl.options import Options
from tests import runs
from tests.builders.agents import codex_session
from tests.builders.big_chat import big_chat, call, text
from tests.runs import files_in, only

IN_PLACE = Options(apply=True, place="in place")


def spill(path, options=IN_PLACE, **more):
    return runs.spill(path, options, **more)


def restore(path, options=IN_PLACE, **more):
    return runs.restore(path, options, **more)


def grow(path, call_id, size=80_000):
    with path.open("ab") as file:
        for record in (call(call_id), {"role": "tool", "tool_call_id": call_id, "content": text(size)}):
            file.write(json.dumps(record).encode() + b"\n")


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


def spill_beside_for_less(path):
    """Spill what a compaction in place left in the session, to a session beside it."""
    outcome = spill(path, Options(apply=True, target="1%"))
    assert outcome.tokens.after < outcome.tokens.before
    return outcome


def test_undoing_leaves_the_receipt_of_an_output_that_was_made_beside_later(tmp_path, write_session):
    path = write_session(big_chat((60_000, 20_000, 20_000)))
    source = path.read_bytes()
    spill(path)
    assert spill_beside_for_less(path).output.session == str(tmp_path / "s.compacted.jsonl")
    beside = tmp_path / "s.compacted.jsonl"
    assert only(run.verify([str(beside)], Options())).exit_code == 0
    restore(path)
    assert path.read_bytes() == source
    assert only(run.verify([str(beside)], Options())).exit_code == 0
    assert only(run.verify([str(path)], Options())).error.code == "no_receipt"


def test_a_second_run_in_place_leaves_the_receipt_of_an_output_that_was_made_beside_later(tmp_path, write_session):
    path = write_session(big_chat((60_000, *[15_000] * 8)))
    spill(path)
    assert only(run.summarize([str(path)], Options(apply=True))).status == "applied"
    assert spill(path).status == "unchanged"
    verified = run.verify([str(tmp_path)], Options()).outcomes
    assert [outcome.exit_code for outcome in verified] == [0, 0]


def test_undoing_one_of_two_leaves_the_receipt_of_an_output_that_was_made_beside_later(tmp_path, write_session):
    path = write_session(big_chat((60_000, 20_000, 20_000)))
    spill(path)
    first = path.read_bytes()
    grow(path, "late")
    spill(path)
    assert spill_beside_for_less(path).output.session == str(tmp_path / "s.compacted.jsonl")
    restore(path, discard_new=True)
    assert path.read_bytes().startswith(first)
    assert {it.exit_code for it in run.verify([str(tmp_path)], Options()).outcomes} == {0}
    assert len(run.verify([str(tmp_path)], Options()).outcomes) == 2


def test_what_is_restored_beside_a_session_compacted_in_place_is_what_that_was(tmp_path, write_session):
    path = write_session(big_chat())
    spill(path)
    made = only(run.restore([str(path)], Options(apply=True)))
    assert made.notes[0].startswith(
        f"{tmp_path / 's.restored.jsonl'} is what s.jsonl was before compaction 1, byte for byte ("
    )


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


def test_a_session_is_verified_and_undone_through_a_link_too(tmp_path, write_session):
    path = write_session(big_chat())
    source = path.read_bytes()
    link = tmp_path / "links" / "l.jsonl"
    link.parent.mkdir()
    link.symlink_to(path)
    spill(link)
    for named in (link, link.parent):
        assert only(run.verify([str(named)], Options())).exit_code == 0
    assert spill(link).status == "unchanged"
    back = restore(link, Options(apply=True, out=str(tmp_path / "back"))).output.session
    assert (tmp_path / "back" / "s.restored.jsonl").read_bytes() == source
    assert back == str(tmp_path / "back" / "s.restored.jsonl")
    assert restore(link).status == "applied"
    assert (path.read_bytes(), link.is_symlink(), files_in(link.parent)) == (source, True, ["l.jsonl"])


def test_in_place_goes_with_neither_out_nor_a_packed_session(tmp_path, write_session):
    import zstandard

    path = write_session(big_chat())
    with pytest.raises(run.UsageError):
        spill(path, out=str(tmp_path / "o"))
    packed = tmp_path / "p.jsonl.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    assert spill(packed).exit_code == 2


def test_it_is_said_where_something_else_relies_on_the_bytes_of_a_session_in_place(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(codex_session())
    for options in (Options(place="in place"), IN_PLACE):
        assert any("history_base" in note for note in spill(path, options).notes)
