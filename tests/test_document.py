import io
import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compactctl import splicing
from compactctl.document import MOST_SEEN_BYTES, Document, Place
from compactctl.json_text import read_json, write_json
from compactctl.spans import Seen, elements, members, span
from compactctl.splicing import BEFORE_ALL, GATHERED_BYTES, Drop, DropTail, Insert, Put, Remove, Replace, gathered

ANY = msgspec.json.Decoder()


class Shape(msgspec.Struct):
    """What the typed walks in these tests ask for."""

    a: int = 0
    rest: msgspec.Raw = msgspec.Raw()


SHAPE = msgspec.json.Decoder(Shape)


def opened(raw: bytes) -> Document:
    return Document(io.BytesIO(raw))


def read(raw: bytes):
    """Return a document that was walked, and the values of its records."""
    document = opened(raw)
    return document, [record.value for record in document.records(ANY)]


def found(document: Document):
    return [(finding.line, finding.rule) for finding in document.findings]


def edited(document: Document, *edits) -> bytes:
    return b"".join(splicing.edited(document, splicing.concrete(document, edits)))


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


# edits -------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("raw", [b"", b"x", b"x" * 3_000_000])
def test_the_digest_is_of_the_whole_file(raw):
    import hashlib

    assert opened(raw).sha256() == hashlib.sha256(raw).hexdigest()


# laws --------------------------------------------------------------------------------------------

texts = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)
atoms = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=20
)
objects = st.dictionaries(texts, values, max_size=5)


def routes(value, route=()):
    """Yield the route to every value inside."""
    yield route
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from routes(inner, (*route, key))
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from routes(inner, (*route, index))


def at(value, route):
    for key in route:
        value = value[key]
    return value


def replaced(value, route, new):
    """Return the value with another in one place, by building everything around it again."""
    if not route:
        return new
    head, *rest = route
    if isinstance(value, dict):
        return {key: replaced(inner, rest, new) if key == head else inner for key, inner in value.items()}
    return [replaced(inner, rest, new) if index == head else inner for index, inner in enumerate(value)]


@st.composite
def spelled(draw, value):
    """Return the JSON of a value in one of the ways that writers spell it."""
    return json.dumps(
        value,
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", "  :\r")])),
    ).encode()


@given(st.data(), values)
def test_a_span_is_exactly_the_value_of_its_route(data, value):
    raw = b" " + data.draw(spelled(value)) + b" "
    route = data.draw(st.sampled_from(list(routes(value))))
    start, end = span(raw, route)
    assert json.loads(raw[start:end]) == at(value, route)
    assert raw[start:end] == raw[start:end].strip()
    seen = Seen(raw)
    assert not route or seen.value(route) == raw[start:end]
    assert seen.span(route) == (start, end)
    assert Seen(raw).span_of_most(route) == (start, end)


@pytest.mark.parametrize("raw, value", [
    (b'{"a":1,"a":12}', b"12"),
    (b'{"a":12,"a":1}', b"1"),
    (b'{"a":1.5,"a":1}', b"1"),
    (b'{"a":[1,2],"b":3,"a":[1]}', b"[1]"),
    (b'{"a":{"x":1,"b":2},"b":3,"a":{"x":1}}', b'{"x":1}'),
    (b'{"a":"\xff","a":"x"}', b'"x"'),
    (b'{"b":NaN,"a":[2], "\\u0061" : [3] }', b"[3]"),
])  # fmt: skip
def test_of_a_repeated_key_the_last_value_counts(raw, value):
    start, end = span(raw, ("a",))
    assert raw[start:end] == value
    document = Document(io.BytesIO(raw + b"\n"))
    assert len(list(document.records(ANY))) == 1
    assert document.raw_value(Place(0, ("a",))) == value


@pytest.mark.parametrize("content", [
    b'"a"', b'["a","a"]', b'[{"text":"a"},"a"]', b'[{"text":"b","text":"a"}]', b'[{"text":"\xff"},{"text":"a"}]',
    b'[{"text":1},{"text":12}]', b'[{"text":"a"}] , "content" : [{"text":"b"}]', b'[{"text":"\\ud800"},{"b":[]}]',
])  # fmt: skip
def test_a_value_found_by_its_bytes_is_where_the_walk_finds_it(content):
    raw = b'{"message":{"content":' + content + b'},"copy":' + content.split(b" , ")[0] + b"}"
    inside = [("message", "content"), *(("message", "content", index) for index in (0, 1))]
    for route in (*inside, *((*each, "text") for each in inside[1:])):
        assert _tried(lambda route=route: Seen(raw).span_of_most(route)) == _tried(lambda route=route: span(raw, route))


def _tried(find):
    try:
        return find()
    except KeyError:
        return None


@pytest.mark.parametrize("value, length", [(b"[]", 0), (b"[1,[2,3]]", 2), (b'{"a":1}', 1), (b'"ab"', 0), (b"12", 0)])
@pytest.mark.parametrize("is_looked_into", [False, True])
def test_a_value_has_as_many_members_as_it_says(value, length, is_looked_into):
    document = Document(io.BytesIO(b'{"a":{"b":[' + value + b"]}}\n"))
    list(document.records(ANY))
    if is_looked_into:
        document.locate(Place(0, ("a", "b", 0)))
    assert [document.length(Place(0, route)) for route in ((), ("a", "b"), ("a", "b", 0))] == [1, 1, length]


@given(st.data(), values)
def test_members_and_elements_are_those_of_the_value(data, value):
    raw = data.draw(spelled(value))
    got = [(key, json.loads(raw[start:end])) for key, start, end in members(raw)]
    if isinstance(value, dict):
        assert got == list(value.items())
    else:
        assert got == (list(enumerate(value)) if isinstance(value, list) else [])
    assert [json.loads(element) for element in elements(raw)] == (value if isinstance(value, list) else [])


@given(st.data(), objects, values)
def test_a_splice_is_what_writing_the_whole_value_again_would_be(data, value, new):
    raw = data.draw(spelled(value))
    route = data.draw(st.sampled_from(list(routes(value))))
    document, _ = read(raw + b"\n")
    result = edited(document, Replace(Place(0, route), write_json_any(new)))
    assert json.loads(result) == replaced(value, route, new)


def write_json_any(value) -> bytes:
    return json.dumps(value).encode()


@given(st.lists(st.binary(max_size=30) | objects.map(lambda value: json.dumps(value).encode()), max_size=8))
@example([b'{"a":1}', b"\xef\xbb\xbf", b"\0"])
def test_no_edit_gives_the_same_bytes_and_nothing_raises(pieces):
    raw = b"\n".join(pieces)
    document, _ = read(raw)
    final_newline = b"" if not raw or raw.endswith(b"\n") else b"\n"
    assert edited(document) == raw + final_newline


@given(st.lists(objects, min_size=1, max_size=6), st.data())
def test_every_record_is_found_however_lines_end(records, data):
    raw = b""
    for record in records:
        raw += data.draw(spelled(record)) + data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"]))
    document, values = read(raw)
    assert [json.loads(document.raw(index)) for index in range(len(document))] == records
    assert len(values) == len(records)


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


@given(values)
def test_what_is_written_is_read_back(value):
    assert read_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("value, raw", [({"a": "é\n"}, '{"a":"é\\n"}'.encode()), ([1, None], b"[1,null]")])
def test_json_is_written_compact_and_in_utf8(value, raw):
    assert write_json(value) == raw


# arrays --------------------------------------------------------------------------------------------


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


# finding members -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"b":[1,2,{"c":"}"}],"d":"x"}',
        b'{"a": 1, "b": [1, 2, {"c": "}"}], "d": "x"}',
        b' { "a" :1,"b":[ 1,2,{"c":"}"}],"d":"x" } ',
        b'{"a":1,"b":[1,2,{"c":"}"}],"\\u0064":"x"}',
        b'{"d":2,"a":1,"b":[1,2,{"c":"}"}],"d":"x"}',
        b'{"a":12,"a":1,"b":[1,2,{"c":"}"}],"d":"x"}',
        b'{"d":"x","a":1,"b":[1,2,{"c":"}"}],"d":"x"}',
        b'{"a":1,"b":[1,2,{"c":"}"}],"d":"x","d":"x"}',
    ],
    ids=["compact", "spaced", "ragged", "escaped key", "twice", "longer number first", "same twice", "last twice"],
)
def test_members_are_found_however_an_object_is_written(raw):
    found = {route: read_json(raw[slice(*span(raw, route))]) for route in (("a",), ("b", 2, "c"), ("b", 1), ("d",))}
    assert found == {("a",): 1, ("b", 2, "c"): "}", ("b", 1): 2, ("d",): "x"}
    assert span(raw, ("d",))[0] == raw.rindex(b'"x"')


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
