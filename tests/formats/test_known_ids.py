"""The ids of a Claude Code session are known again when they are held packed, and nothing else is taken for one."""

import random
import uuid

import pytest
from msgspec import Raw

from compactctl.formats.claude_code.fork import _Ids, _Known
from compactctl.formats.fork import derived_id

ONE = "00112233-4455-6677-8899-aabbccddeeff"
OTHERS = ["00112233-4455-6677-8899-AABBCCDDEEFF", "toolu_01ABCDEFGHIJKLMNOPQRSTUVWXYZ12", "é" * 18, ""]


def test_ids_are_known_once_each_however_they_are_written():
    chance = random.Random(5)
    ids = [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(9_000)] + OTHERS
    known = _Known()
    for id in (*ids, *ids[:50], *OTHERS):
        known.add(id)
    assert (len(known), sorted(known)) == (len(ids), sorted(ids))
    assert all(id in known for id in ids)
    assert not any(str(uuid.UUID(int=chance.getrandbits(128))) in known for _ in range(9_000))


@pytest.mark.parametrize("is_known", [False, True])
def test_the_end_of_one_id_and_the_start_of_the_next_are_none(is_known):
    halves = uuid.UUID(ONE).bytes
    first, second = uuid.UUID(bytes=halves[8:] + halves[:8]), uuid.UUID(bytes=halves[8:] * 2)
    known = _Known()
    shelf = bytearray(first.bytes + halves[8:] + first.bytes[8:] + (halves if is_known else second.bytes))
    for key in range(4096):
        known._packed[key] = shelf
    assert shelf.find(halves) == 8
    assert (ONE in known) is is_known


def test_only_ids_of_lines_and_the_session_get_new_ones():
    ids = _Ids("5eed", "old", "new")
    ids.note(Raw(b'"%b"' % ONE.encode()))
    ids.note(Raw(b'"short"'))
    assert dict(ids) == {"old": "new", ONE: derived_id("5eed", ONE)}
    assert [ids.new(id) for id in ("old", ONE, "short", str(uuid.UUID(int=1)))] == [
        "new",
        derived_id("5eed", ONE),
        None,
        None,
    ]
    with pytest.raises(KeyError):
        ids["short"]
