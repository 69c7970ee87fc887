"""The described system's estimate: bytes of UTF-8 by a fixed ratio, rounded up once."""

from collections.abc import Iterable

from msgspec import Struct

from compactctl.document import Document
from compactctl.estimators.interface import Subject
from compactctl.media import sealed_tokens
from compactctl.model import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, utf8_size
from compactctl.settings import Settings


class Heuristic(Struct, frozen=True):
    """Bytes divided by `estimator.bytes_per_token`"""

    bytes_per_token: float
    name: str = "heuristic"

    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of these messages: their bytes by the ratio, and what is not text by rules of its own."""
        size, beside = 0, 0
        for message in messages:
            size += message_bytes(message)
            beside += tokens_beside(message)
        numerator, denominator = self.bytes_per_token.as_integer_ratio()
        return -(-size * denominator // numerator) + beside

    def of(self, document: Document) -> "Heuristic":
        """Return the estimator itself: it reads no document."""
        return self


def make(settings: Settings, _: Subject) -> Heuristic:
    """Return the estimator with the ratio that is set; sizes are all it needs of a session."""
    return Heuristic(float(settings.estimator.bytes_per_token))


def message_bytes(message: Message) -> int:
    """Return the bytes that count: role, texts, each call's id, name and arguments, each result's call id and text."""
    return utf8_size(message.role) + sum(map(_part_bytes, message.parts))


def _part_bytes(part: Part) -> int:
    match part:
        case Text(size_bytes=size) | Reasoning(size_bytes=size) | Opaque(size_bytes=size):
            return size
        case ToolCall(call_id=call_id, name=name, arguments_bytes=size):
            return utf8_size(call_id) + utf8_size(name) + size
        case ToolResult(call_id=call_id, size_bytes=size):
            return utf8_size(call_id) + size
        case Media():
            return 0


def tokens_beside(message: Message) -> int:
    """Return the tokens of what is counted outside the bytes: images, documents, sealed reasoning."""
    return sum(map(_part_tokens, message.parts))


def _part_tokens(part: Part) -> int:
    match part:
        case Media(tokens=tokens):
            return tokens
        case ToolResult(media=media):
            return sum(item.tokens for item in media)
        case Reasoning(sealed_bytes=sealed):
            return sealed_tokens(sealed)
        case _:
            return 0
