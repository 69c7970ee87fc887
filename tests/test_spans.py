import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactctl.document import Document, Place
from compactctl.json_text import read_json
from compactctl.spans import Seen, elements, members, span
from tests.builders.documents import ANY
from tests.builders.json_values import at, routes, spelled, values


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


@given(st.data(), values)
def test_members_and_elements_are_those_of_the_value(data, value):
    raw = data.draw(spelled(value))
    got = [(key, json.loads(raw[start:end])) for key, start, end in members(raw)]
    if isinstance(value, dict):
        assert got == list(value.items())
    else:
        assert got == (list(enumerate(value)) if isinstance(value, list) else [])
    assert [json.loads(element) for element in elements(raw)] == (value if isinstance(value, list) else [])


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
