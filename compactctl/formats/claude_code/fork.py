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
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from compactctl.document import Document, Edit, Place, Replace
from compactctl.formats.claude_code.links import FIELDS, Fields, pointers
from compactctl.formats.edits import replace_text
from compactctl.formats.fork import UUID, derived_id
from compactctl.formats.interface import NewSession, SideFile
from compactctl.json_text import write_json
from compactctl.model import Transcript
from compactctl.preview import is_preview
from compactctl.spans import Route
from compactctl.texts import text_in

_STUB = b"<persisted-output>"
_STUBBED = ("message", "replacements")
"""Where a stub may stand: in a result, or in the record of what a later request puts in a result's place."""

_OWN = ("uuid",)
_OF_A_SESSION = (("sessionId",), ("requestSessionId",))
"""The session that a line is in now, and the one in which its request was made, which stays."""

_STORES = ("file-history", "tasks")
"""Folders of the client, beside that of all projects, in which it keeps something by session id."""


def new_session(document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
    """Return the session under an id derived from `seed`.

    None for a subagent's file: it is its session's, and nobody resumes it by itself.
    """
    if transcript.parent_session_id is not None:
        return None
    stem = PurePath(name).name.split(".")[0]
    old = stem if UUID.fullmatch(stem) else transcript.session_id or stem
    new = derived_id(seed, old)
    links = _Links(seed, old, new)
    for record in document.records(FIELDS):
        if record.value is not None:
            links.note(record.index, record.value)
    edits = [*links.edits(), *_stub_edits(document, links.stubbed, _Mover(old, new))]
    return NewSession(new, f"{new}.jsonl", tuple(edits), tuple(_side_files(old, new)), links.ids)


def _side_files(old: str, new: str) -> Iterator[SideFile]:
    """Yield what the client keeps by session id: a UUID, always. Any other text could lead anywhere."""
    if not UUID.fullmatch(old):
        return
    yield SideFile(old, new, rewrite_id=True)
    for store in _STORES:
        yield SideFile(f"../../{store}/{old}", f"../../{store}/{new}")


class _Links:
    """What one walk finds out: new ids of lines, the edits that put them where a line is pointed at, possible stubs."""

    def __init__(self, seed: str, old: str, new: str) -> None:
        self.ids = {old: new}
        """New ids by old ones, of the session and of every line."""
        self.stubbed: list[int] = []
        """Records that may hold the stub of a saved output."""
        self._seed = seed
        self._session = write_json(new)
        self._edits: list[Edit] = []
        self._jsons: dict[str, bytes] = {}
        """The new ids as JSON, once for all that point at a line, by the old id."""
        self._open: list[tuple[int, Route, str]] = []
        """Where an id stands that was no line's until then."""

    def note(self, record: int, fields: Fields) -> None:
        for route, id in pointers(fields):
            if route == _OWN:
                self.ids.setdefault(id, derived_id(self._seed, id))
            if id in self.ids and route not in _OF_A_SESSION:
                self._point(record, route, id)
            elif route not in _OF_A_SESSION:
                self._open.append((record, route, id))
        if "sessionId" in fields:
            self._edits.append(Replace(Place(record, ("sessionId",)), self._session))
        if any(_STUB in bytes(fields[name]) for name in _STUBBED if name in fields):
            self.stubbed.append(record)

    def _point(self, record: int, route: Route, id: str) -> None:
        json = self._jsons.get(id)
        if json is None:
            json = self._jsons[id] = write_json(self.ids[id])
        self._edits.append(Replace(Place(record, route), json))

    def edits(self) -> list[Edit]:
        """Return the edits that give every line the session id, and what points at a line its new uuid."""
        for record, route, id in self._open:
            if id in self.ids:
                self._point(record, route, id)
        return self._edits


# stubs -------------------------------------------------------------------------------------------


class _Mover:
    """Moves the path in a stub from one session's folder to another's."""

    def __init__(self, old: str, new: str) -> None:
        self._path = re.compile(rf"(?<=[/\\]){re.escape(old)}(?=[/\\]tool-results[/\\][^/\\]+$)")
        self._new = new

    def moved(self, text: str) -> str:
        """Return the stub with its path moved. The path ends the second line; all else is text."""
        lines = text.split("\n", 2)
        if len(lines) < 3 or not is_preview(text):
            return text
        lines[1] = self._path.sub(self._new, lines[1])
        return "\n".join(lines)


def _stub_edits(document: Document, records: list[int], mover: _Mover) -> Iterator[Edit]:
    for record in records:
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
