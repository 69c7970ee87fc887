"""Token counts of Codex: which tell of a request, and what holds of them."""

import pytest

from compactctl.model import Usage
from tests.builders import codex
from tests.builders.codex import assistant, call, compacted, event, output, rolled_back, tokens, turn, user
from tests.formats.rollouts import read


def usages(*records):
    _, transcript = read(*records)
    return transcript, [(m.line, m.usage.input_tokens, m.usage.output_tokens) for m in transcript.messages if m.usage]


def test_repeated_token_counts_are_one_request_and_what_was_cached_is_inside():
    first = tokens(1500, 300, total=1800, cached=600)
    second = tokens(1400, 100, total=3300, cached=900)
    transcript, anchors = usages(
        turn("gpt-5.5"), user("Do it."), assistant("Part one."), first, first, first, user("More."), assistant("Two."),
        second, second,
    )  # fmt: skip
    assert anchors == [(4, 1500, 300), (9, 1400, 100)]
    assert transcript.requests == (
        Usage(5, 1500, 300, 600, 0, "gpt-5.5"),
        Usage(10, 1400, 100, 900, 0, "gpt-5.5"),
    )
    assert transcript.peak_tokens == 1800


def test_a_token_count_belongs_to_the_answer_it_closes_though_outputs_are_written_before_it():
    _, anchors = usages(
        user("Go."),
        call("c1"),
        output("c1", "one"),
        tokens(1000, 10, total=1010),
        call("c2"),
        output("c2", "two"),
        user("Wait."),
        tokens(2000, 20, total=3030),
    )
    assert anchors == [(3, 1000, 10), (6, 2000, 20)]


@pytest.mark.parametrize(
    "count",
    [
        event("token_count", info=None),
        tokens(0, 0, total=5000),  # codex's own estimate after a compaction
        tokens(150_000, 9, total=150_009),  # more than the model takes
        event("token_count", info={"prompt": 5, "completion": 9}),
        event("token_count", info={"total_token_usage": codex.counts(36_000, 0)}),  # only what was spent so far
    ],
)
def test_a_count_that_tells_of_no_request_is_none(count):
    transcript, anchors = usages(user("Go."), assistant("Yes."), count)
    assert (anchors, transcript.requests) == ([], ())


def test_a_count_may_reach_what_the_model_takes_though_codex_uses_less():
    _, anchors = usages(user("Go."), assistant("Yes."), tokens(105_000, 200, total=105_200, window=100_000))
    assert anchors == [(3, 105_000, 200)]


def test_nothing_before_the_newest_compaction_is_an_anchor():
    transcript, anchors = usages(
        user("Old."),
        assistant("Old."),
        tokens(31_000, 900, total=31_900),
        compacted(user("Old."), assistant("Kept."), user("So far.")),
        user("Go on."),
        assistant("Done."),
        tokens(4200, 600, total=36_700),
    )
    assert anchors == [(7, 4200, 600)]
    assert transcript.anchor_floor == 3
    assert [(c.line, c.tokens_before) for c in transcript.compactions] == [(5, 31_900)]


def test_a_rollback_leaves_the_anchors_of_what_it_keeps():
    transcript, anchors = usages(
        user("One."),
        assistant("1"),
        tokens(1000, 10, total=1010),
        user("Two."),
        assistant("2"),
        tokens(1100, 10, total=2120),
        rolled_back(1),
        user("Three."),
    )
    assert anchors == [(3, 1000, 10)]
    assert (transcript.anchor_floor, len(transcript.requests)) == (0, 2)
