"""A rollout under another id, so that codex resumes either.

Codex finds a session by the id in its file's name, which must be that of `session_meta`. Other records name the thread
they belong to (`thread_id`, `session_id`, `sender_thread_id`); where that is this one, they follow. All else stays:
encrypted reasoning, item ids, turns, ordinals, and a `history_base`, which says whose rollout this one continues.

`forked_from_id` is not written: codex (0.171) has it where a rollout goes on from another's bytes instead of its own.
Our receipt says where the session comes from.
"""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct

from compactctl.document import Document, Place
from compactctl.formats.codex.records import Odd
from compactctl.formats.fork import NO_STAMP, derived_session_id, file_stamp
from compactctl.formats.interface import NewSession
from compactctl.json_text import write_json
from compactctl.model import Transcript
from compactctl.splicing import Replace

_FOLLOWING = frozenset(("session_meta", "event_msg", "token_usage_record"))
"""Record types that name the thread they belong to."""

_USUAL_VERSION = "7"


class _Names(Struct, gc=False):
    id: Any = None
    session_id: Any = None
    thread_id: Any = None
    sender_thread_id: Any = None
    timestamp: Any = None
    instructions: msgspec.Raw = msgspec.Raw()


class _Line(_Names, gc=False):
    type: Any = None
    payload: _Names | Odd = None


_LINE = msgspec.json.Decoder(_Line)
_NAMES = ("id", "session_id", "thread_id", "sender_thread_id")


def new_session(document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
    """Return the session under an id derived from `seed`; None where the file has no header to say its id."""
    old = transcript.session_id
    if old is None:
        return None
    named: list[Place] = []
    stamps: list[Any] = []
    for record in document.records(_LINE):
        if record.value is not None:
            named += _own_names(record.value, Place(record.index), old)
            stamps = stamps or _stamps(record.value)
    new = derived_session_id(seed, old, _USUAL_VERSION, stamps[0] if stamps else None)
    edits = tuple(Replace(place, write_json(new)) for place in named)
    stamp = file_stamp(PurePath(name).name, *stamps)[: len(NO_STAMP)]
    return NewSession(new, f"rollout-{stamp}-{new}.jsonl", edits, (), {old: new})


def _own_names(line: _Line, place: Place, old: str) -> Iterator[Place]:
    """Yield where a record names this session: as its header, or as the thread it belongs to."""
    payload = line.payload
    if not isinstance(payload, _Names):
        payload = line if len(line.instructions) and not line.type else _Names()
    elif line.type in _FOLLOWING:
        place = place.at("payload")
    else:
        return
    if line.type != "session_meta" or payload.id == old:
        yield from (place.at(name) for name in _NAMES if getattr(payload, name) == old)


def _stamps(line: _Line) -> list[Any]:
    """Return the times that a record tells: of the session where it is the header, and its own."""
    header = line.payload if isinstance(line.payload, _Names) else line
    return [stamp for stamp in (header.timestamp, line.timestamp) if isinstance(stamp, str)]
