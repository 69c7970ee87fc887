"""Messages as a format would read them, for tests of what comes after reading: no document behind them."""

import io
import itertools

from compactctl.document import Document, Place
from compactctl.estimators import Subject
from compactctl.model import Message, Text, ToolCall, ToolResult

_RECORDS = itertools.count()

NO_FILE = Subject(Document(io.BytesIO()))
"""What an estimator is bound to where no text is behind the sizes."""


def _next() -> Place:
    return Place(next(_RECORDS))


def user(text_bytes: int = 10, *, role: str = "user") -> Message:
    place = _next()
    return Message(role, (Text(place, text_bytes),), (place.record,), place.record + 1)


def answer(*call_ids: str, key: str = "", text_bytes: int = 0) -> Message:
    """An assistant message with these calls."""
    place = _next()
    text = (Text(place.at("text"), text_bytes),) if text_bytes else ()
    calls = tuple(ToolCall(place.at(index), call_id, "Bash", 20) for index, call_id in enumerate(call_ids))
    return Message("assistant", (*text, *calls), (place.record,), place.record + 1, key)


def result(call_id: str, size_bytes: int = 5, *, is_preview: bool = False) -> Message:
    place = _next()
    part = ToolResult(place.at("content"), call_id, size_bytes, "Bash", is_preview=is_preview)
    return Message("tool", (part,), (place.record,), place.record + 1)
