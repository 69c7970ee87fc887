"""What `restore` needs: the bytes of every value that was replaced, and where each stands in the new file.

The file is JSON lines: a header that names both sessions by size and digest, then one line a replaced stretch, in
the order of the new file. It alone gives the original back, whatever else was lost.
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, TypeVar

import msgspec
from msgspec import Struct

from compactctl.document import Document, Splice
from compactctl.errors import NoReceipt
from compactctl.receipt import FileNote

T = TypeVar("T")

SCHEMA = "compactctl.originals/1"


class Header(Struct, frozen=True):
    """Which file the stretches belong into, and which file putting them there gives back."""

    schema: str
    source: FileNote
    output: FileNote


class Stretch(Struct, frozen=True, omit_defaults=True):
    """`length` bytes at `offset` of the new file stand where `raw` (or `base64`, if it is not UTF-8) stood."""

    offset: int
    length: int
    raw: str | None = None
    base64: str | None = None

    def original(self) -> bytes:
        """Return the bytes that stood there."""
        if self.base64 is not None:
            return base64.b64decode(self.base64)
        return (self.raw or "").encode()


def lines(header: Header, document: Document, splices: Sequence[Splice]) -> Iterator[bytes]:
    """Yield the originals file for these splices of the source document, a line at a time."""
    yield msgspec.json.encode(header) + b"\n"
    grown = 0
    for splice in splices:
        stretch = _stretch(splice.start + grown, len(splice.new), document.slice(splice.start, splice.end))
        yield msgspec.json.encode(stretch) + b"\n"
        grown += len(splice.new) - (splice.end - splice.start)


def _stretch(offset: int, length: int, original: bytes) -> Stretch:
    try:
        return Stretch(offset, length, raw=original.decode())
    except UnicodeDecodeError:
        return Stretch(offset, length, base64=base64.b64encode(original).decode())


def read(source: BinaryIO, name: str) -> tuple[Header, Iterator[Splice]]:
    """Return the header, and the splices that turn the new file into the original, as they are read.

    Raises NoReceipt, naming the file, where it is not what compaction wrote.
    """
    rows = iter(source)
    header = _decoded(next(rows, b""), Header, name)
    if header.schema != SCHEMA:
        raise NoReceipt(f"{name}: schema {header.schema}; this version reads {SCHEMA}")
    return header, _splices(rows, name)


def _splices(rows: Iterable[bytes], name: str) -> Iterator[Splice]:
    for row in rows:
        stretch = _decoded(row, Stretch, name)
        yield Splice(stretch.offset, stretch.offset + stretch.length, stretch.original())


def _decoded(row: bytes, kind: type[T], name: str) -> T:
    try:
        return msgspec.json.decode(row, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoReceipt(f"{name}: damaged: {error}") from None
