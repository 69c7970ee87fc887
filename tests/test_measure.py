import msgspec
import pytest
from msgspec.structs import replace

from compactctl import estimators
from compactctl.measure import after_layer1, measure, threshold
from compactctl.model import Compaction, Message, Transcript, Usage, Window
from compactctl.settings import Layer2, Settings
from tests.builders.messages import NO_FILE, answer, result, user

SETTINGS = Settings()
HEURISTIC = estimators.get("heuristic", SETTINGS, NO_FILE)
WINDOW = Window(128_000, "table")


def session(*messages: Message, **fields) -> Transcript:
    """A session whose messages stand on lines 1, 2, …"""
    placed = tuple(
        replace(message, line=line, usage=replace(message.usage, line=line) if message.usage else None)
        for line, message in enumerate(messages, start=1)
    )
    return Transcript(**{"format": "chat", "messages": placed, "model": "gpt-4o", **fields})


def used(taken: int, given: int = 10, *call_ids: str) -> Message:
    return replace(answer(*call_ids), usage=Usage(0, taken, given))


def measured(transcript, **options):
    return measure(transcript, HEURISTIC, WINDOW, SETTINGS, **{"anchored": True, **options})


@pytest.mark.parametrize(
    "tokens, due",
    [
        (128_000, 95_000),
        (200_000, 167_000),
        (1_000_000, 967_000),
        (104_000, 71_000),
        (103_999, 103_999 - 20_000 - 12_999),
        (80_000, 80_000 - 20_000 - 10_000),
        (8_192, 8_192 - 2_048 - 1_024),
        (7, 7 - 1 - 0),
        (1, 1),
    ],
)
def test_a_summary_is_due_before_the_window_is_full_in_small_windows_too(tokens, due):
    assert threshold(Window(tokens, "option"), Layer2()) == due


def test_reserve_and_margin_are_settings():
    assert threshold(WINDOW, Layer2(summary_reserve_tokens=1_000, auto_safety_margin_tokens=0)) == 127_000


@pytest.mark.parametrize(
    "transcript, anchor_line",
    [
        (session(), None),
        (session(user(70), answer()), None),
        (session(user(70), used(100)), 2),
        (session(user(70), used(100), user(70), used(200), user(70)), 4),
        (session(user(70), used(100), user(70), used(200), anchor_floor=2), 4),
        (session(user(70), used(100), user(70), used(200), user(70), anchor_floor=4), None),
        (session(user(70), used(100), anchor_floor=2), None),
    ],
)
def test_the_newest_usage_after_the_floor_is_the_anchor(transcript, anchor_line):
    got = measured(transcript)
    assert (got.anchored, got.anchor and got.anchor.line) == (anchor_line is not None, anchor_line)


def test_an_anchored_estimate_is_what_was_counted_and_an_estimate_of_what_follows():
    after = (result("a", 700), user(70))
    got = measured(session(user(9_000_000), used(1_000, 50, "a"), *after))
    assert got.tokens == 1_050 + HEURISTIC.tokens(after)


def test_an_answer_whose_output_was_never_recorded_is_estimated_with_what_follows():
    answer = used(1_000, 3, "a")
    answer = msgspec.structs.replace(answer, usage=msgspec.structs.replace(answer.usage, is_output_known=False))
    got = measured(session(user(9_000_000), answer, result("a", 700)))
    assert got.tokens == 1_000 + HEURISTIC.tokens((answer, result("a", 700)))


def test_without_an_anchor_everything_is_estimated():
    messages = (user(7_000), used(1_000), user(70))
    got = measured(session(*messages), anchored=False)
    assert (got.tokens, got.anchored, got.anchor) == (HEURISTIC.tokens(messages), False, None)


@pytest.mark.parametrize("stale_until_line, anchor_line", [(0, 4), (1, 4), (3, 4), (4, None), (9, None)])
def test_a_usage_from_before_our_own_spill_is_no_anchor(stale_until_line, anchor_line):
    got = measured(session(user(), used(100), user(), used(200)), stale_until_line=stale_until_line)
    assert (got.anchor and got.anchor.line) == anchor_line


def test_a_sum_over_several_requests_is_refused_and_reported():
    got = measured(session(user(), used(50_000), user(), used(931_000), user()))
    assert (got.anchor.line, [(f.rule, f.line) for f in got.findings]) == (2, [("stale-usage", 4)])


def test_a_usage_that_did_not_fall_with_the_compaction_is_refused_and_reported():
    compacted = {"compactions": (Compaction(1, 160_000),), "anchor_floor": 1}
    got = measured(session(user(20_000), used(159_000), user(), **compacted))
    assert (got.anchor, [(f.rule, f.line) for f in got.findings]) == (None, [("stale-usage", 2)])
    fallen = measured(session(user(20_000), used(64_000), user(), **compacted))
    assert (fallen.anchor.line, fallen.findings) == (2, ())
    filled_again = measured(session(user(20_000), used(64_000), user(400_000), used(159_000), **compacted))
    assert (filled_again.anchor.line, filled_again.findings) == (4, ())


@pytest.mark.parametrize(
    "messages",
    [
        (user(), used(50_000), user(), used(127_000)),  # within the window: nothing contradicts it
        (user(), used(931_000)),  # nothing to compare with
        (user(), used(90_000), user(700_000), used(290_000)),  # grown by what was said
        (user(), used(140_000), user(), used(150_000)),
    ],
)
def test_a_usage_that_nothing_contradicts_is_kept(messages):
    got = measured(session(*messages))
    assert (got.anchor.line, got.findings) == (len(messages), ())


@pytest.mark.parametrize(
    "before, estimated_saved, after", [(1_000, 500, 500), (1_000, 0, 1_000), (500, -100, 600), (100, 500, 0)]
)
def test_spills_take_off_what_they_took_off_the_estimate(before, estimated_saved, after):
    assert after_layer1(before, estimated_saved) == after
