"""JSON values of any kind, the ways in them, and how they may be spelled."""

import json

from hypothesis import strategies as st

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


def write_json_any(value) -> bytes:
    return json.dumps(value).encode()
