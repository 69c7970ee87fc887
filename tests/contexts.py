"""An effective context with its texts, as golden tests and the real agents' requests are compared with it."""

import json
from typing import Any

from compactctl.document import Document, Place
from compactctl.model import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult, Transcript

Json = dict[str, Any]


def lines(document: Document, transcript: Transcript) -> list[str]:
    """Return a line a message: role, text, `+call` for each call, `call=` before a result's text, marks behind."""
    return [_line(document, message) for message in transcript.messages]


def _line(document: Document, message: Message) -> str:
    told = [_word(document, part) for part in message.parts]
    marks = [name for name in ("is_leading", "is_summary") if getattr(message, name)]
    return " ".join([f"{message.role}:", *told, *(f"({name.removeprefix('is_')})" for name in marks)])


def _word(document: Document, part: Any) -> str:
    match part:
        case Text():
            return str(document.value(part.place))
        case Reasoning():
            return f"~{_reasoning(document, part.place)}"
        case ToolCall():
            return f"+{part.call_id}"
        case ToolResult():
            return f"{part.call_id}={_text(document.value(part.place))}"
        case Opaque():
            return f"<{part.kind}>"
        case Media():
            return "<media>"
    raise AssertionError(part)


def messages(document: Document, transcript: Transcript) -> list[Json]:
    """Return the messages as dictionaries, in the shape that tests/clients/real.py gives a request in."""
    return [_message(document, message) for message in transcript.messages]


def _message(document: Document, message: Message) -> Json:
    read: Json = {"role": "tool" if message.role == "toolResult" else message.role, "text": ""}
    for part in message.parts:
        match part:
            case Text():
                read["text"] += document.value(part.place)
            case Reasoning():
                read["reasoning"] = read.get("reasoning", "") + _reasoning(document, part.place)
            case ToolCall():
                arguments = document.value(part.place)
                told = arguments if isinstance(arguments, str) else json.dumps(arguments, separators=(",", ":"))
                read.setdefault("calls", []).append([part.call_id, part.name, told])
            case ToolResult():
                read["text"] += _text(document.value(part.place))
                read["result_of"] = part.call_id
    return read


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return json.dumps(value)
    kinds = ("text", "input_text", "output_text")
    blocks = [block for block in value if isinstance(block, dict) and block.get("type") in kinds]
    return "\n".join(block["text"] for block in blocks)


def _reasoning(document: Document, place: Place) -> str:
    value = document.value(place)
    if isinstance(value, str):
        return value
    return "".join(piece["text"] for piece in [*value.get("summary", []), *(value.get("content") or [])])
