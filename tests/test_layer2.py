"""`summarize` and `compact` on whole files, with a provider that records what it is asked."""

import json
import stat
from pathlib import Path

import msgspec
import pytest

from compactctl import desk, metas, run
from compactctl.errors import ProviderUnavailable, SpillFailed, TooLong
from compactctl.options import Options
from compactctl.providers.interface import Answer
from compactctl.settings import Settings, with_changes
from tests.builders import claude
from tests.builders.agents import SESSIONS
from tests.builders.long_chat import REQUEST, long_chat, records_of, small_window
from tests.builders.provider import FakeProvider
from tests.runs import files_in, only

SUMMARY = "<analysis>They looked around.</analysis>\n<summary>The importer was looked at.</summary>"
KEY = "AKIA" + "QWERTYUIOPASDFGH"


def options(*, apply=True, window=4_000, changes=(), **more):
    settings = with_changes(Settings(), [*small_window(), *changes])
    return Options(apply=apply, window_tokens=window, settings=settings, **more)


@pytest.fixture
def provider(monkeypatch):
    """Let every run of this test ask the provider that this gives."""

    def install(*replies, **more):
        fake = FakeProvider(replies or [SUMMARY], **more)
        real = desk.make
        monkeypatch.setattr(
            desk, "make", lambda given, *rest: msgspec.structs.replace(real(given, *rest), provider=fake)
        )
        return fake

    return install


def summarize(path, given=None):
    return only(run.summarize([str(path)], given or options()))


def compact(path, given=None):
    return only(run.compact([str(path)], given or options()))


# the described system's own list ------------------------------------------------------------------


def test_the_analysis_is_in_neither_the_session_nor_the_summary(tmp_path, write_session, provider):
    provider()
    outcome = summarize(write_session(long_chat()))
    written = "".join((tmp_path / name).read_text() for name in files_in(tmp_path) if name != "s.jsonl")
    assert outcome.status == "applied"
    assert "The importer was looked at." in written
    assert "They looked around." not in written


def test_what_is_kept_has_every_call_with_its_result(tmp_path, write_session, provider):
    provider()
    assert summarize(write_session(long_chat())).status == "applied"
    records = records_of(tmp_path / "s.compacted.jsonl")
    calls = [item["id"] for record in records for item in record.get("tool_calls", [])]
    assert calls == [record["tool_call_id"] for record in records if record["role"] == "tool"]
    assert calls != []
    assert records[-len(calls) * 2 - 1 :] == long_chat()[-len(calls) * 2 - 1 :]


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


def test_three_failures_open_the_breaker_and_the_rest_is_skipped(tmp_path, write_session, provider):
    fake = provider(ProviderUnavailable("fake: down"))
    for name in "abcde":
        write_session(long_chat(), f"{name}.jsonl")
    batch = run.compact([str(tmp_path)], options())
    assert len(fake.asked) == 3
    told = [(o.status, o.layer2.reason, o.layer2.due, o.error.code, o.exit_code) for o in batch.outcomes]
    assert told == [
        *[("failed", "provider_failed", True, "provider_unavailable", 5)] * 3,
        *[("skipped", "breaker_open", True, "breaker_open", 5)] * 2,
    ]
    assert batch.exit_code == 5
    assert files_in(tmp_path) == [f"{name}.jsonl" for name in "abcde"]


def test_a_success_starts_the_count_of_failures_again(tmp_path, write_session, provider):
    down = ProviderUnavailable("fake: down")
    fake = provider(down, down, SUMMARY, down, down, SUMMARY)
    for name in "abcdef":
        write_session(long_chat(), f"{name}.jsonl")
    batch = run.compact([str(tmp_path)], options())
    assert len(fake.asked) == 6
    assert [outcome.status for outcome in batch.outcomes] == ["failed", "failed", "applied"] * 2


def test_sessions_that_are_not_due_go_on_behind_an_open_breaker(tmp_path, write_session, provider):
    provider(ProviderUnavailable("fake: down"))
    for name in "abcd":
        write_session(long_chat(), f"{name}.jsonl")
    write_session(long_chat(2), "e.jsonl")
    batch = run.compact([str(tmp_path)], options())
    assert [o.layer2.reason for o in batch.outcomes] == [*["provider_failed"] * 3, "breaker_open", "below_threshold"]
    assert batch.outcomes[-1].status == "unchanged"


def test_a_summary_by_hand_passes_the_breaker(tmp_path, write_session, provider):
    fake = provider(ProviderUnavailable("fake: down"))
    for name in "abcde":
        write_session(long_chat(), f"{name}.jsonl")
    batch = run.summarize([str(tmp_path)], options())
    assert len(fake.asked) == 5
    assert {outcome.layer2.reason for outcome in batch.outcomes} == {"provider_failed"}


def test_no_request_carries_tools_or_more_than_one_message(write_session, provider):
    fake = provider()
    summarize(write_session(long_chat()))
    [request] = fake.asked
    assert isinstance(request.prompt, str)
    assert set(msgspec.structs.asdict(request)) == {"prompt", "max_output_tokens", "said", "previous"}


def test_a_request_that_was_too_long_is_sent_smaller_and_never_the_same_twice(write_session, provider):
    fake = provider(TooLong("fake: too long"), TooLong("fake: too long"), SUMMARY, window_tokens=20_000)
    outcome = summarize(write_session(long_chat(30)))
    sizes = [len(prompt) for prompt in fake.prompts]
    assert outcome.layer2.attempts == len(sizes) >= 3
    assert sizes[0] > sizes[1] > sizes[2]
    assert len(set(fake.prompts)) == len(fake.prompts)


def test_the_manual_margin_leaves_a_summary_by_hand_more_room(write_session, provider):
    path = write_session(long_chat(260, 2_000))
    fake = provider(window_tokens=128_000)
    summarize(path, options(apply=True))
    by_hand = len(fake.prompts[0])
    fake = provider(window_tokens=128_000)
    compact(path, options(apply=True, out=str(path.parent / "out")))
    assert by_hand > len(fake.prompts[0])


def test_a_very_long_history_is_folded(write_session, provider):
    fake = provider("<summary>First part.</summary>", "<summary>Both parts.</summary>", window_tokens=8_000)
    outcome = summarize(write_session(long_chat(40)))
    assert outcome.layer2.attempts > 1
    assert "First part." in fake.prompts[1]
    assert "Both parts." in outcome.layer2.summary


# when ----------------------------------------------------------------------------------------------


def test_compact_asks_nobody_below_the_threshold(tmp_path, write_session, provider):
    fake = provider()
    outcome = compact(write_session(long_chat(3)))
    assert (outcome.status, outcome.layer2.reason, outcome.layer2.due) == ("unchanged", "below_threshold", False)
    assert (fake.asked, files_in(tmp_path)) == ([], ["s.jsonl"])


def test_compact_asks_nobody_where_spilling_is_enough(tmp_path, write_session, provider):
    fake = provider()
    path = write_session(long_chat(3, 20_000))
    outcome = compact(path, options(changes=["layer1.single_limit_bytes=1000", "layer1.preview_head_bytes=100"]))
    assert (outcome.status, outcome.layer2.reason, len(outcome.layer1.spills)) == ("applied", "below_threshold", 3)
    assert fake.asked == []


def test_compact_at_the_threshold_is_due_and_comes_below_it(write_session, provider):
    provider()
    outcome = compact(write_session(long_chat()))
    assert (outcome.status, outcome.layer2.reason, outcome.layer2.due, outcome.layer2.ran) == (
        "applied",
        "due",
        True,
        True,
    )
    assert outcome.tokens.after < outcome.tokens.threshold <= outcome.tokens.before


@pytest.mark.parametrize("command", [run.summarize, run.compact])
def test_nothing_older_than_what_is_kept_asks_nobody_and_ends_well(command, tmp_path, write_session, provider):
    fake = provider()
    path = write_session([{"role": "user", "content": "word " * 4_000}, {"role": "assistant", "content": "Yes."}])
    outcome = only(command([str(path)], options(window=4_000)))
    assert (outcome.status, outcome.layer2.reason, outcome.exit_code) == ("unchanged", "nothing_older", 0)
    assert (fake.asked, files_in(tmp_path)) == ([], ["s.jsonl"])


def test_a_second_summary_of_a_summary_alone_asks_nobody(tmp_path, write_session, provider):
    fake = provider()
    summarize(write_session(long_chat()))
    outcome = summarize(tmp_path / "s.compacted.jsonl")
    assert (outcome.status, outcome.layer2.reason, len(fake.asked)) == ("unchanged", "nothing_older", 1)


def test_a_failed_spill_does_not_stop_layer_2(write_session, provider, monkeypatch):
    from compactctl import spill_files

    provider()

    def refuse(folder, name, data):
        raise SpillFailed(f"{name}: no space left on device")

    monkeypatch.setattr(spill_files, "write", refuse)
    path = write_session(long_chat(12, 3_000))
    changes = ["layer1.single_limit_bytes=1000", "layer1.preview_head_bytes=900"]
    planned = compact(path, options(apply=False, window=8_000, changes=changes))
    assert planned.layer2.reason == "below_threshold"
    outcome = compact(path, options(window=8_000, changes=changes))
    assert outcome.layer2.ran
    assert (outcome.status, outcome.exit_code, outcome.error.code) == ("applied", 6, "spill_failed")


# the kept part -------------------------------------------------------------------------------------


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


# what is written, and the way back -----------------------------------------------------------------


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


# asked for again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["beside", "in place"])
def test_a_session_that_is_done_already_costs_nothing(tmp_path, write_session, provider, place):
    fake = provider()
    path = write_session(long_chat())
    summarize(path, options(place=place))
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)}
    outcome = summarize(path, options(place=place))
    assert (outcome.status, outcome.layer2.reason, len(fake.asked)) == ("unchanged", "already_done", 1)
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)} == before


def test_other_settings_are_another_run(write_session, provider):
    fake = provider()
    path = write_session(long_chat())
    summarize(path)
    again = summarize(path, options(changes=["layer2.recent_keep_messages=5"]))
    assert (again.status, len(fake.asked)) == ("applied", 2)


def test_an_output_in_which_an_agent_went_on_is_not_overwritten_and_nobody_is_asked(tmp_path, write_session, provider):
    fake = provider()
    path = write_session(long_chat())
    summarize(path)
    with (tmp_path / "s.compacted.jsonl").open("a") as file:
        file.write('{"role":"user","content":"Go on."}\n')
    outcome = summarize(path)
    assert (outcome.exit_code, outcome.error.code, len(fake.asked)) == (6, "output_changed", 1)


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


# dry runs and refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [run.summarize, run.compact])
def test_a_dry_run_asks_nobody_and_writes_nothing(command, tmp_path, write_session, provider):
    fake = provider()
    outcome = only(command([str(write_session(long_chat()))], options(apply=False)))
    assert (outcome.status, outcome.layer2.ran) == ("planned", False)
    assert outcome.layer2.messages_summarized + outcome.layer2.messages_kept == outcome.messages
    assert (fake.asked, files_in(tmp_path)) == ([], ["s.jsonl"])


@pytest.mark.parametrize(
    "answer, code",
    [
        (Answer("<summary>Cut o", "length"), "summary_refused"),
        (Answer("", "stop"), "summary_refused"),
        (Answer("", "tool_calls", has_tool_call=True), "summary_refused"),
        (Answer("<analysis>Only that.</analysis>", "stop"), "summary_refused"),
        (ProviderUnavailable("fake: down"), "provider_unavailable"),
    ],
)
def test_an_answer_that_is_no_summary_writes_nothing(tmp_path, write_session, provider, answer, code):
    provider(answer)
    outcome = summarize(write_session(long_chat()))
    assert (outcome.status, outcome.error.code, outcome.exit_code) == ("failed", code, 5)
    assert (outcome.layer2.reason, outcome.layer2.ran, outcome.layer2.attempts) == ("provider_failed", False, 1)
    assert files_in(tmp_path) == ["s.jsonl"]


def test_a_failed_summary_leaves_an_earlier_result_as_it_was(tmp_path, write_session, provider):
    path = write_session(long_chat())
    provider()
    summarize(path)
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}
    provider(ProviderUnavailable("fake: down"))
    summarize(path, options(changes=["layer2.recent_keep_messages=5"]))
    assert {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)} == before


def test_what_had_room_in_no_request_is_listed_and_named_in_the_summary_message(tmp_path, write_session, provider):
    provider(window_tokens=8_000)
    outcome = summarize(write_session(long_chat(40)), options(changes=["layer2.too_long=drop"]))
    count = len(outcome.layer2.dropped)
    assert count > 0
    assert f"oldest {count:,} messages" in (tmp_path / "s.compacted.jsonl").read_text()


# privacy -------------------------------------------------------------------------------------------


def with_a_key_everywhere():
    records = long_chat(12)
    records[1]["content"] += f" The key is {KEY}."
    records[2]["content"] += f" key {KEY}"
    records[2]["tool_calls"][0]["function"]["arguments"] = json.dumps({"command": f"deploy --key {KEY}"})
    records[3]["content"] += f" {KEY}"
    records[-1]["content"] += f" {KEY}"
    return records


def test_no_key_leaves_the_machine_or_enters_a_summary_or_report(tmp_path, write_session, provider):
    fake = provider(f"<summary>The key {KEY} was used.</summary>")
    outcome = summarize(write_session(with_a_key_everywhere()))
    assert KEY not in "".join(fake.prompts)
    assert all(
        KEY not in text for said in fake.asked[0].said for text in (said.text, str(said.calls), str(said.result))
    )
    for name in ("s.compacted/summary.md", "s.compacted.report.json"):
        assert KEY not in (tmp_path / name).read_text()
    assert outcome.layer2.redacted == {"aws-access-key": 4}
    kept = records_of(tmp_path / "s.compacted.jsonl")
    assert KEY in kept[-1]["content"]


def test_redact_takes_keys_out_of_what_is_kept_too_and_the_original_comes_back(tmp_path, write_session, provider):
    provider()
    path = write_session(with_a_key_everywhere())
    outcome = summarize(path, options(redact=True))
    assert (outcome.status, outcome.error) == ("applied", None)
    assert KEY not in (tmp_path / "s.compacted.jsonl").read_text()
    run.restore([str(tmp_path / "s.compacted.jsonl")], Options(apply=True))
    assert (tmp_path / "s.restored.jsonl").read_bytes() == path.read_bytes()


def test_an_error_of_a_provider_is_shown_without_keys(write_session, provider):
    provider(ProviderUnavailable(f"fake: refused {KEY}"))
    outcome = summarize(write_session(long_chat()))
    assert outcome.error.message == "fake: refused [redacted: aws-access-key]"


# ceilings ------------------------------------------------------------------------------------------


def test_a_ceiling_on_tokens_stops_before_the_request_that_would_pass_it(tmp_path, write_session, provider):
    fake = provider(window_tokens=100_000)
    for name in "abc":
        write_session(long_chat(), f"{name}.jsonl")
    batch = run.summarize([str(tmp_path)], options(max_input_tokens=6_000))
    assert [(o.status, o.layer2.reason) for o in batch.outcomes] == [
        ("applied", "manual"),
        ("skipped", "over_budget"),
        ("skipped", "over_budget"),
    ]
    assert len(fake.asked) == 1


def test_a_ceiling_on_cost_can_not_be_kept_without_a_price(write_session, provider):
    fake = provider()
    outcome = only(run.summarize([str(write_session(long_chat()))], options(max_cost_usd=1.0)))
    assert (outcome.status, outcome.layer2.reason, fake.asked) == ("skipped", "over_budget", [])


def test_what_will_be_sent_is_told_before_the_first_request_and_may_be_refused(tmp_path, write_session, provider):
    fake = provider(model="gpt-4.1")
    write_session(long_chat(), "a.jsonl")
    write_session(long_chat(), "b.jsonl")
    write_session(long_chat(1), "c.jsonl")
    told = []
    with pytest.raises(run.Interrupted):
        run.summarize([str(tmp_path)], options(), run.How(approve=lambda errand: told.append(errand)))
    [errand] = told
    assert (errand.sessions, errand.writer, errand.address) == (2, "fake (gpt-4.1)", "nowhere")
    assert errand.tokens > 0
    assert (fake.asked, files_in(tmp_path)) == ([], ["a.jsonl", "b.jsonl", "c.jsonl"])


# hooks ---------------------------------------------------------------------------------------------


def hooked(tmp_path, pre="", post=""):
    return [f"hooks.pre_compact={pre}"] * bool(pre) + [f"hooks.post_compact={post}"] * bool(post)


def test_hooks_are_told_what_happens_before_and_after(tmp_path, write_session, provider):
    provider()
    log = tmp_path / "log"
    outcome = summarize(
        write_session(long_chat()), options(changes=hooked(tmp_path, f"cat >> '{log}'", f"cat >> '{log}'"))
    )
    before, after = [json.loads(line) for line in log.read_text().splitlines()]
    assert (before["event"], before["trigger"], before["before_tokens"]) == (
        "pre_compact",
        "manual",
        outcome.tokens.before,
    )
    assert (before["after_tokens"], before["error"]) == (None, None)
    assert (after["event"], after["status"], after["after_tokens"]) == ("post_compact", "applied", outcome.tokens.after)
    assert after["output"] == str(tmp_path / "s.compacted.jsonl")


def test_the_second_hook_runs_after_a_failure_too(tmp_path, write_session, provider):
    provider(ProviderUnavailable("fake: down"))
    log = tmp_path / "log"
    compact(write_session(long_chat()), options(changes=hooked(tmp_path, post=f"cat >> '{log}'")))
    told = json.loads(log.read_text())
    assert (told["trigger"], told["status"], told["error"]["code"]) == ("auto", "failed", "provider_unavailable")


def test_a_first_hook_that_fails_skips_its_session_with_its_reason(tmp_path, write_session, provider):
    fake = provider()
    path = write_session(long_chat())
    batch = run.summarize([str(path)], options(changes=hooked(tmp_path, "echo not today >&2; exit 3")))
    outcome = only(batch)
    assert (outcome.status, outcome.layer2.reason, outcome.error.code) == ("skipped", "hook", "hook_failed")
    assert "exit code 3: not today" in outcome.error.message
    assert (fake.asked, files_in(tmp_path), batch.exit_code) == ([], ["s.jsonl"], 0)


def test_no_hook_runs_where_nothing_is_written(tmp_path, write_session, provider):
    provider()
    log = tmp_path / "log"
    changes = hooked(tmp_path, f"cat >> '{log}'", f"cat >> '{log}'")
    compact(write_session(long_chat(2)), options(changes=changes))
    summarize(write_session(long_chat()), options(apply=False, changes=changes))
    assert not log.exists()


# without a provider --------------------------------------------------------------------------------


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


def test_never_more_requests_run_at_once_than_would_open_the_breaker(tmp_path, write_session, provider):
    fake = provider(ProviderUnavailable("fake: down"))
    for number in range(12):
        write_session(long_chat(), f"{number:02}.jsonl")
    batch = run.compact([str(tmp_path)], options(), run.How(jobs=8))
    assert len(fake.asked) == 3
    assert sum(o.layer2.reason == "breaker_open" for o in batch.outcomes) == 9
