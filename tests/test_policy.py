from hashlib import sha256

import pytest

from compactctl.policy import Decided, Target, Texts, forecasts, make_plan
from compactctl.settings import Layer1
from compactctl.spill_names import SpillNames
from compactctl.turns import pairs
from tests.builders.messages import answer, result, user


def text_of(part):
    return "x" * part.size_bytes


TEXTS = Texts(text=text_of, path=lambda name: f"/s/{name}", style="seed")


def plan(messages, *, single=50_000, round_=200_000, ledger=None, failed=(), head_bytes=100, reminder="en"):
    settings = Layer1(
        single_limit_bytes=single,
        round_limit_bytes=round_,
        preview_head_bytes=head_bytes,
        preview_wording=reminder,
    )
    return make_plan(tuple(messages), settings, ledger or {}, TEXTS, SpillNames(dict), failed)


def chosen(made):
    return [(spill.result.call_id, spill.reason) for spill in made.spills]


@pytest.mark.parametrize(
    ("sizes", "spilled"),
    [
        ([50_000], []),
        ([50_001], [("c0", "single")]),
        ([200_000], [("c0", "single")]),
        ([40_000] * 5, []),  # 200,000 together: not over
        ([40_000, 40_001, 40_000, 40_000, 40_000], [("c1", "round")]),
        ([40_000] * 6, [("c0", "round")]),  # ties go in order
        ([50_000, 30_000, 40_000, 50_000, 40_000], [("c0", "round")]),
        ([50_001, 50_000, 50_000, 50_000, 50_000], [("c0", "single")]),  # what is replaced no longer counts
        ([45_000] * 9, [("c0", "round"), ("c1", "round"), ("c2", "round"), ("c3", "round"), ("c4", "round")]),
    ],
)
def test_results_over_a_limit_are_spilled_largest_first(sizes, spilled):
    ids = [f"c{index}" for index in range(len(sizes))]
    messages = [user(), answer(*ids), *(result(i, size) for i, size in zip(ids, sizes, strict=True))]
    assert chosen(plan(messages)) == spilled


def test_each_round_is_summed_by_itself():
    messages = [user(), answer("a", "b"), result("a", 45_000), result("b", 45_000)] * 3
    assert chosen(plan(messages, round_=100_000)) == []


def test_an_id_that_comes_again_is_another_call():
    messages = [answer("a"), result("a", 60_000), answer("a"), result("a", 70_000)]
    made = plan(messages)
    assert [(spill.exchange, spill.result.size_bytes) for spill in made.spills] == [("#1", 60_000), ("#2", 70_000)]
    assert made.spills[0].file != made.spills[1].file


def test_a_preview_is_never_spilled_and_does_not_count():
    messages = [answer("a", "b"), result("a", 3_000, is_preview=True), result("b", 900)]
    made = plan(messages, single=1_000, round_=1_000)
    assert chosen(made) == []
    assert list(map(made.reason, made.keeps)) == ["already spilled", "under the limits"]


def test_a_result_whose_spill_failed_stays_and_counts_in_its_round():
    messages = [answer("a", "b"), result("a", 600), result("b", 500)]
    made = plan(messages, single=1_000, round_=1_000, head_bytes=10, failed=[("#1", "a")])
    assert chosen(made) == [("b", "round")]
    assert list(map(made.reason, made.keeps)) == ["its spill failed"]


def test_nothing_is_spilled_whose_preview_would_not_be_smaller():
    made = plan([answer("a"), result("a", 150)], single=100)
    assert chosen(made) == []
    assert list(map(made.reason, made.keeps)) == ["its preview would not be smaller"]


def test_a_keep_binds_and_still_counts_in_its_round():
    messages = [answer("a", "b"), result("a", 900), result("b", 800)]
    made = plan(messages, single=10_000, round_=1_000, head_bytes=10, ledger={("#1", "a"): [Decided(False)]})
    assert chosen(made) == [("b", "round")]


def test_a_replace_binds_whatever_the_limits_are_now():
    text = "x" * 5_000
    ledger = {("#1", "a"): [Decided(True, sha256(text.encode()).hexdigest(), "other", "round")]}
    assert chosen(plan([answer("a"), result("a", 5_000)], ledger=ledger)) == [("a", "round")]


def test_a_replaced_result_is_known_by_its_preview():
    preview = "x" * 700
    ledger = {("#1", "a"): [Decided(True, "other", sha256(preview.encode()).hexdigest())]}
    made = plan([answer("a"), result("a", 700)], single=100, head_bytes=10, ledger=ledger)
    assert list(map(made.reason, made.keeps)) == ["already spilled"]


def test_two_results_of_one_call_are_each_known_by_their_preview():
    ledger = {("#1", "a"): [Decided(True, "other", sha256(b"x" * size).hexdigest()) for size in (700, 800)]}
    messages = [answer("a"), result("a", 700), result("a", 800)]
    made = plan(messages, single=100, head_bytes=10, ledger=ledger)
    assert list(map(made.reason, made.keeps)) == ["already spilled", "already spilled"]


def test_a_decision_about_another_text_binds_nothing():
    ledger = {("#1", "a"): [Decided(True, "other", "another")]}
    assert chosen(plan([answer("a"), result("a", 5_000)], ledger=ledger)) == []


def test_a_result_without_a_call_is_spilled_by_its_size():
    assert chosen(plan([user(), result("lost", 60_000)])) == [("lost", "single")]


@pytest.mark.parametrize("single", [50_000, 850, 100])
def test_the_forecast_tells_from_sizes_what_a_plan_would_do(single):
    messages = [answer("a", "b", "c"), result("a", 60_000), result("b", 900), result("c", 800), answer("d")]
    messages += [result("d", 700), result("e", 5_000, is_preview=True)]
    made = plan(messages, single=single, round_=1_000, head_bytes=10, reminder="{path}")
    [told] = forecasts(pairs(messages), Layer1(round_limit_bytes=1_000), [single])
    assert told.results == len(made.spills) > 0
    assert told.size_bytes == sum(spill.result.size_bytes for spill in made.spills)


@pytest.mark.parametrize(
    ("target", "spilled"),
    [
        (30_000, []),
        (26_000, ["b"]),
        (18_000, ["b", "c"]),
        (1_000, ["a", "b", "c", "d"]),  # as far as it goes: e would not get smaller
    ],
)
def test_a_target_spills_on_over_the_whole_context_largest_first(target, spilled):
    sizes = {"a": 4_000, "b": 40_000, "c": 30_000, "d": 5_000, "e": 200}
    messages = tuple(m for call_id, size in sizes.items() for m in (answer(call_id), result(call_id, size)))
    measured = []

    def tokens_after(spills):
        measured.append(len(spills))
        saved = sum(spill.result.size_bytes - len(spill.preview) for spill in spills)
        return (105_000 - saved) * 2 // 7

    goal = Target(target, tokens_after, 3.5)
    keeps = {(f"#{n}", call_id): [Decided(False)] for n, call_id in enumerate(sizes, 1)}
    made = make_plan(messages, Layer1(preview_head_bytes=100), keeps, TEXTS, SpillNames(dict), target=goal)
    assert [spill.result.call_id for spill in made.spills] == spilled
    assert {spill.reason for spill in made.spills} <= {"target"}
    assert len(measured) <= 3
