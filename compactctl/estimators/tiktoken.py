"""Tokens as OpenAI's tokenizer counts them: of each text that counts on its own, and of media by their rule.

The texts are those that the heuristic takes the bytes of (`texts.counted`), so both answer one question. What a
provider adds around messages is in neither. A text that was counted is not counted again: neither the same part of
a session, nor the same text anywhere.
"""

import difflib
import math
import os
from collections.abc import Iterable, Iterator

from compactctl.document import Document, Place
from compactctl.errors import UsageError
from compactctl.estimators import encodings
from compactctl.estimators.encodings import BUNDLED, Tokenizer
from compactctl.estimators.heuristic import media_rule, tokens_beside
from compactctl.estimators.interface import Subject
from compactctl.estimators.remembered import Remembered
from compactctl.media import Rule
from compactctl.model import Media, Message, Part, Text, ToolResult, utf8_size
from compactctl.settings import Settings
from compactctl.texts import counted_in

NAME = "tiktoken"

MOST_PARTS = 1 << 18
"""How many parts of a session are remembered, by their place."""


class Counts(Remembered[int | None]):
    """The tokens of texts in one encoding; None where the tokenizer gives none."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer.count)
        self.tokenizer = tokenizer


_COUNTS: dict[str, Counts] = {}
"""By the name of the encoding; shared by all sessions of a process."""


def _counts(tokenizer: Tokenizer) -> Counts:
    return _COUNTS.setdefault(tokenizer.name, Counts(tokenizer))


class Tiktoken:
    """The estimator with one encoding, bound to one document."""

    def __init__(
        self, counts: Counts, document: Document, bytes_per_token: float, rule: Rule, remarks: tuple[str, ...] = ()
    ) -> None:
        self._counts = counts
        self._document = document
        self._bytes_per_token = bytes_per_token
        self._rule = rule
        self._remarks = remarks
        self._parts: dict[Place, int] = {}
        self._uncounted = 0

    @property
    def name(self) -> str:
        """The encoding; it says so where the tokenizer failed and some of the number is the heuristic's."""
        mixed = ", partly heuristic" if self._uncounted else ""
        return f"{NAME}:{self._counts.tokenizer.name}{mixed}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was assumed, and how many texts the tokenizer failed over."""
        if not self._uncounted:
            return self._remarks
        failed = f"tiktoken failed over {self._uncounted:,} texts: their tokens are the heuristic's"
        return (*self._remarks, failed)

    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of the texts that count, and of what is not text by rules of its own."""
        return sum(map(self._message, messages))

    def each(self, messages: Iterable[Message]) -> Iterator[float]:
        """Yield the tokens of each message."""
        return map(float, map(self._message, messages))

    def _message(self, message: Message) -> int:
        return self._text(message.role) + sum(map(self._part, message.parts)) + tokens_beside(message, self._rule)

    def of(self, document: Document) -> "Tiktoken":
        """Return the estimator for another document."""
        return Tiktoken(self._counts, document, self._bytes_per_token, self._rule, self._remarks)

    def _part(self, part: Part) -> int:
        if isinstance(part, Media):
            return 0
        if isinstance(part, Text | ToolResult) and part.made is not None:
            return self._read(part)
        found = self._parts.get(part.place)
        if found is None:
            found = self._read(part)
            if len(self._parts) < MOST_PARTS:
                self._parts[part.place] = found
        return found

    def _read(self, part: Part) -> int:
        return sum(self._text(text) for _, text in counted_in(part, self._document))

    def _text(self, text: str) -> int:
        count = self._counts.of(text)
        if count is None:
            self._uncounted += 1
            return math.ceil(utf8_size(text) / self._bytes_per_token)
        return count


def make(settings: Settings, subject: Subject, encoding: str) -> Tiktoken:
    """Return the estimator with this encoding; "": that of the settings' file, else that of the session's model.

    Raises UsageError where there is no such encoding.
    """
    file, remarks = settings.estimator.encoding_file, tuple[str, ...]()
    if encoding:
        tokenizer = encodings.bundled(_known(encoding))
    elif file is not None:
        tokenizer = encodings.from_file(file, settings.estimator.encoding_pattern)
    else:
        choice = encodings.of_model(subject.model)
        tokenizer = encodings.bundled(choice.name)
        remarks = (choice.assumed,) if choice.assumed else ()
    rule = media_rule(settings, subject.model)
    return Tiktoken(_counts(tokenizer), subject.document, float(settings.estimator.bytes_per_token), rule, remarks)


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
