"""A compaction in a Codex rollout: one `compacted` with a `replacement_history`, in front of what is kept.

- The history is the leading messages, the summary, and the pinned request, each item as it stands in the file; what is
  kept follows as the lines that it is. `message` says the summary again, by which codex (and we) know the item.
- Where the kept part begins inside an older `replacement_history`, that record is changed in place.
- A copy of the newest `turn_context` (and `world_state`) follows, as codex writes them: without one behind a
  compaction it takes its instructions for lost and sends them all again (`rollout_reconstruction.rs`).
- What stays in front: `session_meta`, what tells of the thread, the first `user_message` (without one a thread is not
  listed), the newest `task_started` (it says the window), and the newest `token_count`, by which codex decides on
  resume. All other lines there belong to what is summarised.
- Records of paginated sessions have an `ordinal`; the new ones repeat the one before them (repeats are accepted; the
  last record keeps its own).
- Reasoning that is encrypted goes as a whole item. Items after it stand by themselves.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Place
from compactctl.formats.codex.records import ENVELOPES
from compactctl.formats.cutting import Parted, part
from compactctl.formats.interface import CompactionEdits, RecordedCut
from compactctl.json_text import write_json
from compactctl.model import Message, Text, Transcript
from compactctl.spans import span
from compactctl.splicing import Drop, Edit, Insert, Put, Remove, Replace

_TOLD = frozenset(("thread_name_updated", "thread_settings_applied", "session_configured"))
"""Events that tell of the thread, not of a turn."""

_HISTORIES = ("replacement_history", "replacement_history_entries")


class _Payload(Struct, gc=False):
    type: Any = None


class _Envelope(Struct, gc=False):
    type: Any = None
    timestamp: Any = None
    ordinal: Any = None
    payload: Raw = Raw()


_LINE = msgspec.json.Decoder(_Envelope)
_PAYLOAD = msgspec.json.Decoder(_Payload)


class _Row(Struct, gc=False):
    """A record: its envelope's type, and its payload's."""

    record: int
    kind: str
    inner: str
    stamp: str
    ordinal: int | None


def compaction(
    document: Document, transcript: Transcript, recorded: RecordedCut, deciding: int | None
) -> CompactionEdits:
    """Return the edits that record a compaction; `deciding` is the record whose usage decides on resume."""
    cut, summary = recorded.cut, recorded.metas.summary
    parted = part(document, transcript.messages, cut)
    leading = transcript.messages[: cut.leading]
    pinned = transcript.messages[cut.pinned] if cut.pinned is not None else None
    kept = [m for m in parted.originals if m is not pinned]
    rows = list(_rows(document))
    if kept and _in_history(kept[0]):
        start, edits, changed = _changed_in_place(document, parted, pinned, kept[0], summary)
    else:
        inlined, start = _inlined(rows, kept)
        first = [*leading, *([pinned] if pinned else []), *inlined]
        edits, changed = [_new_record(document, rows, start, first, len(leading), summary)], set[int]()
    stale = {place.record: place for place in parted.stale if place.record not in changed}
    gone = set(_belonging(rows, start, deciding)) - changed
    stale_lines = {record for record, place in stale.items() if _is_line(place)}
    out = stale_lines if recorded.keep_history else gone | stale_lines
    edits += [*map(Drop, sorted(out)), *(Remove(p) for r, p in stale.items() if not _is_line(p) and r not in out)]
    moved = {*gone, *out, *changed, *stale, *(record for m in parted.gone for record in m.records)}
    return CompactionEdits(tuple(edits), tuple(sorted(moved)), len(parted.stale), parted.emptied)


def _rows(document: Document) -> Iterator[_Row]:
    for record in document.records(_LINE):
        line = record.value
        if line is None:
            continue
        inner = _inner(line.payload) if len(line.payload) else ""
        stamp = line.timestamp if isinstance(line.timestamp, str) else ""
        ordinal = line.ordinal if isinstance(line.ordinal, int) else None
        yield _Row(record.index, line.type if isinstance(line.type, str) else "", inner, stamp, ordinal)


def _inner(payload: Raw) -> str:
    try:
        kind = _PAYLOAD.decode(payload).type
    except msgspec.DecodeError:
        return ""
    return kind if isinstance(kind, str) else ""


def _is_line(place: Place) -> bool:
    """Return whether an item is all that its record holds."""
    return place.route in ((), ("payload",))


def _in_history(message: Message) -> bool:
    return any(name in message.parts[0].place.route for name in _HISTORIES)


# where the kept part begins inside an older history ------------------------------------------------


def _changed_in_place(
    document: Document, parted: Parted, pinned: Message | None, first_kept: Message, summary: str
) -> tuple[int, list[Edit], set[int]]:
    """Return what changes an older compaction into the new one: where it stands, the edits, the record."""
    record = first_kept.parts[0].place.record
    items = {_item(p.place): None for m in parted.gone for p in m.parts if p.place.record == record}
    items |= {_item(place): None for place in parted.stale if place.record == record}
    new = [_summary_item(summary)]
    if pinned is not None and _item(pinned.parts[0].place).record != record:
        new.append(_raw_item(document, pinned))
    before = pinned if pinned is not None and len(new) == 1 else first_kept
    at = _slot(_item(before.parts[0].place))
    entries = [{"type": "inline", "item": item} for item in new] if _HISTORIES[1] in at.route else new
    told = map(write_json, entries)
    edits: list[Edit] = [*(Remove(_slot(item)) for item in items), Put(at, tuple(told))]
    edits.append(Replace(Place(record, ("payload", "message")), write_json(summary)))
    return record, edits, {record}


def _item(place: Place) -> Place:
    """Return where the item is that a part is in: a line's payload, an element of a history, or a bare line."""
    route = place.route
    if route[:1] != ("payload",):
        return Place(place.record)
    if route[1:2] == (_HISTORIES[0],):
        return Place(place.record, route[:3])
    if route[1:2] == (_HISTORIES[1],):
        return Place(place.record, route[:4])
    return Place(place.record, ("payload",))


def _slot(item: Place) -> Place:
    """Return the element of a history that holds an item."""
    return Place(item.record, item.route[:3])


# a new record --------------------------------------------------------------------------------------


def _inlined(rows: list[_Row], kept: list[Message]) -> tuple[list[Message], int]:
    """Return the kept messages that must stand in the new history, and the record that it stands before.

    Those are the ones that an old compaction without a history kept: it is read from what stands before it.
    """
    old = {row.record for row in rows if row.kind == "compacted"}
    told = [index for index, message in enumerate(kept) if message.records[0] in old]
    behind = kept[told[-1] + 1 :] if told else kept
    end = max((row.record for row in rows), default=-1) + 1
    return kept[: told[-1] + 1] if told else [], behind[0].records[0] if behind else end


def _new_record(
    document: Document, rows: list[_Row], start: int, first: list[Message], leading: int, summary: str
) -> Insert:
    """Return what puts the compaction, and what codex writes behind one, before the record `start`."""
    items = [_raw_item(document, message) for message in first]
    history = [*items[:leading], _summary_item(summary), *items[leading:]]
    before = [row for row in rows if row.record < start]
    stamps = [row.stamp for row in [*rows[len(before) :], *reversed(before)] if row.stamp]
    ordinals = [row.ordinal for row in before if row.ordinal is not None]
    envelope: dict[str, Any] = {"timestamp": stamps[0] if stamps else ""}
    if ordinals:
        envelope["ordinal"] = ordinals[-1]
    payload = {"message": summary, "replacement_history": history}
    lines = [write_json({**envelope, "type": "compacted", "payload": payload})]
    for kind in ("world_state", "turn_context"):
        newest = next((row.record for row in reversed(before) if row.kind == kind), None)
        if newest is not None:
            lines.append(_again(document.raw(newest), envelope))
    return Insert(start - 1, b"\n".join(lines))


def _again(raw: bytes, envelope: dict[str, Any]) -> bytes:
    """Return a record as it stands, with the ordinal of the place where it stands again."""
    if "ordinal" not in envelope:
        return raw
    start, end = span(raw, ("ordinal",))
    return raw[:start] + write_json(envelope["ordinal"]) + raw[end:]


def _summary_item(summary: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary}]}


def _raw_item(document: Document, message: Message) -> Any:
    """Return a message's item as it stands; what another agent wrote (no item by itself) as a message of its text."""
    raw = document.raw_value(_item(message.parts[0].place))
    if _inner(Raw(raw)):
        return Raw(raw)
    texts = [document.value(item.place) for item in message.parts if isinstance(item, Text)]
    content = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": message.role, "content": content}


# what belongs to the summarised part ---------------------------------------------------------------


def _belonging(rows: list[_Row], start: int, deciding: int | None) -> Iterator[int]:
    """Yield the records before `start` that belong to what is summarised."""
    before = [row for row in rows if row.record < start]
    stay = {deciding, *_newest(before, "task_started", "turn_started"), *_oldest(before, "user_message")}
    for row in before:
        if row.kind == "session_meta" or row.inner in _TOLD or row.record in stay:
            continue
        if row.kind in ENVELOPES or _is_bare_item(row):
            yield row.record


def _is_bare_item(row: _Row) -> bool:
    """Return whether a record of an old file, without envelope, is an item."""
    return not row.inner and row.kind not in ("", "state")


def _newest(rows: Iterable[_Row], *inner: str) -> list[int]:
    return [row.record for row in rows if row.kind == "event_msg" and row.inner in inner][-1:]


def _oldest(rows: Iterable[_Row], inner: str) -> list[int]:
    return [row.record for row in rows if row.kind == "event_msg" and row.inner == inner][:1]
