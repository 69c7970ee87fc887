"""What a provider is asked, and what becomes of its answer, also of one that is no summary."""

import msgspec
import pytest

from compactctl.errors import ProviderUnavailable, TooLong
from compactctl.providers.interface import Answer
from tests.builders.long_chat import long_chat
from tests.layer2.running import SUMMARY, compact, options, summarize
from tests.runs import files_in


def test_the_analysis_is_in_neither_the_session_nor_the_summary(tmp_path, write_session, provider):
    provider()
    outcome = summarize(write_session(long_chat()))
    written = "".join((tmp_path / name).read_text() for name in files_in(tmp_path) if name != "s.jsonl")
    assert outcome.status == "applied"
    assert "The importer was looked at." in written
    assert "They looked around." not in written


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


def test_what_had_room_in_no_request_is_listed_and_named_in_the_summary_message(tmp_path, write_session, provider):
    provider(window_tokens=8_000)
    outcome = summarize(write_session(long_chat(40)), options(changes=["layer2.too_long=drop"]))
    count = len(outcome.layer2.dropped)
    assert count > 0
    assert f"oldest {count:,} messages" in (tmp_path / "s.compacted.jsonl").read_text()


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
