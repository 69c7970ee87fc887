"""What `audit` looks for in rollouts beyond what reading them finds.

- Codex resumes no file whose first line is not `session_meta` (before 0.40: a bare header).
- In a rollout with `history_mode` `paginated` every line has an `ordinal`; Codex refuses one whose final record has
  none, and accepts gaps and repeats (research: clients, 5).
- An entry of `replacement_history_entries` that refers to an item by id needs that item in the file, and a
  `reference_v2` also one whose canonical JSON has the digest. How exactly that is made is not public, so a digest that
  does not match is told only where another one of the file does.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document
from compactctl.findings import Finding
from compactctl.formats.interface import OwnCheck
from compactctl.json_text import read_json
from compactctl.model import Transcript


class _Payload(Struct):
    id: Any = None
    history_mode: Any = None
    replacement_history: Raw = Raw()
    replacement_history_entries: Raw = Raw()


class _Line(Struct):
    type: Any = None
    id: Any = None
    instructions: Raw = Raw()
    ordinal: Any = None
    payload: _Payload | None = None


_LINE = msgspec.json.Decoder(_Line)


def check(document: Document, transcript: Transcript) -> Iterator[Finding]:
    """Yield what is wrong with header, ordinals and references."""
    is_first, is_paginated = True, False
    last, numbered = 0, True
    items: dict[str, int] = {}
    compacted: list[tuple[int, int, Raw]] = []
    found: list[Finding] = []
    for record in document.records(_LINE):
        line = record.value
        if line is None:
            continue
        if is_first:
            is_first = False
            if line.type != "session_meta" and not (line.type is None and isinstance(line.id, str)):
                said = f"the first record is {_named(line.type)}, not session_meta"
                found.append(Finding(record.line, "missing-header", said))
        payload = line.payload
        if payload is not None:
            is_paginated = is_paginated or (line.type == "session_meta" and payload.history_mode == "paginated")
            if line.type == "response_item" and isinstance(payload.id, str):
                items[payload.id] = record.index
            if line.type == "compacted" and len(payload.replacement_history_entries):
                compacted.append((record.index, record.line, payload.replacement_history_entries))
        last, numbered = record.line, isinstance(line.ordinal, int)
    if is_paginated and not numbered:
        found.append(Finding(last, "missing-ordinal", "the last record has no ordinal, and the rollout is paginated"))
    for index, number, entries in compacted:
        found += _references(document, index, number, bytes(entries), items)
    yield from found


def _named(kind: Any) -> str:
    return f"of type {kind[:40]}" if isinstance(kind, str) else "of no type"


def _references(document: Document, compacted: int, line: int, raw: bytes, items: dict[str, int]) -> Iterator[Finding]:
    entries = read_json(raw)
    matching, other = 0, list[str]()
    for entry in entries if isinstance(entries, list) else ():
        item_id = entry.get("item_id") if isinstance(entry, dict) else None
        if not isinstance(item_id, str):
            continue
        record = items.get(item_id)
        if record is None or record > compacted:
            yield Finding(line, "ignored-compaction", f"it refers to item {item_id[:80]}, which is not before it")
        elif isinstance(digest := entry.get("source_digest"), str):
            if digest == item_digest(document.raw(record)):
                matching += 1
            else:
                other.append(item_id)
    for item_id in other if matching else ():
        yield Finding(line, "ignored-compaction", f"item {item_id[:80]} is not what it was when it was compacted")


def item_digest(raw: bytes) -> str:
    """Return the digest of the item that a record holds: of its JSON with sorted keys and no blanks."""
    value = read_json(raw)
    payload = value.get("payload") if isinstance(value, dict) else value
    text = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


CHECK = OwnCheck(("missing-header", "missing-ordinal", "ignored-compaction"), check)
