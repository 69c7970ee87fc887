"""Thinking that a provider has signed, as Anthropic's messages carry it: what was done to it since."""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.findings import Finding

_EMPTY = (b"", b'""', b"null")


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
        self._texts: dict[bytes, bytes] = {}
        """A digest of the text by a digest of its signature."""
        self._edited: list[int] = []
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
            key, digest = _digest(signature), _digest(_decoded(text))
            if self._texts.setdefault(key, digest) != digest:
                self._edited.append(line)

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong. Where nothing is signed at all, no provider that signs has seen the session."""
        for line in self._edited:
            yield Finding(line, "edited-reasoning", "the signature is that of other reasoning in the session")
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
