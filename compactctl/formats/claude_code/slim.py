"""What a Claude Code session holds that no model is sent, taken out so that the client resumes as before.

- `toolUseResult` over the limit: the display's copy of a result. Its keys stay and each value keeps its type.
- `progress` lines: what hooks, commands and subagents showed while they ran. They lie in the chain of parents, so the
  lines below one take the nearest line above it that stays. One that anything else points at stays.
- `api-request*` lines: whole requests, written again at each resume. The client's own fork leaves them out as well.

Everything else stays: titles, modes, file histories, and all attachments. Of those, `prompt_snapshot` holds the system
prompt and the tools that are sent again on resume (2.1.332).

Seen with 2.1.332: 83 real sessions send the very same requests when slimmed, and a file that was read before can be
edited without being read again.
"""

from collections.abc import Iterator

from compactctl.document import Document, Place
from compactctl.formats.claude_code.lines import SHADOWS
from compactctl.formats.claude_code.links import FIELDS, Fields, pointers, text
from compactctl.formats.edits import shorten
from compactctl.json_text import write_json
from compactctl.splicing import Drop, Edit, Replace

_COPY = "toolUseResult"
_CHAIN = (("uuid",), ("parentUuid",))


def slim_edits(document: Document, limit_bytes: int, path: str) -> list[Edit]:
    """Return the edits that take out what no model is sent; `path` is where it is saved."""
    progress = _Progress()
    copies: list[Place] = []
    shadows: list[int] = []
    for record in document.records(FIELDS):
        if (fields := record.value) is None:
            continue
        kind = text(fields.get("type"))
        if kind in SHADOWS:
            shadows.append(record.index)
            continue
        progress.note(record.index, kind, fields)
        if _COPY in fields and len(fields[_COPY]) > limit_bytes:
            copies.append(Place(record.index, (_COPY,)))
    return [*shorten(document, copies, path), *map(Drop, shadows), *progress.edits()]


class _Progress:
    """Progress lines and what hangs on them. Holds little of a line that has nothing to do with progress."""

    def __init__(self) -> None:
        self._parents: dict[str, str | None] = {}
        """The parents of progress lines, by their uuids."""
        self._records: dict[str, int] = {}
        self._seen: set[str] = set()
        """The uuids of all lines."""
        self._needed: set[str] = set()
        """Uuids that must stay: something points at them, or they do not stand for one line."""
        self._children: list[tuple[int, str]] = []
        """Lines that hang on progress, or on what was not there before them, and on what."""
        self._talk: set[str] = set()
        """What of it lines of talk hang on."""
        self._is_linked = False
        """Whether a line of talk hangs on another line than progress."""

    def note(self, record: int, kind: str | None, fields: Fields) -> None:
        uuid, parent = text(fields.get("uuid")), text(fields.get("parentUuid"))
        for route, id in pointers(fields):
            if route not in _CHAIN and (id in self._parents or id not in self._seen):
                self._needed.add(id)
        if parent is not None:
            self._note_parent(record, parent, kind in ("user", "assistant"))
        if uuid is None:
            return
        if uuid in self._seen:
            self._needed.add(uuid)
        elif kind == "progress" and (parent is not None or bytes(fields.get("parentUuid", b"")) == b"null"):
            self._parents[uuid], self._records[uuid] = parent, record
        self._seen.add(uuid)

    def _note_parent(self, record: int, parent: str, is_talk: bool) -> None:
        if parent in self._parents or parent not in self._seen:
            self._children.append((record, parent))
            if is_talk:
                self._talk.add(parent)
        elif is_talk:
            self._is_linked = True

    def edits(self) -> Iterator[Edit]:
        """Yield the edits that drop progress lines and re-link what hangs on them."""
        above = self._kept_above()
        if not self._is_linked and all(parent in above and above[parent] is None for parent in self._talk):
            return  # without a single link left, the file would be read line after line
        gone = {self._records[uuid] for uuid in above}
        yield from map(Drop, sorted(gone))
        for record, parent in self._children:
            if parent in above and record not in gone:
                yield Replace(Place(record, ("parentUuid",)), write_json(above[parent]))

    def _kept_above(self) -> dict[str, str | None]:
        """Return the progress lines that may go, each with what stands above it and stays; None for nothing.

        Lines whose parents lead round in a circle stay.
        """
        free = self._parents.keys() - self._needed
        above: dict[str, str | None] = {}
        stuck: set[str] = set()
        for uuid in sorted(free, key=self._records.__getitem__):
            passed: dict[str, None] = {}
            step: str | None = uuid
            while step in free and step not in above and step not in stuck and step not in passed:
                passed[step] = None
                step = self._parents[step]
            if step in stuck or step in passed:
                stuck.update(passed)
            else:
                above.update(dict.fromkeys(passed, above.get(step, step) if step else None))
        return above
