"""Many small values held in little room come back as they were, in order, as often as they are asked for."""

import pytest

from compactctl.receipt import Decision
from compactctl.rows import BLOCK, Rows

KIND = tuple[int, str, bytes]


def rows(count):
    made = Rows(KIND)
    for number in range(count):
        made.append((number, f"é{number}", b"\xff%d" % number))
    return made


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("count", [0, 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
def test_all_values_come_back_in_order_on_each_walk(count, is_closed):
    made = rows(count)
    if is_closed:
        made.close()
    expected = [(number, f"é{number}", b"\xff%d" % number) for number in range(count)]
    assert (list(made), list(made), len(made)) == (expected, expected, count)


def test_more_may_follow_when_it_was_closed():
    made = rows(BLOCK + 1)
    made.close()
    made.append((7, "seven", b"7"))
    assert len(made) == BLOCK + 2
    assert list(made)[-2:] == [(BLOCK, f"é{BLOCK}", b"\xff%d" % BLOCK), (7, "seven", b"7")]


def test_rows_are_equal_where_their_values_are():
    made, same, other = rows(BLOCK + 2), rows(BLOCK + 2), rows(BLOCK + 1)
    same.close()
    other.append((-1, "", b""))
    assert made == same
    assert made == list(same)
    assert made != other
    assert made != rows(BLOCK + 1)
    assert made != BLOCK + 2


def test_many_values_take_far_less_room_than_they_would_as_objects():
    made = rows(4 * BLOCK)
    assert sum(map(len, made._blocks)) < 4 * BLOCK * 24
    assert len(made._newest) <= BLOCK


def test_a_value_of_a_kind_of_its_own_comes_back_as_one():
    made = Rows(Decision)
    decisions = [Decision("m", f"c{number}", "Bash", number, 9, "kept", "why") for number in range(BLOCK + 2)]
    for decision in decisions:
        made.append(decision)
    assert list(made) == decisions
    assert decisions[3] in made
    assert Decision("m", "c", "Bash", 1, 9, "kept", "why") not in made
