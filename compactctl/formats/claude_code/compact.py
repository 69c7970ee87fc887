"""A compaction in a Claude Code session, as the client records one: a boundary, and the summary right behind it.

- They stand before the first line that stays (the pinned request, else the first kept one), which hangs on the summary
  from then on. So every version of the client that knows boundaries finds the kept part by its parents alone; what
  newer ones write besides (`preservedMessages`) is for kept lines that stand before their boundary, and is left out.
- Lines of summarised messages go, and so does what hangs on them: progress, system lines, dead branches, sidechains,
  older boundaries. What hangs on a kept line stays. Lines without a uuid tell of the session, and stay.
- With `keep_history` they stay as a branch that nobody resumes, older boundaries behind the new one excepted.
- Thinking is signed for what stood before it: its lines go, and what hung on one takes the line above it.
- Seen with 2.1.332, by hand, against a mock of the API: sessions cut so resume with the summary, the request and the
  kept part, all pairs closed, and the client compacts nothing first. Tried with the history moved out and left in, with
  a pinned request, behind a compaction of the client's own, and with sealed thinking taken out.
- `last-prompt` may name the newest line of a branch that went: it names the newest line instead.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from compactctl.document import Document, Place
from compactctl.formats.claude_code.lines import Lines, Node
from compactctl.formats.claude_code.tree import effective
from compactctl.formats.cutting import Parted, by_record, derived_digits, part
from compactctl.formats.fork import derived_id
from compactctl.formats.interface import CompactionEdits, RecordedCut
from compactctl.json_text import write_json
from compactctl.model import Message, Transcript
from compactctl.spans import elements
from compactctl.splicing import BEFORE_ALL, Drop, Edit, Insert, Remove, Replace

BOUNDARY = "compact_boundary"

_ENVELOPE = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug", "agentId", "timestamp")
"""What a line of the client's own takes over from the line that it stands before."""

_CONTENT = ("message", "content")


class _Fields(Struct, gc=False):
    type: Any = None
    subtype: Any = None
    uuid: Any = None
    parentUuid: Any = UNSET
    leafUuid: Any = None


_FIELDS = msgspec.json.Decoder(_Fields)


class _Row(Struct, gc=False):
    """A line of the tree."""

    record: int
    uuid: str
    parent: str | None
    has_parent_key: bool
    is_boundary: bool


def compaction(document: Document, transcript: Transcript, recorded: RecordedCut) -> CompactionEdits:
    """Return the edits that record a compaction."""
    cut = recorded.cut
    parted = part(document, transcript.messages, cut)
    pinned = transcript.messages[cut.pinned] if cut.pinned is not None else None
    tree = _Tree(document, transcript, parted, pinned)
    keeps = recorded.keep_history and tree.is_linked and not _repeats_calls(parted)
    out = set(tree.gone_records(only_boundaries=keeps))
    removed, emptied = _removed(document, parted, tree)
    out |= tree.earlier_copies({*emptied, *(place.record for place in removed)})
    dropped = out | emptied
    summary_id = derived_id(derived_digits(recorded.metas.summary), f"summary {tree.seed}")
    edits: list[Edit] = [
        *map(Drop, sorted(dropped)),
        *(Remove(place) for place in removed if place.record not in dropped),
        *tree.relinked(summary_id, out, emptied),
        *tree.named_leaves(dropped),
        tree.insertion(_lines(document, tree, recorded, summary_id)),
    ]
    moved = {*out, *tree.gone_records(only_boundaries=False), *emptied, *(place.record for place in removed)}
    return CompactionEdits(tuple(edits), tuple(sorted(moved)), len(parted.stale), parted.emptied)


def _repeats_calls(parted: Parted) -> bool:
    """Return whether a result that goes names a call that stays, whose answer it would be taken for."""
    calls = {call.call_id for message in parted.originals for call in message.calls()}
    return any(message.result is not None and message.result.call_id in calls for message in parted.gone)


def _removed(document: Document, parted: Parted, tree: "_Tree") -> tuple[list[Place], set[int]]:
    """Return the blocks that go out of lines of which something stays, and the lines that are empty without theirs."""
    staying = {_element(item.place) for message in parted.stay for item in message.parts}
    shared = {
        _element(item.place)
        for message in parted.gone
        for item in message.parts
        if item.place.record in tree.kept_records
    }
    places = {*(place for place in shared - staying if place.route), *parted.stale, *tree.lone_thinking(document)}
    emptied = {
        record
        for record, found in by_record(tuple(places)).items()
        if len(found) == len(elements(document.raw_value(Place(record, _CONTENT))))
    }
    return sorted(place for place in places if place.record not in emptied), emptied


def _element(place: Place) -> Place:
    """Return the content block that a part is in; the whole line where its content is no list."""
    is_block = place.route[:2] == _CONTENT and len(place.route) > len(_CONTENT)
    return Place(place.record, place.route[:3] if is_block else ())


# the lines that are added --------------------------------------------------------------------------


def _lines(document: Document, tree: "_Tree", recorded: RecordedCut, summary_id: str) -> list[dict[str, Any]]:
    """Return the boundary and the summary, as the client writes them."""
    summary = recorded.metas.summary
    boundary_id = derived_id(derived_digits(summary), f"boundary {tree.seed}")
    found = document.value(Place(tree.model_record))
    envelope = {key: found[key] for key in _ENVELOPE if key in found}
    is_side = found.get("isSidechain") is True
    boundary = {
        "parentUuid": None,
        "logicalParentUuid": tree.last_gone,
        "isSidechain": is_side,
        "type": "system",
        "subtype": BOUNDARY,
        "content": "Conversation compacted",
        "isMeta": False,
        "uuid": boundary_id,
        "level": "info",
        "compactMetadata": _metadata(tree.boundaries, recorded.tokens_before, recorded.tokens_after),
    }
    told = {
        "parentUuid": boundary_id,
        "isSidechain": is_side,
        "type": "user",
        "message": {"role": "user", "content": summary},
        "isVisibleInTranscriptOnly": True,
        "isCompactSummary": True,
        "uuid": summary_id,
    }
    return [{**boundary, **envelope}, {**told, **envelope}]


def _metadata(boundaries: Sequence[Node], before: int, after: int) -> dict[str, Any]:
    """Return what a boundary tells of itself; a run of compactions adds up what it dropped and names tools it found."""
    older = (boundaries[-1].marks.metadata or {}) if boundaries else {}
    dropped = older.get("cumulativeDroppedTokens")
    known = dropped if isinstance(dropped, int) and dropped > 0 else 0
    found = {
        "trigger": "manual",
        "preTokens": before,
        "durationMs": 0,
        "postTokens": after,
        "cumulativeDroppedTokens": known + max(0, before - after),
    }
    tools = older.get("preCompactDiscoveredTools")
    return {**found, "preCompactDiscoveredTools": tools} if isinstance(tools, list) else found


# which lines stay, and on what they hang -----------------------------------------------------------


class _Tree:
    """All lines of the tree, each with its fate: what stays, and what goes with the summarised messages."""

    def __init__(self, document: Document, transcript: Transcript, parted: Parted, pinned: Message | None) -> None:
        lines = Lines(document)
        is_side = transcript.parent_session_id is not None
        agent = next((node.marks.agent for node in reversed(lines.nodes) if node.is_talk), "") if is_side else ""
        path = effective(lines, is_side, agent).nodes
        self._names_parents = lines.names_parents
        """Where no line does, each hangs on the one before it in the file, until the first that names one is added."""
        by_node = {node.record: node for node in path}
        self.kept_records = _records(parted.originals)
        self._last_kept = max(self.kept_records, default=-1)
        self._kept_ids = {by_node[record].uuid for record in self.kept_records if record in by_node}
        self._gone_ids = {by_node[r].uuid for r in _records(parted.gone) - self.kept_records if r in by_node}
        self._path = [node for node in path if node.record in self.kept_records]
        self.boundaries = [node for node in lines.nodes if node.kind == "compaction"]
        self._leaf_names: list[tuple[int, str]] = []
        self._rows: list[_Row] = []
        self._by_id: dict[str, _Row] = {}
        self._last_record = 0
        for record in document.records(_FIELDS):
            self._last_record = record.index
            if record.value is not None:
                self._note(record.index, record.value)
        self._pinned = {by_node[record].uuid for record in pinned.records if record in by_node} if pinned else set()
        self._first = min((row.record for row in self._rows if row.uuid in self._kept_ids), default=None)
        self._fates: dict[str, bool] = {}
        gone_on_path = [node.uuid for node in path if node.uuid in self._gone_ids and not node.uuid.startswith("#")]
        self.last_gone = gone_on_path[-1] if gone_on_path else None
        self.seed = f"{transcript.session_id} {self._path[0].uuid if self._path else ''} {self.last_gone}"
        self.model_record = self._path[0].record if self._path else max(_records(parted.gone))

    def _note(self, record: int, fields: _Fields) -> None:
        uuid = fields.uuid if isinstance(fields.uuid, str) else ""
        if fields.type == "last-prompt" and isinstance(fields.leafUuid, str):
            self._leaf_names.append((record, fields.leafUuid))
        known = uuid or (f"#{record}" if fields.type in ("user", "assistant") else "")
        if not known:
            return
        parent = fields.parentUuid if isinstance(fields.parentUuid, str) else None
        is_boundary = fields.type == "system" and fields.subtype == BOUNDARY
        row = _Row(record, known, parent, fields.parentUuid is not UNSET, is_boundary)
        self._rows.append(row)
        self._by_id[known] = row

    @property
    def is_linked(self) -> bool:
        """Whether the lines that must be linked anew name a parent, so that others may stand between them."""
        return all(row.has_parent_key for row in self._rows if row.uuid in self._kept_ids)

    # fates

    def _stays(self, row: _Row) -> bool:
        """Return whether a line stays: as what it hangs on does; where that is nothing, as where it stands tells."""
        chain: dict[str, None] = {}
        fate: bool | None = None
        above: _Row | None = row
        while fate is None and above is not None:
            fate = self._own_fate(above)
            if fate is None:
                chain[above.uuid] = None
                parent = self._by_id.get(above.parent) if above.parent else None
                if parent is not None and parent.uuid in self._pinned:
                    fate = False
                above = parent if parent is not None and parent.uuid not in chain else None
        if fate is None:
            fate = self._first is not None and row.record >= self._first
        self._fates.update(dict.fromkeys(chain, fate))
        return fate

    def _own_fate(self, row: _Row) -> bool | None:
        if row.uuid in self._kept_ids:
            return True
        return False if row.uuid in self._gone_ids or row.is_boundary else self._fates.get(row.uuid)

    def gone_records(self, *, only_boundaries: bool) -> Iterator[int]:
        """Yield the records that go; or of them only what must not stand behind the new boundary."""
        for row in self._rows:
            if not self._stays(row) and (not only_boundaries or self._is_rival(row)):
                yield row.record

    def _is_rival(self, row: _Row) -> bool:
        """Return whether a line behind where the boundary will be is an older one, or its summary, or newer than all
        that is kept, so that the client would go on from it.
        """
        if self._first is None or row.record < self._first:
            return False
        if row.record > self._last_kept:
            return True
        above = self._by_id.get(row.parent) if row.parent else None
        return row.is_boundary or (above is not None and above.is_boundary)

    def earlier_copies(self, records: set[int]) -> set[int]:
        """Return the records that are an earlier copy of these: they would count again."""
        ids = {row.uuid for row in self._rows if row.record in records}
        return {row.record for row in self._rows if row.uuid in ids} - records

    def lone_thinking(self, document: Document) -> Iterator[Place]:
        """Yield the signed blocks of answers of thinking alone that stay: they are in no message."""
        talked = {node.record for node in self._path}
        for row in self._rows:
            raw = document.raw(row.record)
            if row.record in talked or b'"thinking"' not in raw or not self._stays(row):
                continue
            value = document.value(Place(row.record))
            message = value.get("message")
            content = message.get("content") if value.get("type") == "assistant" and isinstance(message, dict) else None
            blocks = content if isinstance(content, list) else []
            if blocks and all(isinstance(block, dict) and block.get("type") in _THINKING for block in blocks):
                yield from (Place(row.record, (*_CONTENT, index)) for index in range(len(blocks)))

    # links

    def relinked(self, summary_id: str, out: set[int], emptied: set[int]) -> Iterator[Replace]:
        """Yield the edits that hang what stays on what stays, and the first line of it on the summary."""
        dropped = out | emptied
        before: dict[str, str] = {}
        previous = summary_id
        for node in self._path:
            before[node.uuid] = previous
            previous = previous if node.record in dropped else node.uuid
        starts = set(self._pinned)
        starts |= {node.uuid for node in (self._path[: 1 + len(self._pinned)] if self._names_parents else self._path)}
        for row in self._rows:
            if row.record in dropped or not row.has_parent_key or not self._stays(row):
                continue
            parent = self._new_parent(row, before, starts, emptied)
            if parent != row.parent:
                yield Replace(Place(row.record, ("parentUuid",)), write_json(parent))

    def _new_parent(self, row: _Row, before: Mapping[str, str], starts: set[str], emptied: set[int]) -> str | None:
        if row.uuid in starts:
            return before[row.uuid]
        seen = {row.uuid}
        parent = self._by_id.get(row.parent) if row.parent else None
        while parent is not None and parent.record in emptied and parent.uuid not in seen:
            seen.add(parent.uuid)
            if parent.uuid in starts:
                return before[parent.uuid]
            row, parent = parent, self._by_id.get(parent.parent) if parent.parent else None
        if parent is None:
            return row.parent
        return parent.uuid if self._stays(parent) else before.get(row.uuid, parent.uuid)

    def named_leaves(self, dropped: set[int]) -> Iterator[Replace]:
        """Yield the edits that let a `last-prompt` behind the boundary name a line that is still resumed."""
        newest = next((node.uuid for node in reversed(self._path) if node.record not in dropped), None)
        for record, name in self._leaf_names:
            row = self._by_id.get(name)
            if row is None or newest is None or self._first is None or record < self._first:
                continue
            if row.record in dropped or not self._stays(row):
                yield Replace(Place(record, ("leafUuid",)), write_json(newest))

    def insertion(self, lines: Iterable[dict[str, Any]]) -> Insert:
        """Return what puts these lines before the first that stays; at the end where none does."""
        after = self._last_record if self._first is None else self._first - 1
        return Insert(after if after >= 0 else BEFORE_ALL, b"\n".join(map(write_json, lines)))


_THINKING = ("thinking", "redacted_thinking")


def _records(messages: Iterable[Message]) -> set[int]:
    return {record for message in messages for record in message.records}
