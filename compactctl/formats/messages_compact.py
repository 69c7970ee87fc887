"""A compaction in a log of messages: three messages in place of the older ones, the rest as it stands.

The lines of what is summarised go; a summary, its acknowledgement and a reminder come in front of the pinned request,
or of the first message that is kept. Where one line holds both (results and the text behind them), or all of a
conversation, the elements go and the line stays.
"""

from collections.abc import Iterable, Iterator

from compactctl.document import Document, Place
from compactctl.formats.cutting import Parted, marked, part
from compactctl.formats.interface import CompactionEdits, Metas
from compactctl.json_text import write_json
from compactctl.model import Message, Transcript
from compactctl.plan import Cut
from compactctl.splicing import BEFORE_ALL, Drop, Edit, Insert, Put, Remove

_HELD = "messages"
"""The key of a line that holds a whole conversation."""


def compaction(document: Document, transcript: Transcript, cut: Cut, metas: Metas) -> CompactionEdits:
    """Return the edits that put a summary in place of the older messages."""
    parted = part(document, transcript.messages, cut)
    edits = list(_removals(document, transcript.messages, parted))
    moved = {edit.record if isinstance(edit, Drop) else edit.place.record for edit in edits}
    lines = [write_json(line) for line in _metas(metas, parted)]
    new = _put(document, _units_of(parted.originals[:1]), lines) or _append(document, transcript, lines)
    return CompactionEdits((*edits, new), tuple(sorted(moved)), len(parted.stale), parted.emptied)


def _metas(metas: Metas, parted: Parted) -> Iterator[dict[str, str]]:
    yield {"role": "user", "content": marked(metas.summary, len(parted.gone), len(parted.originals))}
    if metas.acknowledged:
        yield {"role": "assistant", "content": metas.acknowledged}
    if metas.reminder:
        yield {"role": "user", "content": metas.reminder}


# what goes -----------------------------------------------------------------------------------------


def _removals(document: Document, messages: tuple[Message, ...], parted: Parted) -> Iterator[Drop | Remove]:
    """Yield what takes out the summarised messages and the stale reasoning: whole lines where nothing stays on one."""
    stale = set(parted.stale)
    out = [*parted.gone, *(messages[index] for index in parted.emptied)]
    elements = {*stale, *(_element(item.place) for message in out for item in message.parts)}
    staying = {_element(item.place) for message in parted.stay for item in message.parts} - stale
    kept_units = {_unit(place) for place in staying}
    gone_units = {*(_unit(place) for place in elements), *_units_of(out)} - kept_units
    for unit in sorted(gone_units):
        yield Remove(unit) if unit.route else Drop(unit.record)
    for place in sorted(elements):
        if _unit(place) not in gone_units and place != _unit(place):
            yield Remove(place)


def _units_of(messages: Iterable[Message]) -> list[Place]:
    """Return where these messages stand: lines, or elements of a line that holds a conversation."""
    units = dict.fromkeys(_unit(item.place) for message in messages for item in message.parts)
    held = {unit.record for unit in units if unit.route}
    lines = (Place(record) for message in messages for record in message.records)
    return [*units, *(line for line in lines if line.record not in held and line not in units)]


def _unit(place: Place) -> Place:
    return Place(place.record, place.route[:2] if place.route[:1] == (_HELD,) else ())


def _element(place: Place) -> Place:
    """Return the content block that a part is in, or its whole message where it is not in a list of blocks."""
    route = place.route
    at = 2 if route[:1] == (_HELD,) else 0
    is_block = route[at : at + 1] == ("content",) and len(route) > at + 1 and isinstance(route[at + 1], int)
    return Place(place.record, route[: at + 2] if is_block else route[:at])


# what comes ----------------------------------------------------------------------------------------


def _put(document: Document, first: list[Place], lines: list[bytes]) -> Edit | None:
    """Return what puts the lines before the first message that stays; None where none does."""
    if not first:
        return None
    unit = min(first)
    if unit.route:
        return Put(unit, tuple(lines))
    return Insert(unit.record - 1 if unit.record else BEFORE_ALL, b"\n".join(lines))


def _append(document: Document, transcript: Transcript, lines: list[bytes]) -> Edit:
    """Return what puts the lines at the end of the session."""
    last = max(_units_of(transcript.messages))
    if last.route:
        return Put(Place(last.record, (_HELD, int(last.route[1]) + 1)), tuple(lines))
    return Insert(last.record, b"\n".join(lines))
