import pytest

from compactctl.turns import pair, pairing_findings, rounds
from tests.builders.messages import answer, result, user


def found(messages, *, order_matters=True):
    """Return rule and index of the message for each finding."""
    index_by_line = {message.line: index for index, message in enumerate(messages)}
    findings = pairing_findings(messages, order_matters=order_matters)
    return [(finding.rule, index_by_line[finding.line]) for finding in findings]


@pytest.mark.parametrize(
    "messages, pairs",
    [
        ([answer("a"), result("a")], [(1, "#1", 0)]),
        ([answer("a", "b"), result("b"), result("a")], [(1, "#1", 0), (2, "#1", 0)]),
        ([answer("a"), result("a"), answer("a"), result("a")], [(1, "#1", 0), (3, "#2", 2)]),  # an id that repeats
        ([answer("a", key="m1"), result("a")], [(1, "m1", 0)]),
        ([answer("a"), user(), result("a")], [(2, "#1", 0)]),
        ([answer("a"), answer(), result("a")], [(2, "#2", None)]),  # the exchange is over
        ([result("a"), answer("a")], [(0, "", None)]),
        ([answer("a"), result("x")], [(1, "#1", None)]),
    ],
)
def test_a_result_answers_a_call_of_its_own_exchange(messages, pairs):
    assert [(item.message_index, item.exchange, item.call_index) for item in pair(messages)] == pairs


@pytest.mark.parametrize(
    "messages, found_rounds",
    [
        ([user(), answer(), user()], []),
        ([answer("a", "b"), result("b"), user(), result("a"), result("x")], [(0, ["b", "a"])]),
        ([answer("a"), answer("a"), result("a")], [(0, []), (1, ["a"])]),
    ],
)
def test_a_round_is_an_answer_with_calls_and_what_answers_them(messages, found_rounds):
    got = [(item.message_index, [paired.result.call_id for paired in item.results]) for item in rounds(messages)]
    assert got == found_rounds


@pytest.mark.parametrize(
    "messages, findings",
    [
        ([], []),
        ([user(), answer("a", "b"), result("a"), result("b"), answer()], []),
        ([user(), answer("a", "b"), result("b"), result("a"), answer()], []),  # order within a batch is free
        ([answer("a"), result("a"), answer("a"), result("a")], []),  # the same id in two exchanges
        ([result("a"), answer()], [("result-without-call", 0)]),
        ([answer(), result("a"), answer()], [("result-without-call", 1)]),
        ([answer("a"), result("a"), answer(), result("a"), answer()], [("result-without-call", 3)]),
        ([answer("a"), result("a"), result("a"), answer()], [("duplicate-result", 2)]),
        ([answer("a"), user(), answer()], [("call-without-result", 0)]),
        ([answer("a"), answer()], [("call-without-result", 0)]),
        ([answer("a", "b"), result("a"), answer()], [("call-without-result", 0)]),
        ([answer("a")], [("unfinished-call", 0)]),
        ([answer("a", "b"), result("b")], [("unfinished-call", 0)]),
        ([answer("a"), user()], [("call-without-result", 0)]),  # a person spoke: it is not the very end
        ([answer("a"), user(), result("a"), answer()], [("result-out-of-place", 1)]),  # told of what stands between
        ([answer("a", "b"), user(), user(), result("a"), result("b"), answer()], [("result-out-of-place", 1)]),
        ([answer("a", "b"), result("a"), user(), result("b"), answer()], [("result-out-of-place", 2)]),
        ([answer(""), result(""), answer()], [("bad-call-id", 0), ("bad-call-id", 1)]),
        ([result(""), answer()], [("bad-call-id", 0)]),
        ([answer("a"), result("a"), result(""), answer()], [("bad-call-id", 2)]),
        ([answer("a", "a"), result("a"), result("a"), answer()], [("bad-call-id", 0)]),
        ([answer("a", "a"), result("a"), answer()], [("bad-call-id", 0), ("call-without-result", 0)]),
    ],
)
def test_what_does_not_pair_up_is_found_once(messages, findings):
    assert found(messages) == findings


def test_order_is_no_matter_where_the_agent_mends_it():
    messages = [answer("a"), user(), result("a"), answer()]
    assert found(messages, order_matters=False) == []
