"""Standard output and standard error: safe on any terminal, quiet when nobody listens any more."""

import os
import sys
import time
from collections.abc import Mapping
from typing import TextIO

from compactctl.outputs.safe import clipped

BAR_WIDTH = 20
NAME_WIDTH = 40
REDRAWN_AFTER_S = 0.1


class ClosedPipe(BaseException):
    """Nobody reads standard output any more: what only prints ends quietly. No `Exception`, so nothing catches it."""


def prepare() -> None:
    """Make both streams print what their encoding lacks as an escape instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def write(text: str, encoding: str | None) -> None:
    """Print a result on standard output. `encoding` None: as the terminal has it. Raises ClosedPipe, OSError."""
    stream = sys.stdout
    if stream is None or not text:
        return
    try:
        raw = getattr(stream, "buffer", None)
        if encoding is None or raw is None:
            stream.write(_spellable(text, stream))
        else:
            stream.flush()
            raw.write(text.encode(encoding))
        stream.flush()
    except BrokenPipeError:
        raise ClosedPipe from None


def abandon() -> None:
    """Point standard output at nothing, so that what is still in its buffer can't fail when Python ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (AttributeError, OSError, ValueError):
        return


def say(text: str) -> None:
    """Print a line on standard error. Text of sessions in it must be `visible` already."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        return


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a person looks at this stream."""
    return stream is not None and stream.isatty()


def has_color(choice: str, environment: Mapping[str, str]) -> bool:
    """Return whether standard output is to be coloured: `always`, `never`, or `auto` by terminal and NO_COLOR."""
    if choice != "auto":
        return choice == "always"
    plain = environment.get("NO_COLOR") or environment.get("TERM") == "dumb"
    return is_terminal(sys.stdout) and not plain


def _spellable(text: str, stream: TextIO) -> str:
    """Return the text with our own separators in ASCII where the stream could only print them as escapes."""
    try:
        "·".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return text.replace("·", "|")
    return text


class Progress:
    """A bar on standard error while a batch runs; nothing where nobody looks."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._drawn = False
        self._drawn_at_s = 0.0

    def begin(self) -> None:
        """Say that files are being looked for: in a large folder that alone takes a moment."""
        if self._shown:
            self._put("looking for sessions...")

    def __call__(self, done: int, total: int, path: str) -> None:
        now_s = time.monotonic()
        if not self._shown or total < 2 or (now_s - self._drawn_at_s < REDRAWN_AFTER_S and 1 < done < total):
            return
        self._drawn_at_s = now_s
        filled = BAR_WIDTH * done // total
        bar = "#" * filled + "." * (BAR_WIDTH - filled)
        self._put(f"[{bar}] {done:,}/{total:,} {clipped(path[-NAME_WIDTH:], NAME_WIDTH)}")

    def clear(self) -> None:
        """Take the bar away, so that what is printed next stands on a clean line."""
        if self._drawn:
            self._put("")
            self._drawn = False

    def _put(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._drawn = True
