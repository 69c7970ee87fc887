"""The history file: the lines that a summary stands for, as they stood in the session.

An agent looks details up in it, and `restore` takes from it what was moved there, so nothing is kept twice.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from compactctl.document import Document
from compactctl.splicing import Splice


class History(Struct, frozen=True):
    """Which stretches of the source make up the history file, and where in it what an edit left out stands."""

    spans: tuple[tuple[int, int], ...]
    offsets: Mapping[Splice, int]


def plan(document: Document, records: Collection[int], splices: Sequence[Splice]) -> History:
    """Return the history of these records; an edit that leaves one of them out whole finds its bytes there."""
    whole = {splice.start: splice for splice in splices if not splice.new and splice.end > splice.start}
    spans: list[tuple[int, int]] = []
    offsets: dict[Splice, int] = {}
    size = 0
    for record in sorted(records):
        start = document.offset(record)
        end = start + len(document.raw(record))
        splice = whole.get(start)
        if splice is not None and splice.end >= end:
            offsets[splice] = size
            end = splice.end
        spans.append((start, end))
        size += end - start + (not _ends_line(document, end))
    return History(tuple(spans), offsets)


def chunks(document: Document, history: History) -> Iterator[bytes]:
    """Yield the history file: a line a record, verbatim."""
    for start, end in history.spans:
        yield from document.windows(start, end)
        if not _ends_line(document, end):
            yield b"\n"


def _ends_line(document: Document, end: int) -> bool:
    return document.slice(end - 1, end) == b"\n"
