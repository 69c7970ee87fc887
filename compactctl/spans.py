"""Where a value stands in the bytes of a record."""

import itertools
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

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
        self._lengths: dict[Route, int] = {}

    def value(self, route: Route) -> bytes:
        """Return the bytes of the value at `route`, in a fifth of the time that finding out where they are takes.

        Raises KeyError where there is none, or where the decoder refuses what is around it.
        """
        return bytes(self._value(route))

    def members(self) -> Mapping[Key, Raw]:
        """Return the members of the record; none where the decoder refuses it, or where it has none."""
        return self._known(())

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
        return self._stretches(route[:-1])[route[-1]]

    def _stretches(self, around: Route) -> dict[Key, Stretch]:
        """Return where the members of the value at a route lie; none for an atom. Raises KeyError."""
        found = self._members.get(around)
        if found is None:
            start, end = self.span(around)
            try:
                known = self._known(around)
            except KeyError:  # what is farther out has something that the decoder refuses
                known = _decoded_members(self.raw[start:end])
            found = _end_to_end(self.raw, start, known)
            if found is None:
                found = {key: (start, end) for key, start, end in _members(self.raw, start, known)}
            self._members[around] = found
        return found

    def span_of_most(self, route: Route) -> Stretch:
        """Return the same for a value that most of the record's outermost member is likely made of, in fewer passes.

        Found by its bytes, where they stand in that member only once; else step by step.
        """
        if len(route) > 2:
            start, end = self.span(route[:1])
            try:
                value = self._straight_to(route)
            except (KeyError, IndexError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return self.span(route)
            there = list(itertools.islice(_occurrences(self.raw, value, start, end), 2))
            if len(there) == 1:
                return there[0], there[0] + len(value)
        return self.span(route)

    def _straight_to(self, route: Route) -> Raw:
        """Return a value from one pass over the outermost member. Raises a decoder's errors, KeyError, IndexError."""
        steps = tuple(key if isinstance(key, str) else None for key in route[1:])
        value = _straight(steps).decode(self._known(())[route[0]])
        for depth, key in enumerate(route[1:], 1):
            if isinstance(key, int):
                self._lengths[route[:depth]] = len(value)
                value = value[key]
            else:
                value = value.value
        return cast(Raw, value)

    def length(self, route: Route) -> int:
        """Return how many members the value at `route` has; 0 for an atom. Raises KeyError where there is none."""
        found = self._lengths.get(route)
        if found is None:
            found = self._lengths[route] = len(self._stretches(route))
        return found


def _occurrences(raw: bytes, value: Raw, start: int, end: int) -> Iterator[int]:
    """Yield where a value's bytes stand. Only its head is searched for: with long needles, `find` is slow."""
    head = bytes(memoryview(value)[:HEAD_BYTES])
    at = raw.find(head, start, end)
    while at >= 0:
        if raw.startswith(cast(bytes, value), at, end):
            yield at
        at = raw.find(head, at + 1, end)


HEAD_BYTES = 64


@lru_cache(maxsize=64)
def _straight(steps: tuple[str | None, ...]) -> "msgspec.json.Decoder[Any]":
    """Return a decoder that looks for one value only; None among the steps stands for any place in an array."""
    shape: Any = Raw
    for step in reversed(steps):
        shape = list[shape] if step is None else msgspec.defstruct("Step", [("value", shape)], rename={"value": step})
    return msgspec.json.Decoder(shape)


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


def _end_to_end(raw: bytes, start: int, known: Mapping[Key, Raw]) -> dict[Key, Stretch] | None:
    """Return where each member stands where all of them, as the decoder found them, make up the value end to end.

    None where that is not how it is written: with other blanks in it, a key twice, an escape in a key.
    """
    if not known:
        return None
    is_object = raw[start : start + 1] == b"{"
    for blank in _WAYS_TO_WRITE:
        leads = _names(tuple(known), blank) if is_object else [b"", *[b"," + blank] * (len(known) - 1)]
        found: dict[Key, Stretch] = {}
        end = start + 1
        for (key, value), lead in zip(known.items(), leads, strict=True):
            if not raw.startswith(lead, end):
                break
            begin = end + len(lead)
            if not raw.startswith(cast(bytes, value), begin):  # any buffer will do
                break
            end = begin + len(value)
            found[key] = begin, end
        else:
            if raw[end : end + 1] == (b"}" if is_object else b"]"):
                return found
    return None


_WAYS_TO_WRITE = (b"", b" ")
"""What stands behind colons and commas: nothing where JavaScript writes JSON, a blank where Python does."""


@lru_cache(maxsize=256)
def _names(keys: tuple[Key, ...], blank: bytes) -> list[bytes]:
    """Return keys as they are written in front of their values, all but the first behind a comma.

    Of a session nearly all lines have the same few.
    """
    comma = b"," + blank
    return [b'%b"%b":%b' % (comma if index else b"", str(key).encode(), blank) for index, key in enumerate(keys)]


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
    if value is None or not raw.startswith(cast(bytes, value), start):
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
