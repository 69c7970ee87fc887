"""What estimators that read texts have in common: bound to a document, they read each part once.

A text that a tokenizer fails over has the heuristic's tokens, and the estimator says so.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from msgspec import Struct

from compactctl.document import Document, Place
from compactctl.media import Rule
from compactctl.model import Media, Message, Part, Text, ToolResult, utf8_size

MOST_PARTS = 1 << 18
"""How many parts of a session are remembered, by their place."""


class Bound(ABC):
    """An estimator with one tokenizer, bound to one document."""

    def __init__(
        self, name: str, assumed: tuple[str, ...], document: Document, bytes_per_token: float, rule: Rule
    ) -> None:
        self._name = name
        self._assumed = assumed
        self._document = document
        self._bytes_per_token = bytes_per_token
        self._rule = rule
        self._parts: dict[Place, float] = {}
        self._failed_texts = 0

    @property
    def name(self) -> str:
        """What counts; it says so where the tokenizer failed and some of the number is the heuristic's."""
        return f"{self._name}, partly heuristic" if self._failed_texts else self._name

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed, and how many texts the tokenizer failed over."""
        if not self._failed_texts:
            return self._assumed
        texts = "one text: its" if self._failed_texts == 1 else f"{self._failed_texts:,} texts: their"
        return (*self._assumed, f"the tokenizer failed over {texts} tokens are the heuristic's")

    @abstractmethod
    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of these messages together."""

    def weighed(self, messages: tuple[Message, ...]) -> "WeighedTexts":
        """Return these messages counted together; what some of them save is another count of all."""
        return WeighedTexts(self, messages)

    @abstractmethod
    def _read(self, part: Part) -> float:
        """Return the tokens of the texts of a part."""

    def _of_parts(self, parts: Iterable[Part]) -> float:
        """Return the tokens of the texts of parts. Media have none; what stands in no file yet has a place that is
        another text's, and is read each time."""
        return sum(map(self._of_part, parts))

    def _of_part(self, part: Part) -> float:
        if isinstance(part, Media):
            return 0.0
        if isinstance(part, Text | ToolResult) and part.made is not None:
            return self._read(part)
        found = self._parts.get(part.place)
        if found is None:
            found = self._read(part)
            if len(self._parts) < MOST_PARTS:
                self._parts[part.place] = found
        return found

    def _by_bytes(self, text: str) -> float:
        """Return what the heuristic makes of a text that the tokenizer failed over, not rounded."""
        self._failed_texts += 1
        return utf8_size(text) / self._bytes_per_token


class WeighedTexts(Struct, frozen=True):
    """A context counted by an estimator that remembers what it read."""

    estimator: Bound
    messages: tuple[Message, ...]

    @property
    def tokens(self) -> int:
        """The tokens of all its messages together."""
        return self.estimator.tokens(self.messages)

    def saved(self, replaced: Mapping[int, Message]) -> int:
        """Return how many tokens fewer they take up with some of them, by index, `replaced`."""
        after = (replaced.get(index, message) for index, message in enumerate(self.messages))
        return self.tokens - self.estimator.tokens(after)
