"""Checks of a written session in which values of some lines were replaced, and nothing else.

All other bytes are the source's, and are compared with them one by one: in those lines a format can only read what it
read before. So the lines that changed are read again, each alone, as it was and as it was written.
"""

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
from compactctl.model import ToolResult
from compactctl.plan import Plan, Spill
from compactctl.session import Read
from compactctl.splicing import Replace, Splices
from compactctl.texts import result_text


class LinesRead(Struct):
    """What the changed lines are, read again."""

    changes: list[str] = []
    """Where they say anything else than was planned."""
    new_problems: list[str] = []
    results: dict[Place, ToolResult] = {}
    """The spilled results as they were written, with their texts, by the place that they have in both files."""


def read_again(
    source: Document, result: Document, format_: Format, plans: Iterable[Plan], edits: Sequence[Replace], made: Splices
) -> LinesRead | None:
    """Return what the written lines say that these edits, in order of lines, have changed; `made` is what they came to.

    None where a spilled result can't be read from its line alone.
    """
    if not _is_spliced(source, result, made):
        return LinesRead(["more was written than the planned values"])
    spills = _by_record(plans)
    moved = _Moved(made)
    found = LinesRead()
    for record, group in groupby(edits, lambda edit: edit.place.record):
        start, end = source.offset(record), source.line_end(record)
        old, new = source.part(start, end), result.part(moved.to(start), moved.to(end))
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


def _is_spliced(source: Document, result: Document, made: Splices) -> bool:
    """Return whether a written file is its source with these splices: both are read, and compared byte by byte."""
    if result.size_bytes != source.size_bytes + made.growth_bytes:
        return False
    end = grown = 0
    for splice in made:
        at = splice.start + grown
        if not source.is_same(end, splice.start, result, end + grown):
            return False
        if result.slice(at, at + len(splice.new)) != splice.new:
            return False
        end = splice.end
        grown += len(splice.new) - (splice.end - splice.start)
    return source.is_same(end, source.size_bytes, result, end + grown)


class _Moved:
    """Where the bytes of a file are once it was spliced."""

    def __init__(self, made: Splices) -> None:
        self._ends = array("Q")
        self._grown = array("q", [0])
        for splice in made:
            self._ends.append(splice.end)
            self._grown.append(self._grown[-1] + len(splice.new) - (splice.end - splice.start))

    def to(self, offset: int) -> int:
        """Return where what stood there stands now; of no byte that gave way."""
        return offset + self._grown[bisect_right(self._ends, offset)]


def _by_record(plans: Iterable[Plan]) -> dict[int, list[Spill]]:
    """Return the spills of a file by their records, each as it stands in a document of that record alone."""
    found: dict[int, list[Spill]] = {}
    for plan in plans:
        for spill in plan.spills:
            alone = msgspec.structs.replace(spill.result, place=Place(0, spill.result.place.route))
            found.setdefault(spill.result.place.record, []).append(msgspec.structs.replace(spill, result=alone))
    return found


def _read(line: Document, format_: Format) -> Read:
    transcripts = tuple(format_.read(line))
    return Read(format_, transcripts, line.findings)


def _results(read: Read) -> Iterable[ToolResult]:
    return (m.result for transcript in read.transcripts for m in transcript.messages if m.result is not None)


def _is_planned(old: Document, new: Document, edits: Iterable[Replace]) -> bool:
    """Return whether a line is what it was but for these values, all of it decoded."""
    try:
        value, written = msgspec.json.decode(old.raw(0)), msgspec.json.decode(new.raw(0))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    for edit in edits:
        value = _with_value(value, edit.place.route, msgspec.json.decode(edit.json))
    return bool(value == written)


def _with_value(value: Any, route: Sequence[Any], new: Any) -> Any:
    """Return a decoded value with another one at the end of a route, changed where it stands."""
    if not route:
        return new
    value[route[0]] = _with_value(value[route[0]], route[1:], new)
    return value
