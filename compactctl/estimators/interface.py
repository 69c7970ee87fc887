"""What an estimator is, and what it is bound to."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct

from compactctl.document import Document
from compactctl.model import Message


class Subject(Struct, frozen=True):
    """The session that an estimator is to count: where its texts are, and whose model reads them."""

    document: Document
    model: str | None = None
    format: str | None = None


class Weighed(Protocol):
    """A context that is counted once, however often it is asked what replacing some of its messages saves."""

    @property
    def tokens(self) -> int:
        """The tokens of all its messages together."""
        ...

    def saved(self, replaced: Mapping[int, Message]) -> int:
        """Return how many tokens fewer they take up with some of them, by index, `replaced`."""
        ...


class Estimator(Protocol):
    """Says how many tokens messages take up. Adding messages never makes it less.

    One that reads text gets it by `texts.counted`, from the document that it is bound to.
    """

    @property
    def name(self) -> str:
        """What makes the number, and all of what made it: ask once everything is counted."""
        ...

    @property
    def remarks(self) -> tuple[str, ...]:
        """What people should know about the number, in words: what was assumed, where it is not its own."""
        ...

    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of these messages together. They are of the document that the estimator is bound to."""
        ...

    def each(self, messages: Iterable[Message]) -> Iterator[float]:
        """Yield the tokens of each of these messages where it stands among them, not rounded.

        Their sum is `tokens` but for rounding.
        """
        ...

    def weighed(self, messages: tuple[Message, ...]) -> Weighed:
        """Return these messages counted together, for what replacing some of them comes to."""
        ...

    def of(self, document: Document) -> "Estimator":
        """Return the same estimator for messages of another document: the session as it was written."""
        ...
