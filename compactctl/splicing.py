"""Edits of a session file, made concrete: which of its bytes give way to which.

The promise: what nobody edits keeps its bytes. An edit names a record or a value in one, and says what is to stand
there; nothing else of the file changes.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from compactctl.document import Document, Place
from compactctl.rows import Rows
from compactctl.spans import members, span

GATHERED_BYTES = 1 << 16
"""Smaller pieces of a file are put together."""


class Replace(Struct, frozen=True, gc=False):
    """Put another JSON value (as bytes) where a value stands."""

    place: Place
    json: bytes


class Drop(Struct, frozen=True, gc=False):
    """Leave a record out, with its line end."""

    record: int


class DropTail(Struct, frozen=True):
    """Leave the torn last line out."""


class Insert(Struct, frozen=True):
    """Put new lines (JSON, no line end at the last) right after a record; before the first one for `BEFORE_ALL`."""

    after: int
    json: bytes


class Remove(Struct, frozen=True):
    """Take an element out of an array, with the comma that parts it from the next."""

    place: Place


class Put(Struct, frozen=True):
    """Put new elements into an array, before the element at `place`; behind the last one where there is none."""

    place: Place
    jsons: tuple[bytes, ...]


BEFORE_ALL = -1
"""Where an `Insert` goes that stands before every record."""

Edit = Replace | Drop | DropTail | Insert | Remove | Put


class Splice(Struct, frozen=True, order=True, gc=False):
    """An edit made concrete: these bytes of the file give way to those."""

    start: int
    end: int
    new: bytes


class Splices:
    """Splices in file order: of those that give every line of a huge file new ids there are millions."""

    def __init__(self) -> None:
        self._rows = Rows(tuple[int, int, bytes])
        """How far behind the one before, how many bytes give way, and to which."""
        self.end = -1
        """Where the last one ends."""
        self.growth_bytes = 0
        """By how much a file grows; below zero where it shrinks."""
        self.replaced_bytes = 0

    def add(self, splice: Splice) -> None:
        """Put a splice behind the others. Raises ValueError where it overlaps the last one."""
        start, end, new = splice.start, splice.end, splice.new
        if start < self.end:
            raise ValueError(f"edits overlap at byte {start}")
        self._rows.append((start - self.end, end - start, new))
        self.end = end
        self.growth_bytes += len(new) - (end - start)
        self.replaced_bytes += end - start

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Splice]:
        end = -1
        for gap, size_bytes, new in self._rows:
            start = end + gap
            end = start + size_bytes
            yield Splice(start, end, new)


def concrete(document: Document, edits: Iterable[Edit], in_order: Iterable[Replace] = ()) -> Splices:
    """Return the edits as splices in file order; the edited file ends in a newline, unless it is empty.

    `in_order` are more edits, in the order of their records, of which few are held at once; where one of them and
    one of `edits` replace the same value, it is the one that counts. Raises ValueError where two edits overlap.
    """
    few = deque(_concretes(document, edits))
    made = Splices()
    for splice in _replaced(document, in_order):
        while few and (few[0].start, few[0].end) < (splice.start, splice.end):
            made.add(few.popleft())
        if few and (few[0].start, few[0].end) == (splice.start, splice.end):
            few.popleft()
        made.add(splice)
    for splice in few:
        made.add(splice)
    if made.end != document.size_bytes and not document.ends_in_newline:
        made.add(Splice(document.size_bytes, document.size_bytes, b"\n"))
    return made


def _replaced(document: Document, in_order: Iterable[Replace]) -> Iterator[Splice]:
    for record, group in itertools.groupby(in_order, _record_of):
        edits = list(group)
        spans = document.spans(record, [edit.place.route for edit in edits])
        yield from sorted(Splice(start, end, edit.json) for (start, end), edit in zip(spans, edits, strict=True))


def _concretes(document: Document, edits: Iterable[Edit]) -> list[Splice]:
    """Return edits as splices in file order."""
    made: list[Splice] = []
    replacing: list[Replace] = []
    arrays: dict[Place, list[Remove | Put]] = {}
    for edit in edits:
        match edit:
            case Replace():
                replacing.append(edit)
            case Remove(place) | Put(place):
                arrays.setdefault(Place(place.record, place.route[:-1]), []).append(edit)
            case _:
                made += _of_lines(document, edit)
    replacing.sort(key=_record_of)
    made += [Splice(*document.span(edit.place), edit.json) for edit in replacing]
    for where, changes in arrays.items():
        made += _rearranged(document, where, changes)
    return sorted(made)


def _rearranged(document: Document, array: Place, changes: Iterable[Remove | Put]) -> Iterator[Splice]:
    """Yield the splices that take elements out of an array and put others in; those that stay keep their bytes."""
    raw, base = document.raw(array.record), document.offset(array.record)
    opening = span(raw, array.route)[0] + 1
    spans = [(start, end) for _, start, end in members(raw, opening - 1)]
    gone = {change.place.route[-1] for change in changes if isinstance(change, Remove)}
    put = [(change.place.route[-1], change.jsons) for change in changes if isinstance(change, Put)]
    stay = [index for index in range(len(spans)) if index not in gone]
    for before, after in itertools.pairwise([-1, *stay, len(spans)]):
        new = [json for index, jsons in put for json in jsons if before < int(index) <= after]
        if new or after - before > 1:
            start, end, joined = _gap(spans, opening, before, after, new)
            yield Splice(base + start, base + end, joined)


def _of_lines(document: Document, edit: Drop | DropTail | Insert) -> Iterator[Splice]:
    match edit:
        case Drop(record):
            shares_line = record > 0 and document.line(record - 1) == document.line(record)
            end = document.end(record) if shares_line else document.line_end(record)
            yield Splice(document.offset(record), end, b"")
        case Insert(after, new) if after == BEFORE_ALL:
            yield Splice(document.offset(0), document.offset(0), new + b"\n")
        case Insert(after, new):
            end = document.line_end(after)
            lead = b"" if document.slice(end - 1, end) == b"\n" else b"\n"
            yield Splice(end, end, lead + new + b"\n")
        case DropTail():
            if document.torn_tail is not None:
                start, end = document.torn_tail
                closing = b"\n" if start and document.slice(start - 1, start) != b"\n" else b""
                yield Splice(start, end, closing)


def edited(
    document: Document,
    splices: Iterable[Splice],
    until: int | None = None,
    read: Callable[[bytes], object] | None = None,
) -> Iterator[bytes]:
    """Yield the edited file in pieces; only its first `until` bytes where that is given.

    `read` is given every byte of the file as it is, also what gives way, so that it need not be read once more.
    """
    return gathered(_edited(document, splices, document.size_bytes if until is None else until, read))


def _edited(
    document: Document, splices: Iterable[Splice], until: int, read: Callable[[bytes], object] | None
) -> Iterator[bytes]:
    offset = 0
    for splice in splices:
        yield from _passed(document, offset, splice.start, read)
        if read is not None:
            for window in document.windows(splice.start, splice.end):
                read(window)
        if splice.new:
            yield splice.new
        offset = splice.end
    yield from _passed(document, offset, until, read)


def _passed(document: Document, start: int, end: int, read: Callable[[bytes], object] | None) -> Iterator[bytes]:
    if read is None:
        yield from document.windows(start, end)
        return
    for window in document.windows(start, end):
        read(window)
        yield window


def gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in fewer pieces: each costs a write and a step of a digest, and there may be millions."""
    held: list[bytes] = []
    size_bytes = 0
    for piece in pieces:
        held.append(piece)
        size_bytes += len(piece)
        if size_bytes >= GATHERED_BYTES:
            yield b"".join(held) if len(held) > 1 else piece
            held, size_bytes = [], 0
    if held:
        yield b"".join(held)


def _record_of(edit: Replace) -> int:
    return edit.place.record


def _gap(
    spans: list[tuple[int, int]], opening: int, before: int, after: int, new: list[bytes]
) -> tuple[int, int, bytes]:
    """Return what gives way between two elements that stay, and what takes its place; commas are right afterwards.

    `before` is -1 and `after` the number of elements where none stays on that side; `opening` is behind the bracket.
    """
    if after < len(spans):
        return spans[before + 1][0], spans[after][0], b"".join(json + b"," for json in new)
    if before >= 0:
        return spans[before][1], spans[-1][1], b"".join(b"," + json for json in new)
    return opening, spans[-1][1] if spans else opening, b",".join(new)
