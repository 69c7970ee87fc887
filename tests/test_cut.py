import msgspec
import pytest
from hypothesis import given, settings

from compactctl import estimators
from compactctl.cut import Cut, boundaries, choose_cut, leading_count, summarised
from compactctl.document import Place
from compactctl.model import Message, Text, ToolResult
from compactctl.settings import Layer2, Settings
from compactctl.turns import pairing_findings
from tests.builders.generated import WRITERS, stories, write
from tests.builders.messages import NO_FILE, answer, result, user
from tests.laws import read

HEURISTIC = estimators.get("heuristic", Settings(), NO_FILE)
BIG = 3_500
"""Bytes of about a thousand tokens."""


def keep(tokens=0, messages=1):
    return Layer2(recent_keep_tokens=tokens, recent_keep_messages=messages)


def cut(messages, layer2, window=200_000, **more):
    return choose_cut(messages, HEURISTIC, layer2, window, **more)


def summary():
    return msgspec.structs.replace(user(), is_summary=True)


def system():
    return msgspec.structs.replace(user(role="system"), is_leading=True)


def one_line(*kinds):
    """The messages of one user line: each kind is a call id, or None for text."""
    place = Place(10**6, ("message", "content"))
    return [
        Message("user", (Text(place.at(at, "text"), 3),), (place.record,), 1)
        if kind is None
        else Message("user", (ToolResult(place.at(at, "content"), kind, 3),), (place.record,), 1)
        for at, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize(
    "messages, legal",
    [
        ([], [0]),
        ([user(), answer("a"), result("a")], [0, 1, 3]),
        ([user(), answer("a"), user()], [0, 1, 2, 3]),  # never answered
        ([answer("a", "b"), result("b"), result("a"), answer()], [0, 3, 4]),
        ([answer("a", "b"), result("b"), user(), result("a"), answer()], [0, 4, 5]),
        ([answer("a", "b"), result("b"), answer()], [0, 2, 3]),  # the other was never answered
        ([answer("a"), result("a"), result("a"), answer()], [0, 3, 4]),  # answered twice
        ([answer("a"), result("a"), answer("a"), result("a")], [0, 2, 4]),  # an id that repeats
        ([answer("a"), answer(), result("a"), user()], [0, 3, 4]),  # a late answer
        ([result("a"), user()], [0, 1, 2]),
        ([answer("a"), *one_line("a", None), answer()], [0, 3, 4]),  # results and text of one line
        ([user(), *one_line(None), answer()], [0, 1, 2, 3]),
    ],
)
def test_a_session_may_be_cut_where_no_call_is_parted_from_its_result(messages, legal):
    assert boundaries(messages) == legal


@pytest.mark.parametrize(
    "messages, layer2, expected",
    [
        ([user(), answer(), user(), answer()], keep(), Cut(0, 3, 2)),
        ([user(), answer(), user(), answer()], keep(messages=2), Cut(0, 2)),
        ([user(), answer(), user(), answer()], keep(messages=3), Cut(0, 1)),  # the newest request is kept anyway
        ([user(), answer(), user(BIG), answer()], keep(tokens=500), Cut(0, 2)),
        ([user(), answer(), user(BIG), answer()], keep(tokens=1_004), Cut(0, 2)),
        ([user(), answer(), user(BIG), answer()], keep(tokens=1_006), Cut(0, 1)),  # both are asked for
        ([user(), user(), answer("a"), result("a"), answer()], keep(messages=2), Cut(0, 2, 1)),  # back to a boundary
        ([system(), system(), user(), answer(), user()], keep(), Cut(2, 4)),
        ([user(), answer("a"), user(), user()], keep(), Cut(0, 1)),  # a call still open stays with what follows
        ([user(), answer("a"), user(), answer(), user()], keep(), Cut(0, 4)),
        ([summary(), answer(), user()], keep(), Cut(0, 2)),
    ],
)
def test_the_recent_part_is_what_reaches_both_figures_back_to_a_boundary(messages, layer2, expected):
    assert cut(messages, layer2) == expected


@pytest.mark.parametrize(
    "messages, layer2",
    [
        ([], keep()),
        ([user()], keep()),
        ([system(), user(), answer()], keep(messages=2)),
        ([user(), answer(), user()], keep(tokens=10_000)),
        ([answer("a"), result("a")], keep()),
        ([summary(), user(), answer()], keep(messages=2)),  # only an earlier summary
        ([summary(), summary(), user(), answer()], keep()),  # and the request, which stays anyway
        ([user(), answer()], keep()),
    ],
)
def test_where_nothing_is_older_there_is_no_cut(messages, layer2):
    assert cut(messages, layer2) is None


@pytest.mark.parametrize(
    "window, first_kept",
    [(200_000, 0), (2_048, 8), (4_096, 7), (16_384, 3)],
)
def test_in_a_small_window_the_recent_part_asks_for_at_most_half_the_threshold(window, first_kept):
    messages = [answer(text_bytes=BIG) for _ in range(9)]
    made = cut(messages, keep(tokens=10_000), window)
    assert (made.first_kept if made else 0) == first_kept


def test_the_pinned_message_is_a_persons_request_and_not_summarised():
    messages = [user(1), user(2), user(3), answer(text_bytes=1), answer(text_bytes=1)]
    made = cut(messages, keep(), is_request=lambda message: message.parts[0].size_bytes == 2)
    assert made == Cut(0, 4, 1)
    assert summarised(made) == (0, 2, 3)


@pytest.mark.parametrize("name", list(WRITERS))
@settings(max_examples=60, deadline=None, derandomize=True)
@given(story=stories)
def test_every_message_is_in_one_part_and_no_pair_is_parted(name, story):
    _, _, [transcript] = read(write(story, name))
    messages = transcript.messages
    for layer2 in (keep(), keep(tokens=60, messages=2), keep(messages=4)):
        made = cut(messages, layer2)
        if made is None:
            continue
        gone, kept = set(summarised(made)), set(range(made.first_kept, len(messages)))
        pinned = set() if made.pinned is None else {made.pinned}
        assert made.leading == leading_count(messages)
        assert sorted([*range(made.leading), *gone, *pinned, *kept]) == list(range(len(messages)))
        assert gone
        assert len(kept) >= min(layer2.recent_keep_messages, len(messages))
        before = {(found.rule, found.message) for found in pairing_findings(messages)}
        rest = [messages[index] for index in sorted(pinned | kept)]
        assert {(found.rule, found.message) for found in pairing_findings(rest)} <= before


@pytest.mark.parametrize("name", list(WRITERS))
@settings(max_examples=40, deadline=None, derandomize=True)
@given(story=stories)
def test_what_is_kept_reaches_both_figures(name, story):
    _, _, [transcript] = read(write(story, name))
    made = cut(transcript.messages, keep(tokens=50, messages=3))
    if made is not None:
        kept = transcript.messages[made.first_kept :]
        assert len(kept) >= 3
        assert sum(HEURISTIC.tokens((message,)) for message in kept) >= 50
