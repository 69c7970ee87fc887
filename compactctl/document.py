"""A session file as records of bytes, read and never written.

The promise: every byte of the file is in a record, reported, or blank. A document knows where each record lies
and reads it again when asked; it never holds the decoded session.

A *record* is one JSON value of a line, nearly always the whole line. Lines end at LF bytes only (U+2028 and
its like are text). What no JSON reader accepts is reported, copied through untouched, and never edited. A file
that is one array may be split: then its records are the elements, each on the line that it starts on.
"""

import contextlib
import hashlib
import io
import itertools
import os
import re
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, BinaryIO, Generic, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from compactctl.findings import Finding
from compactctl.json_text import mended, read_json
from compactctl.recovery import BYTE_ORDER_MARK, Damage, Decodes, recover, shaped
from compactctl.spans import BLANKS, MEMBERS, Key, Route, Seen, Stretch, members, skip_space

T = TypeVar("T")

COPY_BYTES = 1 << 17
"""How much of a file is held at once while it is copied or hashed: of larger pieces the memory goes back to the
system each time, and is got anew page by page."""

_AT_ONCE_BYTES = 1 << 20
"""So much is surely read in one step."""

ARRAY_LIMIT_BYTES = 64 << 20
"""A larger file is not split as an array: it is held whole for that."""

MOST_FOUND = 65_536
"""Of so many values it is remembered where they lie: 16 MB at most."""

MOST_SEEN_BYTES = 4 << 20
"""So much of the records that were looked into last is kept at hand: what is planned for one is soon edited."""

_OBJECT = msgspec.json.Decoder(dict[str, Raw])

_LINE_END = re.compile(rb"[ \t\r]*+\n")

_NEWLINE, _RETURN = b"\n\r"

_UNSAID = BLANKS + b"\0\xef\xbb\xbf"
"""What says nothing between records: blanks, the zero bytes of a crash, a byte order mark."""

_FOUR_BYTES = 1 << 32

LINE_END_BYTES = 64
"""Blanks before a newline are looked for this far."""


@lru_cache(maxsize=4096)
def _joined(route: Route, keys: Route) -> Route:
    """Return the longer route. A session has thousands of places and few routes, so places share them."""
    return route + keys


class Place(Struct, frozen=True, order=True, gc=False):
    """A spot in a document: a record (by index, from 0) and a route of keys and indexes to one value in it."""

    record: int
    route: Route = ()

    def at(self, *keys: Key) -> "Place":
        """Return the place that these keys lead to from here."""
        return Place(self.record, _joined(self.route, keys))


class Record(Struct, Generic[T], gc=False):
    """One record as a format meets it: its index, its line from 1, its bytes, and its value decoded.

    `value` is None where the record is valid JSON but not of the asked shape (a number, an array, a field
    of another type): such a record is known to exist and is otherwise left alone.
    """

    index: int
    line: int
    size_bytes: int
    value: T | None


class FirstFit(Generic[T]):
    """Decoders of which the first is quick and takes nearly every record; the last takes all of any known shape."""

    def __init__(self, usual: Decodes[T], odd: Decodes[T]) -> None:
        self.usual = usual
        self._odd = odd

    def decode(self, raw: bytes, /) -> T:
        try:
            return self.usual.decode(raw)
        except msgspec.ValidationError:
            return self._odd.decode(raw)


class Document:
    """One session file, open for reading. `source` is a seekable binary file and is only ever read.

    `records` must be walked once before anything else is asked: it builds the index. Walking again with
    another shape is allowed and builds it anew.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._descriptor = _descriptor(source)
        self.size_bytes = source.seek(0, 2)
        self._starts, self._ends, self._lines = self._no_numbers()
        self._seen: OrderedDict[int, Seen] = OrderedDict()
        """The records whose values were asked for last, the newest at the end."""
        self._seen_bytes = 0
        self._is_split = False
        self._found: dict[Place, Stretch] = {}
        """Where values lie that were asked for: an edit asks for what was looked at before."""
        self.line_count = 0
        self.torn_tail: Stretch | None = None
        """Where the torn last line lies; None where the file ends well."""
        self.ends_in_newline = True
        self.findings: tuple[Finding, ...] = ()
        """What reading found, in order of lines; complete once `records` was walked to its end."""

    def __len__(self) -> int:
        return len(self._starts)

    # reading -----------------------------------------------------------------------------------

    def records(self, decoder: Decodes[T]) -> Iterator[Record[T]]:
        """Yield every record in file order, decoded by `decoder`, in bounded memory.

        Damage is noted in `findings`, with its line; it never raises and never hides what follows it.
        Nothing else may be asked of the document until the walk is over.
        """
        self._starts, self._ends, self._lines = starts, ends, lines = self._no_numbers()
        self._seen, self._seen_bytes, self._found = OrderedDict(), 0, {}
        self.torn_tail = None
        damage = Damage()
        if self._is_split:
            yield from self._elements(decoder, damage)
            self.findings = damage.findings()
            return
        quick, decode = decoder.usual.decode if isinstance(decoder, FirstFit) else decoder.decode, decoder.decode
        offset = number = 0
        line = b"\n"
        self._source.seek(0)
        for line in self._source:
            before, number = number, number + 1
            try:
                try:
                    value = quick(line)
                except msgspec.ValidationError:
                    value = decode(line)
                if not line.isascii():
                    line.decode()
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                body = line.rstrip(b"\r\n")
                torn = not line.endswith(b"\n")
                read_to = 0
                for start, end in recover(body, number, offset == 0, torn, damage):
                    read_to = end
                    index = self._add(offset + start, offset + end, number)
                    yield Record(index, number, end - start, shaped(body[start:end], decoder))
                if torn and body[read_to:].strip():
                    self.torn_tail = offset + read_to, self.size_bytes
            else:
                index, size = len(starts), len(line) - 1
                if index == before:
                    index = before  # the same number, in memory once: a huge session keeps all of them
                if line[-1] != _NEWLINE or line[size - 1] == _RETURN:
                    size = len(line.rstrip(b"\r\n"))
                starts.append(offset)
                ends.append(offset + size)
                lines.append(number)
                yield Record(index, number, size, value)
            offset += len(line)
        self.line_count = number
        self.ends_in_newline = line.endswith(b"\n")
        if not self.ends_in_newline and self.torn_tail is None:
            damage.note(number, "no-final-newline", "the last line has no newline")
        self.findings = damage.findings()

    def split_array(self) -> bool:
        """Take the elements for the records from now on where the file is one whole JSON array; return whether it is.

        For reading alone: no edit knows such a file.
        """
        if not self._is_split and self._starts_as_array():
            raw = self.slice(0, self.size_bytes)[self._array_start() :]
            try:
                self._is_split = isinstance(MEMBERS.decode(raw), list)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                with contextlib.suppress(ValueError, RecursionError):  # half of a surrogate pair is in it, or NaN
                    self._is_split = isinstance(MEMBERS.decode(mended(raw)), list)
        return self._is_split

    def _starts_as_array(self) -> bool:
        head = self.slice(self._array_start(), self._array_start() + LINE_END_BYTES)
        return self.size_bytes <= ARRAY_LIMIT_BYTES and head.lstrip(BLANKS).startswith(b"[")

    def _array_start(self) -> int:
        return len(BYTE_ORDER_MARK) if self.slice(0, len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0

    def _elements(self, decoder: Decodes[T], damage: Damage) -> Iterator[Record[T]]:
        """Yield the elements of the array that the file is."""
        raw = self.slice(0, self.size_bytes)
        number, counted = 1, 0
        for _, start, end in members(raw, skip_space(raw, self._array_start())):
            number += raw.count(b"\n", counted, start)
            counted = start
            piece = raw[start:end]
            try:
                value: T | None = decoder.decode(piece)
                piece.decode()
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                recover(piece, number, False, False, damage)
                value = shaped(piece, decoder)
            yield Record(self._add(start, end, number), number, end - start, value)
        self.line_count = raw.count(b"\n") + (not raw.endswith(b"\n"))
        self.ends_in_newline = True

    def _add(self, start: int, end: int, line: int) -> int:
        self._starts.append(start)
        self._ends.append(end)
        self._lines.append(line)
        return len(self._starts) - 1

    def line(self, record: int) -> int:
        """Return the line (from 1) that a record stands on."""
        return self._lines[record]

    def record_at(self, line: int) -> int | None:
        """Return the first record that stands on a line (from 1); None where no reader accepts what is there."""
        record = bisect_left(self._lines, line)
        return record if record < len(self._lines) and self._lines[record] == line else None

    def unread(self) -> Iterator[tuple[int, bytes]]:
        """Yield what stands outside of all records and is more than blanks: the line it starts on, and its bytes."""
        end, line = 0, 1
        known = zip(self._starts, self._ends, self._lines, strict=True)
        last = (self.size_bytes, self.size_bytes, self.line_count)
        for start, next_end, next_line in itertools.chain(known, [last]):
            if start - end > len(b"\r\n"):
                raw = self.slice(end, start)
                said = raw.lstrip(_UNSAID)
                if said:
                    yield line + raw[: len(raw) - len(said)].count(b"\n"), said
            end, line = next_end, next_line

    def offset(self, record: int) -> int:
        """Return where a record starts, in bytes from the start of the file."""
        return self._starts[record]

    def end(self, record: int) -> int:
        """Return where a record ends, its line end not included."""
        return self._ends[record]

    def raw(self, record: int) -> bytes:
        """Return a record's bytes as they stand in the file."""
        return self._read(self._starts[record], self._ends[record])

    def forget(self) -> None:
        """Give the index up: nothing but the size and the count of lines may be asked for from now on."""
        self._starts, self._ends, self._lines = self._no_numbers()
        self._seen, self._seen_bytes, self._found = OrderedDict(), 0, {}

    def _no_numbers(self) -> "tuple[array[int], array[int], array[int]]":
        """Return what holds where the records start and end and their lines, in as little room as the file allows."""
        width = "I" if self.size_bytes < _FOUR_BYTES else "Q"
        return array(width), array(width), array(width)

    def decoded(self, record: int, decoder: Decodes[T]) -> T | None:
        """Return a record's value as `records` gives it, once they were walked."""
        raw = self.raw(record)
        try:
            value = decoder.decode(raw)
            if not raw.isascii():
                raw.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return shaped(raw, decoder)
        return value

    def members(self, record: int) -> Mapping[str, Raw] | None:
        """Return the members of a record, none of them looked into; None where it is no object.

        The record stays at hand, so that edits of its members are soon made.
        """
        seen = self._look(record)
        known = seen.members()
        if known and isinstance(next(iter(known)), str) and seen.raw.isascii():
            return cast("Mapping[str, Raw]", known)
        return self.decoded(record, _OBJECT)

    def raw_value(self, place: Place) -> bytes:
        """Return the bytes of one value as they stand in the file. Raises KeyError where there is none."""
        if place.route and place not in self._found:
            with contextlib.suppress(KeyError):
                return self._look(place.record).value(place.route)
        start, end = self.span(place)
        seen = self._seen.get(place.record)
        if seen is not None:
            base = self._starts[place.record]
            return seen.raw[start - base : end - base]
        return self._read(start, end)

    def locate(self, place: Place) -> None:
        """Remember where a large value lies that an edit is going to replace, while its record is at hand."""
        with contextlib.suppress(KeyError):
            self.span(place, is_large=True)

    def size_at(self, place: Place) -> int | None:
        """Return the bytes that a value takes up; None where there is none."""
        try:
            start, end = self.span(place)
        except KeyError:
            return None
        return end - start

    def length(self, place: Place) -> int:
        """Return how many members the value at a place has; 0 for an atom. Raises KeyError where there is no value."""
        return self._look(place.record).length(place.route)

    def opens_with(self, place: Place, opener: bytes) -> bool:
        """Return whether a value begins with this byte. Raises KeyError where there is none."""
        start, _ = self.span(place)
        seen = self._seen.get(place.record)
        if seen is None:
            return self._read(start, start + 1) == opener
        start -= self._starts[place.record]
        return seen.raw[start : start + 1] == opener

    def span(self, place: Place, *, is_large: bool = False) -> Stretch:
        """Return where a value lies in the file. Raises KeyError where there is none."""
        found = self._found.get(place)
        if found is None:
            if len(self._found) >= MOST_FOUND:
                self._found.clear()
            base, seen = self._starts[place.record], self._look(place.record)
            start, end = seen.span_of_most(place.route) if is_large else seen.span(place.route)
            found = self._found[place] = base + start, base + end
        return found

    def spans(self, record: int, routes: Iterable[Route]) -> list[Stretch]:
        """Return where values of one record lie in the file, and remember none. Raises KeyError as `span` does."""
        seen, base = self._look(record), self._starts[record]
        return [(base + start, base + end) for start, end in map(seen.span, routes)]

    def _look(self, record: int) -> Seen:
        """Return a record to look values up in; those that were looked at last are still there."""
        seen = self._seen.get(record)
        if seen is None:
            size_bytes = self._ends[record] - self._starts[record]
            while self._seen and self._seen_bytes + size_bytes > MOST_SEEN_BYTES:
                self._seen_bytes -= len(self._seen.popitem(last=False)[1].raw)
            seen = self._seen[record] = Seen(self.raw(record))
            self._seen_bytes += size_bytes
        return seen

    def value(self, place: Place) -> Any:
        """Return one value decoded. Lone surrogates and invalid UTF-8 come out as U+FFFD.

        Raises KeyError where the place does not exist.
        """
        return read_json(self.raw_value(place))

    def sha256(self) -> str:
        """Return the hex digest of the whole file, read in windows."""
        return self.sha256_of(0, self.size_bytes)

    def starts_as(self, size_bytes: int, sha256: str) -> bool:
        """Return whether the file is one of this size and digest, or has grown from it."""
        return self.size_bytes >= size_bytes and self.sha256_of(0, size_bytes) == sha256

    def sha256_of(self, start: int, end: int) -> str:
        """Return the hex digest of these bytes of the file."""
        digest = hashlib.sha256()
        for window in self.windows(start, end):
            digest.update(window)
        return digest.hexdigest()

    def until(self, record: int) -> "Document":
        """Return the file as it was before this record was written: a document of its own, to be read by any format.

        For a whole file ask for `len(document)`. What both know has the same index, line, place and bytes in both.
        The two share their source, so neither is walked while the other one is. Raises IndexError.
        """
        end = self.size_bytes if record == len(self) else self._starts[record]
        return Document(io.BufferedReader(_FirstBytes(self._source, end), COPY_BYTES))

    # bytes -------------------------------------------------------------------------------------

    def line_end(self, record: int) -> int:
        """Return where the line end after a record ends; the record's own end where another is glued to it."""
        end = self._ends[record]
        match = _LINE_END.match(self.slice(end, end + LINE_END_BYTES))
        return end + match.end() if match else end

    def windows(self, start: int, end: int) -> Iterator[bytes]:
        """Yield these bytes of the file in pieces of bounded size."""
        while start < end:
            window = self._read(start, min(start + COPY_BYTES, end))
            start += len(window)
            yield window

    def is_same(self, start: int, end: int, other: "Document", other_start: int) -> bool:
        """Return whether these bytes of the file stand in another one, too, from an offset on."""
        shift = other_start - start
        return all(
            self._read(at, min(at + COPY_BYTES, end)) == other.slice(at + shift, min(at + COPY_BYTES, end) + shift)
            for at in range(start, end, COPY_BYTES)
        )

    def slice(self, start: int, end: int) -> bytes:
        """Return these bytes of the file, as many of them as there are."""
        return self._read(start, min(end, self.size_bytes))

    def _read(self, start: int, end: int) -> bytes:
        """Return these bytes. Raises EOFError where the file got shorter since it was opened."""
        size_bytes = end - start
        if self._descriptor is not None and size_bytes < _AT_ONCE_BYTES:  # a buffer would be filled each time
            read = os.pread(self._descriptor, size_bytes, start)
        else:
            self._source.seek(start)
            read = self._source.read(size_bytes)
        if len(read) < size_bytes:
            raise EOFError("the file got shorter while it was read")
        return read


def _descriptor(source: BinaryIO) -> int | None:
    """Return what a file can be read by from anywhere; None where it can't be."""
    if not hasattr(os, "pread"):
        return None
    try:
        return source.fileno()
    except (AttributeError, OSError):
        return None


class _FirstBytes(io.RawIOBase):
    """The first bytes of a file as a file. Closing it leaves the other one open."""

    def __init__(self, source: BinaryIO, size_bytes: int) -> None:
        self._source = source
        self._size_bytes = size_bytes
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size_bytes}[whence]
        self._offset = base + offset
        return self._offset

    def tell(self) -> int:
        return self._offset

    def readinto(self, buffer: Any, /) -> int:
        self._source.seek(self._offset)
        read = self._source.read(max(0, min(len(buffer), self._size_bytes - self._offset)))
        buffer[: len(read)] = read
        self._offset += len(read)
        return len(read)
