"""A pi session under another id, so that pi resumes either.

As pi's own fork does it (earendil-works/pi, `SessionManager.forkFrom`): a new `id` in the header, `parentSession` with
the path of the source, and all entries as they are, with their ids, which are the session's own. `cwd` and the time
stay. Where only the source's name is known, `parentSession` is left as it is: pi lists sessions by it, no more. In
OpenClaw's files the first entry names the header as its parent.
"""

from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Place
from compactctl.formats.fork import derived_session_id, file_stamp
from compactctl.formats.interface import NewSession
from compactctl.json_text import write_json
from compactctl.model import Transcript
from compactctl.spans import span
from compactctl.splicing import Replace

_USUAL_VERSION = "7"


class _Entry(Struct, gc=False):
    type: Any = None
    id: Any = None
    parentId: Any = None
    timestamp: Any = None
    parentSession: Raw = Raw()


_ENTRY = msgspec.json.Decoder(_Entry)


def new_session(document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
    """Return the session under an id derived from `seed`; None where the file has no header to say its id.

    `name` is the source's file name, or its full path, which the new header then names.
    """
    headers: list[tuple[int, _Entry]] = []
    children: list[int] = []
    old = transcript.session_id
    for record in document.records(_ENTRY):
        entry = record.value
        if entry is not None and entry.type == "session":
            headers.append((record.index, entry))
        elif entry is not None and entry.parentId == old:
            children.append(record.index)
    if old is None or not headers:
        return None
    record_index, header = headers[0]
    new = derived_session_id(seed, old, _USUAL_VERSION, header.timestamp)
    source = name if PurePath(name).is_absolute() else None
    edits = [Replace(Place(record_index), _renamed(document.raw(record_index), header, new, source))]
    edits += [Replace(Place(child, ("parentId",)), write_json(new)) for child in children]
    stamp = file_stamp(PurePath(name).name, header.timestamp)
    in_order = tuple(sorted(edits, key=lambda edit: edit.place.record))
    return NewSession(new, f"{stamp}_{new}.jsonl", in_order, (), {old: new})


def _renamed(raw: bytes, header: _Entry, new: str, source: str | None) -> bytes:
    """Return the header with its new id and the path of its source."""
    values = [(span(raw, ("id",)), write_json(new))]
    if source is not None and len(header.parentSession):
        values.append((span(raw, ("parentSession",)), write_json(source)))
    elif source is not None:
        end = span(raw, ())[1] - 1
        values.append(((end, end), b',"parentSession":' + write_json(source)))
    for (start, end), value in sorted(values, reverse=True):
        raw = raw[:start] + value + raw[end:]
    return raw.strip()
