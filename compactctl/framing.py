"""What of a message costs tokens in a calibrated estimate: texts, and the frames that a provider puts around them.

One place says it, so that an estimate and the fit of its figures never differ in what they count. The texts are those
that every estimator counts, save the role and the ids of calls and results: no provider was seen to count these (an
exact count of the texts agrees with recorded usage to the token without them).
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from compactctl.document import Document
from compactctl.model import Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from compactctl.texts import counted_in

_NOT_COUNTED = ("role", "call_id", "result_call_id")

OPAQUE = "opaque:"
"""How the frame of something we do not look into begins, before its kind."""


def framed(message: Message, *, follows_result: bool) -> Iterator[str]:
    """Yield the frames of a message by the names of `profiles.Frames`; those of opaque parts with their kind."""
    if message.role == "assistant":
        yield "assistant"
    for part in message.parts:
        match part:
            case Text():
                if message.role != "assistant":
                    yield "user"
            case ToolCall():
                yield "call"
            case ToolResult(is_error=is_error):
                yield "next_result" if follows_result else "result"
                if is_error:
                    yield "error"
            case Reasoning():
                yield "reasoning"
            case Opaque(kind=kind):
                yield OPAQUE + kind
            case _:
                pass


class Said(Struct, frozen=True):
    """The texts of a part, and how many arguments are among them that have a frame each."""

    texts: tuple[str, ...]
    arguments: int = 0


def said(part: Part, document: Document, *, values_alone: bool) -> Said:
    """Return the texts of a part. With `values_alone` a call's arguments are names and values, not their JSON."""
    texts: list[str] = []
    count = 0
    for kind, text in counted_in(part, document):
        if kind in _NOT_COUNTED:
            continue
        members = arguments(text) if kind == "arguments" and values_alone else None
        if members is None:
            texts.append(text)
        else:
            count += len(members)
            for member in members:
                texts += member
    return Said(tuple(text for text in texts if text), count)


def arguments(text: str) -> list[tuple[str, str]] | None:
    """Return the arguments of a call by name, each as a model is shown it; None where they are no object."""
    try:
        found = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return [
        (str(name), value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for name, value in found.items()
    ]
