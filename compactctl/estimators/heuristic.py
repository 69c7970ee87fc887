"""The described system's estimate: bytes of UTF-8 by a fixed ratio, rounded up once."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from compactctl.document import Document
from compactctl.estimators.interface import Subject
from compactctl.media import Rule, sealed_tokens
from compactctl.media import rule as rule_of
from compactctl.model import Media, Message, Reasoning, Text, ToolCall, ToolResult, utf8_size
from compactctl.settings import Settings


class Heuristic(Struct, frozen=True):
    """Bytes divided by `estimator.bytes_per_token`"""

    bytes_per_token: float
    rule: Rule
    name: str = "heuristic"

    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of these messages: their bytes by the ratio, and what is not text by rules of its own."""
        return self.rounded(*weight(messages, self.rule))

    def weighed(self, messages: tuple[Message, ...]) -> "WeighedBytes":
        """Return these messages counted together; what some of them save is counted from those alone."""
        return WeighedBytes(self, messages, *weight(messages, self.rule))

    def rounded(self, size_bytes: int, beside: int) -> int:
        """Return the tokens of so many bytes, and of what was counted beside them."""
        numerator, denominator = self.bytes_per_token.as_integer_ratio()
        return -(-size_bytes * denominator // numerator) + beside

    @property
    def remarks(self) -> tuple[str, ...]:
        """Nothing is assumed."""
        return ()

    def each(self, messages: Iterable[Message]) -> Iterator[float]:
        """Yield the tokens of each message, not rounded."""
        for message in messages:
            size, beside = weight((message,), self.rule)
            yield size / self.bytes_per_token + beside

    def of(self, document: Document) -> "Heuristic":
        """Return the estimator itself: it reads no document."""
        return self


class WeighedBytes(Struct, frozen=True):
    """A context with its bytes, and the tokens of what is counted beside them."""

    estimator: Heuristic
    messages: tuple[Message, ...]
    size_bytes: int
    beside: int

    @property
    def tokens(self) -> int:
        """The tokens of all its messages together."""
        return self.estimator.rounded(self.size_bytes, self.beside)

    def saved(self, replaced: Mapping[int, Message]) -> int:
        """Return how many tokens fewer they take up with some of them, by index, `replaced`."""
        rule = self.estimator.rule
        size_gone, beside_gone = weight(map(self.messages.__getitem__, replaced), rule)
        size_new, beside_new = weight(replaced.values(), rule)
        size_bytes, beside = self.size_bytes - size_gone + size_new, self.beside - beside_gone + beside_new
        return self.tokens - self.estimator.rounded(size_bytes, beside)


def make(settings: Settings, subject: Subject, _: str = "") -> Heuristic:
    """Return the estimator with the ratio that is set; sizes and the model are all it needs of a session."""
    return Heuristic(float(settings.estimator.bytes_per_token), media_rule(settings, subject.model))


def media_rule(settings: Settings, model: str | None) -> Rule:
    """Return what media cost for a model; with `estimator.media_as_text`, their bytes as text."""
    ratio = settings.estimator.bytes_per_token if settings.estimator.media_as_text else None
    return rule_of(model) if ratio is None else msgspec.structs.replace(rule_of(model), text_bytes_per_token=ratio)


NAMES_AT_ONCE = 1_000
"""Roles and ids are short and many: so many are measured together, in a fraction of the time."""


def weight(messages: Iterable[Message], rule: Rule) -> tuple[int, int]:
    """Return the bytes of these messages that count, and the tokens of what is counted outside the bytes.

    Bytes are of role, texts, each call's id, name and arguments, each result's call id and text. Outside of them are
    images and documents, by the rule of the model's family, and sealed reasoning.
    """
    size = beside = 0
    names: list[str] = []
    for message in messages:
        if len(names) > NAMES_AT_ONCE:
            size += utf8_size("".join(names))
            names.clear()
        names.append(message.role)
        for part in message.parts:
            if isinstance(part, ToolResult):
                names.append(part.call_id)
                size += part.size_bytes
                if part.media:
                    beside += sum(map(rule.tokens, part.media))
            elif isinstance(part, ToolCall):
                names += part.call_id, part.name
                size += part.arguments_bytes
            elif isinstance(part, Text):
                size += part.size_bytes
            elif isinstance(part, Media):
                beside += rule.tokens(part)
            else:
                size += part.size_bytes
                if isinstance(part, Reasoning) and part.sealed_bytes:
                    beside += sealed_tokens(part.sealed_bytes)
    return size + utf8_size("".join(names)), beside


def tokens_beside(message: Message, rule: Rule) -> int:
    """Return the tokens of what is counted outside the bytes of a message."""
    return weight((message,), rule)[1]


def media_tokens(message: Message, rule: Rule) -> int:
    """Return the tokens of the images and documents in a message."""
    tokens = 0
    for part in message.parts:
        if isinstance(part, ToolResult):
            tokens += sum(map(rule.tokens, part.media)) if part.media else 0
        elif isinstance(part, Media):
            tokens += rule.tokens(part)
    return tokens
