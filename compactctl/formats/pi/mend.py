"""Faults of a pi session, mended as pi would have written it.

- pi sends what the last entry's parents lead to and stops where one is not in the file, or leads back: that entry hangs
  on the one before it in the file from then on, so that nothing above it is lost. In a circle it is an entry whose
  parent stands behind it in the file. The first entry of the file is a root.
- Of entries under one id the last one counts; only that one is linked anew.
- A result that is added stands at the end where nothing follows its call, since pi goes on from the last entry.
"""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from compactctl.document import Document, Place
from compactctl.formats.interface import Mend
from compactctl.formats.mending import UNKNOWN_RESULT, Asked, Chain
from compactctl.json_text import write_json
from compactctl.splicing import Replace

ID_DIGITS = 8

CHAIN = Chain("id", "parentId", lambda digits: digits[:ID_DIGITS], header="session", ends_at_last=True)


class _Entry(Struct, gc=False):
    type: Any = None
    id: Any = None
    parentId: Any = UNSET


_ENTRY = msgspec.json.Decoder(_Entry)


class _Row(Struct, gc=False):
    record: int
    line: int
    id: str
    parent: str | None


def mend_links(document: Document) -> list[Mend]:
    """Return what links the entries anew whose parents are not in the file, and those that close a circle."""
    rows: list[_Row] = []
    header = ""
    has_parents = False
    for record in document.records(_ENTRY):
        entry = record.value
        if entry is None:
            continue
        if entry.type == "session":
            header = header or (entry.id if isinstance(entry.id, str) else "")
        elif isinstance(entry.id, str):
            has_parents = has_parents or entry.parentId is not UNSET
            parent = entry.parentId if isinstance(entry.parentId, str) else None
            rows.append(_Row(record.index, record.line, entry.id, parent))
    newest = {row.id: position for position, row in enumerate(rows)}
    mends = []
    looks_ahead = False
    for position, row in enumerate(rows) if has_parents else ():
        is_there = row.parent in newest
        if row.parent is None or row.parent == header or (is_there and newest[row.id] != position):
            continue
        if is_there and not (newest[row.parent] >= position and _leads_to(rows, newest, row.parent, row.id)):
            looks_ahead = looks_ahead or newest[row.parent] >= position
            continue
        above = next(
            (
                rows[before]
                for before in range(position - 1, -1, -1)
                if newest[rows[before].id] < position
                and not (looks_ahead and _leads_to(rows, newest, rows[before].id, row.id))
            ),
            None,
        )
        rule = "parent-cycle" if is_there else "dangling-parent"
        row.parent = above.id if above else None
        what = f"links entry {row.id} to {above.id}, the entry before it" if above else f"makes entry {row.id} a root"
        edit = Replace(Place(row.record, ("parentId",)), write_json(row.parent))
        mends.append(Mend(row.line, rule, what, (edit,)))
    return mends


def _leads_to(rows: list[_Row], newest: dict[str, int], start: str, end: str) -> bool:
    """Return whether the way up from one entry comes to another one."""
    seen: set[str] = set()
    parent: str | None = start
    while parent is not None and parent in newest and parent not in seen:
        if parent == end:
            return True
        seen.add(parent)
        parent = rows[newest[parent]].parent
    return False


def unknown_results(asked: list[Asked]) -> list[Any]:
    """Return an entry for each call, of the time of the answer that made it."""
    return [
        {
            "type": "message",
            "id": None,
            "parentId": None,
            **({"timestamp": each.record["timestamp"]} if "timestamp" in each.record else {}),
            "message": {
                "role": "toolResult",
                "toolCallId": each.call.call_id,
                "toolName": each.call.name,
                "content": [{"type": "text", "text": UNKNOWN_RESULT}],
                "isError": True,
                "timestamp": _milliseconds(each.record),
            },
        }
        for each in asked
    ]


def _milliseconds(record: Any) -> int:
    own = record.get("message", {}).get("timestamp")
    if isinstance(own, int):
        return own
    try:
        return int(datetime.fromisoformat(record["timestamp"]).timestamp() * 1000)
    except (KeyError, TypeError, ValueError):
        return 0
