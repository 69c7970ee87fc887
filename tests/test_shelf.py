"""Which sessions of many are shown: the first ones by what they are sorted by, and no more are kept than that."""

import random

import pytest

from compactctl.cli.shelf import SORTS, Shelf
from compactctl.outcome import Bytes, WouldSpill
from tests.builders.outcomes import details, failed, finding, outcome, tokens


def kept(shelf, outcomes):
    for each in outcomes:
        shelf.add(each)
    return [each.path for each in shelf]


def sized(name, size_bytes):
    return outcome(name, bytes=Bytes(size_bytes, size_bytes))


@pytest.mark.parametrize("limit", [None, 1, 3, 5, 9])
def test_the_largest_come_first_whatever_the_order_they_came_in(limit):
    names = [(name, size) for size, name in enumerate("abcdefg")]
    random.Random(7).shuffle(names)
    assert kept(Shelf("size", limit), [sized(*each) for each in names]) == list("gfedcba")[:limit]


def test_equal_ones_stay_in_their_order():
    assert kept(Shelf("size", 2), [sized(name, 1) for name in "abc"]) == ["a", "b"]


def test_without_a_sort_the_first_ones_are_kept():
    assert kept(Shelf(None, 2), [sized(name, size) for size, name in enumerate("abc")]) == ["a", "b"]


@pytest.mark.parametrize(
    "sort, more",
    [
        ("size", {"bytes": Bytes(500_000, 500_000)}),
        ("context", {"tokens": tokens(150_000)}),
        ("saved", {"tokens": tokens(90_000, 10_000)}),
        ("saved", {"details": details(would_spill=(WouldSpill(50_000, 0, 0, 0), WouldSpill(20_000, 9, 1, 60_000)))}),
        ("modified", {"modified": "2026-03-02T09:20:01+00:00"}),
        ("problems", {"findings": (finding(),)}),
        ("problems", {"exit_code": 6}),
    ],
)
def test_what_each_sort_puts_first(sort, more):
    unread = failed("unread", exit_code=0)
    assert kept(Shelf(sort, None), [outcome("a"), unread, outcome("b", **more)])[0] == "b"


@pytest.mark.parametrize("sort", SORTS)
def test_no_more_are_kept_than_are_shown(sort):
    shelf = Shelf(sort, 20)
    for number in range(1000):
        shelf.add(sized(f"{number}", number))
        assert len(shelf._kept) <= 20
