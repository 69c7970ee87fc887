"""The copies of outputs in a rollout's events, shortened: codex shows them, and no model is sent them.

An event holds an output again (`exec_command_end`, `mcp_tool_call_end`, …), the changes that a patch made
(`patch_apply_end`), or both in the item it tells of (`item_completed`). Every field keeps its type, since codex reads
events by their shape. What steers the replay (`user_message`, turns, rollbacks) holds no such field.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Place
from compactctl.formats.codex.items import COPIES
from compactctl.formats.codex.records import Copies, Odd
from compactctl.formats.edits import shorten
from compactctl.splicing import Edit

FIELDS = (*COPIES, "changes")


class _Shown(Copies, gc=False):
    changes: Raw = Raw()


class _Event(_Shown, gc=False):
    call_id: Any = None
    item: _Shown | Odd = None


class _Line(Struct, gc=False):
    type: Any = None
    payload: _Event | Odd = None


_LINE = msgspec.json.Decoder(_Line)


def slim_edits(document: Document, limit_bytes: int, path: str) -> list[Edit]:
    """Return the edits that shorten what is over the limit; `path` is where it is saved."""
    places: list[Place] = []
    for record in document.records(_LINE):
        line = record.value
        if line is not None and line.type == "event_msg" and isinstance(line.payload, _Event):
            places += _long_fields(line.payload, Place(record.index, ("payload",)), limit_bytes)
    return shorten(document, places, path)


def _long_fields(event: _Event, place: Place, limit_bytes: int) -> list[Place]:
    """Return where an event that tells of a call, or its item, holds something over the limit."""
    holder: _Shown = event
    if isinstance(event.item, _Shown):
        holder, place = event.item, place.at("item")
    elif not isinstance(event.call_id, str):
        return []
    return [place.at(field) for field in FIELDS if len(getattr(holder, field)) > limit_bytes]
