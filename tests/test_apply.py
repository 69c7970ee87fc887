"""Spill, restore and verify on whole files, as the commands run them."""

import hashlib
import json
import os
import stat
from pathlib import Path

import msgspec
import pytest

from compactctl import run
from compactctl.errors import OutputCollision, SpillFailed
from compactctl.options import Options
from compactctl.settings import Settings, with_changes
from tests.builders import codex
from tests.builders.big_chat import big_chat, call, text
from tests.runs import APPLY, files_in, only, spill

OWN_WORDS = {"layer1.preview_wording": "the text is in {path}"}


def limits(single, round_limit=200_000, **more):
    changes = [f"layer1.single_limit_bytes={single}", f"layer1.round_limit_bytes={round_limit}"]
    return Options(apply=True, settings=with_changes(Settings(), [*changes, *(f"{k}={v}" for k, v in more.items())]))


def test_a_dry_run_says_what_apply_would_do_and_writes_nothing(tmp_path, write_session):
    path = write_session(big_chat())
    planned = spill(path, Options())
    assert files_in(tmp_path) == ["s.jsonl"]
    assert planned.status == "planned"
    applied = spill(path)
    assert applied.status == "applied"
    assert planned.layer1 == applied.layer1
    assert planned.tokens == applied.tokens
    assert planned.bytes.after == applied.bytes.after == (tmp_path / "s.compacted.jsonl").stat().st_size


def test_apply_writes_what_the_contract_lists_for_the_user_alone(tmp_path, write_session):
    spill(write_session(big_chat()))
    assert files_in(tmp_path) == [
        "s.compacted.jsonl",
        "s.compacted.report.json",
        "s.compacted/originals.jsonl",
        "s.compacted/tool-results/call_0.txt",
        "s.compacted/tool-results/call_2.txt",
        "s.jsonl",
    ]
    for name in files_in(tmp_path)[:-1]:
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_spilled_file_is_the_text_and_the_preview_names_it(tmp_path, write_session):
    path = write_session(big_chat())
    outcome = spill(path)
    spilled = tmp_path / "s.compacted/tool-results/call_0.txt"
    assert spilled.read_text() == text(60_000)
    records = [json.loads(line) for line in (tmp_path / "s.compacted.jsonl").read_text().splitlines()]
    preview = records[3]["content"]
    assert preview.startswith(f"[content offloaded] original size: 60000 bytes\n[saved to] {spilled}\n")
    note = outcome.layer1.spills[0]
    assert (note.call_id, note.line, note.bytes, note.reason) == ("call_0", 4, 60_000, "single")
    assert note.sha256 == hashlib.sha256(text(60_000).encode()).hexdigest()
    assert note.file == str(spilled)


def test_lines_that_are_not_edited_keep_their_bytes(tmp_path, write_session):
    odd = b'{"role":"user", "content":"\\u0041 \\/","n":1e2,"big":12345678901234567890123,"dup":1,"dup":2}'
    records = [odd, *big_chat(), odd]
    path = write_session(records)
    spill(path)
    before = path.read_bytes().split(b"\n")
    after = (tmp_path / "s.compacted.jsonl").read_bytes().split(b"\n")
    changed = [index + 1 for index, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert changed == [5, 9]


def test_tokens_after_are_tokens_before_less_what_the_heuristic_saved(write_session):
    records = big_chat()
    records[-1]["usage"] = {"prompt_tokens": 40_000, "completion_tokens": 5}
    outcome = spill(write_session(records))
    previews = sum(note.bytes for note in outcome.layer1.spills)
    assert outcome.tokens.anchored
    assert outcome.tokens.before == 40_005
    saved = outcome.tokens.before - outcome.tokens.after
    assert previews / 3.5 * 0.9 < saved < previews / 3.5


def test_a_second_run_changes_nothing(tmp_path, write_session):
    path = write_session(big_chat())
    spill(path)
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)}
    assert spill(path).status == "unchanged"
    assert spill(tmp_path / "s.compacted.jsonl").status == "unchanged"
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)} == before


def test_the_same_input_gives_the_same_bytes(tmp_path, write_session):
    path = write_session(big_chat())
    spill(path)
    first = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}
    for name in files_in(tmp_path):
        if name != "s.jsonl":
            (tmp_path / name).unlink()
    spill(path)
    assert {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)} == first


def test_nothing_due_is_unchanged_and_writes_nothing(tmp_path, write_session):
    outcome = spill(write_session(big_chat((10, 20))))
    assert (outcome.status, outcome.exit_code) == ("unchanged", 0)
    assert files_in(tmp_path) == ["s.jsonl"]


@pytest.mark.parametrize("ending", [b"", b'{"role":"user","conte', b"\x00\x00\x00"])
def test_restore_gives_the_original_back_without_the_source(tmp_path, write_session, ending):
    path = write_session(big_chat())
    source = path.read_bytes() + ending
    path.write_bytes(source if ending else source[:-1])
    expected = path.read_bytes()
    assert spill(path).status == "applied"
    assert (tmp_path / "s.compacted.jsonl").read_bytes().endswith(b'"}\n')
    path.unlink()
    outcome = only(run.restore([str(tmp_path / "s.compacted.jsonl")], APPLY))
    assert outcome.status == "applied"
    assert (tmp_path / "s.restored.jsonl").read_bytes() == expected


def test_restore_twice_is_unchanged_and_never_overwrites_another_file(tmp_path, write_session):
    spill(write_session(big_chat()))
    compacted = str(tmp_path / "s.compacted.jsonl")
    run.restore([compacted], APPLY)
    assert only(run.restore([compacted], APPLY)).status == "unchanged"
    (tmp_path / "s.restored.jsonl").write_bytes(b"mine")
    outcome = only(run.restore([compacted], APPLY))
    assert (outcome.status, outcome.exit_code, outcome.error.code) == ("failed", 6, "output_changed")
    assert (tmp_path / "s.restored.jsonl").read_bytes() == b"mine"


def test_restore_keeps_what_an_agent_appended_in_a_file_of_its_own(tmp_path, write_session):
    path = write_session(big_chat())
    source = path.read_bytes()
    spill(path)
    compacted = tmp_path / "s.compacted.jsonl"
    with compacted.open("ab") as file:
        file.write(b'{"role":"user","content":"Go on."}\n')
    outcome = only(run.restore([str(compacted)], APPLY))
    assert (tmp_path / "s.restored.jsonl").read_bytes() == source
    assert (tmp_path / "s.appended.jsonl").read_bytes() == b'{"role":"user","content":"Go on."}\n'
    assert any("appended" in note for note in outcome.notes)


def test_restore_refuses_a_session_that_was_edited(tmp_path, write_session):
    spill(write_session(big_chat()))
    compacted = tmp_path / "s.compacted.jsonl"
    compacted.write_bytes(compacted.read_bytes().replace(b"You help.", b"You hurt."))
    outcome = only(run.restore([str(compacted)], APPLY))
    assert (outcome.exit_code, outcome.error.code) == (7, "not_restorable")


def test_an_output_in_which_an_agent_went_on_is_never_overwritten(tmp_path, write_session):
    path = write_session(big_chat())
    spill(path)
    compacted = tmp_path / "s.compacted.jsonl"
    grown = compacted.read_bytes() + b'{"role":"user","content":"Go on."}\n'
    compacted.write_bytes(grown)
    outcome = spill(path)
    assert (outcome.status, outcome.exit_code, outcome.error.code) == ("failed", 6, "output_changed")
    assert compacted.read_bytes() == grown


@pytest.mark.parametrize("name", ["s.compacted.report.json", "s.compacted/originals.jsonl", "s.estimate.json"])
@pytest.mark.parametrize("theirs", [b'{"my": "notes"}\n', b"notes\n", b'{"schema": "theirs/1"}'])
def test_a_file_of_someone_elses_is_not_written_over_and_a_torn_one_of_ours_is(tmp_path, write_session, name, theirs):
    path = write_session(big_chat())
    work = run.estimate if "estimate" in name else run.spill
    other = tmp_path / name
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(theirs)
    refused = only(work([str(path)], Options(apply=True)))
    assert (refused.status, refused.exit_code, refused.error.code) == ("failed", 6, "output_changed")
    assert refused.error.message == f"{other}: something else is there; move it away"
    assert other.read_bytes() == theirs
    assert not (tmp_path / "s.compacted.jsonl").exists()
    for torn in (b"", b'{\n  "schema": "comp', b'{"schema": "compactctl.receipt/1"'):
        other.write_bytes(torn)
        assert only(work([str(path)], Options(apply=True))).exit_code == 0


def test_a_session_that_grew_is_compacted_again_and_earlier_decisions_hold(tmp_path, write_session):
    path = write_session(big_chat((3_000, 60_000)))
    spill(path, limits(2_000))
    with path.open("ab") as file:
        for record in (call("later"), {"role": "tool", "tool_call_id": "later", "content": text(80_000)}):
            file.write(json.dumps(record).encode() + b"\n")
    outcome = spill(path, limits(50_000))
    assert outcome.status == "applied"
    assert [note.call_id for note in outcome.layer1.spills] == ["call_0", "call_1", "later"]
    assert only(run.verify([str(tmp_path / "s.compacted.jsonl")], Options())).exit_code == 0


def test_a_compacted_session_that_grew_is_compacted_on_top(tmp_path, write_session):
    path = write_session(big_chat())
    spill(path)
    compacted = tmp_path / "s.compacted.jsonl"
    with compacted.open("ab") as file:
        for record in (call("later"), {"role": "tool", "tool_call_id": "later", "content": text(80_000)}):
            file.write(json.dumps(record).encode() + b"\n")
    grown = compacted.read_bytes()
    outcome = spill(compacted)
    assert [note.call_id for note in outcome.layer1.spills] == ["later"]
    assert compacted.read_bytes() == grown
    only(run.restore([str(tmp_path / "s.compacted.compacted.jsonl")], APPLY))
    assert (tmp_path / "s.compacted.restored.jsonl").read_bytes() == grown


def test_usage_from_before_our_spill_is_no_anchor_and_usage_after_it_is(tmp_path, write_session):
    records = big_chat()
    records[-1]["usage"] = {"prompt_tokens": 40_000, "completion_tokens": 5}
    spill(write_session(records))
    compacted = tmp_path / "s.compacted.jsonl"
    stale = only(run.estimate([str(compacted)], Options()))
    assert not stale.tokens.anchored
    assert "stale-usage" in [finding.rule for finding in stale.findings]
    answer = {"role": "assistant", "content": "ok", "usage": {"prompt_tokens": 2_000, "completion_tokens": 1}}
    with compacted.open("ab") as file:
        file.write(json.dumps({"role": "user", "content": "Go on."}).encode() + b"\n")
        file.write(json.dumps(answer).encode() + b"\n")
    fresh = only(run.estimate([str(compacted)], Options()))
    assert (fresh.tokens.anchored, fresh.tokens.before) == (True, 2_001)


def test_verify_finds_a_spill_that_is_gone_or_changed(tmp_path, write_session):
    spill(write_session(big_chat()))
    compacted = str(tmp_path / "s.compacted.jsonl")
    good = only(run.verify([compacted], Options()))
    assert (good.exit_code, all(good.checks.values())) == (0, True)
    (tmp_path / "s.compacted/tool-results/call_0.txt").write_bytes(b"changed")
    (tmp_path / "s.compacted/tool-results/call_2.txt").unlink()
    bad = only(run.verify([compacted], Options()))
    assert (bad.exit_code, bad.checks["spills_present"]) == (1, False)
    assert [finding.rule for finding in bad.findings if finding.severity == "error"] == ["missing-spill"] * 2
    inspected = only(run.inspect([compacted], Options()))
    assert [f.rule for f in inspected.findings if f.severity == "error"] == ["missing-spill"] * 2


def test_a_moved_compaction_still_verifies_and_restores(tmp_path, write_session):
    path = write_session(big_chat())
    source = path.read_bytes()
    spill(path)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("s.compacted.jsonl", "s.compacted.report.json", "s.compacted"):
        os.rename(tmp_path / name, moved / name)
    assert only(run.verify([str(moved)], Options())).exit_code == 0
    run.restore([str(moved)], APPLY)
    assert (moved / "s.restored.jsonl").read_bytes() == source


HOSTILE_IDS = [
    "../../../../tmp/evil",
    "/etc/x",
    "a/b",
    "nul",
    "..",
    "x" * 400,
    "call_A",
    "call_a",
    "\u202egpj",
    "c\x00d",
]


def test_hostile_call_ids_stay_inside_the_spill_folder(tmp_path, write_session):
    inner = tmp_path / "deep" / "er"
    path = write_session(big_chat([9_000] * len(HOSTILE_IDS), call_ids=HOSTILE_IDS), folder=inner)
    outcome = spill(path, limits(5_000))
    spills = inner / "s.compacted" / "tool-results"
    assert len(outcome.layer1.spills) == len(HOSTILE_IDS) == len(list(spills.iterdir()))
    assert {p.name for p in tmp_path.iterdir()} == {"deep"}
    assert len({p.name.casefold() for p in spills.iterdir()}) == len(HOSTILE_IDS)
    records = [json.loads(line) for line in (inner / "s.compacted.jsonl").read_bytes().splitlines()]
    assert [r["tool_call_id"] for r in records if r["role"] == "tool"] == HOSTILE_IDS


def test_planted_links_are_not_followed(tmp_path, write_session):
    path = write_session(big_chat())
    target = tmp_path / "target.txt"
    target.write_bytes(b"precious")
    spills = tmp_path / "s.compacted" / "tool-results"
    spills.mkdir(parents=True)
    (spills / "call_0.txt").symlink_to(target)
    outcome = spill(path)
    assert outcome.status == "applied"
    assert target.read_bytes() == b"precious"
    assert outcome.layer1.spills[0].file != str(spills / "call_0.txt")


def test_a_spill_folder_that_is_a_link_elsewhere_is_refused(tmp_path, write_session):
    path = write_session(big_chat())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "s.compacted").symlink_to(elsewhere)
    outcome = spill(path)
    assert (outcome.status, outcome.exit_code, outcome.error.code) == ("failed", 6, "spill_failed")
    assert list(elsewhere.iterdir()) == []
    assert not (tmp_path / "s.compacted.jsonl").exists()


def test_a_failed_spill_keeps_its_original_and_the_next_run_tries_again(tmp_path, write_session, monkeypatch):
    path = write_session(big_chat())
    from compactctl import spill_files

    real = spill_files.write

    def refuse_one(folder, name, data):
        if name == "call_0.txt":
            raise SpillFailed(f"{name}: no space left on device")
        return real(folder, name, data)

    monkeypatch.setattr(spill_files, "write", refuse_one)
    outcome = spill(path)
    assert (outcome.status, outcome.exit_code) == ("applied", 6)
    assert [note.call_id for note in outcome.layer1.spills] == ["call_2"]
    assert [note.call_id for note in outcome.layer1.failures] == ["call_0"]
    assert text(60_000) in json.loads((tmp_path / "s.compacted.jsonl").read_text().splitlines()[3])["content"]
    monkeypatch.setattr(spill_files, "write", real)
    again = spill(path)
    assert (again.status, again.exit_code) == ("applied", 0)
    assert [note.call_id for note in again.layer1.spills] == ["call_0", "call_2"]


def test_a_folder_that_cannot_be_written_is_a_clear_error(tmp_path, write_session):
    if os.geteuid() == 0:
        blocker = tmp_path / "s.compacted"
        blocker.write_bytes(b"a file where the folder should be")
        outcome = spill(write_session(big_chat()))
    else:
        path = write_session(big_chat())
        tmp_path.chmod(0o500)
        outcome = spill(path)
        tmp_path.chmod(0o700)
    assert (outcome.status, outcome.exit_code) == ("failed", 6)
    assert not (tmp_path / "s.compacted.jsonl").exists()


def test_out_keeps_relative_paths_and_collisions_are_refused_before_anything_is_written(tmp_path, write_session):
    write_session(big_chat(), "a/s.jsonl")
    write_session(big_chat(), "b/s.jsonl")
    out = tmp_path / "out"
    options = msgspec.structs.replace(APPLY, out=str(out))
    batch = run.spill([str(tmp_path / "a"), str(tmp_path / "b" / "s.jsonl")], Options(apply=True))
    assert [outcome.status for outcome in batch.outcomes] == ["applied", "applied"]
    with pytest.raises(OutputCollision):
        run.spill([str(tmp_path / "a" / "s.jsonl"), str(tmp_path / "b" / "s.jsonl")], options)
    assert not out.exists()
    run.spill([str(tmp_path)], options)
    assert (out / "a/s.compacted.jsonl").exists()
    assert (out / "b/s.compacted.jsonl").exists()


@pytest.mark.parametrize("more_bytes", [0, 1, 8, 17, 18, 500])
def test_two_results_of_one_call_settle_at_once(tmp_path, write_session, more_bytes):
    """The second one's file has a longer name, and so a preview that is bigger than it is, while the first's is not."""
    plain_preview = OWN_WORDS["layer1.preview_wording"].format(path=tmp_path / "s.compacted/tool-results/a.txt")
    records = big_chat([3_000, 3_000], call_ids=["a", "a"])
    records[4:6] = [{**records[5], "content": text(len(plain_preview) + more_bytes)}]
    path = write_session(records)
    outcome = spill(path, limits(50, **OWN_WORDS))
    assert (outcome.status, outcome.error) == ("applied", None)
    assert only(run.verify([outcome.output.session], Options())).exit_code == 0
    assert spill(outcome.output.session, limits(50, **OWN_WORDS)).status == "unchanged"


def test_a_conversation_a_line_is_spilled_as_that_many_sessions(tmp_path, write_session):
    path = write_session([{"messages": big_chat()}, {"messages": big_chat((80_000,))}, {"messages": big_chat((5,))}])
    source = path.read_bytes()
    batch = run.spill([str(path)], APPLY)
    assert [(o.index, o.status, len(o.layer1.spills)) for o in batch.outcomes] == [
        (0, "applied", 2),
        (1, "applied", 1),
        (2, "applied", 0),
    ]
    assert len(list((tmp_path / "s.compacted/tool-results").iterdir())) == 3
    run.restore([str(tmp_path)], APPLY)
    assert (tmp_path / "s.restored.jsonl").read_bytes() == source


def test_a_packed_session_is_read_and_its_result_is_plain(tmp_path, write_session):
    import zstandard

    path = write_session(big_chat())
    plain = path.read_bytes()
    packed = tmp_path / "p.jsonl.zst"
    packed.write_bytes(zstandard.ZstdCompressor().compress(plain))
    assert spill(packed).status == "applied"
    run.restore([str(tmp_path / "p.compacted.jsonl")], APPLY)
    assert (tmp_path / "p.restored.jsonl").read_bytes() == plain
    packed.write_bytes(packed.read_bytes()[:-20])
    assert only(run.inspect([str(packed)], Options())).error.code == "unreadable"


@pytest.mark.parametrize(
    "wrong",
    [
        {"offset": 10**12},
        {"offset": -5},
        {"offset": 10**30},
        {"length": 10**15},
        {"length": -3},
        {"base64": "A"},
        {"base64": "é"},
        {"history": 0, "moved": 5},
        {"raw": "another text"},
    ],
)
def test_originals_that_were_changed_give_nothing_back(tmp_path, write_session, wrong):
    output = spill(write_session(big_chat())).output.session
    kept = tmp_path / "s.compacted/originals.jsonl"
    rows = [json.loads(row) for row in kept.read_text().splitlines()]
    kept.write_text(
        "".join(json.dumps({**row, **wrong} if index == 1 else row) + "\n" for index, row in enumerate(rows))
    )
    assert only(run.restore([output], APPLY)).exit_code in (3, 7)
    assert only(run.verify([output], Options())).exit_code in (1, 3)
    assert not (tmp_path / "s.restored.jsonl").exists()


@pytest.mark.parametrize("note", ["originals", "copies", "history"])
@pytest.mark.parametrize("name", ["../s.jsonl", "/etc/passwd", "..", "/dev/zero"])
def test_a_receipt_that_names_files_elsewhere_is_not_followed(tmp_path, write_session, note, name):
    output = spill(write_session(big_chat())).output.session
    report = tmp_path / "s.compacted.report.json"
    report.write_text(json.dumps({**json.loads(report.read_text()), note: {"name": name, "bytes": 1, "sha256": ""}}))
    for command in (run.restore, run.verify):
        outcome = only(command([output], APPLY))
        assert (outcome.exit_code, outcome.error.code) == (3, "no_receipt")


def test_a_result_that_lost_its_text_since_is_no_bug(tmp_path, write_session):
    output = Path(spill(write_session(codex_records())).output.session)
    rows = [json.loads(row) for row in output.read_text().splitlines()]
    changed = [row for row in rows if row["payload"].pop("output", None)]
    output.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert (len(changed), only(run.spill([str(output)], APPLY)).exit_code) == (1, 0)


def codex_records():
    items = codex.user("Go."), codex.call("c1"), codex.output("c1", text(60_000))
    return [codex.meta(), *map(codex.said, items)]
