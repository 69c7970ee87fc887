"""What `audit` looks for in pi sessions beyond what reading them finds.

- pi takes a file that does not start with its session header for an empty one.
- The newest compaction on the path keeps the entries from `firstKeptEntryId` on; where that is not on the path before
  the compaction, nothing is kept. Its own id, or none, says that nothing is to be kept.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from compactctl.document import Document
from compactctl.findings import Finding
from compactctl.formats.interface import OwnCheck
from compactctl.model import Transcript


class _Entry(Struct):
    type: Any = None
    id: Any = None
    parentId: Any = None
    firstKeptEntryId: Any = None


_ENTRY = msgspec.json.Decoder(_Entry)


def check(document: Document, transcript: Transcript) -> Iterator[Finding]:
    """Yield what is wrong with the header and the newest compaction."""
    parents: dict[str, Any] = {}
    summary = next((message for message in transcript.messages if message.is_summary), None)
    compaction: _Entry | None = None
    found: list[Finding] = []
    is_first = True
    for record in document.records(_ENTRY):
        entry = record.value
        if entry is None:
            continue
        if is_first:
            is_first = False
            if entry.type != "session":
                found.append(Finding(record.line, "missing-header", "the first record is not the session header"))
        if isinstance(entry.id, str) and entry.type != "session":
            parents[entry.id] = entry.parentId
        if summary is not None and record.index in summary.records:
            compaction = entry
    if summary is not None and compaction is not None:
        kept = compaction.firstKeptEntryId
        if isinstance(kept, str) and kept and kept != compaction.id and not _is_above(kept, compaction, parents):
            text = f"its first kept entry {kept[:80]} is not on the path before it, so nothing is kept"
            found.append(Finding(summary.line, "ignored-compaction", text))
    yield from found


def _is_above(wanted: str, entry: _Entry, parents: dict[str, Any]) -> bool:
    seen: set[Any] = set()
    parent = entry.parentId
    while isinstance(parent, str) and parent not in seen:
        if parent == wanted:
            return True
        seen.add(parent)
        parent = parents.get(parent)
    return False


CHECK = OwnCheck(("missing-header", "ignored-compaction"), check)
