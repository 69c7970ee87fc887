"""OpenAI Codex rollouts: `{timestamp, ordinal?, type, payload}` a line; before 0.40 a bare header and bare items.

What is sent (openai/codex, `rollout_reconstruction.rs` and `normalize.rs`; seen again with codex 0.171, see
tests/clients): `response_item` and `inter_agent_communication` only, in order. `event_msg`, `turn_context`,
`session_meta` and `world_state` add nothing. A message of role `system` and an item of unknown type are left out.

* `compacted` with `replacement_history` replaces all before it (its `message` may be empty, openai/codex#41954);
  `replacement_history_entries` are such a list too, partly by item id. Without either it is an old one: what
  persons wrote stays, as far as 20,000 tokens reach back, and `message` follows as a user message.
* `thread_rolled_back` takes back the last N turns, and with them a compaction made in one. A turn begins with a
  user message that a person (or another agent) wrote, not with context that codex itself put in; such context
  right before a turn goes with it. What comes before the first turn always stays.
* On resume codex answers a call that has no output with `aborted`, drops an output without its call, and matches
  the two by call id wherever they stand, so order is no damage here.
* An output longer than the turn's truncation policy is cut again on resume; sizes here are the file's.

Usage: `token_count` events. `last_token_usage` is one request, its input including what was cached;
`total_token_usage` is what the session spent and no context. Events repeat (28 % of the real ones, ccusage#1288):
equal totals are no new request. After a compaction codex records its own estimate with an input of 0. An event
comes after the outputs of the calls that its response made, so it belongs to the newest answer before it, and
those outputs are not in it. Values over the window exist (openai/codex#24089) and are refused.
`model_context_window` is already 95 % of what the model takes.

Copies of outputs that no model sees are in `exec_command_end`, `mcp_tool_call_end`, `patch_apply_end` and
`item_completed` events. On resume codex compacts at once when the last `token_count` says the window is full
(research: clients, finding A), so that one record follows a spill.

Codex resumes a reference by `reference_v2` only while the item's digest holds: such a result is never spilled.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Edit, Place, Record, Replace, elements, read_json, span, write_json
from compactctl.findings import Finding, sort
from compactctl.formats.blocks import Content, argument_bytes, read_content, read_result
from compactctl.formats.edits import replace_text, slim_copies
from compactctl.formats.interface import Spilled
from compactctl.media import image_tokens
from compactctl.model import (
    Compaction,
    Copy,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    SeenResult,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
    Usage,
    context_bytes,
    part_bytes,
    utf8_size,
)
from compactctl.turns import pairing_findings

ENVELOPES = frozenset(
    (
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "world_state",
        "token_usage_record",
        "retained_context",
        "security_risk_score",
        "realtime_item",
        "rollout_reference",
    )
)
"""The record types of a rollout."""

UNSENT_ITEMS = frozenset(("ghost_snapshot", "compaction_trigger"))
"""Item types that are known and never sent."""

SEALED_HISTORY = frozenset(("compaction", "compaction_summary", "context_compaction"))
"""Item types that stand for a history which only the provider can read."""

COPIES = ("stdout", "stderr", "aggregated_output", "formatted_output", "result", "results", "content_items")
"""Fields of events that hold an output again."""

EFFECTIVE_WINDOW_PERCENT = 95
"""The part of a model's window that `model_context_window` states."""

KEPT_USER_BYTES = 80_000
"""How much of what persons wrote an old compaction keeps, newest first: 20,000 tokens of four bytes."""

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


# what a record holds -------------------------------------------------------------------------------


class _Counts(Struct, gc=False):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0


class _Info(Struct, gc=False):
    total_token_usage: _Counts | None = None
    last_token_usage: _Counts | None = None
    model_context_window: int | None = None


class _Copies(Struct, gc=False):
    id: Any = None
    stdout: Raw = Raw()
    stderr: Raw = Raw()
    aggregated_output: Raw = Raw()
    formatted_output: Raw = Raw()
    result: Raw = Raw()
    results: Raw = Raw()
    content_items: Raw = Raw()


class _Payload(_Copies, gc=False):
    """A payload of any record, or a bare item: every field that any of them is read for."""

    type: str = ""
    call_id: Any = None
    # items
    role: Any = None
    name: Any = None
    content: Content = None
    output: Content = None
    arguments: Raw = Raw()
    input: Raw = Raw()
    action: Raw = Raw()
    tools: Raw = Raw()
    summary: Content = None
    encrypted_content: Raw = Raw()
    # events
    info: _Info | None = None
    num_turns: Any = None
    model_context_window: Any = None
    item: _Copies | None = None
    # headers
    cwd: Any = None
    model: Any = None
    cli_version: Any = None
    parent_thread_id: Any = None
    source: Any = None
    instructions: Raw = Raw()
    # compactions
    message: Raw = Raw()
    replacement_history: Raw = Raw()
    replacement_history_entries: Raw = Raw()


class _Line(_Payload, gc=False):
    payload: _Payload | None = None
    record_type: Any = None


class _Entry(Struct):
    type: str = ""
    item: _Payload | None = None
    item_id: Any = None


class _Piece(Struct, gc=False):
    text: str = ""


_LINE = msgspec.json.Decoder(_Line)
_PAYLOAD = msgspec.json.Decoder(_Payload)
_ENTRY = msgspec.json.Decoder(_Entry)
_PIECE = msgspec.json.Decoder(_Piece)
_STRING = msgspec.json.Decoder(str)


# what it comes to ----------------------------------------------------------------------------------


class _Said(Struct, gc=False):
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


class _Closed(Struct):
    """A response ended here, and this is what it took."""

    usage: Usage


class _Boundary(Struct):
    """A turn started here, or its settings were told."""

    starts_segment: bool


class _Compacted(Struct):
    record: int
    line: int
    has_history: bool


class _RolledBack(Struct):
    turns: int


_Step = _Said | _Closed | _Boundary | _Compacted | _RolledBack
_Context = list[_Said | _Closed | _Boundary]


# the format ----------------------------------------------------------------------------------------


class Codex(Struct, frozen=True):
    """The format of Codex rollouts."""

    name: str = "codex"
    is_anthropic: bool = False
    preview_style: str = "seed"

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether this is an envelope of a rollout, or what only files before 0.40 hold."""
        if "payload" in record:
            return record.get("type") in ENVELOPES and isinstance(record["payload"], dict)
        return record.get("record_type") == "state" or _is_old_header(record)

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the session that codex would resume; nothing where no record is a rollout's."""
        reader = _Reader()
        for record in document.records(_LINE):
            reader.take(record)
        return [reader.transcript(document)] if reader.is_codex else []

    def spill_edits(self, document: Document, spilled: Sequence[Spilled]) -> list[Edit]:
        """Return the edits that put previews where outputs stand, and slim their copies in events."""
        edits: list[Edit] = []
        for item in spilled:
            edits.append(replace_text(document, item.result.place, item.preview))
            edits += slim_copies(document, item)
        return edits

    def usage_edits(self, document: Document, transcript: Transcript, tokens_after: int) -> list[Edit]:
        """Return the edits that make the newest `token_count` say what the context now is."""
        for index in reversed(range(len(document))):
            raw = document.raw(index)
            if b'"token_count"' in raw and (counts := _last_counts(raw)) is not None:
                place = Place(index, ("payload", "info", "last_token_usage"))
                names = [name for name in ("input_tokens", "total_tokens") if name in counts]
                return [Replace(place.at(name), write_json(tokens_after)) for name in names]
        return []


FORMAT = Codex()


def _is_old_header(record: Mapping[str, Any]) -> bool:
    known = isinstance(record.get("id"), str) and isinstance(record.get("timestamp"), str)
    return known and "instructions" in record and not {"type", "role", "messages"} & record.keys()


def _last_counts(raw: bytes) -> dict[str, Any] | None:
    """Return `last_token_usage` of a record, if it is a token count that has one."""
    try:
        record = msgspec.json.decode(raw)
        is_count = record["type"] == "event_msg" and record["payload"]["type"] == "token_count"
        counts = record["payload"]["info"]["last_token_usage"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return None
    return counts if is_count and isinstance(counts, dict) else None


# reading -------------------------------------------------------------------------------------------


class _Reader:
    """What was read so far: the steps of the session, and what is told of the whole file."""

    def __init__(self) -> None:
        self.is_codex = False
        self._is_old = False
        self._header: _Payload | None = None
        self._model: str | None = None
        self._window: int | None = None
        self._steps: list[_Step] = []
        self._requests: list[Usage] = []
        self._last_total: _Counts | None = None
        self._compactions: list[Compaction] = []
        self._tools: dict[str, str] = {}
        self._copies: dict[str, list[Copy]] = {}
        self._weighed: list[tuple[Part, ...]] = []
        self._copied_bytes = 0
        self._event_bytes = 0
        self._strangers: dict[str, tuple[int, int]] = {}
        self._unread: list[int] = []

    def take(self, record: Record[_Line]) -> None:
        """Read one record."""
        line = record.value
        if line is None:
            self._unread.append(record.index)
        elif line.payload is not None and line.type in ENVELOPES:
            self.is_codex = True
            self._take_payload(line.type, line.payload, record)
        elif line.type and self._is_old:
            self._take_item(line, Place(record.index), record.line)
        elif len(line.instructions) and not line.type:
            self.is_codex = self._is_old = True
            self._header = self._header or line
        elif line.record_type == "state":
            self.is_codex = True
        else:
            self._stranger(f"type {line.type}" if line.type else "no type", record.line)

    def _stranger(self, kind: str, line: int) -> None:
        """Note something that is not read: `kind` is what it is, in words."""
        first, count = self._strangers.get(kind, (line, 0))
        self._strangers[kind] = first, count + 1

    def _take_payload(self, kind: str, payload: _Payload, record: Record[_Line]) -> None:
        place = Place(record.index, ("payload",))
        match kind:
            case "response_item":
                self._take_item(payload, place, record.line)
            case "event_msg":
                self._take_event(payload, place, record)
            case "turn_context":
                self._model = _string(payload.model) or self._model
                self._steps.append(_Boundary(False))
            case "session_meta":
                self._header = self._header or payload
            case "compacted":
                self._take_compaction(payload, record)
            case "inter_agent_communication":
                self._add(_Said(record.index, record.line, "user", _letter(payload, place), starts_turn=True))

    # items

    def _take_item(self, item: _Payload, place: Place, line: int) -> None:
        if item.type in UNSENT_ITEMS:
            return
        said = self._said(item, place, line)
        if said is None:
            self._stranger(f"item type {item.type}", line)
        elif said.role == "system":
            self._weighed.append(said.parts)
        else:
            self._add(said)

    def _add(self, said: _Said) -> None:
        self._weighed.append(said.parts)
        self._steps.append(said)

    def _said(self, item: _Payload, place: Place, line: int) -> _Said | None:
        """Return what an item says; None where its type is unknown."""
        key = _string(item.id)
        if item.type.endswith("_output"):
            return self._output(item, place, line, key)
        if item.type == "message":
            return _message(item, place, line, key)
        if item.type == "agent_message":
            parts = tuple(read_content(item.content, place.at("content")))
            return _Said(place.record, line, "user", parts, key, starts_turn=True)
        part = self._assistant_part(item, place)
        if part is None:
            return None
        alone = item.type in SEALED_HISTORY
        return _Said(place.record, line, "assistant", part, key, is_summary=alone, stands_alone=alone)

    def _output(self, item: _Payload, place: Place, line: int, key: str) -> _Said:
        call_id = _string(item.call_id)
        if item.output is None and len(item.tools):
            tools = Opaque(place.at("tools"), item.type, len(item.tools))
            return _Said(place.record, line, "tool", (tools,), key)
        content, where = _text_in(item.output, place.at("output"))
        result = read_result(content, where, call_id, name=self._tools.get(call_id, ""))
        copies = self._copies.setdefault(call_id, [])
        return _Said(place.record, line, "tool", (result,), key, copies=copies)

    def _assistant_part(self, item: _Payload, place: Place) -> tuple[Part, ...] | None:
        match item.type:
            case "function_call":
                return self._call(item, place, "arguments", item.arguments, _string(item.name))
            case "custom_tool_call":
                return self._call(item, place, "input", item.input, _string(item.name))
            case "local_shell_call":
                return self._call(item, place, "action", item.action, "local_shell")
            case "reasoning":
                return _reasoning(item, place)
            case "web_search_call":
                return (Opaque(place, item.type, len(item.action)),)
            case "tool_search_call":
                return (Opaque(place, item.type, len(item.arguments)),)
            case "image_generation_call":
                return _image(item, place)
            case kind if kind in SEALED_HISTORY:
                return _sealed(item, place)
        return None

    def _call(self, item: _Payload, place: Place, field: str, arguments: Raw, name: str) -> tuple[Part, ...]:
        call_id = _string(item.call_id) or _string(item.id)
        self._tools[call_id] = name
        self._copies[call_id] = []
        where = place.at(field) if len(arguments) else place
        return (ToolCall(where, call_id, name, argument_bytes(arguments)),)

    # events and compactions

    def _take_event(self, event: _Payload, place: Place, record: Record[_Line]) -> None:
        self._copied_bytes += self._take_copies(event, place)
        self._event_bytes += record.size_bytes
        match event.type:
            case "token_count":
                self._take_usage(event.info, record.line)
            case "task_started" | "turn_started":
                self._note_window(event.model_context_window)
                self._steps.append(_Boundary(True))
            case "thread_rolled_back":
                turns = event.num_turns
                self._steps.append(_RolledBack(turns if isinstance(turns, int) and turns > 0 else 0))

    def _take_copies(self, event: _Payload, place: Place) -> int:
        """Note the copies of a call's output that an event holds, and return their bytes."""
        holder: _Copies = event
        call_id = _string(event.call_id)
        if event.item is not None:
            holder, place, call_id = event.item, place.at("item"), _string(event.item.id)
        if not call_id:
            return 0
        found = [Copy(place.at(field), len(getattr(holder, field))) for field in COPIES]
        found = [copy for copy in found if copy.size_bytes > len("null")]
        if found:
            self._copies.setdefault(call_id, []).extend(found)
        return sum(copy.size_bytes for copy in found)

    def _note_window(self, tokens: Any) -> None:
        if isinstance(tokens, int) and tokens > 0:
            self._window = tokens

    def _take_usage(self, info: _Info | None, line: int) -> None:
        if info is None:
            return
        self._note_window(info.model_context_window)
        repeats = info.total_token_usage is not None and info.total_token_usage == self._last_total
        self._last_total = info.total_token_usage or self._last_total
        counts = info.last_token_usage
        if repeats or counts is None or counts.input_tokens <= 0 or self._is_impossible(counts):
            return
        usage = Usage(
            line,
            counts.input_tokens,
            counts.output_tokens,
            counts.cached_input_tokens,
            counts.cache_write_input_tokens,
            self._model,
        )
        self._requests.append(usage)
        self._steps.append(_Closed(usage))

    def _is_impossible(self, counts: _Counts) -> bool:
        taken = counts.input_tokens + counts.output_tokens
        return self._window is not None and taken * EFFECTIVE_WINDOW_PERCENT > self._window * 100

    def _take_compaction(self, payload: _Payload, record: Record[_Line]) -> None:
        has_history = _is_list(payload.replacement_history) or _is_list(payload.replacement_history_entries)
        before = self._requests[-1].total_tokens if self._requests else None
        self._compactions.append(Compaction(record.line, before))
        self._steps.append(_Compacted(record.index, record.line, has_history))

    # the whole

    def transcript(self, document: Document) -> Transcript:
        """Return the session. The document was walked to its end."""
        findings: list[Finding] = []
        for index in self._unread:
            self._stranger("another shape", document.line(index))
        context, floor_record = self._replayed(document, findings)
        messages = _mark_leading(_joined(context))
        header = self._header or _Payload()
        return Transcript(
            format=FORMAT.name,
            messages=messages,
            session_id=_string(header.id) or None,
            agent=f"Codex {version}" if (version := _string(header.cli_version)) else "Codex",
            model=self._model,
            cwd=_string(header.cwd) or None,
            parent_session_id=_parent(header),
            anchor_floor=sum(1 for message in messages if message.records[0] <= floor_record),
            recorded_window_tokens=self._window,
            peak_tokens=max((usage.total_tokens for usage in self._requests), default=0),
            requests=tuple(self._requests),
            compactions=tuple(self._compactions),
            results=self._seen(messages, floor_record),
            bytes_by_kind=self._bytes(document),
            context_bytes_by_kind=context_bytes(messages),
            findings=sort([*findings, *self._findings(messages)]),
        )

    def _replayed(self, document: Document, findings: list[Finding]) -> tuple[_Context, int]:
        """Return the effective context, and the record of the compaction that it starts from (-1 for none)."""
        base = _surviving_base(self._steps)
        context: _Context = []
        floor = -1
        if base is not None:
            compacted = self._steps[base]
            assert isinstance(compacted, _Compacted)
            floor = compacted.record
            context = list(self._history(document, compacted, base))
        for index in range(0 if base is None else base + 1, len(self._steps)):
            step = self._steps[index]
            match step:
                case _RolledBack(turns=turns):
                    context = _without_turns(context, turns)
                case _Compacted(has_history=False):
                    context, floor = self._old_history(document, step, context, findings), step.record
                case _Said() | _Closed() | _Boundary():
                    context.append(step)
        return context, floor

    def _history(self, document: Document, compacted: _Compacted, base: int) -> Iterator[_Said]:
        """Yield the items of a replacement history."""
        holder = _lenient(document.raw_value(Place(compacted.record, ("payload",))))
        message = _text(holder.message)
        if _is_list(holder.replacement_history):
            place = Place(compacted.record, ("payload", "replacement_history"))
            for index, raw in enumerate(elements(bytes(holder.replacement_history))):
                yield from self._kept(raw, place.at(index), compacted.line, message)
            return
        known = {step.key: step for step in self._steps[:base] if isinstance(step, _Said) and step.key}
        place = Place(compacted.record, ("payload", "replacement_history_entries"))
        for index, raw in enumerate(elements(bytes(holder.replacement_history_entries))):
            yield from self._entry(raw, place.at(index), compacted.line, known)

    def _kept(self, raw: bytes, place: Place, line: int, message: str) -> Iterator[_Said]:
        try:
            item = _PAYLOAD.decode(raw)
        except msgspec.DecodeError:
            self._stranger("another shape in a replacement history", line)
            return
        if item.type in UNSENT_ITEMS:
            return
        said = self._said(item, place, line)
        if said is None:
            self._stranger(f"item type {item.type}", line)
        elif said.role != "system":
            self._weighed.append(said.parts)
            if said.role == "user":
                said.is_summary = said.is_handoff or _says(item, message)
            yield said

    def _entry(self, raw: bytes, place: Place, line: int, known: Mapping[str, _Said]) -> Iterator[_Said]:
        try:
            entry = _ENTRY.decode(raw)
        except msgspec.DecodeError:
            self._stranger("another shape in a replacement history", line)
            return
        if entry.item is not None:
            start, end = span(raw, ("item",))
            yield from self._kept(raw[start:end], place.at("item"), line, "")
            return
        said = known.get(_string(entry.item_id))
        if said is None:
            self._stranger("reference to an item that is not in the file", line)
        else:
            yield _bound(said) if entry.type != "reference" else said

    def _old_history(
        self, document: Document, compacted: _Compacted, context: _Context, findings: list[Finding]
    ) -> _Context:
        """Return what an old compaction leaves: the newest of what persons wrote, then its message."""
        kept: list[_Said] = []
        room = KEPT_USER_BYTES
        for step in reversed(context):
            if isinstance(step, _Said) and step.starts_turn and not step.is_handoff and room > 0:
                kept.insert(0, step)
                room -= sum(part.size_bytes for part in step.parts if isinstance(part, Text))
        place = Place(compacted.record, ("payload", "message"))
        text = _text(_lenient(document.raw_value(Place(compacted.record, ("payload",)))).message)
        if not text.strip():
            findings.append(Finding(compacted.line, "blank-summary", "a compaction kept no summary"))
        if text:
            parts = (Text(place, utf8_size(text)),)
            said = _Said(compacted.record, compacted.line, "user", parts, starts_turn=True)
            said.is_summary, said.is_handoff = True, text.startswith(SUMMARY_START)
            kept.append(said)
            self._weighed.append(said.parts)
        return [*kept]

    def _seen(self, messages: tuple[Message, ...], floor_record: int) -> tuple[SeenResult, ...]:
        """Return every output in the file; those of a replacement history only where it is in context."""
        inside = {message.result.place for message in messages if message.result is not None}
        seen: dict[Place, SeenResult] = {}
        for step in self._steps:
            if isinstance(step, _Said) and isinstance(result := step.parts[0] if step.parts else None, ToolResult):
                outside = "" if result.place in inside else _why_outside(step.record, floor_record)
                seen[result.place] = SeenResult(step.line, result.name, result.size_bytes, outside)
        for message in messages:
            if (result := message.result) is not None and result.place not in seen:
                seen[result.place] = SeenResult(message.line, result.name, result.size_bytes)
        return tuple(seen[place] for place in sorted(seen))

    def _bytes(self, document: Document) -> dict[str, int]:
        tally = part_bytes(chain.from_iterable(self._weighed))
        tally["copies"] = self._copied_bytes
        tally["progress"] = self._event_bytes - self._copied_bytes
        tally["other"] = 0
        return {**tally, "other": document.size_bytes - sum(tally.values())}

    def _findings(self, messages: tuple[Message, ...]) -> list[Finding]:
        findings = pairing_findings(messages, order_matters=False)
        for kind, (line, count) in self._strangers.items():
            which = "not read" if count == 1 else f"{count:,} of them, the first here; not read"
            findings.append(Finding(line, "unknown-record", f"{kind}: {which}"))
        if not messages:
            findings.append(Finding(None, "empty-session", "no message in it"))
        elif not self._requests and any(message.role == "assistant" for message in messages):
            findings.append(Finding(None, "no-usage", "no token count of any request"))
        return findings


# parts of items ------------------------------------------------------------------------------------


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text(raw: Raw) -> str:
    """Return the string that a raw value is; "" for anything else."""
    try:
        return _STRING.decode(raw)
    except msgspec.DecodeError:
        return ""


def _is_list(raw: Raw) -> bool:
    return len(raw) > 0 and bytes(memoryview(raw)[:1]) == b"["


def _lenient(raw: bytes) -> _Payload:
    """Return a payload that was read before, also where it holds what the fast decoder refuses."""
    try:
        return _PAYLOAD.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _PAYLOAD.decode(write_json(read_json(raw)))


def _message(item: _Payload, place: Place, line: int, key: str) -> _Said:
    """Return a message, and whether it starts a turn or is context that codex put in."""
    role = _string(item.role)
    parts = tuple(read_content(item.content, place.at("content")))
    said = _Said(place.record, line, role if role in ("assistant", "developer", "system") else "user", parts, key)
    if said.role == "user":
        said.is_context = any(map(_is_user_context, _texts(item.content)))
        said.starts_turn = not said.is_context
        said.is_handoff = "\n".join(_texts(item.content)).startswith(SUMMARY_START)
    elif role == "developer":
        said.is_context = any(map(_is_developer_context, _texts(item.content)))
    return said


def _texts(content: Content) -> list[str]:
    if isinstance(content, str):
        return [content]
    return _pieces(content)


def _pieces(content: Content) -> list[str]:
    texts = []
    for raw in content if isinstance(content, list) else []:
        try:
            texts.append(_PIECE.decode(raw).text)
        except msgspec.DecodeError:
            continue
    return texts


def _is_user_context(text: str) -> bool:
    head, tail = text.lstrip()[:64].lower(), text.rstrip()[-64:].lower()
    if head.startswith(INSTRUCTIONS_START) and tail.endswith(INSTRUCTIONS_END):
        return True
    return any(head.startswith(f"<{tag}") and tail.endswith(f"</{tag}>") for tag in CONTEXT_TAGS)


def _is_developer_context(text: str) -> bool:
    return text.lstrip()[:64].lower().startswith(CONTEXT_STARTS)


def _says(item: _Payload, message: str) -> bool:
    """Return whether an item is the message that a compaction tells beside its history: its summary."""
    return bool(message) and "\n".join(_texts(item.content)) == message


def _reasoning(item: _Payload, place: Place) -> tuple[Part, ...]:
    texts = [*_pieces(item.summary), *_pieces(item.content)]
    size, sealed = sum(map(utf8_size, texts)), _sealed_bytes(item.encrypted_content)
    return (Reasoning(place, size, sealed),) if size or sealed else ()


def _sealed_bytes(raw: Raw) -> int:
    return len(raw) - 2 if len(raw) > 2 and bytes(memoryview(raw)[:1]) == b'"' else 0


def _sealed(item: _Payload, place: Place) -> tuple[Part, ...]:
    sealed = _sealed_bytes(item.encrypted_content)
    return (Reasoning(place.at("encrypted_content"), 0, sealed),) if sealed else ()


def _image(item: _Payload, place: Place) -> tuple[Part, ...]:
    data = _text(item.result)
    return (Media(place.at("result"), len(item.result), image_tokens(data)),) if data else ()


def _letter(payload: _Payload, place: Place) -> tuple[Part, ...]:
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


def _bound(said: _Said) -> _Said:
    """Return an item that a digest elsewhere binds: its output counts as one that is not to be spilled."""
    parts = tuple(
        msgspec.structs.replace(part, is_preview=True) if isinstance(part, ToolResult) else part for part in said.parts
    )
    return msgspec.structs.replace(said, parts=parts)


def _parent(header: _Payload) -> str | None:
    """Return the thread that started this one, where this is a subagent's."""
    told = _string(header.parent_thread_id)
    try:
        return told or _string(header.source["subagent"]["thread_spawn"]["parent_thread_id"]) or None
    except (KeyError, TypeError):
        return None


# replay --------------------------------------------------------------------------------------------


def _surviving_base(steps: Sequence[_Step]) -> int | None:
    """Return the index of the newest compaction with a history that no rollback took back.

    Backwards, a segment ends at the start of its turn; a rollback takes the next N segments in which somebody spoke.
    """
    pending = 0
    newest: int | None = None
    spoke = False
    for index in reversed(range(len(steps))):
        match steps[index]:
            case _RolledBack(turns=turns):
                pending += turns
            case _Compacted(has_history=True) if newest is None:
                newest = index
            case _Said(starts_turn=True):
                spoke = True
            case _Boundary(starts_segment=True):
                if not pending and newest is not None:
                    return newest
                pending -= 1 if pending and spoke else 0
                newest, spoke = None, False
    return newest if not pending else None


def _without_turns(context: _Context, turns: int) -> _Context:
    """Return the context without its last turns; what came before the first turn stays."""
    starts = [index for index, step in enumerate(context) if isinstance(step, _Said) and step.starts_turn]
    if not starts or not turns:
        return context
    cut = starts[-turns] if turns < len(starts) else starts[0]
    while cut > starts[0] and _goes_with_the_turn(context[cut - 1]):
        cut -= 1
    return context[:cut]


def _goes_with_the_turn(step: _Said | _Closed | _Boundary) -> bool:
    return isinstance(step, _Boundary) or (isinstance(step, _Said) and step.is_context)


def _why_outside(record: int, floor_record: int) -> str:
    return "before the last compaction" if record < floor_record else "rolled back"


def _joined(context: _Context) -> list[Message]:
    """Return the messages: neighbouring items of the assistant are one, all others one each."""
    messages: list[Message] = []
    answer: list[_Said] = []
    unpaid: int | None = None

    def flush() -> None:
        nonlocal unpaid
        if parts := tuple(part for said in answer for part in said.parts):
            unpaid = len(messages)
            messages.append(_one(answer, parts))
        answer.clear()

    for step in context:
        match step:
            case _Said(role="assistant", stands_alone=False):
                answer.append(step)
            case _Said():
                flush()
                if step.parts:
                    messages.append(_one([step], _with_copies(step)))
            case _Closed(usage=usage):
                flush()
                if unpaid is not None:
                    messages[unpaid] = msgspec.structs.replace(messages[unpaid], usage=usage)
                unpaid = None
            case _Boundary():
                flush()
    flush()
    return messages


def _one(said: Sequence[_Said], parts: tuple[Part, ...]) -> Message:
    records = tuple(dict.fromkeys(item.record for item in said))
    key = next((item.key for item in said if item.key), "")
    first = said[0]
    return Message(first.role, parts, records, first.line, key, is_summary=first.is_summary)


def _with_copies(said: _Said) -> tuple[Part, ...]:
    first = said.parts[0]
    if not said.copies or not isinstance(first, ToolResult):
        return said.parts
    return (msgspec.structs.replace(first, copies=tuple(said.copies)), *said.parts[1:])


def _mark_leading(messages: list[Message]) -> tuple[Message, ...]:
    """Return the messages with the developer's at the very front marked: they stay in front of any cut."""
    for index, message in enumerate(messages):
        if message.role != "developer":
            break
        messages[index] = msgspec.structs.replace(message, is_leading=True)
    return tuple(messages)
