"""The edits that every format makes alike: a result gives way to its preview, its copies are slimmed."""

import re
from collections.abc import Callable, Iterable, Iterator

from compactctl.document import Document, Place
from compactctl.formats.interface import Spilled
from compactctl.json_text import read_json, write_json
from compactctl.model import Copy, ToolResult
from compactctl.spans import elements, members, span
from compactctl.splicing import Edit, Replace
from compactctl.texts import is_text

COPY_STRING_BYTES = 256
"""A string in a copy of a spilled result is shortened when it is longer than this."""

COPY_LIST_BYTES = 2048
"""A list in a copy keeps its first element only when its JSON, its strings shortened, is longer than this."""

_NOTE = re.compile(rb'"\[\d+ bytes, saved by compactctl to ')
"""How a note begins that stands for what was saved: it is never shortened again."""


def spill_edits(
    document: Document,
    spilled: Iterable[Spilled],
    copies: Callable[[ToolResult], Iterable[Copy]] = lambda result: result.copies,
) -> list[Edit]:
    """Return the edits that put previews where results stand, and slim the `copies` of those results."""
    edits: list[Edit] = []
    for item in spilled:
        edits.append(replace_text(document, item.result.place, item.preview))
        edits += _slim_copies(document, copies(item.result), item.note)
    return edits


def replace_text(document: Document, place: Place, text: str) -> Replace:
    """Return the edit that makes `text` the whole text of the value at `place`, in the shape it has.

    A string stays a string. In a list of blocks the first text block takes the text, keeping its other keys;
    other text blocks go; images and unknown blocks stay as they are, byte for byte.
    """
    new_text = write_json(text)
    if not document.opens_with(place, b"["):
        return Replace(place, new_text)
    kept: list[bytes] = []
    placed = False
    for element in elements(document.raw_value(place)):
        if not _is_text_block(element):
            kept.append(element)
        elif not placed:
            start, end = span(element, ("text",))
            kept.append(element[:start] + new_text + element[end:])
            placed = True
    return Replace(place, b"[" + b",".join(kept) + b"]")


def _is_text_block(element: bytes) -> bool:
    return is_text(read_json(element))


def saved_note(size_bytes: int, path: str) -> str:
    """Return the short text that says where what stood here was saved."""
    return f"[{size_bytes} bytes, saved by compactctl to {path}]"


def _slim_copies(document: Document, copies: Iterable[Copy], note: str) -> list[Edit]:
    """Return the edits that shorten the copies of a spilled result; `note` says where it is.

    Every key stays and every value keeps its type, since the agent's own display reads them: long strings give
    way to the note, long lists keep their first element.
    """
    edits: list[Edit] = []
    for copy in copies:
        edits += _shortened(document, copy.place, lambda _: note)
    return edits


def shorten(document: Document, places: Iterable[Place], path: str) -> list[Edit]:
    """Return the edits that shorten the values at these places, as far as that makes them shorter.

    `path` is where they are saved, for the note in their place.
    """
    return [
        edit
        for place in places
        for edit in _shortened(document, place, lambda size_bytes: saved_note(size_bytes, path))
    ]


def _shortened(document: Document, place: Place, note: Callable[[int], str]) -> Iterator[Replace]:
    raw = document.raw_value(place)
    shorter = slim(raw, write_json(note(len(raw))))
    if len(shorter) < len(raw):
        document.locate(place)
        yield Replace(place, shorter)


def slim(raw: bytes, note: bytes) -> bytes:
    """Return a JSON value with its long strings and lists shortened. Doing it again changes nothing more."""
    if len(raw) <= max(COPY_STRING_BYTES, len(note)) or _NOTE.match(raw):
        return raw
    if raw.startswith(b'"'):
        return note
    new = bytearray()
    copied_to = first_to = 0
    for _, start, end in members(raw):
        new += raw[copied_to:start] + slim(raw[start:end], note)
        copied_to = end
        first_to = first_to or len(new)
    new += raw[copied_to:]
    is_long_list = raw.startswith(b"[") and len(new) > COPY_LIST_BYTES
    return bytes(new[:first_to]) + b"]" if is_long_list and first_to else bytes(new)
