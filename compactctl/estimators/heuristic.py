"""The described system's estimate: bytes of UTF-8 by a fixed ratio, rounded up once."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from compactctl.document import Document
from compactctl.estimators.interface import Subject
from compactctl.media import Rule, sealed_tokens
from compactctl.media import rule as rule_of
from compactctl.model import Media, Message, Reasoning, ToolCall, ToolResult, utf8_size
from compactctl.settings import Settings


class Heuristic(Struct, frozen=True):
    """Bytes divided by `estimator.bytes_per_token`"""

    bytes_per_token: float
    rule: Rule
    name: str = "heuristic"

    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of these messages: their bytes by the ratio, and what is not text by rules of its own."""
        size, beside = 0, 0
        for message in messages:
            size += message_bytes(message)
            beside += tokens_beside(message, self.rule)
        numerator, denominator = self.bytes_per_token.as_integer_ratio()
        return -(-size * denominator // numerator) + beside

    @property
    def remarks(self) -> tuple[str, ...]:
        """Nothing is assumed."""
        return ()

    def each(self, messages: Iterable[Message]) -> Iterator[float]:
        """Yield the tokens of each message, not rounded."""
        for message in messages:
            yield message_bytes(message) / self.bytes_per_token + tokens_beside(message, self.rule)

    def of(self, document: Document) -> "Heuristic":
        """Return the estimator itself: it reads no document."""
        return self


def make(settings: Settings, subject: Subject, _: str = "") -> Heuristic:
    """Return the estimator with the ratio that is set; sizes and the model are all it needs of a session."""
    return Heuristic(float(settings.estimator.bytes_per_token), media_rule(settings, subject.model))


def media_rule(settings: Settings, model: str | None) -> Rule:
    """Return what media cost for a model; with `estimator.media_as_text`, their bytes as text."""
    ratio = settings.estimator.bytes_per_token if settings.estimator.media_as_text else None
    return rule_of(model) if ratio is None else msgspec.structs.replace(rule_of(model), text_bytes_per_token=ratio)


def message_bytes(message: Message) -> int:
    """Return the bytes that count: role, texts, each call's id, name and arguments, each result's call id and text."""
    size = utf8_size(message.role)
    for part in message.parts:
        if isinstance(part, ToolResult):
            size += utf8_size(part.call_id) + part.size_bytes
        elif isinstance(part, ToolCall):
            size += utf8_size(part.call_id) + utf8_size(part.name) + part.arguments_bytes
        elif not isinstance(part, Media):
            size += part.size_bytes
    return size


def tokens_beside(message: Message, rule: Rule) -> int:
    """Return the tokens of what is counted outside the bytes: images and documents by the rule of the model's family,
    sealed reasoning."""
    tokens = media_tokens(message, rule)
    for part in message.parts:
        if isinstance(part, Reasoning):
            tokens += sealed_tokens(part.sealed_bytes)
    return tokens


def media_tokens(message: Message, rule: Rule) -> int:
    """Return the tokens of the images and documents in a message."""
    tokens = 0
    for part in message.parts:
        if isinstance(part, ToolResult):
            tokens += sum(map(rule.tokens, part.media)) if part.media else 0
        elif isinstance(part, Media):
            tokens += rule.tokens(part)
    return tokens
