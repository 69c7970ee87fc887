"""What a pi session holds for the display alone, shortened: the `details` of results.

Extensions keep their state in the details of their own tools' results and read it again on resume (pi,
docs/extensions), so only those of pi's own tools are touched: cut texts, and diffs that the call tells, too.
"""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Place
from compactctl.formats.edits import shorten
from compactctl.splicing import Edit

OWN_TOOLS = frozenset(("bash", "edit", "find", "grep", "ls", "read", "write"))

_Odd = list[Raw] | str | int | float | bool | None


class _Result(Struct, gc=False):
    role: Any = None
    toolName: Any = None
    details: Raw = Raw()


class _Entry(Struct, gc=False):
    type: Any = None
    message: _Result | _Odd = None


_ENTRY = msgspec.json.Decoder(_Entry)


def slim_edits(document: Document, limit_bytes: int, path: str) -> list[Edit]:
    """Return the edits that shorten the details over the limit of pi's own tools; `path` is where they are saved."""
    places = [
        Place(record.index, ("message", "details"))
        for record in document.records(_ENTRY)
        if record.value is not None and _has_long_details(record.value, limit_bytes)
    ]
    return shorten(document, places, path)


def _has_long_details(entry: _Entry, limit_bytes: int) -> bool:
    message = entry.message
    if entry.type != "message" or not isinstance(message, _Result) or message.role != "toolResult":
        return False
    return message.toolName in OWN_TOOLS and len(message.details) > limit_bytes
