"""What was said in a context, as plain text: what a summary is made of. No document is needed once it is read.

Reasoning is left out, media become a note, and what a client adds for itself (lists of tools, reminders) is passed
over. The text of a result that a plan spills is its full text, beside the path that the text moves to; of one that was
spilled before it is the preview, whose path is read from it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from compactctl.cut import is_said_by_user
from compactctl.document import Document, Place
from compactctl.json_text import read_json, write_json
from compactctl.model import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Transcript
from compactctl.plan import Spill
from compactctl.preview import is_preview
from compactctl.texts import text_in


class Called(Struct, frozen=True):
    """A tool call: its arguments as the text that the model wrote."""

    call_id: str
    name: str
    arguments: str


class Answered(Struct, frozen=True):
    """A tool result: its text, and where that text lies now if it was spilled."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    spilled_to: str | None = None


class Said(Struct, frozen=True):
    """One message as text. `index` is its index in the transcript, `line` its line in the file."""

    index: int
    role: str
    text: str = ""
    calls: tuple[Called, ...] = ()
    result: Answered | None = None
    is_summary: bool = False
    line: int = 0

    @property
    def is_request(self) -> bool:
        """Whether a person said it, as far as its text can tell."""
        return self.role == "user" and self.result is None and not self.is_summary and bool(said_by_person(self.text))


def read_story(document: Document, transcript: Transcript, previews: Mapping[Place, Spill]) -> tuple[Said, ...]:
    """Return every message of the context as text, in order. `previews` are the spills that are planned, by place."""
    values = _Values(document)
    story: list[Said] = []
    names: dict[str, str] = {}
    for index, message in enumerate(transcript.messages):
        names |= {call.call_id: call.name for call in message.calls()}
        story.append(_said(values, index, message, names, previews))
    return tuple(story)


def request_test(document: Document) -> Callable[[Message], bool]:
    """Return the test whether a message is a person's own request, for `choose_cut`."""
    values = _Values(document)

    def is_request(message: Message) -> bool:
        return is_said_by_user(message) and bool(said_by_person(_text(values, message.parts)))

    return is_request


# a person's words --------------------------------------------------------------------------------

_CLIENT_TAGS = (
    "system-reminder|system_reminder|environment_context|user_instructions|permissions|collaboration_mode|skills?|"
    "command-name|command-message|command-contents|local-command-stdout|local-command-stderr|local-command-caveat|"
    "task-notification|turn_aborted|ide_opened_file|ide_selection|ide_diagnostics|bash-stdout|bash-stderr|"
    "user-prompt-submit-hook|user-memory-input|environment_details|subagent_notification"
)
_CLIENT_BLOCK = re.compile(rf"<({_CLIENT_TAGS})\b[^>]*>.*?</\1[^>]*>", re.DOTALL)
_CLIENT_WRAPPING = re.compile(r"</?(?:command-args|user_message|user_query|task|feedback|answer)>")
_CLIENT_START = re.compile(
    r"\s*(?:Caveat: The messages below|\[Request interrupted by user|# AGENTS\.md instructions|"
    r"Base directory for this skill:|\[media left out\]\s*$|This session is being continued from a previous)"
)


def said_by_person(text: str) -> str:
    """Return what a person wrote of a user's message: without the blocks that clients put in; "" for none of it."""
    if _CLIENT_START.match(text):
        return ""
    own = _CLIENT_WRAPPING.sub("", _CLIENT_BLOCK.sub("", text)).strip()
    return "" if _CLIENT_START.match(own) else own


# reading -----------------------------------------------------------------------------------------


class _Values:
    """Fetches values of a document, a record at a time: neighbours mostly share one."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._record = -1
        self._value: Any = None

    def at(self, place: Place) -> Any:
        if place.record != self._record:
            self._record, self._value = place.record, read_json(self._document.raw(place.record))
        value = self._value
        for key in place.route:
            value = value[key]
        return value


MEDIA_NOTE = "[media left out]"

OPAQUE_CHARACTERS = 2000
"""So much of what we do not look into is shown at most."""

_UNREADABLE = ("encrypted", "redacted", "compaction", "context_compaction", "tool_search_output")
"""What nobody can read, or what is a list of tools."""


def _said(
    values: _Values, index: int, message: Message, names: Mapping[str, str], previews: Mapping[Place, Spill]
) -> Said:
    calls = tuple(_called(values, call) for call in message.calls())
    result = None if message.result is None else _answered(values, message.result, names, previews)
    text = _text(values, message.parts)
    return Said(index, message.role, text, calls, result, message.is_summary, message.line)


def _text(values: _Values, parts: Iterable[Part]) -> str:
    return "\n".join(text for part in parts for text in _part_texts(values, part) if text)


def _part_texts(values: _Values, part: Part) -> Iterator[str]:
    match part:
        case Text(place):
            yield _as_text(values.at(place))
        case Media() | ToolResult(media=(_, *_)):
            yield MEDIA_NOTE
        case Opaque(place, kind):
            yield _opaque(values.at(place), kind)
        case Reasoning() | ToolCall() | ToolResult():
            return


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else write_json(value).decode()


def _called(values: _Values, call: ToolCall) -> Called:
    arguments = _as_text(values.at(call.place)) if call.arguments_bytes else ""
    return Called(call.call_id, call.name, arguments)


def _answered(
    values: _Values, result: ToolResult, names: Mapping[str, str], previews: Mapping[Place, Spill]
) -> Answered:
    text = text_in(values.at(result.place))
    name = result.name or names.get(result.call_id, "")
    preview = previews[result.place].preview if result.place in previews else text
    return Answered(result.call_id, name, text, result.is_error, spilled_path(preview))


_SAVED_TO = re.compile(r"^\[saved to\] (.+)$|Full output saved to: (.+)$", re.MULTILINE)


def spilled_path(text: str) -> str | None:
    """Return the path that a preview names; None where the text is no preview."""
    found = _SAVED_TO.search(text[:1000]) if is_preview(text) else None
    return found and (found[1] or found[2]).strip()


def _opaque(value: Any, kind: str) -> str:
    """Return a short text for what the model was sent and we do not look into; "" for a client's own additions."""
    if kind.startswith("attachment:"):
        return _attachment(value, kind.partition(":")[2])
    if any(mark in kind for mark in _UNREADABLE):
        return f"[{kind} left out]"
    return f"[{kind}] {_as_text(value)[:OPAQUE_CHARACTERS]}"


def _attachment(value: Any, kind: str) -> str:
    """Return what the user queued; as a reminder, which file was shown and what a hook said; "" for the rest."""
    if not isinstance(value, dict):
        return ""
    match kind:
        case "queued_command":
            prompt = value.get("prompt")
            return prompt if isinstance(prompt, str) else text_in(prompt)
        case "file" | "edited_text_file" | "compact_file_reference" | "selected_lines_in_ide" | "plan_file_reference":
            name = value.get("filename") or value.get("planFilePath") or value.get("displayPath") or ""
            return _reminder(f"{kind.replace('_', ' ')}: {name}") if isinstance(name, str) and name else ""
        case "hook_additional_context" | "hook_blocking_error" | "hook_stopped_continuation":
            content = value.get("content") or value.get("blockingError")
            return _reminder(_as_text(content)[:OPAQUE_CHARACTERS]) if content else ""
        case _:
            return ""


def _reminder(text: str) -> str:
    return f"<system-reminder>{text}</system-reminder>"
