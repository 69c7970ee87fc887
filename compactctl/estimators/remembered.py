"""Figures of texts, each worked out once as long as it is remembered."""

from collections.abc import Callable
from hashlib import blake2b
from typing import Generic, TypeVar

T = TypeVar("T")

MOST_TEXTS = 1 << 16
"""How many texts are remembered, by a digest; the oldest are forgotten."""


class Remembered(Generic[T]):
    """What a function makes of texts."""

    def __init__(self, work_out: Callable[[str], T]) -> None:
        self._work_out = work_out
        self._known: dict[bytes, T] = {}
        self.worked_out_characters = 0
        """How much the function was given."""

    def of(self, text: str) -> T:
        """Return the figure of a text."""
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        try:
            return self._known[key]
        except KeyError:
            pass
        found = self._known[key] = self._work_out(text)
        self.worked_out_characters += len(text)
        if len(self._known) > MOST_TEXTS:
            self._known.pop(next(iter(self._known)), None)
        return found
