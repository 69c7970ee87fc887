"""tiktoken's encodings without a network: their ranks come with the package, or from a file that is named.

The promise: what a text comes to is what `encode_ordinary` gives for the whole of it, in time that grows with the text
and memory that does not. Two things stand in the way of asking that at once. A list of ten million tokens takes 360 MB.
And white space without a line end panics from a million characters on (tiktoken 0.14: the backtracking limit of its
regex engine), so such a run is encoded as the one piece that the pattern would make of it.

tiktoken itself is imported when the first encoding is made; nothing here imports `requests` or looks into the
environment, as `tiktoken.get_encoding` does.
"""

import base64
import binascii
import gzip
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from compactctl.errors import NoEstimator, UsageError

if TYPE_CHECKING:
    from tiktoken import Encoding

BUNDLED = {"o200k_base": "o200k_base", "cl100k_base": "cl100k_base", "o200k_harmony": "o200k_base"}
"""The encodings that come along, each with the one whose ranks and pattern it has: harmony adds special tokens only,
and no text is one."""

DEFAULT = "o200k_base"

Pattern = str

LARGEST_FILE_BYTES = 64 << 20
"""A larger file is no list of ranks."""

PIECE_CHARACTERS = 1 << 17
"""A longer text is encoded in pieces of about this size."""

RUN_CHARACTERS = 100_000
"""White space that is longer is encoded apart. A panic takes ten times as much."""

_SPACE = "\t\v\f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""What Unicode calls White_Space, save line ends. Python's own class has four more."""


def run_pattern(characters: int) -> re.Pattern[str]:
    """Return what finds runs of at least so much white space that end before no line end."""
    return re.compile(rf"(?<![{_SPACE}])[{_SPACE}]{{{characters},}}+(?![\r\n])")


_RUN = run_pattern(RUN_CHARACTERS)

_CUT = re.compile(
    r"(?<=[\r\n])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?= [A-Za-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])"
)
"""Where neither pattern can join what is before with what is behind, nor looks from one side to the other."""


class Piece(NamedTuple):
    """A stretch of a text; `is_run` where it is white space that the pattern takes as one."""

    text: str
    is_run: bool


def pieces(text: str) -> Iterator[Piece]:
    """Yield a text in stretches that together come to the same tokens. All of them are no longer than the text."""
    start = 0
    for run in _RUN.finditer(text) if len(text) > PIECE_CHARACTERS else ():
        yield from _cut(text, start, run.start())
        start = run.end() if run.end() == len(text) else run.end() - 1  # the last one belongs to what follows
        yield Piece(text[run.start() : start], True)
    yield from _cut(text, start, len(text))


def _cut(text: str, start: int, end: int) -> Iterator[Piece]:
    while end - start > PIECE_CHARACTERS and (found := _CUT.search(text, start + PIECE_CHARACTERS, end)):
        yield Piece(text[start : found.start()], False)
        start = found.start()
    if start < end:
        yield Piece(text[start:end], False)


class Tokenizer:
    """One encoding. `name` says which, and by which pattern where that is not its own."""

    def __init__(self, name: str, encoding: "Encoding") -> None:
        self.name = name
        self._encoding = encoding

    def encoded(self, text: str) -> Iterator[list[int] | None]:
        """Yield a text's tokens piece by piece, special tokens taken as text; None where tiktoken panics."""
        return map(self._in_piece, pieces(text))

    def count(self, text: str) -> int | None:
        """Return how many tokens a text is, special tokens taken as text; None where tiktoken panics over it."""
        if len(text) <= PIECE_CHARACTERS:
            found = self._in_piece(Piece(text, False))
            return None if found is None else len(found)
        return sum_known(None if found is None else len(found) for found in self.encoded(text))

    def token(self, rank: int) -> bytes:
        """Return the bytes of a token. Raises KeyError."""
        return self._encoding.decode_single_token_bytes(rank)

    def _in_piece(self, piece: Piece) -> list[int] | None:
        try:
            if piece.is_run:
                return list(self._encoding._encode_single_piece(piece.text))
            return self._encoding.encode_ordinary(piece.text)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # pyo3's own, which nothing exports
                raise
            return None


def sum_known(counts: Iterator[int | None]) -> int | None:
    """Return the sum; None as soon as one is not known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


# where ranks come from ---------------------------------------------------------------------------------


class _Table(Struct, frozen=True):
    """The patterns that the encodings split text by, and the version of tiktoken that they are from."""

    source: str
    patterns: dict[str, Pattern]


def _data(name: str) -> bytes:
    return Path(__file__).parents[1].joinpath("data", name).read_bytes()


@cache
def table() -> _Table:
    """Return the patterns that come along."""
    return msgspec.json.decode(_data("encodings.json"), type=_Table)


def tokens(name: str) -> Iterator[bytes]:
    """Yield the tokens of a bundled encoding in the order of their ranks."""
    packed = gzip.decompress(_data(f"{name}.ranks.gz"))
    start = 0
    while start < len(packed):
        end = start + 1 + packed[start]
        yield packed[start + 1 : end]
        start = end


def upstream(name: str) -> bytes:
    """Return the file that tiktoken itself would load for a bundled encoding, byte for byte."""
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens(name)))
    return b"".join(lines)


@cache
def bundled(name: str) -> Tokenizer:
    """Return one of `BUNDLED`."""
    return Tokenizer(name, _ranks(BUNDLED[name]))


@cache
def _ranks(name: str) -> "Encoding":
    return _encoding(name, name, {token: rank for rank, token in enumerate(tokens(name))})


def _encoding(name: str, pattern: str, ranks: dict[bytes, int]) -> "Encoding":
    try:
        import tiktoken
    except ImportError as error:
        raise NoEstimator(f"tiktoken can't be loaded: {error}") from None

    return tiktoken.Encoding(name, pat_str=table().patterns[pattern], mergeable_ranks=ranks, special_tokens={})


@cache
def from_file(path: str, pattern: str) -> Tokenizer:
    """Return the encoding whose ranks a .tiktoken file holds, with the pattern of a bundled one.

    Raises UsageError where the file is none.
    """
    try:
        with open(path, "rb") as source:
            data = source.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: the encoding can't be read: {(error.strerror or str(error)).lower()}") from None
    ranks = _parsed(path, data)
    name = os.path.basename(path)
    return Tokenizer(f"{name} (pattern of {pattern})", _encoding(name, pattern, ranks))


def _parsed(path: str, data: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data[:LARGEST_FILE_BYTES].splitlines(), start=1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error):
            raise UsageError(
                f"{path}: line {number}: not a token in base64 and its rank, as .tiktoken files have them"
            ) from None
    if not all(bytes([byte]) in ranks for byte in range(256)):
        raise UsageError(f"{path}: not a .tiktoken file: some byte is no token of its own")
    if len(set(ranks.values())) < len(ranks):
        raise UsageError(f"{path}: two tokens have one rank")
    return ranks


# which one a model has ---------------------------------------------------------------------------------


class Choice(Struct, frozen=True):
    """The encoding of a model, and in words where that was assumed; "" where tiktoken knows it."""

    name: str
    assumed: str = ""


def of_model(model: str | None) -> Choice:
    """Return the encoding that tiktoken names for a model; `DEFAULT`, with a reason, where it knows none."""
    if not model:
        return Choice(DEFAULT, f"no model is named: {DEFAULT} is assumed")
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.rpartition("/")[2])
    except KeyError:
        return Choice(DEFAULT, f"tiktoken has no encoding for {model}: {DEFAULT} is assumed")
    if name not in BUNDLED:
        return Choice(DEFAULT, f"the encoding of {model}, {name}, does not come along: {DEFAULT} is assumed")
    return Choice(name)
