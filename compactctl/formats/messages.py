"""Files of provider messages, one a line or one conversation a line: what `chat` and `anthropic` have in common.

Both APIs' shapes are understood in either format, since real files mix them; the two differ in their name and in
what is assumed of their models. A line that holds `{"messages": […]}` is a session of its own, and the messages
of all other lines make one session together.

Usage is read by its own shape, because whether cached tokens are inside the input differs by API, not by file:
`prompt_tokens` holds them (OpenAI, llama.cpp: open-webui/open-webui#28590), so does an `input_tokens` with
`input_tokens_details`; an `input_tokens` beside `cache_read_input_tokens` or `cache_creation_input_tokens` does
not (Anthropic: earendil-works/pi#6353).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactctl.document import Document, Place, Record
from compactctl.findings import Finding, sort
from compactctl.formats.blocks import Content, argument_bytes, read_content, read_result
from compactctl.formats.cutting import originals_behind
from compactctl.formats.edits import spill_edits
from compactctl.formats.interface import CompactionEdits, Mend, NewSession, OwnCheck, RecordedCut, Resume, Spilled
from compactctl.formats.mending import UNKNOWN_RESULT, Asked, mend_pairs
from compactctl.formats.messages_compact import compaction
from compactctl.formats.strangers import Strangers
from compactctl.formats.whole import file_bytes
from compactctl.json_text import string
from compactctl.model import (
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
    Usage,
    context_bytes,
    token_count,
    utf8_size,
)
from compactctl.splicing import Edit
from compactctl.turns import pairing_findings

LEADING_ROLES = ("system", "developer")
RESULT_ROLES = ("tool", "function")
ROLES = frozenset((*LEADING_ROLES, *RESULT_ROLES, "user", "assistant"))

META_MESSAGES = 3
"""A summary of ours, its acknowledgement and the reminder."""

ANTHROPIC_BLOCKS = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking"))
"""Block types that only the Messages API has."""


# telling the two apart ---------------------------------------------------------------------------


def is_message(record: Mapping[str, Any]) -> bool:
    """Return whether a decoded object is a message as a provider's API takes or gives it."""
    content, role = record.get("content"), record.get("role")
    if not isinstance(role, str) or role not in ROLES or not isinstance(content, str | list | None):
        return False
    if "content" not in record and "tool_calls" not in record and "function_call" not in record:
        return False
    types = _block_types(content)
    if types & {"toolRequest", "toolResponse"}:  # Goose
        return False
    kind = record.get("type")
    return kind is None or (kind == "message" and not types & {"input_text", "output_text"})


def conversation(record: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a line that holds a whole conversation; [] for any other."""
    messages = record.get("messages")
    if not isinstance(messages, list) or not messages:
        return []
    return messages if all(isinstance(item, dict) and is_message(item) for item in messages) else []


def has_anthropic_blocks(record: Mapping[str, Any]) -> bool:
    """Return whether a message, or any of a conversation, holds a block that only the Messages API has."""
    return any(_block_types(item.get("content")) & ANTHROPIC_BLOCKS for item in conversation(record) or [record])


def _block_types(content: Any) -> set[str]:
    if not isinstance(content, list):
        return set()
    kinds = (block.get("type") for block in content if isinstance(block, dict))
    return {kind for kind in kinds if isinstance(kind, str)}


# reading -----------------------------------------------------------------------------------------


class _Message(Struct):
    role: Content = None
    content: Content | UnsetType = UNSET
    tool_calls: Content = None
    function_call: Raw = Raw()
    tool_call_id: Content = None
    name: Content = None
    refusal: Content = None
    reasoning_content: Content = None
    usage: Raw = Raw()
    model: Content = None
    id: Content = None


class _Line(_Message):
    messages: Content = None
    system: Content = None


class _Function(Struct):
    name: str | None = None
    arguments: Raw = Raw()
    input: Raw = Raw()


class _Call(Struct):
    id: str | None = None
    function: _Function | None = None
    custom: _Function | None = None


class _Cached(Struct):
    cached_tokens: int | float | None = None


class _Usage(Struct):
    prompt_tokens: int | float | None = None
    completion_tokens: int | float | None = None
    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    cache_read_input_tokens: int | float | None = None
    cache_creation_input_tokens: int | float | None = None
    prompt_tokens_details: _Cached | None = None
    input_tokens_details: _Cached | None = None


_LINE = msgspec.json.Decoder(_Line)
_MESSAGE = msgspec.json.Decoder(_Message)
_CALL = msgspec.json.Decoder(_Call)
_FUNCTION = msgspec.json.Decoder(_Function)
_USAGE = msgspec.json.Decoder(_Usage)


class MessageLines(Struct, frozen=True):
    """Files of provider messages; `chat` and `anthropic` give the two names to it."""

    name: str
    is_anthropic: bool
    home: str = ""
    printed_by: str = ""
    in_place_risk: str = ""
    preview_style: str = "seed"

    @property
    def check(self) -> OwnCheck:
        """What an audit asks of it."""
        from compactctl.formats.messages_checks import CHECK  # of all commands only `audit` has need of it

        return CHECK

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether this is a message or a conversation, and in this format's shape."""
        if not is_message(record) and not conversation(record):
            return False
        return has_anthropic_blocks(record) == self.is_anthropic

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the session that the lines make, or one for each line that holds a conversation; [] for neither."""
        lines = _Session(self.name, self.is_anthropic)
        sessions: list[_Session] = []
        sizes: list[int] = []
        strangers = Strangers()
        for record in document.records(_LINE):
            value = record.value
            if value is not None and isinstance(value.messages, list):
                sessions.append(_read_conversation(_Session(self.name, self.is_anthropic), value, record))
                sizes.append(record.size_bytes)
            elif value is None or not lines.add(value, Place(record.index), record.line):
                strangers.note(_kind(value), record.line)
        if lines.found:
            sessions.insert(0, lines)
            sizes.insert(0, 0)
        if not sessions:
            return []
        sizes[0] = document.size_bytes - sum(sizes[1:])
        several = len(sessions) > 1
        return [
            session.transcript(sizes[i], i if several else None, strangers.findings(_no_message) if i == 0 else [])
            for i, session in enumerate(sessions)
        ]

    def spill_edits(self, document: Document, spilled: Sequence[Spilled]) -> list[Edit]:
        """Return the edits that put previews where results stand."""
        return spill_edits(document, spilled)

    def usage_edits(self, document: Document, transcript: Transcript, tokens_after: int) -> list[Edit]:
        """Return nothing: no agent decides by what such a file recorded."""
        return []

    def compaction(self, document: Document, transcript: Transcript, recorded: RecordedCut) -> CompactionEdits:
        """Return the edits that put three messages in place of the older ones; such a file has no room for history."""
        return compaction(document, transcript, recorded.cut, recorded.metas)

    def slim_edits(self, document: Document, limit_bytes: int, path: str) -> list[Edit]:
        """Return nothing: such a file holds no copy that a model is not sent."""
        return []

    def mend_links(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return nothing: such a file names no parents."""
        return []

    def mend_pairs(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what makes calls and results pair up."""
        return mend_pairs(document, transcript, _unknown_blocks if self.is_anthropic else _unknown_lines)

    def new_session(self, document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
        """Return None: such a file has no id of its own."""
        return None

    def resume(self, path: str, session_id: str | None) -> Resume:
        """Return nothing: a log of messages has no agent of its own."""
        return Resume()


def _unknown_blocks(asked: list[Asked]) -> list[Any]:
    """Return one message with a result for each call, as the Messages API wants them."""
    blocks = [
        {"type": "tool_result", "tool_use_id": each.call.call_id, "content": UNKNOWN_RESULT, "is_error": True}
        for each in asked
    ]
    return [{"role": "user", "content": blocks}]


def _unknown_lines(asked: list[Asked]) -> list[Any]:
    """Return a message for each call; a call of the old kind is answered by the name of its function."""
    return [
        {"role": "function", "name": each.call.name, "content": UNKNOWN_RESULT}
        if "function_call" in each.call.place.route
        else {"role": "tool", "tool_call_id": each.call.call_id, "content": UNKNOWN_RESULT}
        for each in asked
    ]


def _read_conversation(session: "_Session", line: _Line, record: Record[_Line]) -> "_Session":
    place = Place(record.index)
    session.lead(line.system, place.at("system"), record.line)
    items = line.messages if isinstance(line.messages, list) else []
    for index, raw in enumerate(items):
        where = place.at("messages", index)
        try:
            known = session.add(_MESSAGE.decode(raw), where, record.line)
        except msgspec.DecodeError:
            known = False
        if not known:
            session.strangers.append(index)
    return session


class _Session:
    """The messages of one session while they are read.

    With `joins_answers`, lines that share a message id are one answer, as a stream that was written block by block
    leaves them; without, a line is a message.
    """

    def __init__(self, name: str, joins_answers: bool) -> None:
        self._name = name
        self._joins_answers = joins_answers
        self._newest_answer: int | None = None
        self._joined: list[tuple[list[Part], int, Usage | None]] = []
        """Lines that go on with the newest answer: what each says, its record and its usage."""
        self._keys: set[str] = set()
        self.messages: list[Message] = []
        self.found = 0
        """How many messages there were, empty ones included."""
        self.strangers: list[int] = []
        self._line = 0
        self._tools: dict[str, str] = {}
        self._requests: dict[str, Usage] = {}
        self._model: str | None = None
        self._leading = True
        self._summary: tuple[int, int] | None = None
        """A summary of ours in front: its index, and how many originals follow it."""

    def lead(self, system: Content, place: Place, line: int) -> None:
        """Put a system prompt in front that stands beside the messages."""
        self._append("system", read_content(system, place), place, line)

    def add(self, message: _Message, place: Place, line: int) -> bool:
        """Read one message. Returns False where it is none."""
        role = message.role
        if not isinstance(role, str) or role not in ROLES:
            return False
        self.found += 1
        self._line = line
        content = None if message.content is UNSET else message.content
        if role in RESULT_ROLES:
            self._append(role, [self._tool_message(message, content, place)], place, line)
            return True
        parts = self._said(message, content, place)
        if role == "assistant":
            self._assistant(message, parts, place, line)
        else:
            self._note_summary(role, content)
            self._user(role, parts, place, line)
        return True

    def _note_summary(self, role: str, content: Content) -> None:
        """Note a summary of ours, which counts only where it is the first that anybody said."""
        originals = originals_behind(content) if self._leading and role == "user" else None
        if originals is not None:
            self._summary = len(self.messages), originals

    def _tool_message(self, message: _Message, content: Content, place: Place) -> ToolResult:
        call_id = string(message.tool_call_id) or (string(message.name) if message.role == "function" else "")
        where = place if message.content is UNSET else place.at("content")
        name = string(message.name) or self._tools.get(call_id, "")
        return read_result(content, where, call_id, name=name)

    def _said(self, message: _Message, content: Content, place: Place) -> list[Part]:
        parts: list[Part] = []
        reasoning = string(message.reasoning_content)
        if reasoning:
            parts.append(Reasoning(place.at("reasoning_content"), utf8_size(reasoning)))
        parts += read_content(content, place.at("content"), self._tools)
        refusal = string(message.refusal)
        if refusal:
            parts.append(Text(place.at("refusal"), utf8_size(refusal)))
        return parts

    def _assistant(self, message: _Message, parts: list[Part], place: Place, line: int) -> None:
        if isinstance(message.tool_calls, list):
            parts += [_call(raw, place.at("tool_calls", index)) for index, raw in enumerate(message.tool_calls)]
        if len(message.function_call):
            parts += _function_call(message.function_call, place.at("function_call"))
        model = string(message.model) or None
        self._model = model or self._model
        usage = _usage(message.usage, line, model, string(message.id) or None)
        if usage is not None:
            self._requests[usage.request_id or f"#{len(self._requests)}"] = usage
        self._answer(
            string(message.id) if self._joins_answers else "",
            [part for part in parts if not isinstance(part, ToolResult)],
            place,
            line,
            usage if usage is not None and usage.input_tokens > 0 else None,
        )
        for part in parts:
            if isinstance(part, ToolResult):
                self._append("user", [part], place, line)

    def _answer(self, key: str, said: list[Part], place: Place, line: int, usage: Usage | None) -> None:
        """Add an answer, or go on with the newest one where its message id (`key`) comes again."""
        tools = {part.call_id: part.name for part in said if isinstance(part, ToolCall)}
        if key and self._newest_answer is not None and self.messages[self._newest_answer].key == key:
            self._tools |= tools
            self._joined.append((said, place.record, usage))
            return
        self._join()
        self._tools = tools
        count = len(self.messages)
        self._append("assistant", said, place, line, usage, "" if key in self._keys else key)
        if len(self.messages) > count:
            self._newest_answer = count
            self._keys.add(key)

    def _join(self) -> None:
        """Put the lines that went on with the newest answer into it, all at once."""
        if self._newest_answer is None or not self._joined:
            return
        newest = self.messages[self._newest_answer]
        usages = [usage for _, _, usage in self._joined if usage is not None]
        self.messages[self._newest_answer] = msgspec.structs.replace(
            newest,
            parts=(*newest.parts, *(part for said, _, _ in self._joined for part in said)),
            records=(*newest.records, *(record for _, record, _ in self._joined)),
            usage=usages[-1] if usages else newest.usage,
        )
        self._joined = []

    def _user(self, role: str, parts: list[Part], place: Place, line: int) -> None:
        """Add what a person or the system said; each result among it is a message of its own, in order."""
        said: list[Part] = []
        for part in parts:
            if isinstance(part, ToolResult):
                self._append(role, said, place, line)
                said = []
                self._append(role, [part], place, line)
            else:
                said.append(part)
        self._append(role, said, place, line)

    def _append(
        self, role: str, parts: Sequence[Part], place: Place, line: int, usage: Usage | None = None, key: str = ""
    ) -> None:
        if not parts:
            return
        self._leading = self._leading and role in LEADING_ROLES
        self.messages.append(Message(role, tuple(parts), (place.record,), line, key, usage, is_leading=self._leading))

    def transcript(self, size_bytes: int, index: int | None, findings: list[Finding]) -> Transcript:
        """Return the session, which takes up `size_bytes` of the file."""
        self._join()
        messages, anchor_floor = self._summed_up()
        requests = tuple(self._requests.values())
        return Transcript(
            format=self._name,
            messages=messages,
            model=self._model,
            index=index,
            anchor_floor=anchor_floor,
            peak_tokens=max((usage.total_tokens for usage in requests), default=0),
            requests=requests,
            bytes_by_kind=file_bytes(context_bytes(messages), size_bytes),
            findings=sort([*findings, *self._findings(messages)]),
        )

    def _summed_up(self) -> tuple[tuple[Message, ...], int]:
        """Return the messages, a summary of ours marked, and from where on a usage counts: behind its originals."""
        if self._summary is None:
            return tuple(self.messages), 0
        at, originals = self._summary
        summary = msgspec.structs.replace(self.messages[at], is_summary=True)
        floor = min(at + META_MESSAGES + originals, len(self.messages))
        return (*self.messages[:at], summary, *self.messages[at + 1 :]), floor

    def _findings(self, messages: tuple[Message, ...]) -> list[Finding]:
        findings = pairing_findings(messages, order_matters=True)
        if self.strangers:
            text = f"{len(self.strangers)} items of `messages` are no messages, the first at {self.strangers[0]}"
            findings.append(Finding(self._line or None, "unknown-record", text))
        if not messages:
            findings.append(Finding(None, "empty-session", "no message in it"))
        return findings


def _call(raw: Raw, place: Place) -> Part:
    """Return one of `tool_calls`: a function's or a custom tool's, with its argument string or object."""
    try:
        call = _CALL.decode(raw)
    except msgspec.DecodeError:
        return Opaque(place, "tool_call", len(raw))
    kind, field = ("function", "arguments") if call.custom is None else ("custom", "input")
    function = call.custom or call.function or _Function()
    arguments = function.input if call.custom is not None else function.arguments
    where = place.at(kind, field) if len(arguments) else place
    return ToolCall(where, call.id or "", function.name or "", argument_bytes(arguments))


def _function_call(raw: Raw, place: Place) -> list[Part]:
    """Return the legacy `function_call`, whose name stands for the id that it does not have."""
    try:
        function = _FUNCTION.decode(raw)
    except msgspec.DecodeError:
        return [] if raw == Raw(b"null") else [Opaque(place, "function_call", len(raw))]
    name = function.name or ""
    where = place.at("arguments") if len(function.arguments) else place
    return [ToolCall(where, name, name, argument_bytes(function.arguments))]


def _usage(raw: Raw, line: int, model: str | None, request_id: str | None) -> Usage | None:
    """Return the usage of one request; None where there is none or where it is all zero."""
    if not len(raw):
        return None
    try:
        usage = _USAGE.decode(raw)
    except msgspec.DecodeError:
        return None
    read, written = token_count(usage.cache_read_input_tokens), token_count(usage.cache_creation_input_tokens)
    if usage.prompt_tokens is not None:
        taken = token_count(usage.prompt_tokens)
    else:
        taken = token_count(usage.input_tokens) + read + written
    details = usage.prompt_tokens_details or usage.input_tokens_details
    if details is not None and not read:
        read = token_count(details.cached_tokens)
    given = usage.completion_tokens if usage.output_tokens is None else usage.output_tokens
    if not taken and not token_count(given):
        return None
    return Usage(line, taken, token_count(given), read, written, model, request_id)


# what is not a message ---------------------------------------------------------------------------


def _kind(value: _Line | None) -> str:
    if value is None:
        return "a record that is no object"
    if isinstance(value.role, str):
        return f"an object with role {value.role[:40]}"
    return "an object without a role"


def _no_message(kind: str, count: int) -> str:
    return f"{kind} is no message ({'1 record' if count == 1 else f'{count:,} records'})"
