"""Texts made to fit into so many bytes of UTF-8: cut in the middle, or line by line."""

import re
from collections.abc import Iterable

from compactctl.model import utf8_size

GAP = " […] "


def clip(text: str, max_bytes: int) -> str:
    """Return a text within so many bytes: whole, or its start and a shorter end with a mark between."""
    text = text.strip()
    if utf8_size(text) <= max_bytes:
        return text
    room = max(0, max_bytes - utf8_size(GAP))
    tail = room // 4 if room > 120 else 0
    raw = text.encode("utf-8", "replace")
    start = raw[: room - tail].decode("utf-8", "ignore").rstrip()
    end = raw[len(raw) - tail :].decode("utf-8", "ignore").lstrip() if tail else ""
    return f"{start}{GAP}{end}".rstrip()


def plain(text: str) -> str:
    """Return a text without empty lines."""
    return re.sub(r"\n\s*\n+", "\n", text.strip())


def quote(text: str, max_bytes: int) -> str:
    """Return a person's words, in quotation marks, on as many lines as they have."""
    return f'"{clip(plain(text), max_bytes - 2)}"'


def fitting(lines: Iterable[str], room: int) -> list[str]:
    """Return the lines from the first on that fit into so many bytes."""
    kept = []
    for line in lines:
        room -= utf8_size(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept


def fitting_in_order(ranked: Iterable[tuple[int, str]], room: int) -> list[str]:
    """Return the lines that fit, best first taken, in order of their indexes; one that does not fit is passed over."""
    kept: list[tuple[int, str]] = []
    seen: set[str] = set()
    for index, line in ranked:
        size = utf8_size(line) + 1
        if line not in seen and size <= room:
            room -= size
            seen.add(line)
            kept.append((index, line))
    return [line for _, line in sorted(kept, key=lambda pair: pair[0])]
