"""Where a value stands in the bytes of a record."""

import re
from collections.abc import Iterator, Mapping
from typing import cast

import msgspec
from msgspec import Raw

from compactctl.json_text import read_json

Key = str | int
Route = tuple[Key, ...]
Stretch = tuple[int, int]
"""Where some bytes start and end."""

MEMBERS: "msgspec.json.Decoder[dict[Key, Raw] | list[Raw]]" = msgspec.json.Decoder(dict[str, Raw] | list[Raw])
"""Tells the members of an object or array, none of them looked into."""

BLANKS = b" \t\n\r"
_AFTER_VALUE = frozenset((b",", b"}", b"]", b" ", b"\t", b"\n", b"\r"))
_STRING = re.compile(rb'"(?:[^"\\]+|\\.)*+"', re.DOTALL)
_SPACE = re.compile(rb"[ \t\n\r]*+")
_ATOM = re.compile(rb"[^,\]} \t\n\r]++")
_STRUCTURE = re.compile(rb'[\[\]{}]|"(?:[^"\\]+|\\.)*+"', re.DOTALL)


def span(raw: bytes, route: Route) -> Stretch:
    """Return where the value at `route` starts and ends in a record's bytes.

    The record must be valid JSON (a decoder has read it already). Of a repeated key the last one counts, as
    it does for every JSON library. Raises KeyError where the route leads nowhere.
    """
    return Seen(raw).span(route)


class Seen:
    """A record's bytes, and where the members are of the values in it that a route has led through.

    A line may hold thousands of results: each is found without a walk over the line.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._members: dict[Route, dict[Key, Stretch]] = {}
        self._inside: dict[Route, Mapping[Key, Raw]] = {}

    def value(self, route: Route) -> bytes:
        """Return the bytes of the value at `route`, in a fifth of the time that finding out where they are takes.

        Raises KeyError where there is none, or where the decoder refuses what is around it.
        """
        return bytes(self._value(route))

    def _value(self, route: Route) -> bytes | Raw:
        return self._known(route[:-1])[route[-1]] if route else self.raw

    def _known(self, route: Route) -> Mapping[Key, Raw]:
        """Return the members of the value at `route`, as the decoder finds them."""
        known = self._inside.get(route)
        if known is None:
            known = self._inside[route] = _decoded_members(self._value(route))
        return known

    def span(self, route: Route) -> Stretch:
        """Return where the value at `route` starts and ends. Raises KeyError where there is none."""
        if not route:
            return skip_space(self.raw, 0), len(self.raw.rstrip(BLANKS))
        around = route[:-1]
        found = self._members.get(around)
        if found is None:
            start, end = self.span(around)
            try:
                known = self._known(around)
            except KeyError:  # what is farther out has something that the decoder refuses
                known = _decoded_members(self.raw[start:end])
            found = self._members[around] = {key: (start, end) for key, start, end in _members(self.raw, start, known)}
        return found[route[-1]]


def elements(raw: bytes) -> list[bytes]:
    """Return the elements of a JSON array, each as it stands in the bytes; [] where it is not an array."""
    start = skip_space(raw, 0)
    if raw[start : start + 1] != b"[":
        return []
    return [raw[value_start:value_end] for _, value_start, value_end in members(raw, start)]


def members(raw: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[Key, int, int]]:
    """Yield key or index, start and end of each member of the object or array that stands there; nothing for atoms."""
    if raw[start : start + 1] in (b"{", b"["):
        yield from _members(raw, start, _decoded_members(raw[start:end]))


def _members(raw: bytes, start: int, known: Mapping[Key, Raw]) -> Iterator[tuple[Key, int, int]]:
    """Yield the same; the ends of `known` members need not be searched for."""
    opener = raw[start : start + 1]
    if opener not in (b"{", b"["):
        return
    position = skip_space(raw, start + 1)
    index = 0
    while raw[position : position + 1] not in (b"}", b"]"):
        key: Key = index
        if opener == b"{":
            key_end = _value_end(raw, position)
            key = str(read_json(raw[position:key_end]))
            position = skip_space(raw, skip_space(raw, key_end) + 1)
        value_end = _end_of_known(raw, position, known.get(key)) or _value_end(raw, position)
        yield key, position, value_end
        index += 1
        position = skip_space(raw, value_end)
        if raw[position : position + 1] == b",":
            position = skip_space(raw, position + 1)


def _decoded_members(raw: bytes | Raw) -> Mapping[Key, Raw]:
    """Return the members as a decoder finds them, ten times faster than a scan; none where it refuses the value."""
    try:
        found = MEMBERS.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else dict(enumerate(found))


def _end_of_known(raw: bytes, start: int, value: Raw | None) -> int | None:
    """Return where a value ends that the decoder found; None where another stands here, as for a repeated key.

    No JSON value is the beginning of another one, save of a longer number.
    """
    if value is None or not raw.startswith(cast(bytes, value), start):  # any buffer will do
        return None
    end = start + len(value)
    return end if raw[end : end + 1] in _AFTER_VALUE else None


def skip_space(raw: bytes, position: int) -> int:
    """Return where the first byte stands, from a position on, that is no blank."""
    if raw[position : position + 1] > b" ":
        return position
    match = _SPACE.match(raw, position)
    return match.end() if match else position


def _value_end(raw: bytes, start: int) -> int:
    opener = raw[start : start + 1]
    if opener == b'"':
        match = _STRING.match(raw, start)
    elif opener in (b"{", b"["):
        depth = 0
        for token in _STRUCTURE.finditer(raw, start):
            first = token.group()[:1]
            if first in (b"{", b"["):
                depth += 1
            elif first in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    return token.end()
        raise KeyError(start)
    else:
        match = _ATOM.match(raw, start)
    if match is None:
        raise KeyError(start)
    return match.end()
