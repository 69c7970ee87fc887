"""The texts that count of a message: each piece with its kind, fetched from the file by its place.

The promise: what `counted` gives for a message has as many bytes of UTF-8 as the sizes that its format read, so an
estimator that reads text counts the same strings as one that knows sizes alone. One record is decoded at a time.
"""

from collections.abc import Iterator
from typing import Any, Literal

from compactctl.document import Document, Place
from compactctl.json_text import read_json
from compactctl.model import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

TextKind = Literal["role", "text", "reasoning", "call_id", "tool", "arguments", "result_call_id", "result", "opaque"]
"""What a counted text is. A call gives its `call_id`, its `tool` (the name) and its `arguments`, a result its
`result_call_id` and its text (`result`); `opaque` is what we do not look into, as its JSON stands."""

Counted = tuple[TextKind, str]

TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})
"""Block types whose `text` is a result's text."""

ATTACHMENT = "attachment:"
"""How the kind of an `Opaque` begins that is an attachment line of Claude Code."""


def counted(message: Message, document: Document) -> Iterator[Counted]:
    """Yield every text of a message that counts, with its kind: the role, then those of its parts, in order."""
    yield "role", message.role
    for part in message.parts:
        yield from counted_in(part, document)


def counted_in(part: Part, document: Document) -> Iterator[Counted]:
    """Yield the texts of a part. What stands in no file yet says its own; media and sealed reasoning have none."""
    match part:
        case ToolResult(place=place, call_id=call_id, made=made):
            yield "result_call_id", call_id
            if part.size_bytes:
                yield "result", _result(document.value(place)) if made is None else made
        case ToolCall(place=place, call_id=call_id, name=name):
            yield "call_id", call_id
            yield "tool", name
            if part.arguments_bytes:
                yield "arguments", _as_it_stands(document, place)
        case Text(place=place, made=made):
            yield "text", str(document.value(place)) if made is None else made
        case Reasoning(place=place):
            if part.size_bytes:
                yield "reasoning", _thought(document.value(place))
        case Opaque(place=place, kind=kind):
            if part.size_bytes:
                is_attached = kind.startswith(ATTACHMENT)
                yield "opaque", _attached(document, place) if is_attached else _as_it_stands(document, place)
        case Media():
            return


def result_text(document: Document, result: ToolResult) -> str:
    """Return the text of a result; none where the record lacks the field that would hold it.

    What stands in no file yet says its own.
    """
    if result.made is not None:
        return result.made
    try:
        return text_in(document.value(result.place))
    except KeyError:
        return ""


def text_in(content: Any) -> str:
    """Return the text of a result's content: the string, or the text blocks of a list joined by one newline each."""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if is_text(block)) if isinstance(content, list) else ""


def is_text(block: Any) -> bool:
    """Return whether a decoded block is one of text."""
    return isinstance(block, dict) and str(block.get("type")) in TEXT_BLOCKS and isinstance(block.get("text"), str)


def _result(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(_said(content))


def _said(content: Any) -> Iterator[str]:
    """Yield the texts of a content's blocks, also those of refusals and of documents that are text."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        source = block.get("source")
        if is_text(block):
            yield from filter(None, [block["text"]])
        elif block.get("type") == "refusal":
            yield from filter(None, [str(block.get("refusal"))])
        elif block.get("type") == "document" and isinstance(source, dict):
            yield from [source["data"]] if source.get("type") == "text" and source.get("data") else ()
            yield from _said(source.get("content")) if source.get("type") == "content" else ()


def _thought(value: Any) -> str:
    """Return readable reasoning: a string, or what an item of the Responses API says under `summary` and `content`."""
    if not isinstance(value, dict):
        return str(value)
    blocks = [block for key in ("summary", "content") for block in value.get(key) or () if isinstance(block, dict)]
    return "".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def _as_it_stands(document: Document, place: Place) -> str:
    """Return the text of a string, the JSON of anything else with the blanks that it has in the file."""
    raw = document.raw_value(place)
    return str(read_json(raw)) if raw.startswith(b'"') else raw.decode("utf-8", "replace")


# attachments of Claude Code ------------------------------------------------------------------------

_NAMING = frozenset(
    (
        "addedNames",
        "addedTypes",
        "command",
        "commandMode",
        "displayPath",
        "filePath",
        "filename",
        "globs",
        "hookEvent",
        "hookName",
        "media_type",
        "model",
        "names",
        "needsAuthMcpServers",
        "origin",
        "outputFilePath",
        "path",
        "pendingMcpServers",
        "planFilePath",
        "rawContent",
        "readdedNames",
        "reminderType",
        "removedNames",
        "removedTypes",
        "skillDir",
        "skillNames",
        "source_uuid",
        "stderr",
        "stdout",
        "taskId",
        "taskType",
        "timestamp",
        "toolUseID",
        "type",
        "uri",
    )
)
"""Fields that name, locate or repeat what another field says."""

MEDIA_FIELDS = ("data", "base64")
"""The fields of an attachment that hold an image or a document."""


def strings_in(value: Any) -> Iterator[str]:
    """Yield the strings in an attachment that its text is made of: all but names, repetitions and encoded media."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, dict):
        holds_media = is_media(value)
        for key, item in value.items():
            if key not in _NAMING and not (holds_media and key in MEDIA_FIELDS):
                yield from strings_in(item)


def is_media(value: dict[str, Any]) -> bool:
    """Return whether an object in an attachment holds an image or a document."""
    return "base64" in value or value.get("type") == "base64"


def rendered_strings(items: Any) -> Iterator[str]:
    """Yield the strings in what a client recorded under `rendered`: the text that it sent for an attachment."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            yield from strings_in(item.get("content"))


def _attached(document: Document, place: Place) -> str:
    try:
        rendered = document.value(Place(place.record, (*place.route[:-1], "rendered")))
    except KeyError:
        return "".join(strings_in(document.value(place)))
    return "".join(rendered_strings(rendered))
