"""Thinking that a provider has signed, as Anthropic's messages carry it: what was done to it since."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.findings import Finding

_EMPTY = (b"", b'""', b"null")


MOST_TEXTS = 2
"""A provider signs one text, and an edit makes two of it; a signature with more is a stand-in, as mocks have."""


class Block(Struct, gc=False):
    """A block of a message's content, as far as it matters here."""

    type: Any = None
    text: Raw = Raw()
    thinking: Raw = Raw()
    signature: Raw = Raw()

    @property
    def is_empty_text(self) -> bool:
        return self.type == "text" and bytes(self.text) in _EMPTY


class Signed:
    """The signed thinking of a session, noted as it comes."""

    def __init__(self) -> None:
        self._texts: dict[bytes, dict[bytes, int]] = {}
        """By a digest of the signature the digests of its texts, each with the line on which it first stood."""
        self._unsigned: list[int] = []

    def note(self, line: int, content: list[Block] | str | None) -> None:
        """Note the thinking of one message."""
        for block in content if isinstance(content, list) else ():
            if block.type == "thinking":
                self._note(line, bytes(block.thinking), bytes(block.signature))

    def _note(self, line: int, text: bytes, signature: bytes) -> None:
        if signature in _EMPTY:
            self._unsigned.append(line)
        elif text not in _EMPTY:
            texts = self._texts.setdefault(_digest(signature), {})
            if len(texts) <= MOST_TEXTS:
                texts.setdefault(_digest(_decoded(text)), line)

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong. Where nothing is signed at all, no provider that signs has seen the session."""
        for texts in self._texts.values():
            if len(texts) == MOST_TEXTS:
                said = f"the signature is that of other reasoning, at line {min(texts.values())}"
                yield Finding(max(texts.values()), "edited-reasoning", said)
        for line in self._unsigned if self._texts else ():
            yield Finding(line, "hollow-reasoning", "the block of thinking has no signature")


def _decoded(raw: bytes) -> bytes:
    """Return a text as bytes, however its characters are escaped."""
    try:
        return msgspec.json.decode(raw, type=str).encode("utf-8", "surrogatepass")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return raw


def _digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=16).digest()
