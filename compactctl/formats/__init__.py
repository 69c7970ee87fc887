"""The table of formats, and which of them a document is in: told from its content, never from its name.

Every object near the start is shown to every format. The agent's format that claims most of them reads the document.
Provider messages come last, since they are the plainest of records and other programs' files hold them as well: they
must be the greater part of what is there. One Messages-API block among them makes the whole file `anthropic`.
"""

import difflib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from compactctl.document import COPY_BYTES, Document
from compactctl.errors import UsageError
from compactctl.formats import anthropic, chat, claude_code, claude_stream, codex, codex_exec, pi
from compactctl.formats.interface import Format
from compactctl.formats.messages import ANTHROPIC_BLOCKS, conversation, is_message
from compactctl.formats.others import KIMI_CONTEXT, name_of

FORMATS: dict[str, Format] = {
    "claude-code": claude_code.FORMAT,
    "codex": codex.FORMAT,
    "pi": pi.FORMAT,
    "claude-stream": claude_stream.FORMAT,
    "codex-exec": codex_exec.FORMAT,
    "anthropic": anthropic.FORMAT,
    "chat": chat.FORMAT,
}
"""Every format by name, in the order that decides between equal claims."""

PLAIN = ("anthropic", "chat")
"""The formats of provider messages without an agent around them."""

IN_ARRAYS = ("claude-stream",)
"""The formats whose records may also be the elements of an array that is the whole file."""

AGENT_SHARE = 1 / 5
"""An agent's format claims more than this share of the objects; new kinds of records appear every month."""

PLAIN_SHARE = 1 / 2
"""Provider messages are more than this share of the objects."""

FIRST_LOOK_RECORDS = 16
"""So many records are enough where an agent's format has at least `CLEAR_SHARE` of them and no other program any."""

CLEAR_SHARE = 3 / 4

FIRST_LINE_BYTES = 64 << 10
HEAD_RECORDS = 200
HEAD_BYTES = 4 << 20
"""Recognition looks at this much, and goes on to the end only while nothing was recognised."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

DOCUMENT_LIMIT_BYTES = 64 << 20
"""A larger file is not tried as one JSON document."""

_ANY = msgspec.json.Decoder()
_WHOLE = msgspec.json.Decoder(dict[str, msgspec.Raw] | list[msgspec.Raw] | str | int | float | bool | None)


def get(name: str) -> Format:
    """Return the format of this name. Raises UsageError, with the nearest name, where there is none."""
    if name not in FORMATS:
        near = difflib.get_close_matches(name, FORMATS, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(FORMATS)}"
        raise UsageError(f"unknown format {name}{hint}")
    return FORMATS[name]


class _Claims:
    """How many objects of a document each format claims, and other programs' kinds."""

    def __init__(self) -> None:
        self.objects = 0
        self.by_format: Counter[str] = Counter()
        self.by_other: Counter[str] = Counter()

    def note(self, record: dict[str, Any]) -> None:
        self.objects += 1
        for name, candidate in FORMATS.items():
            if candidate.claims(record):
                self.by_format[name] += 1
        other = name_of(record)
        if other is not None:
            self.by_other[other] += 1

    def winner(self) -> Format | None:
        """Return the format with most claims, by table order among equals; None where none is certain."""
        elsewhere = max(self.by_other.values(), default=0)
        agents = {name: self.by_format[name] for name in FORMATS if name not in PLAIN}
        agent = max(agents, key=lambda name: agents[name], default="")
        if agents.get(agent, 0) > self.objects * AGENT_SHARE and agents[agent] >= elsewhere:
            return FORMATS[agent]
        plain = sum(self.by_format[name] for name in PLAIN)
        if plain > self.objects * PLAIN_SHARE and plain > elsewhere and not self.by_other[KIMI_CONTEXT]:
            return FORMATS["anthropic" if self.by_format["anthropic"] else "chat"]
        return None

    def clear_winner(self) -> Format | None:
        """Return the agent's format that nobody else disputes; None where more must be seen."""
        best = max(FORMATS, key=lambda name: self.by_format[name])
        is_clear = self.by_format[best] >= self.objects * CLEAR_SHARE and not self.by_other
        return FORMATS[best] if is_clear and best not in PLAIN else None


def recognise(document: Document) -> Format | None:
    """Return the format that a document is in; None where none is certain.

    Walks `document.records`, not always to the end, so it comes before `Format.read`.
    """
    in_array = _in_array(document)
    if in_array is not None:
        return in_array
    if not _is_a_record_a_line(document):
        return None
    claims = _Claims()
    found: Format | None = None
    for count, size, record in _objects(document):
        claims.note(record)
        if count == FIRST_LOOK_RECORDS:
            found = claims.clear_winner()
            if found is not None:
                break
        elif count >= HEAD_RECORDS or size >= HEAD_BYTES:
            found = claims.winner()
            if found is not None:
                break
    else:
        found = claims.winner()
    if found is not None and found.name == "chat" and _has_anthropic_line(document):
        return FORMATS["anthropic"]
    return found


def _in_array(document: Document) -> Format | None:
    """Return the format that most elements are in of a file that is one array, where it is one that comes so."""
    if not document.slice(0, FIRST_LINE_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip(b" \t\r\n").startswith(b"["):
        return None
    whole = _as_one_document(document)
    items = [msgspec.json.decode(item) for item in whole[:HEAD_RECORDS]] if isinstance(whole, list) else []
    for name in IN_ARRAYS:
        claimed = sum(isinstance(item, dict) and FORMATS[name].claims(item) for item in items)
        if claimed > len(items) * PLAIN_SHARE and document.split_array():
            return FORMATS[name]
    return None


def _objects(document: Document) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield each object with how many records and bytes were read by then."""
    size = 0
    for record in document.records(_ANY):
        size += record.size_bytes
        if isinstance(record.value, dict):
            yield record.index + 1, size, record.value


def _has_anthropic_line(document: Document) -> bool:
    """Return whether a message anywhere in the file holds a Messages-API block. Only suspicious windows are decoded."""
    marks = [f'"{kind}"'.encode() for kind in ANTHROPIC_BLOCKS]
    before = b""
    for start in range(0, document.size_bytes, COPY_BYTES):
        window = before + document.slice(start, start + COPY_BYTES)
        if any(mark in window for mark in marks):
            return any(FORMATS["anthropic"].claims(record) for _, _, record in _objects(document))
        before = window[-32:]
    return False


def _is_a_record_a_line(document: Document) -> bool:
    """Return whether lines are records: the first is one, or at least half of those near the start are.

    A JSON document over several lines, whole or damaged, is not, though some of its lines may look like records.
    """
    if _is_record(_first_line(document)):
        return True
    head = document.slice(0, HEAD_BYTES).removeprefix(BYTE_ORDER_MARK)
    lines = [line for line in head.split(b"\n") if line.strip(b"\0 \t\r")]
    if not lines or _is_record(lines[0]):
        return True
    if len(head) < document.size_bytes:
        lines = lines[:-1] or lines
    return 2 * sum(map(_is_record, lines[:HEAD_RECORDS])) >= len(lines[:HEAD_RECORDS])


def _first_line(document: Document) -> bytes:
    """Return the first line, however long, so that no more is read than it needs; at most what a document may be."""
    size = FIRST_LINE_BYTES
    while True:
        line, newline, _ = document.slice(0, size).removeprefix(BYTE_ORDER_MARK).partition(b"\n")
        if newline or size >= min(document.size_bytes, DOCUMENT_LIMIT_BYTES):
            return line
        size *= 4


def _is_record(line: bytes) -> bool:
    """Return whether a line is one JSON value, or several glued together, and not a member of something larger."""
    text = line.strip(b"\0 \t\r").decode("utf-8", "replace")
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text[end:].lstrip()[:1] in ("", "{", "\0")


def _as_one_document(document: Document) -> dict[str, msgspec.Raw] | list[msgspec.Raw] | None:
    """Return the members of a file that is one JSON object or array; None for any other file."""
    if document.size_bytes > DOCUMENT_LIMIT_BYTES:
        return None
    try:
        whole = _WHOLE.decode(document.slice(0, document.size_bytes).removeprefix(BYTE_ORDER_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return whole if isinstance(whole, dict | list) else None


# saying what was seen ----------------------------------------------------------------------------

MAX_KINDS_SAID = 6


def seen(document: Document) -> str:
    """Return in words what a document holds that no format recognised, for the error about it."""
    if not document.size_bytes:
        return "an empty file"
    if not _is_a_record_a_line(document):
        whole = _as_one_document(document)
        return "lines of which most are not JSON" if whole is None else _document_in_words(whole)
    sight = _Sight()
    for record in document.records(_ANY):
        sight.note(record.value)
        if record.index + 1 >= HEAD_RECORDS:
            break
    if not document.line_count:
        return sight.in_words(f"more than {HEAD_RECORDS:,} lines")
    return sight.in_words("1 line" if document.line_count == 1 else f"{document.line_count:,} lines")


class _Sight:
    """What was seen so far."""

    def __init__(self) -> None:
        self._types: dict[str, None] = {}
        self._keys: dict[str, None] = {}
        self._values: Counter[str] = Counter()
        self._known: Counter[str] = Counter()

    def note(self, value: Any) -> None:
        if isinstance(value, dict):
            self._note_object(value)
        elif isinstance(value, list):
            self._values["an array"] += 1
            self._known.update(filter(None, (name_of(item) for item in value if isinstance(item, dict))))
        else:
            self._values["no object"] += 1

    def _note_object(self, record: dict[str, Any]) -> None:
        name = name_of(record)
        if name is not None:
            self._known[name] += 1
        kind = record.get("type")
        if isinstance(kind, str):
            self._types[_quoted(kind)] = None
        else:
            self._keys.update(dict.fromkeys(map(_quoted, record)))

    def in_words(self, lines: str) -> str:
        said = []
        if self._types:
            said.append(f"JSON objects of type{_plural(self._types)} {_listed(self._types)}")
        if self._keys:
            said.append(f"JSON objects with the key{_plural(self._keys)} {_listed(self._keys)}")
        if self._values:
            said.append(f"JSON that is {' or '.join(self._values)}")
        words = f"{lines}, {'; '.join(said) or 'none of them JSON'}"
        return f"{self._known.most_common(1)[0][0]} ({words})" if self._known else words


def _document_in_words(whole: dict[str, msgspec.Raw] | list[msgspec.Raw]) -> str:
    sight = _Sight()
    if isinstance(whole, dict):
        record = {key: msgspec.json.decode(value) for key, value in whole.items()}
        items, words = conversation(record), "one JSON document, not a record a line"
        sight.note(record)
    else:
        items = [msgspec.json.decode(item) for item in whole[:HEAD_RECORDS]]
        words = f"one JSON document, an array of {len(whole):,} and not a record a line"
        for item in items:
            sight.note(item)
    hint = "; its messages would be read one a line" if any(map(_is_plain, items)) else ""
    return sight.in_words(words) + hint


def _is_plain(value: Any) -> bool:
    return isinstance(value, dict) and is_message(value)


def _quoted(text: str) -> str:
    return text if text.isprintable() and len(text) <= 40 else ascii(text[:40])


def _plural(names: dict[str, None]) -> str:
    return "" if len(names) == 1 else "s"


def _listed(names: dict[str, None]) -> str:
    shown = list(names)[:MAX_KINDS_SAID]
    return ", ".join(shown) + (", …" if len(names) > MAX_KINDS_SAID else "")
