"""Checks of a written session in which values of some lines were replaced, and nothing else.

All other bytes are the source's, compared one by one: in those lines a format can only read what it read before. So
the lines that changed are read again, each alone, as it was and as it was written.
"""

import io
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from compactctl import verify
from compactctl.document import Document, Place
from compactctl.formats.interface import Format
from compactctl.json_text import read_json
from compactctl.model import ToolResult
from compactctl.plan import Plan, Spill
from compactctl.session import Read
from compactctl.splicing import Replace, Splice, Splices
from compactctl.texts import result_text


class Swap(Struct, frozen=True, gc=False):
    """These bytes of the result stand where the source has so many others."""

    start: int
    end: int
    size_bytes: int

    @classmethod
    def undone_by(cls, splice: Splice) -> "Swap":
        return cls(splice.start, splice.end, len(splice.new))


class LinesRead(Struct):
    """What the changed lines are, read again."""

    changes: list[str] = []
    """Where they say anything else than was planned."""
    new_problems: list[str] = []
    results: dict[Place, ToolResult] = {}
    """The spilled results as they were written, with their texts, by the place that they have in both files."""


def read_again(
    source: Document,
    result: Document,
    format_: Format,
    plans: Iterable[Plan],
    edits: Sequence[Replace],
    made: Splices,
    undone: Sequence[Swap],
) -> LinesRead | None:
    """Return what the written lines say that these edits, in order of lines, have changed; `made` is what they came to.

    `undone` is what is known to give the source back where it is undone in the result. None where a spilled
    result can't be read from its line alone.
    """
    moved = _Moved(made)
    is_rest_same = undone == moved.swaps
    if not _is_spliced(source, result, made, is_rest_same=is_rest_same):
        return LinesRead(["more was written than the planned values"])
    spills = _by_record(plans)
    found = LinesRead()
    for record, group in groupby(edits, lambda edit: edit.place.record):
        start, end = source.offset(record), source.line_end(record)
        old, new = _alone(source, start, end), _alone(result, moved.to(start), moved.to(end))
        known, read, own = _read(old, format_), _read(new, format_), spills.get(record, [])
        written = {each.place: each for each in _results(read)}
        if any(spill.result.place not in written for spill in own):
            return None
        plan = Plan(tuple(own))
        if not (
            _is_planned(old, new, group)
            and all(result_text(new, written[spill.result.place]) == spill.preview for spill in own)
            and not verify.context_changes(known.transcripts, read.transcripts, [plan] * len(known.transcripts))
        ):
            found.changes.append(f"line {source.line(record)} is not what was planned")
        found.new_problems += verify.new_problems(known.findings, read.findings)
        for spill in own:
            place = Place(record, spill.result.place.route)
            found.results[place] = msgspec.structs.replace(
                written[spill.result.place], place=place, name=spill.result.name, made=spill.preview
            )
    return found


class _Moved:
    """Where the bytes of a file are once it was spliced."""

    def __init__(self, made: Splices) -> None:
        self.swaps: list[Swap] = []
        self._ends = array("Q")
        self._grown = array("q", [0])
        for splice in made:
            start, size_bytes = splice.start + self._grown[-1], splice.end - splice.start
            self.swaps.append(Swap(start, start + len(splice.new), size_bytes))
            self._ends.append(splice.end)
            self._grown.append(self._grown[-1] + len(splice.new) - size_bytes)

    def to(self, offset: int) -> int:
        """Return where what stood there stands now; of no byte that gave way."""
        return offset + self._grown[bisect_right(self._ends, offset)]


def _is_spliced(source: Document, result: Document, made: Splices, *, is_rest_same: bool) -> bool:
    """Return whether a written file is its source with these splices, read and compared byte by byte; where it is
    known that all between them `is_rest_same`, they alone."""
    if result.size_bytes != source.size_bytes + made.growth_bytes:
        return False
    end = grown = 0
    for splice in made:
        at = splice.start + grown
        if not is_rest_same and not source.is_same(end, splice.start, result, end + grown):
            return False
        if result.slice(at, at + len(splice.new)) != splice.new:
            return False
        end = splice.end
        grown += len(splice.new) - (splice.end - splice.start)
    return is_rest_same or source.is_same(end, source.size_bytes, result, end + grown)


def _by_record(plans: Iterable[Plan]) -> dict[int, list[Spill]]:
    """Return the spills of a file by their records, each as it stands in a document of that record alone."""
    found: dict[int, list[Spill]] = {}
    for plan in plans:
        for spill in plan.spills:
            alone = msgspec.structs.replace(spill.result, place=Place(0, spill.result.place.route))
            found.setdefault(spill.result.place.record, []).append(msgspec.structs.replace(spill, result=alone))
    return found


def _alone(document: Document, start: int, end: int) -> Document:
    """Return some bytes of a file as a document of their own: they are lines, which are read at once anyway."""
    return Document(io.BytesIO(document.slice(start, end)))


def _read(line: Document, format_: Format) -> Read:
    transcripts = tuple(format_.read(line))
    return Read(format_, transcripts, line.findings)


def _results(read: Read) -> Iterable[ToolResult]:
    return (m.result for transcript in read.transcripts for m in transcript.messages if m.result is not None)


def _is_planned(old: Document, new: Document, edits: Iterable[Replace]) -> bool:
    """Return whether a line is what it was but for these values, all of it decoded."""
    try:
        value, written = read_json(old.raw(0)), read_json(new.raw(0))
    except (ValueError, RecursionError):
        return False
    for edit in edits:
        value = _with_value(value, edit.place.route, read_json(edit.json))
    return bool(value == written)


def _with_value(value: Any, route: Sequence[Any], new: Any) -> Any:
    """Return a decoded value with another one at the end of a route, changed where it stands."""
    if not route:
        return new
    value[route[0]] = _with_value(value[route[0]], route[1:], new)
    return value
