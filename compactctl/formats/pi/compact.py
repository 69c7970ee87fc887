"""A compaction in a pi session, as pi records one: an entry at the end that says from which entry on it keeps.

- The path must lead from the new entry through what is kept: the pinned request is linked in front of the first kept
  entry, and `firstKeptEntryId` names it. What hung on summarised entries beside the path goes with them.
- Entries that tell of the session (models, thinking levels, names, labels, system messages, an extension's own) stay,
  linked to what is left above them, and so does the answer whose usage decides on resume.
- The entry carries the system message that all before it come to (1.6), since pi replays none of those itself.
- With `keep_history` the summarised entries stay, as a branch where a request is pinned.
- Files without parents are read in their order: there what is summarised always goes, and version 1 says
  `firstKeptEntryIndex`. Where entries have no ids either, the new one stands before the first that is kept.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from compactctl.document import Document, Place
from compactctl.formats.cutting import Parted, derived_digits, part
from compactctl.formats.interface import CompactionEdits, RecordedCut
from compactctl.json_text import string, write_json
from compactctl.model import Message, Opaque, Text, Transcript
from compactctl.plan import Cut
from compactctl.splicing import BEFORE_ALL, Drop, Edit, Insert, Remove, Replace

TOLD = frozenset(("model_change", "thinking_level_change", "session_info", "label", "custom"))
"""Entry types that tell of the session, not of its conversation."""

_ID_DIGITS = 8


class _Line(Struct, gc=False):
    type: Any = None
    id: Any = None
    parentId: Any = UNSET
    timestamp: Any = None
    targetId: Any = None
    version: Any = None
    message: Raw = Raw()


_LINE = msgspec.json.Decoder(_Line)


class _Row(Struct, gc=False):
    """An entry."""

    record: int
    kind: str
    id: str
    parent: str
    has_parent_key: bool
    target: str
    is_system: bool
    stamp: Any


def compaction(
    document: Document, transcript: Transcript, recorded: RecordedCut, deciding: int | None
) -> CompactionEdits:
    """Return the edits that record a compaction; `deciding` is the record whose usage decides on resume."""
    cut, summary = recorded.cut, recorded.metas.summary
    parted = part(document, transcript.messages, cut)
    tree = _Tree(document, parted, cut)
    keeps = recorded.keep_history and (not tree.is_linear or cut.pinned is None)
    emptied = {record for index in parted.emptied for record in transcript.messages[index].records}
    gone = {row.record for row in tree.rows if not tree.stays(row)}
    out = (emptied if keeps else gone | emptied) - {deciding}
    entry = {
        **tree.head(summary, out),
        "summary": summary,
        **tree.first_kept(parted, out),
        "tokensBefore": recorded.tokens_before,
        **_system(document, transcript.messages[: cut.leading]),
    }
    edits: list[Edit] = [
        *map(Drop, sorted(out)),
        *(Remove(place) for place in parted.stale if place.record not in out),
        *tree.relinked(out),
        tree.insertion(write_json(entry)),
    ]
    moved = gone | emptied | {place.record for place in parted.stale}
    return CompactionEdits(tuple(edits), tuple(sorted(moved)), len(parted.stale), parted.emptied)


def _system(document: Document, leading: Sequence[Message]) -> dict[str, Any]:
    """Return the system message that the leading ones come to, as an entry carries it."""
    parts = [item for message in leading for item in message.parts]
    if not parts:
        return {}
    texts = [item for item in parts if isinstance(item, Text) and "sections" not in item.place.route]
    sections = {
        str(item.place.route[-1]): Raw(document.raw_value(item.place))
        for item in parts
        if isinstance(item, Text) and "sections" in item.place.route
    }
    tools = [Raw(document.raw_value(item.place)) for item in parts if isinstance(item, Opaque)]
    told = [document.value(item.place) for item in texts]
    content: Any = "".join(told) if len(told) < 2 else [{"type": "text", "text": text} for text in told]
    found = {"role": "system", "content": content, "sections": sections, "toolsAdded": tools}
    return {"systemMessage": {key: value for key, value in found.items() if value or key in ("role", "content")}}


class _Tree:
    """All entries, each with its fate, and the path to the last one."""

    def __init__(self, document: Document, parted: Parted, cut: Cut) -> None:
        self.rows: list[_Row] = []
        self._by_id: dict[str, _Row] = {}
        self._version: Any = None
        self._records = 0
        for record in document.records(_LINE):
            self._records = record.index + 1
            if record.value is not None:
                self._note(record.index, record.value)
        version = self._version if isinstance(self._version, int) else 3 if self._has_parents else 1
        self._is_numbered = version < 2
        self.is_linear = self._is_numbered or not self._has_parents
        self._path = list(self.rows) if self.is_linear else self._walked()
        self._kept = {record for message in parted.originals for record in message.records}
        self._first_kept = min(self._kept, default=None)
        self._gone = {record for message in parted.gone for record in message.records}
        pinned = {record for message in parted.originals[:1] for record in message.records}
        self._pinned = pinned if cut.pinned is not None else set[int]()
        self._kept_ids = {row.id for row in self._path if row.record in self._kept and row.id}
        self._fates: dict[int, bool] = {}
        self._settle_path()

    def _note(self, record: int, line: _Line) -> None:
        if line.type == "session":
            self._version = self._version or line.version
            return
        is_system = len(line.message) > 0 and b'"system"' in bytes(line.message)[:64]
        row = _Row(
            record,
            string(line.type),
            string(line.id),
            string(line.parentId),
            line.parentId is not UNSET,
            string(line.targetId),
            is_system,
            line.timestamp,
        )
        self.rows.append(row)
        if row.id:
            self._by_id[row.id] = row

    @property
    def _has_parents(self) -> bool:
        return any(row.has_parent_key for row in self.rows)

    def _walked(self) -> list[_Row]:
        path: list[_Row] = []
        seen: set[int] = set()
        row = self.rows[-1] if self.rows else None
        while row is not None and row.record not in seen:
            seen.add(row.record)
            path.append(row)
            row = self._by_id.get(row.parent)
        return path[::-1]

    # fates

    def _settle_path(self) -> None:
        """Settle what stays of the path: what is kept or tells of the session, and all behind the first kept entry."""
        kept = [index for index, row in enumerate(self._path) if row.record in self._kept - self._pinned]
        first = kept[0] if kept else len(self._path)
        for index, row in enumerate(self._path):
            is_told = row.kind in TOLD or row.is_system
            is_edit_of_kept = row.kind == "context_edit" and row.target in self._kept_ids
            stays = row.record in self._kept or is_told or is_edit_of_kept
            behind = index > first and row.record not in self._gone and row.kind != "compaction"
            self._fates[row.record] = stays or behind
        settled = {row.id: self._fates[row.record] for row in self._path if row.id}
        self._fates |= {row.record: settled[row.id] for row in self.rows if row.id in settled}

    def stays(self, row: _Row) -> bool:
        """Return whether an entry stays: beside the path as what it hangs on does."""
        chain: dict[int, None] = {}
        above: _Row | None = row
        fate: bool | None = None
        while fate is None and above is not None and above.record not in chain:
            fate = self._fates.get(above.record)
            if fate is None:
                chain[above.record] = None
                above = self._by_id.get(above.parent)
                fate = False if above is not None and above.record in self._pinned else None
        if fate is None:
            fate = self._first_kept is not None and row.record > self._first_kept
        self._fates.update(dict.fromkeys(chain, fate))
        return fate

    # links

    def relinked(self, out: set[int]) -> Iterator[Replace]:
        """Yield the edits that hang each entry on what is left above it; on the path, on what then comes before it."""
        if self.is_linear:
            return
        before = self._before(out)
        for row in self.rows:
            if row.record in out or not row.has_parent_key:
                continue
            parent = before[row.record] if row.record in before else self._above(row, out)
            if parent != row.parent:
                yield Replace(Place(row.record, ("parentId",)), write_json(parent or None))

    def _chain(self, out: set[int]) -> list[_Row]:
        """Return the path as it will be. What is summarised may stand on it, save behind a pinned request."""
        return [row for row in self._path if row.record not in out and (self._fates[row.record] or not self._pinned)]

    def _before(self, out: set[int]) -> dict[int, str]:
        """Return what each entry of the new path hangs on."""
        found: dict[int, str] = {}
        previous: str | None = None
        for row in self._chain(out):
            above = self._above(row, out) if previous is None else previous
            found[row.record] = above if previous is not None or above not in self._by_id else ""
            previous = row.id
        return found

    def _above(self, row: _Row, out: set[int]) -> str:
        """Return the nearest entry above one that is left; "" where there is none."""
        seen = {row.record}
        parent = self._by_id.get(row.parent)
        if parent is None:
            return row.parent
        while parent is not None and parent.record in out and parent.record not in seen:
            seen.add(parent.record)
            parent = self._by_id.get(parent.parent)
        return parent.id if parent is not None else ""

    # the new entry

    def head(self, summary: str, out: set[int]) -> dict[str, Any]:
        """Return what an entry begins with: its id, its parent and its time, all of them derived."""
        chain = self._chain(out)
        found: dict[str, Any] = {"type": "compaction"}
        if not self._is_numbered:
            found["id"] = self._new_id(summary)
        if not self.is_linear:
            found["parentId"] = chain[-1].id or None if chain else None
        stamp = next((row.stamp for row in reversed(self.rows) if isinstance(row.stamp, str)), "")
        return {**found, "timestamp": stamp}

    def _new_id(self, summary: str) -> str:
        count = 0
        while (new := derived_digits(summary, self._records, count)[:_ID_DIGITS]) in self._by_id:
            count += 1
        return new

    def first_kept(self, parted: Parted, out: set[int]) -> dict[str, Any]:
        """Return which entry is the first that is kept; one that nobody has where none is."""
        record = parted.originals[0].records[0] if parted.originals else None
        if self._is_numbered:
            number = self._records if record is None else record
            return {"firstKeptEntryIndex": number - sum(gone < number for gone in out)}
        return {"firstKeptEntryId": next((row.id for row in self.rows if row.record == record), "")}

    def insertion(self, entry: bytes) -> Insert:
        """Return what puts the entry at the end; before the first that is kept where no entry has an id."""
        first = self._first_kept
        if self._is_numbered or any(row.id for row in self.rows) or first is None:
            return Insert(self._records - 1, entry)
        return Insert(first - 1 if first else BEFORE_ALL, entry)
