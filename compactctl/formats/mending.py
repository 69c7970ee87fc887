"""Calls and results that do not pair up, mended in the file: what every format does alike.

A result that is too many goes with the line or the element that holds nothing else. A call without a result gets one
that is marked as ours and says that nobody knows what became of it. Where records name their parents, what hung on a
record that goes hangs on the one above it, and a new one stands in the chain between what it stands between in context.
"""

import itertools
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from compactctl.document import Document, Place
from compactctl.formats.cutting import derived_digits
from compactctl.formats.interface import Mend
from compactctl.json_text import write_json
from compactctl.model import Message, ToolCall, Transcript
from compactctl.spans import Route, elements
from compactctl.splicing import Drop, Edit, Insert, Put, Remove, Replace
from compactctl.turns import Gap, Surplus, misfits

UNKNOWN_RESULT = (
    "[compactctl: no result of this call was recorded. Whether it ran, and what it did, is not known: look before you "
    "run it again.]"
)
"""What the result says that is given to a call without one."""


class Asked(Struct, frozen=True):
    """A call without a result, and the record that made it, decoded."""

    call: ToolCall
    record: Any


Answers = Callable[[list[Asked]], list[Any]]
"""Gives what a format records for calls whose results are not known: a line each, or an element of a conversation."""


class Chain(Struct, frozen=True):
    """How records name themselves and their parents, and how a new one is called."""

    own: str
    parent: str
    new_id: Callable[[str], str]
    """Given 64 hex digits."""
    header: str = ""
    """The type of a record that is not in the chain, though it has an id."""
    ends_at_last: bool = False
    """Whether the session stands where its last record is, rather than where its last message is."""


def mend_pairs(document: Document, transcript: Transcript, answers: Answers, chain: Chain | None = None) -> list[Mend]:
    """Return what makes calls and results pair up."""
    surplus, gaps = misfits(transcript.messages)
    if not surplus and not gaps:
        return []
    links = _Links(document, chain) if chain else None
    mends = [*_removals(document, transcript.messages, surplus, links)]
    mends += [_filled(document, transcript, gap, {each.index for each in surplus}, answers, links) for gap in gaps]
    if links is not None and (edits := links.edits()):
        mends[0] = msgspec.structs.replace(mends[0], edits=(*mends[0].edits, *edits))
    return sorted(mends, key=lambda mend: mend.line)


# what goes -----------------------------------------------------------------------------------------


def _removals(
    document: Document, messages: tuple[Message, ...], surplus: list[Surplus], links: "_Links | None"
) -> Iterator[Mend]:
    blocks = {each.index: _block(messages[each.index].parts[0].place) for each in surplus}
    gone: dict[Place, set[Place]] = {}
    for block in blocks.values():
        if block.route != unit(block).route:
            gone.setdefault(Place(block.record, block.route[:-1]), set()).add(block)
    emptied = {held for held, found in gone.items() if len(found) == len(elements(document.raw_value(held)))}
    done: set[Place] = set()
    for each in surplus:
        message, block = messages[each.index], blocks[each.index]
        held = Place(block.record, block.route[:-1])
        whole = unit(block)
        place = whole if block.route == whole.route or held in emptied else block
        edits: tuple[Edit, ...] = ()
        if place not in done:
            done.add(place)
            edits = (Remove(place),) if place.route else tuple(map(Drop, _dropped(place.record, links)))
        call_id = message.result.call_id if message.result else ""
        yield Mend(message.line, each.rule, _WHY[each.rule].format(call_id), edits)


_WHY = {
    "result-without-call": "takes out the result of {}, a call that is not in its exchange",
    "duplicate-result": "takes out the second result of call {}",
    "bad-call-id": "takes out a result that names no call{}",
}


def _dropped(record: int, links: "_Links | None") -> list[int]:
    return [record] if links is None else links.drop(record)


def unit(place: Place) -> Place:
    """Return the line that something is in, or the element where a line holds a conversation or a history."""
    return Place(place.record, place.route[: _unit_depth(place.route)])


def _unit_depth(route: Route) -> int:
    if route[:1] == ("messages",):
        return 2
    return 3 if route[1:2] in (("replacement_history",), ("replacement_history_entries",)) else 0


def _block(place: Place) -> Place:
    """Return the content block that a result is, or all of its unit where it is in no list of blocks."""
    depth = _unit_depth(place.route)
    for at in range(depth, len(place.route) - 1):
        if place.route[at] == "content" and isinstance(place.route[at + 1], int):
            return Place(place.record, place.route[: at + 2])
    return unit(place)


# what comes ----------------------------------------------------------------------------------------


def _filled(
    document: Document,
    transcript: Transcript,
    gap: Gap,
    surplus: Collection[int],
    answers: Answers,
    links: "_Links | None",
) -> Mend:
    messages = transcript.messages
    asked = [Asked(call, document.value(Place(call.place.record))) for call in gap.calls]
    rows = answers(asked)
    place = unit(_last_place(messages[gap.after]))
    behind = range(gap.after + 1, len(messages))
    following = next((messages[index] for index in behind if index not in surplus), None)
    if links is not None:
        rows, place = links.chained(rows, place.record, following, f"{transcript.session_id} {gap.calls[0].call_id}")
    jsons = tuple(map(write_json, rows))
    edit: Edit = Insert(place.record, b"\n".join(jsons))
    if place.route:
        edit = Put(Place(place.record, (*place.route[:-1], int(place.route[-1]) + 1)), jsons)
    names = ", ".join(f"{call.call_id} ({call.name})" if call.name else call.call_id for call in gap.calls)
    text = f"gives call {names} a result that says that none was recorded"
    return Mend(messages[gap.index].line, gap.rule, text, (edit,))


def _last_place(message: Message) -> Place:
    """Return the last place that a message was read from."""
    places = [part.place for part in message.parts if part.place.record == message.records[-1]]
    return max(places, key=lambda place: [str(key) if isinstance(key, str) else f"{key:09}" for key in place.route])


# chains --------------------------------------------------------------------------------------------


class _Links:
    """The records of a file that name themselves and their parents, and how they are linked once all is done."""

    def __init__(self, document: Document, chain: Chain) -> None:
        self._chain = chain
        self._ids: dict[int, str] = {}
        self._parents: dict[int, Any] = {}
        self._records: dict[str, list[int]] = {}
        self._above: dict[str, Any] = {}
        """What hangs on an id that goes hangs on this one."""
        self._linked: dict[int, str] = {}
        """By record: the new record that it hangs on."""
        for record in document.records(_DECODER):
            fields = record.value
            if fields is None or (chain.header and fields.get("type") == chain.header):
                continue
            own = fields.get(chain.own)
            if isinstance(own, str):
                self._ids[record.index] = own
                self._records.setdefault(own, []).append(record.index)
            if chain.parent in fields:
                self._parents[record.index] = fields[chain.parent]
        self._is_linked = any(isinstance(parent, str) for parent in self._parents.values())

    def drop(self, record: int) -> list[int]:
        """Return the records that go with this one: those that repeat it."""
        own = self._ids.get(record)
        if own is None:
            return [record]
        self._above[own] = self._parents.get(record)
        return self._records[own]

    def chained(self, rows: list[Any], record: int, following: Message | None, seed: str) -> tuple[list[Any], Place]:
        """Return new records with their ids, in a chain between this record and the message that follows it.

        They have no ids, and name no parents, where the records of the file don't.
        """
        chain = self._chain
        first = following.records[0] if following is not None else None
        if first is None and chain.ends_at_last and self._is_linked:
            record = max(self._ids)
        parent: Any = self._resolved(self._ids.get(record)) if self._is_linked else None
        if first is not None and isinstance(self._parents.get(first), str):
            parent = self._linked.get(first) or self._resolved(self._parents[first])
        made = []
        for number, row in enumerate(rows):
            own = self._new_id(f"{seed} {record} {number}")
            names = {chain.own: own, chain.parent: parent}
            absent = {name for name, known in ((chain.own, self._ids), (chain.parent, self._parents)) if not known}
            made.append({key: value for key, value in {**row, **names}.items() if key not in absent})
            parent = own if self._is_linked else None
        if first is not None and self._is_linked:
            self._linked[first] = str(parent)
        return made, Place(record)

    def _new_id(self, seed: str) -> str:
        """Return an id that no record of the file has."""
        tries = (self._chain.new_id(derived_digits(seed, number)) for number in itertools.count())
        made = next(own for own in tries if own not in self._records)
        self._records[made] = []
        return made

    def _resolved(self, parent: Any) -> Any:
        """Return the parent, or what is above it where it goes."""
        while isinstance(parent, str) and parent in self._above:
            parent = self._above[parent]
        return parent

    def edits(self) -> list[Edit]:
        """Return the edits that link anew what hung on a record that goes, or follows a new one."""
        found: list[Edit] = []
        for record, parent in self._parents.items():
            if self._ids.get(record) in self._above:
                continue
            wanted = self._linked.get(record) or self._resolved(parent)
            if wanted != parent:
                found.append(Replace(Place(record, (self._chain.parent,)), write_json(wanted)))
        return found


_DECODER: "msgspec.json.Decoder[dict[str, Any]]" = msgspec.json.Decoder(dict[str, Any])
