"""A Claude Code session under another id, so that the client resumes either.

As Anthropic's SDK forks a session (claude-agent-sdk, `_build_fork_lines`, MIT), but without leaving anything out:
sidechains, progress and bookkeeping stay, and every line is where it was. All lines take the new `sessionId`, each a
new uuid, and what points at a line of the file follows it. What points elsewhere stays, and so do the provider's ids
(`message.id`, `requestId`), by which usage is told apart.

- `forkedFrom` is not written: the client needs none (its own `--fork-session`, 2.1.332, writes none either, and even
  keeps the uuids), and our receipt says where the session comes from.
- `<id>/` beside the session (subagents, saved outputs) goes along, and so do the client's own stores of file backups
  (`--fork-session` copies them, too) and of tasks, where it looks by session id.
- Stubs of saved outputs name a path in `<id>/tool-results/`. It becomes the new folder's, since the client deletes an
  old session's folder with it. Nothing else that a model reads changes; copies for the display keep the old path.
"""

import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Place
from compactctl.formats.claude_code.links import id_in, is_id, pointers
from compactctl.formats.edits import replace_text
from compactctl.formats.fork import UUID, derived_id
from compactctl.formats.interface import NewSession, SideFile
from compactctl.json_text import write_json
from compactctl.model import Transcript
from compactctl.preview import is_preview
from compactctl.splicing import Replace
from compactctl.texts import text_in

_STUB = b"<persisted-output>"
_STUBBED = ("message", "replacements")
"""Where a stub may stand: in a result, or in the record of what a later request puts in a result's place."""

_OF_A_SESSION = (("sessionId",), ("requestSessionId",))
"""The session that a line is in now, and the one in which its request was made, which stays."""

_CANONICAL = re.compile(UUID.pattern)

_STORES = ("file-history", "tasks")
"""Folders of the client, beside that of all projects, in which it keeps something by session id."""


class _Own(Struct, gc=False):
    uuid: Raw = Raw()


_OWN = msgspec.json.Decoder(_Own)


def new_session(document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
    """Return the session under an id derived from `seed`.

    None for a subagent's file: it is its session's, and nobody resumes it by itself.
    """
    if transcript.parent_session_id is not None:
        return None
    stem = PurePath(name).name.split(".")[0]
    old = stem if UUID.fullmatch(stem) else transcript.session_id or stem
    ids = _Ids(seed, old, derived_id(seed, old))
    for record in document.records(_OWN):
        if record.value is not None and len(record.value.uuid):
            ids.note(record.value.uuid)
    new = ids[old]
    return NewSession(
        new, f"{new}.jsonl", _Renaming(document, ids, _Mover(old, new)), tuple(_side_files(old, new)), ids
    )


def _side_files(old: str, new: str) -> Iterator[SideFile]:
    """Yield what the client keeps by session id: a UUID, always. Any other text could lead anywhere."""
    if not UUID.fullmatch(old):
        return
    yield SideFile(old, new, rewrite_id=True)
    for store in _STORES:
        yield SideFile(f"../../{store}/{old}", f"../../{store}/{new}")


class _Ids(Mapping[str, str]):
    """New ids by old ones, of the session and of every line. They are derived when they are asked for: what is held of
    a line is its own id, packed."""

    def __init__(self, seed: str, old: str, new: str) -> None:
        self._seed = seed
        self._old, self._new = old, new
        self._known = _Known()
        self._last: dict[str, str | None] = {}
        """What was asked for last: most lines point at the one before."""

    def note(self, raw: Raw) -> None:
        """Take the id of a line in, where it is one."""
        if is_id(raw) and (id := id_in(raw)) != self._old:
            self._known.add(id)

    def new(self, id: str) -> str | None:
        """Return the new id; None for what is no id of this session."""
        if id == self._old:
            return self._new
        if id not in self._last:
            if len(self._last) >= _LAST_IDS:
                self._last.clear()
            self._last[id] = derived_id(self._seed, id) if id in self._known else None
        return self._last[id]

    def __getitem__(self, id: str) -> str:
        new = self.new(id)
        if new is None:
            raise KeyError(id)
        return new

    def __iter__(self) -> Iterator[str]:
        yield self._old
        yield from self._known

    def __len__(self) -> int:
        return 1 + len(self._known)


_LAST_IDS = 64


class _Known:
    """A set of ids. One that is written as clients write it takes its 16 bytes and no more: a session has hundreds of
    thousands of them, and each number or text would take five times that."""

    def __init__(self) -> None:
        self._packed: dict[int, bytearray] = {}
        """Ids one behind the other, by some of their bits."""
        self._others: set[str] = set()

    def add(self, id: str) -> None:
        if id in self:
            return
        packed = _packed(id)
        if packed is None:
            self._others.add(id)
        else:
            self._packed.setdefault(_shelf(packed), bytearray()).extend(packed)

    def __contains__(self, id: str) -> bool:
        packed = _packed(id)
        if packed is None:
            return id in self._others
        shelf = self._packed.get(_shelf(packed), b"")
        position = shelf.find(packed)
        while position > 0 and position % _ID_BYTES:  # made up of the end of one and the start of the next
            position = shelf.find(packed, position + 1)
        return position >= 0

    def __iter__(self) -> Iterator[str]:
        for shelf in self._packed.values():
            for start in range(0, len(shelf), _ID_BYTES):
                yield str(uuid.UUID(bytes=bytes(shelf[start : start + _ID_BYTES])))
        yield from self._others

    def __len__(self) -> int:
        return sum(map(len, self._packed.values())) // _ID_BYTES + len(self._others)


_ID_BYTES = 16
_SHELVES = 4096


def _packed(id: str) -> bytes | None:
    """Return the bytes of an id that is written as clients write it."""
    return bytes.fromhex(id.replace("-", "")) if _CANONICAL.fullmatch(id) else None


def _shelf(packed: bytes) -> int:
    """Return where an id is kept, by bits that are random in ids of any version."""
    return int.from_bytes(packed[-2:]) % _SHELVES


class _Renaming:
    """The edits that give every line the session id, and what points at a line its new uuid, record by record."""

    def __init__(self, document: Document, ids: _Ids, mover: "_Mover") -> None:
        self._document = document
        self._ids = ids
        self._mover = mover

    def __iter__(self) -> Iterator[Replace]:
        session = write_json(self._mover.new)
        for record in range(len(self._document)):
            fields = self._document.members(record)
            if fields is None:
                continue
            place = Place(record)
            for route, id in pointers(fields):
                if route not in _OF_A_SESSION and (new := self._ids.new(id)) is not None:
                    yield Replace(place.at(*route), b'"%b"' % new.encode())
            if "sessionId" in fields:
                yield Replace(place.at("sessionId"), session)
            if any(_STUB in bytes(fields[name]) for name in _STUBBED if name in fields):
                yield from _stub_edits(self._document, record, self._mover)


# stubs -------------------------------------------------------------------------------------------


class _Mover:
    """Moves the path in a stub from one session's folder to another's."""

    def __init__(self, old: str, new: str) -> None:
        self._path = re.compile(rf"(?<=[/\\]){re.escape(old)}(?=[/\\]tool-results[/\\][^/\\]+$)")
        self.new = new

    def moved(self, text: str) -> str:
        """Return the stub with its path moved. The path ends the second line; all else is text."""
        lines = text.split("\n", 2)
        if len(lines) < 3 or not is_preview(text):
            return text
        lines[1] = self._path.sub(self.new, lines[1])
        return "\n".join(lines)


def _stub_edits(document: Document, record: int, mover: _Mover) -> Iterator[Replace]:
    for place in _stub_places(document.value(Place(record)), Place(record)):
        text = text_in(document.value(place))
        moved = mover.moved(text)
        if moved != text:
            yield replace_text(document, place, moved)


def _stub_places(value: Any, place: Place) -> Iterator[Place]:
    """Yield where a record may hold stubs: the contents of its results, and its replacements for results."""
    message = value.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for index, block in enumerate(content if isinstance(content, list) else []):
        if isinstance(block, dict) and block.get("type") == "tool_result" and "content" in block:
            yield place.at("message", "content", index, "content")
    replacements = value.get("replacements")
    for index, item in enumerate(replacements if isinstance(replacements, list) else []):
        if isinstance(item, dict) and isinstance(item.get("replacement"), str):
            yield place.at("replacements", index, "replacement")
