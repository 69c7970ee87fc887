import io
import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactctl.document import COPY_BYTES, MOST_SEEN_BYTES, Document, Place
from compactctl.json_text import read_json, write_json
from tests.builders.documents import ANY, SHAPE, opened, read
from tests.builders.json_values import objects, spelled, values


def found(document: Document):
    return [(finding.line, finding.rule) for finding in document.findings]


# as it was before ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw, records, sizes",
    [
        (b'{"a":1}\n{"a":2}\n', 2, [0, 8, 16]),
        (b'{"a":1}{"a":2}\n', 2, [0, 7, 15]),  # glued
        (b'{"a":1}\n\n\x00\x00{"a":2}\n{"a":3', 2, [0, 11, 25]),  # NUL bytes, and a torn tail
        (b"", 0, [0]),
    ],
)
def test_a_document_until_a_record_is_what_stood_before_it(raw, records, sizes):
    document, _ = read(raw)
    assert len(document) == records
    assert [document.until(record).size_bytes for record in range(records + 1)] == sizes


def test_a_record_has_its_line_place_and_bytes_in_every_earlier_state():
    document, values = read(b'{"a":1}\n\n{"a":2}{"a":3}\nno json\n\x00{"a":4}\n{"a":')
    for end in range(len(document) + 1):
        before = document.until(end)
        assert [record.value for record in before.records(ANY)] == values[:end]
        assert [before.raw(record) for record in range(end)] == [document.raw(record) for record in range(end)]
        assert [before.line(record) for record in range(end)] == [document.line(record) for record in range(end)]
        assert [before.value(Place(record, ("a",))) for record in range(end)] == [v["a"] for v in values[:end]]
        assert before.sha256() == document.sha256_of(0, before.size_bytes)


@pytest.mark.parametrize("size_bytes", [10, 3 * COPY_BYTES + 7])
def test_bytes_are_the_same_where_none_of_them_differs(size_bytes):
    raw = random.Random(7).randbytes(size_bytes)
    document = Document(io.BytesIO(raw))
    assert document.is_same(0, size_bytes, Document(io.BytesIO(b"xyz" + raw)), 3)
    assert document.is_same(4, size_bytes, Document(io.BytesIO(raw[4:])), 0)
    assert document.is_same(4, 4, Document(io.BytesIO(b"")), 0)
    assert not document.is_same(0, size_bytes, Document(io.BytesIO(raw[:-1])), 0)
    for at in (0, size_bytes // 2, size_bytes - 1):
        other = bytearray(raw)
        other[at] ^= 1
        assert not document.is_same(0, size_bytes, Document(io.BytesIO(bytes(other))), 0)
        assert document.is_same(at + 1, size_bytes, Document(io.BytesIO(bytes(other))), at + 1)


def test_the_later_state_is_read_on_after_an_earlier_one():
    source = io.BytesIO(b'{"a":1}\n{"a":2}\n')
    document = Document(source)
    list(document.records(ANY))
    before = document.until(1)
    assert [record.value for record in before.records(ANY)] == [{"a": 1}]
    assert document.raw(1) == b'{"a":2}'
    assert before.raw(0) == b'{"a":1}'
    del before
    assert not source.closed
    assert [record.value for record in document.records(ANY)] == [{"a": 1}, {"a": 2}]


def test_there_is_no_state_after_the_end():
    document, _ = read(b'{"a":1}\n')
    with pytest.raises(IndexError):
        document.until(2)


# what is read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw, values, findings",
    [
        (b"", [], []),
        (b'{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}], []),
        (b'{"a":1}\r\n{"a":2}\r\n', [{"a": 1}, {"a": 2}], []),
        (b'\n\n{"a":1}\n \n', [{"a": 1}], []),
        (b'{"a":1}', [{"a": 1}], [(1, "no-final-newline")]),
        (b'\xef\xbb\xbf{"a":1}\n', [{"a": 1}], [(1, "byte-order-mark")]),
        (b'\xef\xbb\xbf{"a":1}\r\n{"a":2}\r\n', [{"a": 1}, {"a": 2}], [(1, "byte-order-mark")]),
        (b'["x"]\n42\nnull\n"text"\n', [["x"], 42, None, "text"], []),
        # torn
        (b'{"a":1}\n{"a":', [{"a": 1}], [(2, "torn-tail")]),
        (b'{"a":1}\n{"a":"\xc3', [{"a": 1}], [(2, "torn-tail")]),
        (b'{"a":1}\n{"a":\0\0\0\0', [{"a": 1}], [(2, "nul-run"), (2, "torn-tail")]),
        (b'{"a":1}\n\0\0\0\0', [{"a": 1}], [(2, "nul-run")]),
        (b'{"a":1}\n{"a":\n{"a":3}\n', [{"a": 1}, {"a": 3}], [(2, "unreadable-line")]),
        # glued
        (b'{"a":1}{"a":2}\n', [{"a": 1}, {"a": 2}], [(1, "glued-records")]),
        (b'{"a":1} {"a":2}\t[3]\n', [{"a": 1}, {"a": 2}, [3]], [(1, "glued-records")]),
        (b'{"a":1}{"a":\n{"a":3}\n', [{"a": 1}, {"a": 3}], [(1, "glued-records")]),
        (b'{"a":1}}\n', [{"a": 1}], [(1, "glued-records")]),
        (b'{"a":1}\n{"a":2}{"a":', [{"a": 1}, {"a": 2}], [(2, "torn-tail")]),
        # NUL bytes
        (b'\0\0\0{"a":1}\n', [{"a": 1}], [(1, "nul-run")]),
        (b'{"a":1}\0\0\n{"a":2}\n', [{"a": 1}, {"a": 2}], [(1, "nul-run")]),
        (b'{"a":1}\0\0{"a":2}\n', [{"a": 1}, {"a": 2}], [(1, "nul-run"), (1, "glued-records")]),
        (b'\0\0\0\0\n{"a":1}\n', [{"a": 1}], [(1, "nul-run")]),
        # text
        (b'{"a":"\\ud83d"}\n', [{"a": "\ufffd"}], [(1, "lone-surrogate")]),
        (b'{"a":"x\\ude00y"}\n', [{"a": "x\ufffdy"}], [(1, "lone-surrogate")]),
        (b'{"a":"\\ud83d\\ude00"}\n', [{"a": "\U0001f600"}], []),
        (b'{"a":"\xff"}\n', [{"a": "\ufffd"}], [(1, "invalid-utf8")]),
        (b'{"a":"\xe2\x80\xa8 \xe2\x80\xa9 \xc2\x85"}\n', [{"a": "\u2028 \u2029 \x85"}], []),
        (b'{"a":"\\u0000"}\n', [{"a": "\0"}], []),
        # numbers
        (b'{"a":NaN}\n', [{"a": None}], [(1, "non-json-number")]),
        (b'{"a":-Infinity}\n', [{"a": None}], [(1, "non-json-number")]),
        (b'{"a":' + b"9" * 5000 + b"}\n", [{"a": None}], [(1, "non-json-number")]),
        (b'{"a":12345678901234567890}\n', [{"a": 12345678901234567890}], []),
        # a repeated key
        (b'{"a":1,"a":2}\n', [{"a": 2}], []),
        # not JSON
        (b'{"a":1}\nnot json\n{"a":2}\n', [{"a": 1}, {"a": 2}], [(2, "unreadable-line")]),
        (b"2026-12-01 a line of a log\n", [], [(1, "unreadable-line")]),
        (b'"title": 5,\n', [], [(1, "unreadable-line")]),
        (b"{'a': 1}\n", [], [(1, "unreadable-line")]),
    ],
)
def test_every_line_is_read_or_reported(raw, values, findings):
    document, got = read(raw)
    assert (got, found(document)) == (values, findings)


def test_lines_that_a_raw_newline_broke_are_one_damaged_span():
    raw = b'{"a":1}\n{"a":"one\ntwo\nthree"}\n{"a":2}\n'
    document, values = read(raw)
    assert (values, found(document)) == ([{"a": 1}, {"a": 2}], [(2, "unreadable-line")])
    assert "lines 2-4" in document.findings[0].message


@pytest.mark.parametrize("decoder", [ANY, SHAPE], ids=["any", "typed"])
@pytest.mark.parametrize("opener, closer", [(b"[", b"]"), (b'{"a":', b"}")])
def test_deep_nesting_is_one_unreadable_line(decoder, opener, closer):
    deep = b'{"rest":' + opener * 50_000 + b"1" + closer * 50_000 + b"}\n"
    document = opened(b'{"a":1}\n' + deep + b'{"a":2}\n')
    assert sum(1 for _ in document.records(decoder)) == 2
    assert found(document) == [(2, "unreadable-line")]


@pytest.mark.parametrize("escape", [b"\\ud83d", b"\\ude00 and more text", b"\\ud83d\\u0041"])
@pytest.mark.parametrize("key", [b"rest", b"unasked"])
def test_a_lone_surrogate_is_found_in_fields_that_nobody_decodes(key, escape):
    document = opened(b'{"a":1,"' + key + b'":"' + escape + b'","z":"' + b"z" * 40 + b'"}\n')
    values = [record.value for record in document.records(SHAPE)]
    assert (values[0].a, found(document)) == (1, [(1, "lone-surrogate")])


def test_invalid_utf8_is_found_in_fields_that_nobody_decodes():
    document = opened(b'{"a":1,"unasked":"\xff"}\n')
    assert [record.value.a for record in document.records(SHAPE)] == [1]
    assert found(document) == [(1, "invalid-utf8")]


def test_a_record_of_another_shape_is_known_to_exist():
    document = opened(b'{"a":"text"}\n[1]\n{"a":5}\n')
    shapes = [(record.line, record.value and record.value.a) for record in document.records(SHAPE)]
    assert (shapes, found(document)) == ([(1, None), (2, None), (3, 5)], [])


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\0\0"])
@pytest.mark.parametrize("after", [b"", b'{"a":2}', b"\0"])
def test_sizes_are_those_in_the_file_beside_damage_too(before, after):
    spaced = b'{"a":1, "rest": {"k":  [1, 2]}}'
    document = opened(before + spaced + after + b"\n")
    first = next(iter(document.records(SHAPE)))
    assert (first.size_bytes, bytes(first.value.rest)) == (len(spaced), b'{"k":  [1, 2]}')


@pytest.mark.parametrize("damage", [rb"\ud800", rb"\udc00\ud800", b"\xff", b"\xed\xa0\x80", b"\xe6\x97"])
def test_the_size_of_a_value_does_not_depend_on_damage_in_another(damage):
    values = rb'{"k": [1, "\ud83d\ude00", 1e5],  "n":1234567890123456789012}'
    document = opened(b'{"a":1,"b":"' + damage + b'", "rest": ' + values + b"}\n")
    first = next(iter(document.records(SHAPE)))
    assert (first.value.a, bytes(first.value.rest)) == (1, values)


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xe6\x97", b"\xed\xa0\x80", rb"\ud83d", rb"\ud83d" + b"\xff", rb"\\ud83d", "é".encode()]
)
def test_a_text_is_the_same_with_its_record_and_alone(text):
    document = opened(b'{"b":"x' + text + b'y"}\n')
    values = [record.value["b"] for record in document.records(msgspec.json.Decoder(dict[str, str]))]
    assert values == [document.value(Place(0, ("b",)))]


@pytest.mark.parametrize(
    "number, value",
    [(b"NaN", None), (b"-Infinity", None), (b"1e999", None), (b"1" + b"0" * 30, 10**30), (b"-12", -12)],
)
def test_numbers_that_no_decoder_takes_are_rounded_or_null(number, value):
    document = opened(b'{"a":' + number + b',"b":"NaN 1e999"}\n')
    typed = msgspec.json.Decoder(dict[str, int | float | str | None])
    assert [record.value for record in document.records(typed)] == [{"a": value, "b": "NaN 1e999"}]


def test_a_walk_may_be_left_and_begun_anew():
    document = opened(b'{"a":1}\n{"a":2}\n')
    next(iter(document.records(ANY)))
    assert [record.index for record in document.records(ANY)] == [0, 1]
    assert (len(document), document.line_count) == (2, 2)


def test_a_record_tells_its_line_its_place_and_its_bytes():
    document, _ = read(b'\n{"a":1} {"a": 2}\r\n{"a":3}')
    assert [document.line(i) for i in range(3)] == [2, 2, 3]
    assert [document.offset(i) for i in range(3)] == [1, 9, 19]
    assert [document.raw(i) for i in range(3)] == [b'{"a":1}', b'{"a": 2}', b'{"a":3}']


def test_a_value_is_fetched_from_its_place():
    document, _ = read(b'{"a":[1,{"b":"x\\ud83dy"}]}\n')
    place = Place(0, ("a", 1)).at("b")
    assert (document.raw_value(place), document.value(place)) == (b'"x\\ud83dy"', "x\ufffdy")


def test_a_record_is_read_once_for_all_its_values():
    source = CountedReads(b'{"a":[' + b",".join(b'"%04d"' % i for i in range(1000)) + b"]}\n")
    document = Document(source)
    list(document.records(ANY))
    source.bytes_read = 0
    values = [document.value(Place(0, ("a", index))) for index in range(1000)]
    assert (values[7], source.bytes_read) == ("0007", len(source.getvalue()) - 1)


@pytest.mark.parametrize("size, reads", [(MOST_SEEN_BYTES // 8, 4), (MOST_SEEN_BYTES // 2, 8), (MOST_SEEN_BYTES, 8)])
def test_the_records_looked_into_last_are_at_hand_as_far_as_there_is_room_for_them(size, reads):
    source = CountedReads(b"".join(b'{"a":"' + b"x" * (size - 8) + b'"}\n' for _ in range(4)))
    document = Document(source)
    list(document.records(ANY))
    source.bytes_read = 0
    for record in (*range(4), *range(4)):
        document.raw_value(Place(record, ("a",)))
    assert source.bytes_read == reads * size


class CountedReads(io.BytesIO):
    """A file that counts how much of it is asked for."""

    bytes_read = 0

    def read(self, size=-1, /):
        data = super().read(size)
        self.bytes_read += len(data)
        return data


@pytest.mark.parametrize("route", [("b",), ("a", 5), ("a", 0, "b"), (0,), ("a", "0")])
def test_a_place_that_leads_nowhere_is_a_key_error(route):
    document, _ = read(b'{"a":[1]}\n')
    with pytest.raises(KeyError):
        document.value(Place(0, route))


@pytest.mark.parametrize("raw", [b"", b"x", b"x" * 3_000_000])
def test_the_digest_is_of_the_whole_file(raw):
    import hashlib

    assert opened(raw).sha256() == hashlib.sha256(raw).hexdigest()


# laws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value, length", [(b"[]", 0), (b"[1,[2,3]]", 2), (b'{"a":1}', 1), (b'"ab"', 0), (b"12", 0)])
@pytest.mark.parametrize("is_looked_into", [False, True])
@pytest.mark.parametrize("odd", [b"0", b'"\\ud83d"', b"NaN", b'"\xff"'])
def test_a_value_has_as_many_members_as_it_says(value, length, is_looked_into, odd):
    document = Document(io.BytesIO(b'{"a":{"b":[' + value + b'],"c":' + odd + b'},"d":' + odd + b"}\n"))
    list(document.records(ANY))
    if is_looked_into:
        document.locate(Place(0, ("a", "b", 0)))
    assert [document.length(Place(0, route)) for route in ((), ("a", "b"), ("a", "b", 0))] == [2, 1, length]


@given(st.lists(objects, min_size=1, max_size=6), st.data())
def test_every_record_is_found_however_lines_end(records, data):
    raw = b""
    for record in records:
        raw += data.draw(spelled(record)) + data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"]))
    document, values = read(raw)
    assert [json.loads(document.raw(index)) for index in range(len(document))] == records
    assert len(values) == len(records)


@given(values)
def test_what_is_written_is_read_back(value):
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("value, raw", [({"a": "é\n"}, '{"a":"é\\n"}'.encode()), ([1, None], b"[1,null]")])
def test_json_is_written_compact_and_in_utf8(value, raw):
    assert write_json(value) == raw


# arrays --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, unread",
    [
        (b'{"a": 1}\n{"b": 2}\n', []),
        (b'\xef\xbb\xbf{"a": 1}\n\n  \n{"b": 2}\n', []),
        (b'{"a": 1}\n\0\0\0\0\n{"b": 2}\n', []),
        (b'{"a": 1}\n{"half\n{"b": 2}\n', [(2, b'{"half\n')]),
        (b'{"a": 1}\n\n{"b": "to', [(3, b'{"b": "to')]),
        (b'no record\n{"b": 2}\n', [(1, b"no record\n")]),
    ],
)
def test_what_stands_outside_of_records_is_told_with_its_line(content, unread):
    document = Document(io.BytesIO(content))
    for _ in document.records(msgspec.json.Decoder()):
        pass
    assert list(document.unread()) == unread


@pytest.mark.parametrize("odd", [b'"\\ud800"', b"NaN", b'"\xff"', b"1"])
def test_an_array_is_split_whatever_stands_in_one_of_its_elements(odd):
    found = Document(io.BytesIO(b'[{"a": ' + odd + b'},\n{"a": 2}]'))
    assert found.split_array()
    assert [record.line for record in found.records(msgspec.json.Decoder())] == [1, 2]


@pytest.mark.parametrize("torn", [b'[{"a": "\\ud800"},\n{"a"', b'[{"a": NaN},', b'{"a": "\\ud800"}'])
def test_what_is_no_whole_array_is_not_split(torn):
    assert not Document(io.BytesIO(torn)).split_array()


def test_the_members_of_a_record_are_told_as_they_stand_and_none_of_what_is_no_object():
    document, _ = read('{"a":[1, 2],"b":"é"}\n[1]\n7\n{}\n{"c":"\ud800"}\n'.encode("utf-8", "surrogatepass"))
    told = [document.members(record) for record in range(len(document))]
    assert [each and {key: read_json(bytes(raw)) for key, raw in each.items()} for each in told] == [
        {"a": [1, 2], "b": "é"},
        None,
        None,
        {},
        {"c": "\ufffd\ufffd\ufffd"},
    ]
