"""The edits that every format makes alike: a result gives way to its preview, its copies are slimmed."""

from typing import Any

from compactctl.document import Document, Edit, Place, Replace, elements, members, read_json, span, write_json
from compactctl.formats.interface import Spilled
from compactctl.model import ToolResult

TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})
"""Block types whose `text` is a result's text."""

COPY_STRING_BYTES = 256
"""A string in a copy of a spilled result is shortened when it is longer than this."""

COPY_LIST_BYTES = 2048
"""A list in a copy of a spilled result is shortened when its JSON is longer than this."""


def result_text(document: Document, result: ToolResult) -> str:
    """Return the text of a result: the string, or the text blocks of a list joined by one newline each."""
    value = document.value(result.place)
    if isinstance(value, str):
        return value
    return "\n".join(block["text"] for block in value if _is_text(block))


def replace_text(document: Document, place: Place, text: str) -> Edit:
    """Return the edit that makes `text` the whole text of the value at `place`, in the shape it has.

    A string stays a string. In a list of blocks the first text block takes the text, keeping its other keys;
    other text blocks go; images and unknown blocks stay as they are, byte for byte.
    """
    raw = document.raw_value(place)
    new_text = write_json(text)
    if not raw.lstrip().startswith(b"["):
        return Replace(place, new_text)
    kept: list[bytes] = []
    placed = False
    for element in elements(raw):
        if not _is_text_block(element):
            kept.append(element)
        elif not placed:
            start, end = span(element, ("text",))
            kept.append(element[:start] + new_text + element[end:])
            placed = True
    return Replace(place, b"[" + b",".join(kept) + b"]")


def _is_text_block(element: bytes) -> bool:
    return _is_text(read_json(element))


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and str(block.get("type")) in TEXT_BLOCKS and isinstance(block.get("text"), str)


def slim_copies(document: Document, spilled: Spilled) -> list[Edit]:
    """Return the edits that shorten the copies of a spilled result.

    Every key stays and every value keeps its type, since the agent's own display reads them: long strings give
    way to the note, long lists keep their first element.
    """
    edits: list[Edit] = []
    for copy in spilled.result.copies:
        raw = document.raw_value(copy.place)
        slim = _slim(raw, write_json(spilled.note))
        if len(slim) < len(raw):
            edits.append(Replace(copy.place, slim))
    return edits


def _slim(raw: bytes, note: bytes) -> bytes:
    if len(raw) <= max(COPY_STRING_BYTES, len(note)):
        return raw
    if raw.startswith(b'"'):
        return note
    new = bytearray()
    copied_to = 0
    for index, (_, start, end) in enumerate(members(raw)):
        member = _slim(raw[start:end], note)
        new += raw[copied_to:start] + member
        copied_to = end
        if index == 0 and raw.startswith(b"[") and len(raw) > COPY_LIST_BYTES and member == raw[start:end]:
            return bytes(new) + b"]"
    return bytes(new) + raw[copied_to:]
