"""What stops a batch from asking on: failures in a row, and ceilings."""

import pytest

from compactctl import run
from compactctl.errors import ProviderUnavailable
from tests.builders.long_chat import long_chat
from tests.layer2.running import SUMMARY, options
from tests.runs import files_in, only


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


def test_never_more_requests_run_at_once_than_would_open_the_breaker(tmp_path, write_session, provider):
    fake = provider(ProviderUnavailable("fake: down"))
    for number in range(12):
        write_session(long_chat(), f"{number:02}.jsonl")
    batch = run.compact([str(tmp_path)], options(), run.How(jobs=8))
    assert len(fake.asked) == 3
    assert sum(o.layer2.reason == "breaker_open" for o in batch.outcomes) == 9


# ceilings ----------------------------------------------------------------------------------------


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
