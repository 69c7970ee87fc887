"""Tokens as OpenAI's tokenizer counts them: of each text that counts on its own, and of media by their rule.

The texts are those that the heuristic takes the bytes of (`texts.counted`), so both answer one question. What a
provider adds around messages is in neither. A text that was counted is not counted again: neither the same part of
a session, nor the same text anywhere.
"""

import difflib
import math
import os
from collections.abc import Iterable, Iterator

from compactctl.document import Document
from compactctl.errors import UsageError
from compactctl.estimators import encodings
from compactctl.estimators.bound import Bound
from compactctl.estimators.encodings import BUNDLED, Tokenizer
from compactctl.estimators.heuristic import media_rule, tokens_beside
from compactctl.estimators.interface import Subject
from compactctl.estimators.remembered import Remembered
from compactctl.media import Rule
from compactctl.model import Message, Part
from compactctl.settings import Settings
from compactctl.texts import counted_in

NAME = "tiktoken"


class Counts(Remembered[int | None]):
    """The tokens of texts in one encoding; None where the tokenizer gives none."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer.count)
        self.tokenizer = tokenizer


_COUNTS: dict[str, Counts] = {}
"""By the name of the encoding; shared by all sessions of a process."""


def _counts(tokenizer: Tokenizer) -> Counts:
    return _COUNTS.setdefault(tokenizer.name, Counts(tokenizer))


class Tiktoken(Bound):
    """The estimator with one encoding, bound to one document."""

    def __init__(
        self, counts: Counts, document: Document, bytes_per_token: float, rule: Rule, assumed: tuple[str, ...] = ()
    ) -> None:
        super().__init__(f"{NAME}:{counts.tokenizer.name}", assumed, document, bytes_per_token, rule)
        self._counts = counts

    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of the texts that count, and of what is not text by rules of its own."""
        return int(sum(self.each(messages)))

    def each(self, messages: Iterable[Message]) -> Iterator[float]:
        """Yield the tokens of each message."""
        for message in messages:
            yield self._text(message.role) + self._of_parts(message.parts) + tokens_beside(message, self._rule)

    def of(self, document: Document) -> "Tiktoken":
        """Return the estimator for another document."""
        return Tiktoken(self._counts, document, self._bytes_per_token, self._rule, self._assumed)

    def _read(self, part: Part) -> float:
        return sum(self._text(text) for _, text in counted_in(part, self._document))

    def _text(self, text: str) -> int:
        count = self._counts.of(text)
        return math.ceil(self._by_bytes(text)) if count is None else count


def make(settings: Settings, subject: Subject, encoding: str) -> Tiktoken:
    """Return the estimator with this encoding; "": that of the settings' file, else that of the session's model.

    Raises UsageError where there is no such encoding.
    """
    file, assumed = settings.estimator.encoding_file, tuple[str, ...]()
    if encoding:
        tokenizer = encodings.bundled(_known(encoding))
    elif file is not None:
        tokenizer = encodings.from_file(file, settings.estimator.encoding_pattern)
    else:
        choice = encodings.of_model(subject.model)
        tokenizer = encodings.bundled(choice.name)
        assumed = (choice.assumed,) if choice.assumed else ()
    rule = media_rule(settings, subject.model)
    return Tiktoken(_counts(tokenizer), subject.document, float(settings.estimator.bytes_per_token), rule, assumed)


def check(settings: Settings, encoding: str) -> None:
    """Raise UsageError where `make` would: before any session is read, and without loading an encoding."""
    file = settings.estimator.encoding_file
    if encoding:
        _known(encoding)
    elif file is not None and not os.path.isfile(file):
        raise UsageError(f"{file}: no such file for --encoding-file")


def _known(encoding: str) -> str:
    if encoding in BUNDLED:
        return encoding
    near = difflib.get_close_matches(encoding, BUNDLED, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(BUNDLED)}; any other from --encoding-file FILE"
    raise UsageError(f"unknown encoding {encoding}; {hint}")
