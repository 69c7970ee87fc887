import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactctl import splicing
from compactctl.document import Document, Place
from compactctl.splicing import BEFORE_ALL, GATHERED_BYTES, Drop, DropTail, Insert, Put, Remove, Replace, gathered
from tests.builders.documents import read
from tests.builders.json_values import objects, replaced, routes, spelled, values, write_json_any


def edited(document: Document, *edits) -> bytes:
    return b"".join(splicing.edited(document, splicing.concrete(document, edits)))


@pytest.mark.parametrize(
    "raw, edits, result",
    [
        (b'{"a":1}\n', [Replace(Place(0, ("a",)), b'"x"')], b'{"a":"x"}\n'),
        (b'{"a" : [1, 2 ] }\n', [Replace(Place(0, ("a", 1)), b"3")], b'{"a" : [1, 3 ] }\n'),
        (b'{"a":1,"a":2}\n', [Replace(Place(0, ("a",)), b"3")], b'{"a":1,"a":3}\n'),
        (b'{"a":1}{"a":2}\n', [Replace(Place(1, ("a",)), b"3")], b'{"a":1}{"a":3}\n'),
        (b'\xef\xbb\xbf{"a":1}\r\n', [Replace(Place(0, ("a",)), b"3")], b'\xef\xbb\xbf{"a":3}\r\n'),
        (b'{"a":1}\n{"a":2}\n{"a":3}\n', [Drop(1)], b'{"a":1}\n{"a":3}\n'),
        (b'{"a":1}\r\n{"a":2}\r\n', [Drop(0)], b'{"a":2}\r\n'),
        (b'{"a":1} \r\r\n{"a":2}\n', [Drop(0)], b'{"a":2}\n'),
        (b'{"a":1}\n{"a":2}', [Drop(1)], b'{"a":1}\n'),
        (b'{"a":1}{"a":2}\n{"a":3}\n', [Drop(0)], b'{"a":2}\n{"a":3}\n'),
        (b'{"a":1}{"a":2}\n{"a":3}\n', [Drop(1)], b'{"a":1}\n{"a":3}\n'),
        (b'{"a":1}\n', [Insert(0, b"[]")], b'{"a":1}\n[]\n'),
        (b'{"a":1}', [Insert(0, b"[]")], b'{"a":1}\n[]\n'),
        (b'{"a":1}{"a":2}\n', [Insert(0, b"[]")], b'{"a":1}\n[]\n{"a":2}\n'),
        (b'{"a":1}\n{"a":', [DropTail()], b'{"a":1}\n'),
        (b'{"a":1}\n{"a":2}{"a":', [DropTail()], b'{"a":1}\n{"a":2}\n'),
        (b'{"a":1}\0\0\0', [DropTail()], b'{"a":1}\n'),
        (b'{"a":1}\n', [DropTail()], b'{"a":1}\n'),
        (b'{"a":1}', [], b'{"a":1}\n'),
        (b"", [], b""),
    ],
)
def test_an_edit_changes_the_bytes_it_names_and_no_others(raw, edits, result):
    document, _ = read(raw)
    assert edited(document, *edits) == result


def test_edits_that_overlap_are_refused():
    document, _ = read(b'{"a":{"b":1}}\n')
    with pytest.raises(ValueError, match="overlap"):
        splicing.concrete(document, [Replace(Place(0, ("a",)), b"2"), Replace(Place(0, ("a", "b")), b"3")])


@given(st.data(), objects, values)
def test_a_splice_is_what_writing_the_whole_value_again_would_be(data, value, new):
    raw = data.draw(spelled(value))
    route = data.draw(st.sampled_from(list(routes(value))))
    document, _ = read(raw + b"\n")
    result = edited(document, Replace(Place(0, route), write_json_any(new)))
    assert json.loads(result) == replaced(value, route, new)


@given(st.lists(st.binary(max_size=30) | objects.map(lambda value: json.dumps(value).encode()), max_size=8))
@example([b'{"a":1}', b"\xef\xbb\xbf", b"\0"])
def test_no_edit_gives_the_same_bytes_and_nothing_raises(pieces):
    raw = b"\n".join(pieces)
    document, _ = read(raw)
    final_newline = b"" if not raw or raw.endswith(b"\n") else b"\n"
    assert edited(document) == raw + final_newline


@given(st.data(), objects, st.sampled_from([b"", b"\xef\xbb\xbf"]))
def test_a_cut_anywhere_loses_at_most_the_last_record(data, value, start):
    line = json.dumps(value).encode()
    raw = start + line + b"\n" + line + b"\n"
    first_end, second_end = len(start + line), len(raw) - 1
    cut = data.draw(st.integers(0, len(raw)))
    document, values = read(raw[:cut])
    assert len(values) == (cut >= first_end) + (cut >= second_end)
    kept = raw if cut >= second_end else start + line if cut >= first_end else b""
    assert edited(document, DropTail()).rstrip(b"\n") == kept.rstrip(b"\n")


@pytest.mark.parametrize(
    "removed, put, expected",
    [
        ([0], {}, b"[2 , 3]"),
        ([1], {}, b"[1, 3]"),
        ([2], {}, b"[1, 2]"),
        ([0, 1], {}, b"[3]"),
        ([1, 2], {}, b"[1]"),
        ([0, 1, 2], {}, b"[]"),
        ([], {0: (b"8", b"9")}, b"[8,9,1, 2 , 3]"),
        ([], {1: (b"9",)}, b"[1, 9,2 , 3]"),
        ([], {3: (b"9",)}, b"[1, 2 , 3,9]"),
        ([0, 1], {1: (b"9",)}, b"[9,3]"),
        ([1, 2], {2: (b"8", b"9")}, b"[1,8,9]"),
        ([0, 1, 2], {3: (b"8", b"9")}, b"[8,9]"),
    ],
)
def test_elements_go_out_of_an_array_and_come_in_with_the_right_commas(removed, put, expected):
    document, _ = read(b'{"a":[1, 2 , 3],"b":0}\n')
    array = Place(0, ("a",))
    edits = [*(Remove(array.at(i)) for i in removed), *(Put(array.at(i), jsons) for i, jsons in put.items())]
    assert edited(document, *edits) == b'{"a":' + expected + b',"b":0}\n'


def test_an_empty_array_takes_elements():
    document, _ = read(b'{"a":[ ]}\n')
    assert edited(document, Put(Place(0, ("a", 0)), (b"1", b"2"))) == b'{"a":[1,2 ]}\n'


def test_a_value_inside_an_element_that_stays_can_be_replaced_too():
    document, _ = read(b'[{"a":1},{"a":2},{"a":3}]\n')
    edits = [Replace(Place(0, (1, "a")), b"9"), Remove(Place(0, (0,))), Remove(Place(0, (2,)))]
    assert edited(document, *edits) == b'[{"a":9}]\n'


def test_lines_can_be_put_before_every_record():
    document, _ = read(b'\xef\xbb\xbf{"a":1}\n')
    assert edited(document, Insert(BEFORE_ALL, b"2\n3"), Drop(0)) == b"\xef\xbb\xbf2\n3\n"


@given(st.lists(st.binary(max_size=40_000), max_size=12))
def test_gathered_pieces_are_the_same_bytes_in_pieces_that_are_not_small(pieces):
    made = list(gathered(pieces))
    assert b"".join(made) == b"".join(pieces)
    assert all(len(piece) >= GATHERED_BYTES for piece in made[:-1])


@pytest.mark.parametrize("edits", [[], [Replace(Place(1, ("a",)), b"22")], [Drop(0)], [Drop(2)]])
def test_all_bytes_of_a_file_are_told_while_it_is_edited(edits):
    raw = b'{"a":1}\n{"a":2}\n{"a":3}\n'
    document, _ = read(raw)
    told = []
    made = b"".join(splicing.edited(document, splicing.concrete(document, edits), read=told.append))
    assert b"".join(told) == raw
    assert made == edited(document, *edits)
