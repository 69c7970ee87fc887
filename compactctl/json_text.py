"""JSON as agents write it: read and written fast, and read leniently where a decoder refuses it."""

import json
import math
import re
from typing import Any

import msgspec

SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_INTEGER_DIGITS = 18


def read_json(raw: bytes) -> Any:
    """Return the one JSON value in `raw`, leniently: halves of surrogate pairs and invalid UTF-8 become U+FFFD.

    Raises ValueError or RecursionError where it is no JSON at all.
    """
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        value, _, _ = lenient(raw.decode("utf-8", "replace").lstrip(), 0)
        clean = json.dumps(value, ensure_ascii=False)
        return json.loads(SURROGATE.sub("\ufffd", clean))


def write_json(value: Any) -> bytes:
    """Return a value as compact JSON in UTF-8, the way agents write it."""
    return msgspec.json.encode(value)


def string(value: Any) -> str:
    """Return a decoded value where it is a text; "" for anything else."""
    return value if isinstance(value, str) else ""


ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"|(NaN|-?Infinity|-?\d[\d.eE+-]*+)', re.DOTALL)


def mended(raw: bytes) -> bytes:
    """Return JSON with U+FFFD for invalid UTF-8 and for halves of surrogate pairs, and null for NaN and its like."""
    text = ESCAPE.sub(lambda match: r"\ufffd" if match[1] else match[0], raw.decode("utf-8", "replace"))
    return _NUMBER.sub(lambda match: "null" if match[1] and match[1][-1] in "Ny" else match[0], text).encode()


def with_short_numbers(raw: bytes) -> bytes:
    """Return mended JSON in which every number is one that a decoder takes: rounded, or null."""
    text = mended(raw).decode()
    return _NUMBER.sub(lambda match: json.dumps(_number(match[1])) if match[1] else match[0], text).encode()


def lenient(text: str, position: int) -> tuple[Any, int, bool]:
    """Return the JSON value at `position`, where it ends, and whether it holds numbers that JSON lacks.

    Such numbers come out as None: they are never written back, and nothing is decided on them.
    """
    odd = False

    def constant(_: str) -> None:
        nonlocal odd
        odd = True

    def number(digits: str) -> int | float | None:
        nonlocal odd
        value = _number(digits)
        odd = odd or value is None
        return value

    decoder = json.JSONDecoder(parse_constant=constant, parse_int=number, parse_float=number)
    value, end = decoder.raw_decode(text, position)
    return value, end, odd


def _number(digits: str) -> int | float | None:
    """Return a number as every reader takes it; None for one that is too large."""
    if digits.lstrip("-").isdigit() and len(digits) <= _MAX_INTEGER_DIGITS:
        return int(digits)
    value = float(digits)
    return value if math.isfinite(value) else None
