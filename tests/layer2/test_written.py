"""What `summarize` and `compact` write, how it is told, and the way back."""

import json
import stat
from pathlib import Path

import pytest

from compactctl import metas, run
from compactctl.formats.claude_code import fork
from compactctl.options import Options
from tests.builders import claude, codex
from tests.builders.agents import SESSIONS
from tests.builders.long_chat import REQUEST, long_chat, records_of
from tests.layer2.running import compact, options, summarize
from tests.runs import files_in, only


def test_the_three_meta_messages_stand_behind_the_system_message_and_before_the_request(
    tmp_path, write_session, provider
):
    provider()
    summarize(write_session(long_chat()))
    records = records_of(tmp_path / "s.compacted.jsonl")
    assert [record["role"] for record in records[:5]] == ["system", "user", "assistant", "user", "user"]
    assert "The importer was looked at." in records[1]["content"]
    assert records[2]["content"] == metas.ACKNOWLEDGED
    assert records[3]["content"] == metas.REMINDER.format(path=tmp_path / "s.compacted" / "history.jsonl")
    assert records[4]["content"] == REQUEST


def test_apply_writes_what_the_contract_lists_for_the_user_alone(tmp_path, write_session, provider):
    provider()
    summarize(write_session(long_chat()))
    assert files_in(tmp_path) == [
        "s.compacted.jsonl",
        "s.compacted.report.json",
        "s.compacted/history.jsonl",
        "s.compacted/originals.jsonl",
        "s.compacted/summary.md",
        "s.jsonl",
    ]
    for name in files_in(tmp_path)[:-1]:
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_the_history_is_the_summarised_lines_verbatim_and_they_are_kept_once(tmp_path, write_session, provider):
    provider()
    path = write_session(long_chat())
    outcome = summarize(path)
    history = (tmp_path / "s.compacted/history.jsonl").read_bytes().splitlines()
    source = path.read_bytes().splitlines()
    assert history == source[2 : 2 + outcome.layer2.messages_summarized]
    assert b"round_0_file" not in (tmp_path / "s.compacted/originals.jsonl").read_bytes()


@pytest.mark.parametrize("place", ["beside", "in place"])
def test_restore_gives_the_original_back_byte_for_byte(tmp_path, write_session, provider, place):
    provider()
    path = write_session(long_chat())
    source = path.read_bytes()
    outcome = summarize(path, options(place=place))
    assert run.verify([outcome.output.session], Options()).exit_code == 0
    restored = only(run.restore([outcome.output.session], Options(apply=True, place=place)))
    assert restored.exit_code == 0
    assert (path if place == "in place" else tmp_path / "s.restored.jsonl").read_bytes() == source


def test_verify_finds_a_history_that_is_changed(tmp_path, write_session, provider):
    provider()
    summarize(write_session(long_chat()))
    history = tmp_path / "s.compacted/history.jsonl"
    history.write_bytes(history.read_bytes().replace(b"round_0", b"ROUND_0"))
    outcome = only(run.verify([str(tmp_path)], Options()))
    assert outcome.exit_code != 0


def test_every_message_has_one_fate_and_the_counts_balance(tmp_path, write_session, provider):
    provider()
    path = write_session(long_chat(16, 1_500))
    outcome = compact(path, options(changes=["layer1.single_limit_bytes=1000", "layer1.preview_head_bytes=900"]))
    report = json.loads((tmp_path / "s.compacted.report.json").read_text())
    fates = [fate["fate"] for fate in report["sessions"][0]["fates"]]
    counts = outcome.layer2.fates
    assert len(fates) == outcome.messages == counts.messages
    assert (fates.count("kept"), fates.count("spilled"), fates.count("summarised")) == (
        counts.kept,
        counts.spilled,
        counts.summarised,
    )
    assert counts.kept + counts.spilled + counts.summarised == counts.messages
    assert counts.summarised == outcome.layer2.messages_summarized


def test_tokens_after_are_those_of_the_written_session_and_the_hidden_part_of_the_first_request(
    tmp_path, write_session, provider
):
    provider()
    records = long_chat()
    records[2]["usage"] = {"prompt_tokens": 1_030, "completion_tokens": 9}
    outcome = summarize(write_session(records))
    alone = only(run.estimate([str(tmp_path / "s.compacted.jsonl")], Options(anchored=False))).tokens.before
    carried = only(
        run.estimate([str(write_session(records[:2], "first.jsonl"))], Options(anchored=False))
    ).tokens.before
    assert outcome.tokens.after == alone + 1_030 - carried


def test_two_compactions_in_a_row_lose_nothing_that_the_first_kept(tmp_path, write_session, provider):
    fake = provider("<summary>marker-s1</summary>", "<summary>marker-s2</summary>")
    summarize(write_session(long_chat()))
    compacted = tmp_path / "s.compacted.jsonl"
    kept = [record["content"] for record in records_of(compacted)[5:] if record["role"] == "tool"]
    with compacted.open("a") as file:
        for record in long_chat(8, mark="later")[2:]:
            file.write(json.dumps(record) + "\n")
    assert summarize(compacted).status == "applied"
    after = [record["content"] for record in records_of(tmp_path / "s.compacted.compacted.jsonl")]
    prompt = fake.prompts[1]
    assert "marker-s1" in prompt
    assert metas.ACKNOWLEDGED not in prompt
    for text in kept:
        places = [text in after, text.splitlines()[0] in prompt]
        assert places.count(True) == 1
    assert "round_0:" not in prompt


@pytest.mark.parametrize("name", SESSIONS)
def test_a_new_session_is_summarised_under_its_new_id_and_the_old_one_stays(tmp_path, name):
    path = tmp_path / f"{claude.SESSION_ID}.jsonl"
    path.write_bytes(SESSIONS[name]())
    source = path.read_bytes()
    old = only(run.inspect([str(path)], Options()))
    changes = ["layer2.recent_keep_tokens=1", "layer2.recent_keep_messages=1"]
    outcome = summarize(path, options(window=200_000, place="new session", changes=changes))
    assert (outcome.status, outcome.error, outcome.layer2.ran) == ("applied", None, True)
    assert path.read_bytes() == source
    assert f'"{old.session_id}"' not in Path(outcome.output.session).read_text()
    assert only(run.inspect([outcome.output.session], Options())).session_id not in (None, old.session_id)
    assert run.verify([outcome.output.session], Options()).exit_code == 0
    assert summarize(path, options(window=200_000, place="new session", changes=changes)).status == "unchanged"


@pytest.mark.parametrize("limit_bytes", [50, 50_000])
def test_answers_that_were_called_by_the_reasoning_they_lose_are_kept_and_a_second_run_finds_nothing(
    tmp_path, write_session, provider, limit_bytes
):
    provider()
    rows = [codex.meta(), codex.turn()]
    for number in range(8):
        call_id = f"c{number}"
        rows += [
            codex.event("user_message", message="On."),
            codex.said(codex.user("On.")),
            codex.said(codex.reasoning("Hm.", "sealed", id=f"rs_{number}")),
            codex.said(codex.call(call_id, id=f"fc_{number}")),
            codex.said(codex.output(call_id, "a line of output\n" * 200)),
            codex.said(codex.assistant("So far.", id=f"msg_{number}")),
        ]
    path = write_session(rows)
    given = options(spill_first=True, changes=[f"layer1.single_limit_bytes={limit_bytes}"])
    outcome = summarize(path, given)
    assert (outcome.status, outcome.error) == ("applied", None)
    assert outcome.layer2.reasoning_dropped >= 1
    assert run.verify([outcome.output.session], Options()).exit_code == 0
    assert summarize(path, given).status == "unchanged"


def test_the_same_answer_gives_the_same_bytes(tmp_path, write_session, provider):
    provider()
    write_session(long_chat(), "a/s.jsonl")
    run.summarize([str(tmp_path / "a")], options())
    first = {name: (tmp_path / "a" / name).read_bytes() for name in files_in(tmp_path / "a")}
    for name in files_in(tmp_path / "a"):
        if name != "s.jsonl":
            (tmp_path / "a" / name).unlink()
    run.summarize([str(tmp_path / "a")], options())
    assert {name: (tmp_path / "a" / name).read_bytes() for name in files_in(tmp_path / "a")} == first


@pytest.mark.parametrize("command", [run.summarize, run.compact])
def test_a_dry_run_asks_nobody_and_writes_nothing(command, tmp_path, write_session, provider):
    fake = provider()
    outcome = only(command([str(write_session(long_chat()))], options(apply=False)))
    assert (outcome.status, outcome.layer2.ran) == ("planned", False)
    assert outcome.layer2.messages_summarized + outcome.layer2.messages_kept == outcome.messages
    assert (fake.asked, files_in(tmp_path)) == ([], ["s.jsonl"])


def test_without_a_provider_the_summary_is_made_of_the_session_and_says_so(tmp_path, write_session):
    outcome = summarize(write_session(long_chat()))
    assert (outcome.status, outcome.layer2.provider, outcome.layer2.usage) == ("applied", "extract (no model)", None)
    assert "extract (no model)" in records_of(tmp_path / "s.compacted.jsonl")[1]["content"]
    assert outcome.layer2.survival["path"].reachable == outcome.layer2.survival["path"].total


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_batch_writes_every_session_whatever_the_number_at_once(tmp_path, write_session, jobs):
    for name in "abcdef":
        write_session(long_chat(), f"{name}.jsonl")
    batch = run.summarize([str(tmp_path)], options(), run.How(jobs=jobs))
    assert [(o.path[-7:], o.status) for o in batch.outcomes] == [(f"{name}.jsonl", "applied") for name in "abcdef"]
    assert run.verify([str(tmp_path)], Options()).exit_code == 0


# the kept part -----------------------------------------------------------------------------------


def test_what_is_kept_has_every_call_with_its_result(tmp_path, write_session, provider):
    provider()
    assert summarize(write_session(long_chat())).status == "applied"
    records = records_of(tmp_path / "s.compacted.jsonl")
    calls = [item["id"] for record in records for item in record.get("tool_calls", [])]
    assert calls == [record["tool_call_id"] for record in records if record["role"] == "tool"]
    assert calls != []
    assert records[-len(calls) * 2 - 1 :] == long_chat()[-len(calls) * 2 - 1 :]


def test_results_in_a_kept_part_that_is_too_large_are_spilled_largest_first(tmp_path, write_session, provider):
    provider()
    records = [*long_chat(10)[:-1], *long_chat(1, 7_000, "big")[2:-1], *long_chat(1, 3_000, "small")[2:]]
    outcome = summarize(write_session(records), options(changes=["layer2.recent_keep_tokens=2000"]))
    assert [spill.call_id for spill in outcome.layer1.spills] == ["big_0"]
    assert (outcome.status, outcome.exit_code) == ("applied", 0)
    assert outcome.tokens.after < outcome.tokens.threshold
    assert outcome.layer2.fates.spilled == 1


def test_what_is_still_too_large_is_written_and_said_with_its_figures(tmp_path, write_session, provider):
    provider()
    path = write_session([*long_chat(10), {"role": "user", "content": "word " * 4_000}])
    outcome = summarize(path)
    assert (outcome.status, outcome.exit_code, outcome.error.code) == ("applied", 4, "over_target")
    assert f"{outcome.tokens.after:,} tokens are left" in outcome.error.message
    assert (tmp_path / "s.compacted.jsonl").exists()
    assert only(run.verify([str(tmp_path)], Options())).exit_code == 0


def test_under_a_new_id_the_work_grows_as_the_lines_do(tmp_path, monkeypatch):
    real, asked = fork.derived_id, []
    monkeypatch.setattr(fork, "derived_id", lambda seed, old: asked.append(old) or real(seed, old))
    session = claude.Session()
    for number in range(60):
        session.user("On.")
        session.assistant(claude.call(f"c{number}"))
        session.results(claude.result(f"c{number}", "a line of output\n" * 20))
    path = tmp_path / f"{claude.SESSION_ID}.jsonl"
    path.write_bytes(session.bytes())
    assert compact(path, options(apply=False, place="new session")).layer2.due
    assert len(asked) < 10 * len(session.raw_lines)
