"""Lines that the fast decoder refuses: which records stand on them nevertheless, and what is wrong."""

import json
import re
from typing import Protocol, TypeVar

import msgspec

from compactctl.findings import Finding
from compactctl.json_text import ESCAPE, SURROGATE, lenient, mended, with_short_numbers
from compactctl.spans import Stretch

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_NULS = re.compile(rb"\x00+")


class Decodes(Protocol[T_co]):
    """What makes a record's bytes a value: a decoder of msgspec, or several."""

    def decode(self, raw: bytes, /) -> T_co:
        """Return the value. Raises msgspec.DecodeError: ValidationError where it is JSON of another shape."""
        ...


class Damage:
    """Collects findings of reading; neighbouring unreadable lines become one."""

    def __init__(self) -> None:
        self._findings: list[Finding] = []
        self._unreadable: tuple[int, int, str] | None = None

    def note(self, line: int, rule: str, message: str) -> None:
        """Take a finding."""
        self._findings.append(Finding(line, rule, message))

    def unreadable(self, line: int, why: str) -> None:
        """Take a line that no reader accepts; one right behind another makes the same finding longer."""
        if self._unreadable is not None and self._unreadable[1] == line - 1:
            self._unreadable = (self._unreadable[0], line, self._unreadable[2])
            return
        self._flush()
        self._unreadable = (line, line, why)

    def _flush(self) -> None:
        if self._unreadable is None:
            return
        first, last, why = self._unreadable
        message = why if first == last else f"{why} (lines {first}-{last}, one damaged span)"
        self.note(first, "unreadable-line", message)
        self._unreadable = None

    def findings(self) -> tuple[Finding, ...]:
        """Return what was found, in order of lines."""
        self._flush()
        return tuple(sorted(self._findings, key=lambda f: f.line or 0))


def shaped(raw: bytes, decoder: Decodes[T]) -> T | None:
    """Return the value as it stands where the decoder takes it so, else mended as little as it needs.

    So the size of a part does not depend on what is wrong with another one.
    """
    candidates = (_checked, mended, with_short_numbers)
    for made in candidates:
        try:
            return decoder.decode(made(raw))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return None


def _checked(raw: bytes) -> bytes:
    raw.decode()
    return raw


def recover(body: bytes, line: int, at_start: bool, torn: bool, damage: Damage) -> list[Stretch]:
    """Return where the records of a line stand that the fast decoder refused, and note what is wrong with it."""
    start = 0
    if at_start and body.startswith(BYTE_ORDER_MARK):
        start = 3
        damage.note(line, "byte-order-mark", "the file starts with a byte order mark")
    if b"\x00" in body:
        count = body.count(b"\x00")
        damage.note(line, "nul-run", f"{count} NUL bytes, as a crash leaves them")
    pieces: list[Stretch] = []
    stretches = _between_nuls(body, start)
    for stretch in stretches:
        pieces += _values(body, stretch, line, torn and stretch is stretches[-1], damage)
    if len(pieces) > 1:
        damage.note(line, "glued-records", f"{len(pieces)} records on one line; all were read")
    return pieces


def _between_nuls(body: bytes, start: int) -> list[Stretch]:
    stretches = []
    for nuls in _NULS.finditer(body, start):
        stretches.append((start, nuls.start()))
        start = nuls.end()
    stretches.append((start, len(body)))
    return [(first, last) for first, last in stretches if body[first:last].strip()]


def _values(body: bytes, stretch: Stretch, line: int, torn: bool, damage: Damage) -> list[Stretch]:
    """Return where the JSON values are that stand one after another in this stretch of a line."""
    first, last = stretch
    text = body[first:last].decode("utf-8", "surrogateescape")
    position, start = _next_value(text, 0, first)
    pieces: list[Stretch] = []
    while position < len(text):
        try:
            value, end, odd_numbers = lenient(text, position)
            if not isinstance(value, dict | list) and (pieces or text[end:].strip()):
                raise ValueError("it starts like a number or a word")
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else _json_reason(error)
            if torn:
                damage.note(
                    line,
                    "torn-tail",
                    f"the last line is cut off: {last - start:,} bytes are no record",
                )
            elif pieces:
                damage.note(
                    line,
                    "glued-records",
                    f"{last - start:,} bytes after the first record are not JSON: {why}",
                )
            else:
                damage.unreadable(line, f"not JSON: {why}")
            break
        invalid_bytes = len(SURROGATE.findall(text, position, end))
        if invalid_bytes:
            damage.note(line, "invalid-utf8", "bytes that are not UTF-8; read as U+FFFD, kept as they are")
        if any(match[1] for match in ESCAPE.finditer(text, position, end)):
            damage.note(line, "lone-surrogate", "half of a surrogate pair; a provider would refuse it")
        if odd_numbers:
            damage.note(line, "non-json-number", "NaN, Infinity or an integer too long to read")
        stop = start + _utf8_bytes(text[position:end])
        pieces.append((start, stop))
        position, start = _next_value(text, end, stop)
    return pieces


def _next_value(text: str, position: int, offset: int) -> tuple[int, int]:
    """Return where the next value may start, in characters and (where `position` is `offset`) in bytes."""
    blanks = 0
    while position + blanks < len(text) and text[position + blanks] in " \t\r":
        blanks += 1
    return position + blanks, offset + blanks


def _json_reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        reason = error.msg.removesuffix(" at").removesuffix(" starting")
        return f"{reason[:1].lower()}{reason[1:]} at character {error.pos + 1}"
    return str(error)


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
