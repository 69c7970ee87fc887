"""Items of the Responses API as a rollout holds them, each read into what it says."""

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Place
from compactctl.formats.blocks import Content, argument_bytes, read_content, read_result
from compactctl.formats.codex.records import Copies, Payload, pieces, text, texts
from compactctl.json_text import string
from compactctl.media import image_pixels
from compactctl.model import Copy, Media, Opaque, Part, Reasoning, ToolCall, ToolResult, utf8_size

UNSENT_ITEMS = frozenset(("ghost_snapshot", "compaction_trigger"))
"""Item types that are known and never sent."""

SEALED_HISTORY = frozenset(("compaction", "compaction_summary", "context_compaction"))
"""Item types that stand for a history which only the provider can read."""

COPIES = ("stdout", "stderr", "aggregated_output", "formatted_output", "result", "results", "content_items")
"""Fields of events that hold an output again."""

SUMMARY_START = "Another language model started to solve this problem"
"""How codex begins the message that carries its own summary."""

CONTEXT_TAGS = (
    "environment_context",
    "user_instructions",
    "skill",
    "user_shell_command",
    "turn_aborted",
    "subagent_notification",
    "goal_context",
    "extension_context",
    "recommended_plugins",
    "hook_prompt",
)
"""Tags around a user message that codex, not a person, put in."""

INSTRUCTIONS_START, INSTRUCTIONS_END = "# agents.md instructions", "</instructions>"

CONTEXT_STARTS = (
    "<permissions instructions>",
    "<model_switch>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "<realtime_conversation>",
    "<skills_instructions>",
    "<personality_spec>",
    "<token_budget>",
    "<context_window",
    "<rollout_budget>",
)
"""How a developer message begins that codex put in before a turn."""


class Said(Struct, gc=False):
    """An item of the conversation, not yet joined with its neighbours."""

    record: int
    line: int
    role: str
    parts: tuple[Part, ...]
    key: str = ""
    starts_turn: bool = False
    is_context: bool = False
    """Codex put it in, so it goes with the turn that it came before."""
    is_summary: bool = False
    is_handoff: bool = False
    """It begins as codex begins its own summaries, so an old compaction does not keep it."""
    stands_alone: bool = False
    copies: list[Copy] | None = None

    @property
    def is_sealed(self) -> bool:
        """Whether it is reasoning that only the provider can read."""
        return any(isinstance(part, Reasoning) and part.sealed_bytes for part in self.parts)


class Items:
    """Reads items in the order of the file, so that an output knows its call's name and where its copies are."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        self._copies: dict[str, list[Copy]] = {}
        self._owned: set[str] = set()
        """The calls whose copies an output has taken."""

    def read(self, item: Payload, place: Place, line: int) -> Said | None:
        """Return what an item says; None where its type is unknown."""
        key = string(item.id)
        if item.type.endswith("_output"):
            return self._output(item, place, line, key)
        if item.type == "message":
            return _message(item, place, line, key)
        if item.type == "agent_message":
            parts = tuple(read_content(item.content, place.at("content")))
            return Said(place.record, line, "user", parts, key, starts_turn=True)
        part = self._assistant_part(item, place)
        if part is None:
            return None
        alone = item.type in SEALED_HISTORY
        return Said(place.record, line, "assistant", part, key, is_summary=alone, stands_alone=alone)

    def _output(self, item: Payload, place: Place, line: int, key: str) -> Said:
        call_id = string(item.call_id)
        if item.output is None and len(item.tools):
            tools = Opaque(place.at("tools"), item.type, len(item.tools))
            return Said(place.record, line, "tool", (tools,), key)
        content, where = _text_in(item.output, place.at("output"))
        result = read_result(content, where, call_id, name=self._tools.get(call_id, ""))
        return Said(place.record, line, "tool", (result,), key, copies=self._own_copies(call_id))

    def _own_copies(self, call_id: str) -> list[Copy]:
        """Return the list that this output's copies are in and will be: of two outputs of one call each has its own."""
        if call_id in self._owned:
            self._copies[call_id] = []
        self._owned.add(call_id)
        return self._copies.setdefault(call_id, [])

    def _assistant_part(self, item: Payload, place: Place) -> tuple[Part, ...] | None:
        match item.type:
            case "function_call":
                return self._call(item, place, "arguments", item.arguments, string(item.name))
            case "custom_tool_call":
                return self._call(item, place, "input", item.input, string(item.name))
            case "local_shell_call":
                return self._call(item, place, "action", item.action, "local_shell")
            case "reasoning":
                return _reasoning(item, place)
            case "web_search_call":
                return _unseen(item.type, item.action, place, "action")
            case "tool_search_call":
                return _unseen(item.type, item.arguments, place, "arguments")
            case "image_generation_call":
                return _image(item, place)
            case kind if kind in SEALED_HISTORY:
                return _sealed(item, place)
        return None

    def _call(self, item: Payload, place: Place, field: str, arguments: Raw, name: str) -> tuple[Part, ...]:
        call_id = string(item.call_id) or string(item.id)
        self._tools[call_id] = name
        self._copies[call_id] = []
        self._owned.discard(call_id)
        where = place.at(field) if len(arguments) else place
        return (ToolCall(where, call_id, name, argument_bytes(arguments)),)

    def note_copies(self, event: Payload, place: Place) -> int:
        """Note the copies of a call's output that an event holds, and return their bytes."""
        holder: Copies = event
        call_id = string(event.call_id)
        if isinstance(event.item, Copies):
            holder, place, call_id = event.item, place.at("item"), string(event.item.id)
        if not call_id:
            return 0
        found = [Copy(place.at(field), len(getattr(holder, field))) for field in COPIES]
        found = [copy for copy in found if copy.size_bytes > len("null")]
        if found:
            self._copies.setdefault(call_id, []).extend(found)
        return sum(copy.size_bytes for copy in found)


def _unseen(kind: str, raw: Raw, place: Place, field: str) -> tuple[Part, ...]:
    """Return what the provider's own tool was asked, which stands under this field."""
    return (Opaque(place.at(field) if len(raw) else place, kind, len(raw)),)


def _message(item: Payload, place: Place, line: int, key: str) -> Said:
    """Return a message, and whether it starts a turn or is context that codex put in."""
    role = string(item.role)
    parts = tuple(read_content(item.content, place.at("content")))
    said = Said(place.record, line, role if role in ("assistant", "developer", "system") else "user", parts, key)
    if said.role == "user":
        said.is_context = any(map(_is_user_context, texts(item.content)))
        said.starts_turn = not said.is_context
        said.is_handoff = "\n".join(texts(item.content)).startswith(SUMMARY_START)
    elif role == "developer":
        said.is_context = any(map(_is_developer_context, texts(item.content)))
    return said


def _is_user_context(told: str) -> bool:
    head, tail = told.lstrip()[:64].lower(), told.rstrip()[-64:].lower()
    if head.startswith(INSTRUCTIONS_START) and tail.endswith(INSTRUCTIONS_END):
        return True
    return any(head.startswith(f"<{tag}") and tail.endswith(f"</{tag}>") for tag in CONTEXT_TAGS)


def _is_developer_context(told: str) -> bool:
    return told.lstrip()[:64].lower().startswith(CONTEXT_STARTS)


def says(item: Payload, message: str) -> bool:
    """Return whether an item is the message that a compaction tells beside its history: its summary."""
    return bool(message) and "\n".join(texts(item.content)) == message


def _reasoning(item: Payload, place: Place) -> tuple[Part, ...]:
    told = [*pieces(item.summary), *pieces(item.content)]
    size, sealed = sum(map(utf8_size, told)), _sealed_bytes(item.encrypted_content)
    return (Reasoning(place, size, sealed),) if size or sealed else ()


def _sealed_bytes(raw: Raw) -> int:
    return len(raw) - 2 if len(raw) > 2 and bytes(memoryview(raw)[:1]) == b'"' else 0


def _sealed(item: Payload, place: Place) -> tuple[Part, ...]:
    sealed = _sealed_bytes(item.encrypted_content)
    return (Reasoning(place.at("encrypted_content"), 0, sealed),) if sealed else ()


def _image(item: Payload, place: Place) -> tuple[Part, ...]:
    data = text(item.result)
    return (Media(place.at("result"), len(item.result), "image", *image_pixels(data)),) if data else ()


def letter(payload: Payload, place: Place) -> tuple[Part, ...]:
    """Return what another agent wrote: its text, or its ciphertext."""
    sealed = _sealed_bytes(payload.encrypted_content)
    parts: list[Part] = read_content(payload.content, place.at("content"))
    return (*parts, Opaque(place.at("encrypted_content"), "encrypted_content", sealed)) if sealed else tuple(parts)


def _text_in(output: Content, place: Place) -> tuple[Content, Place]:
    """Return the text of an output and where it is: within an object under the name that says so."""
    for name in ("output", "content", "text"):
        if isinstance(output, dict) and name in output:
            inner = msgspec.json.decode(output[name], type=Content)
            if isinstance(inner, str | list):
                return inner, place.at(name)
    return output, place


def bound(said: Said) -> Said:
    """Return an item that a digest elsewhere binds: its output counts as one that is not to be spilled."""
    parts = tuple(
        msgspec.structs.replace(part, is_preview=True) if isinstance(part, ToolResult) else part for part in said.parts
    )
    return msgspec.structs.replace(said, parts=parts)
