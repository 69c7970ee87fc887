from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactctl import estimators
from compactctl.document import Place
from compactctl.errors import NoEstimator, UsageError
from compactctl.estimators import Subject
from compactctl.estimators.heuristic import weight
from compactctl.media import CLAUDE
from compactctl.model import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from compactctl.settings import Settings, with_changes
from tests.builders.messages import NO_FILE

PLACE = Place(0)
IMAGE = Media(PLACE, 9000, "image", 200, 200)


def message(*parts, role="user"):
    return Message(role, parts, (0,), 1)


@pytest.mark.parametrize(
    "said, size",
    [
        (message(), 4),
        (message(Text(PLACE, 10)), 14),
        (message(Text(PLACE, 10), Text(PLACE, 5)), 19),
        (message(Reasoning(PLACE, 7), role="assistant"), 16),
        (message(Reasoning(PLACE, 0, 4096), role="assistant"), 9),
        (message(ToolCall(PLACE, "c1", "run", 20), role="assistant"), 9 + 2 + 3 + 20),
        (message(ToolCall(PLACE, "é", "run", 20), role="assistant"), 9 + 2 + 3 + 20),
        (message(ToolResult(PLACE, "c1", 100, "run"), role="tool"), 4 + 2 + 100),  # the name is not sent
        (message(ToolResult(PLACE, "c1", 1, media=(IMAGE,)), role="tool"), 7),
        (message(IMAGE), 4),
        (message(Opaque(PLACE, "server_tool_use", 50)), 54),
    ],
)
def test_the_bytes_of_a_message_are_what_is_sent_as_text(said, size):
    assert weight([said], CLAUDE)[0] == size


@pytest.mark.parametrize(
    "messages, tokens",
    [
        ([], 0),
        ([message()], 2),  # 4 bytes
        ([message(Text(PLACE, 3))], 2),  # 7 bytes
        ([message(Text(PLACE, 4))], 3),  # 8 bytes
        ([message(Text(PLACE, 4)), message(Text(PLACE, 2))], 4),  # 14 bytes, rounded once
        ([message(Text(PLACE, 10**15))], 285714285714287),
        ([message(Text(PLACE, 3), IMAGE)], 66),
        ([message(Text(PLACE, 3), Reasoning(PLACE, 0, 4096))], 442),
        ([message(ToolResult(PLACE, "abc", 0, media=(IMAGE, IMAGE)))], 130),
    ],
)
def test_the_heuristic_divides_by_its_ratio_and_rounds_up_once(messages, tokens):
    assert estimators.get("heuristic", Settings(), NO_FILE).tokens(messages) == tokens


def test_the_ratio_is_a_setting():
    settings = with_changes(Settings(), ["estimator.bytes_per_token=2"])
    assert estimators.get("heuristic", settings, NO_FILE).tokens([message(Text(PLACE, 3))]) == 4


@pytest.mark.parametrize("name, words", [("heuristics", "did you mean heuristic"), ("gpt", "known: "), ("", "known: ")])
def test_an_unknown_estimator_is_wrong_usage_that_names_what_there_is(name, words):
    with pytest.raises(UsageError, match=words):
        estimators.get(name, Settings(), NO_FILE)


sizes = st.lists(st.integers(0, 10_000), max_size=8)


def of_claude(name):
    try:
        return estimators.get(name, Settings(), Subject(NO_FILE.document, "claude-opus-4-5", "claude-code"))
    except NoEstimator as missing:
        if name != "ctok" or find_spec("ctok") is not None:
            raise
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", estimators.ESTIMATORS)
@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 300), st.booleans()), max_size=8))
def test_what_is_saved_is_the_estimate_before_less_the_one_after(name, results):
    estimator = of_claude(name)

    def result(size):
        return message(ToolResult(PLACE, "c1", size, made="x" * size, media=(IMAGE,)))

    before = [result(size) for size, _, _ in results]
    replaced = {index: result(size) for index, (_, size, is_replaced) in enumerate(results) if is_replaced}
    after = [replaced.get(index, said) for index, said in enumerate(before)]
    weighed = estimator.weighed(tuple(before))
    assert weighed.tokens == estimator.tokens(before)
    assert weighed.saved(replaced) == estimator.tokens(before) - estimator.tokens(after)


@pytest.mark.parametrize("name", estimators.ESTIMATORS)
@given(sizes, sizes)
def test_more_messages_are_never_fewer_tokens(name, some, more):
    estimator = of_claude(name)
    first = [message(Text(PLACE, size, "x" * size)) for size in some]
    second = [message(Text(PLACE, size, "x" * size)) for size in more]
    apart = estimator.tokens(first) + estimator.tokens(second)
    assert estimator.tokens(first) <= estimator.tokens(first + second) <= apart
