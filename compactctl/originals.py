"""What `restore` needs: the bytes of every value that was replaced, and where each stands in the new file.

The file is JSON lines: a header that names both sessions by size and digest, then one line a replaced stretch, in
the order of the new file. It alone gives the original back, whatever else was lost.
"""

import base64
import contextlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, TypeVar

import msgspec
from msgspec import Struct

from compactctl import disk, splicing
from compactctl.document import Document
from compactctl.errors import NoReceipt
from compactctl.receipt import FileNote
from compactctl.splicing import Splice, gathered

T = TypeVar("T")

SCHEMA = "compactctl.originals/1"


class Header(Struct, frozen=True):
    """Which file the stretches belong into, and which file putting them there gives back."""

    schema: str
    source: FileNote
    output: FileNote


class Stretch(Struct, frozen=True, omit_defaults=True):
    """`length` bytes at `offset` of the new file stand where `raw` (or `base64`, if it is not UTF-8) stood, which
    was at `source` of the original. What moved to the history file is only pointed at: `moved` bytes at `history`."""

    source: int
    offset: int
    length: int
    raw: str | None = None
    base64: str | None = None
    history: int | None = None
    moved: int = 0

    def original(self, history: BinaryIO | None) -> bytes:
        """Return the bytes that stood there. Raises NoReceipt where they are not in the history file."""
        if self.history is not None:
            if history is None:
                raise NoReceipt("the history file is missing: nothing to restore from")
            history.seek(self.history)
            return history.read(self.moved)
        if self.base64 is not None:
            return base64.b64decode(self.base64)
        return (self.raw or "").encode()


def lines(
    header: Header,
    document: Document,
    splices: Iterable[Splice],
    is_kept: Callable[[Splice], bool] = lambda splice: True,
    moved: Mapping[Splice, int] = MappingProxyType({}),
) -> Iterator[bytes]:
    """Yield the originals file for these splices of the source document in pieces; only those that `is_kept`.

    What the `moved` ones left out is in the history file, from the offset that they have there.
    """
    return gathered(_lines(header, document, splices, is_kept, moved))


def _lines(
    header: Header,
    document: Document,
    splices: Iterable[Splice],
    is_kept: Callable[[Splice], bool],
    moved: Mapping[Splice, int],
) -> Iterator[bytes]:
    yield msgspec.json.encode(header) + b"\n"
    grown = 0
    for splice in splices:
        if is_kept(splice):
            place = splice.start, splice.start + grown, len(splice.new)
            if splice in moved:
                stretch = Stretch(*place, history=moved[splice], moved=splice.end - splice.start)
            else:
                stretch = _stretch(*place, document.slice(splice.start, splice.end))
            yield msgspec.json.encode(stretch) + b"\n"
        grown += len(splice.new) - (splice.end - splice.start)


def _stretch(source: int, offset: int, length: int, original: bytes) -> Stretch:
    try:
        return Stretch(source, offset, length, raw=original.decode())
    except UnicodeDecodeError:
        return Stretch(source, offset, length, base64=base64.b64encode(original).decode())


def read(source: BinaryIO, name: str) -> tuple[Header, Iterator[Stretch]]:
    """Return the header, and what turns the new file into the original, as it is read.

    Raises NoReceipt, naming the file, where it is not what compaction wrote.
    """
    rows = iter(source)
    header = _decoded(next(rows, b""), Header, name)
    if header.schema != SCHEMA:
        raise NoReceipt(f"{name}: schema {header.schema}; this version reads {SCHEMA}")
    return header, (_decoded(row, Stretch, name) for row in rows)


def _decoded(row: bytes, kind: type[T], name: str) -> T:
    try:
        return msgspec.json.decode(row, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoReceipt(f"{name}: damaged: {error}") from None


def restored(
    result: Document,
    written_bytes: int,
    whole: Path | None,
    values: Path | None,
    copies: Path | None,
    history: Path | None = None,
    *,
    put_back: Callable[[Splice], object] = lambda splice: None,
) -> Iterator[bytes]:
    """Yield the original of a compacted session: the `whole` that was kept, or the session's first `written_bytes`
    with the `values` (and `copies` and what moved to the `history`) put back; `put_back` is told of each.

    Raises NoReceipt where one of the files is damaged.
    """
    with contextlib.ExitStack() as files:
        if whole is not None:
            source = Document(files.enter_context(disk.reading(str(whole))))
            yield from source.windows(0, source.size_bytes)
            return
        kept = [read(files.enter_context(disk.reading(str(path))), str(path))[1] for path in (values, copies) if path]
        lines_of_history = files.enter_context(disk.reading(str(history))) if history else None
        stretches = heapq.merge(*kept, key=lambda stretch: stretch.source)
        splices = (Splice(row.offset, row.offset + row.length, row.original(lines_of_history)) for row in stretches)
        try:
            yield from splicing.edited(result, _told(splices, put_back), until=written_bytes)
        except (EOFError, OSError, OverflowError, MemoryError, ValueError) as error:  # wrong offsets, no base64
            raise NoReceipt(f"{values}: damaged: {error}") from None


def _told(splices: Iterable[Splice], put_back: Callable[[Splice], object]) -> Iterator[Splice]:
    for splice in splices:
        put_back(splice)
        yield splice
