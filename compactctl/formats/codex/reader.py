"""One rollout while it is read: the steps of its session, and what is told of the whole file."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import msgspec

from compactctl.document import Document, Place, Record
from compactctl.findings import Finding, sort
from compactctl.formats.codex.items import SUMMARY_START, UNSENT_ITEMS, Items, Said, bound, letter, says
from compactctl.formats.codex.records import (
    ENTRY,
    ENVELOPES,
    PAYLOAD,
    Counts,
    Info,
    Line,
    Odd,
    Payload,
    is_list,
    lenient,
    text,
)
from compactctl.formats.codex.replay import (
    Boundary,
    Closed,
    Compacted,
    Context,
    RolledBack,
    Step,
    joined,
    mark_leading,
    surviving_base,
    why_outside,
    without_turns,
)
from compactctl.formats.strangers import Strangers, not_read
from compactctl.formats.whole import file_bytes, lacks
from compactctl.json_text import string
from compactctl.model import (
    Compaction,
    Message,
    OutsideResult,
    Part,
    Text,
    ToolResult,
    Transcript,
    Usage,
    part_bytes,
    utf8_size,
)
from compactctl.spans import elements, span
from compactctl.turns import pairing_findings

EFFECTIVE_WINDOW_PERCENT = 95
"""The part of a model's window that `model_context_window` states."""

KEPT_USER_BYTES = 80_000
"""How much of what persons wrote an old compaction keeps, newest first: 20,000 tokens of four bytes."""


class Reader:
    """What was read so far: the steps of the session, and what is told of the whole file."""

    def __init__(self) -> None:
        self.is_codex = False
        self._is_old = False
        self._header: Payload | None = None
        self._model: str | None = None
        self._window: int | None = None
        self._steps: list[Step] = []
        self._requests: list[Usage] = []
        self._last_total: Counts | None = None
        self._compactions: list[Compaction] = []
        self._items = Items()
        self._weighed: list[tuple[Part, ...]] = []
        self._copied_bytes = 0
        self._event_bytes = 0
        self._strangers = Strangers()
        self._unread: list[int] = []

    def take(self, record: Record[Line]) -> None:
        """Read one record."""
        line = record.value
        if line is None:
            self._unread.append(record.index)
        elif line.payload is not None and line.type in ENVELOPES:
            self.is_codex = True
            self._take_payload(line.type, line.payload, record)
        elif line.type and self._is_old:
            self._take_item(line, Place(record.index), record.line)
        elif len(line.instructions) and not line.type and not self.is_codex:
            self.is_codex = self._is_old = True
            self._header = line
        elif line.record_type == "state":
            self.is_codex = True
        else:
            self._strangers.note(f"type {line.type}" if line.type else "no type", record.line)

    def _take_payload(self, kind: str, payload: Payload, record: Record[Line]) -> None:
        place = Place(record.index, ("payload",))
        match kind:
            case "response_item":
                self._take_item(payload, place, record.line)
            case "event_msg":
                self._take_event(payload, place, record)
            case "turn_context":
                self._model = string(payload.model) or self._model
                self._steps.append(Boundary(False))
            case "session_meta":
                self._header = self._header or payload
            case "compacted":
                self._take_compaction(payload, record)
            case "inter_agent_communication":
                self._add(Said(record.index, record.line, "user", letter(payload, place), starts_turn=True))

    # items

    def _take_item(self, item: Payload, place: Place, line: int) -> None:
        if item.type in UNSENT_ITEMS:
            return
        said = self._items.read(item, place, line)
        if said is None:
            self._strangers.note(f"item type {item.type}", line)
        elif said.role == "system":
            self._weighed.append(said.parts)
        else:
            self._add(said)

    def _add(self, said: Said) -> None:
        self._weighed.append(said.parts)
        self._steps.append(said)

    # events and compactions

    def _take_event(self, event: Payload, place: Place, record: Record[Line]) -> None:
        self._copied_bytes += self._items.note_copies(event, place)
        self._event_bytes += record.size_bytes
        match event.type:
            case "token_count":
                self._take_usage(event.info, record.line)
            case "task_started" | "turn_started":
                self._note_window(event.model_context_window)
                self._steps.append(Boundary(True))
            case "thread_rolled_back":
                turns = event.num_turns
                self._steps.append(RolledBack(turns if isinstance(turns, int) and turns > 0 else 0))

    def _note_window(self, tokens: Any) -> None:
        if isinstance(tokens, int) and tokens > 0:
            self._window = tokens

    def _take_usage(self, info: Info | Odd, line: int) -> None:
        if not isinstance(info, Info):
            return
        self._note_window(info.model_context_window)
        repeats = info.total_token_usage is not None and info.total_token_usage == self._last_total
        self._last_total = info.total_token_usage or self._last_total
        counts = info.last_token_usage
        if repeats or counts is None:
            return
        if counts.input_tokens <= 0 or self._is_impossible(counts):
            self._steps.append(Boundary(False))
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
        self._steps.append(Closed(usage))

    def _is_impossible(self, counts: Counts) -> bool:
        taken = counts.input_tokens + counts.output_tokens
        return self._window is not None and taken * EFFECTIVE_WINDOW_PERCENT > self._window * 100

    def _take_compaction(self, payload: Payload, record: Record[Line]) -> None:
        has_history = is_list(payload.replacement_history) or is_list(payload.replacement_history_entries)
        before = self._requests[-1].total_tokens if self._requests else None
        self._compactions.append(Compaction(record.line, before))
        self._steps.append(Compacted(record.index, record.line, has_history))

    # the whole

    def transcript(self, document: Document) -> Transcript:
        """Return the session. The document was walked to its end."""
        findings: list[Finding] = []
        for index in self._unread:
            self._strangers.note("another shape", document.line(index))
        context, floor_record = self._replayed(document, findings)
        messages = mark_leading(joined(context), context)
        header = self._header or Payload()
        return Transcript(
            format="codex",
            messages=messages,
            session_id=string(header.id) or None,
            agent=f"Codex {version}" if (version := string(header.cli_version)) else "Codex",
            model=self._model,
            cwd=string(header.cwd) or None,
            parent_session_id=_parent(header),
            anchor_floor=sum(1 for message in messages if message.records[0] <= floor_record),
            recorded_window_tokens=self._window,
            peak_tokens=max((usage.total_tokens for usage in self._requests), default=0),
            requests=tuple(self._requests),
            compactions=tuple(self._compactions),
            outside=tuple(self._outside(messages, floor_record)),
            bytes_by_kind=self._bytes(document),
            findings=sort([*findings, *self._findings(messages)]),
        )

    def _replayed(self, document: Document, findings: list[Finding]) -> tuple[Context, int]:
        """Return the effective context, and the record of the compaction that it starts from (-1 for none)."""
        base = surviving_base(self._steps)
        context: Context = []
        floor = -1
        if base is not None:
            compacted = self._steps[base]
            assert isinstance(compacted, Compacted)
            floor = compacted.record
            context = list(self._history(document, compacted, base))
        for index in range(0 if base is None else base + 1, len(self._steps)):
            step = self._steps[index]
            match step:
                case RolledBack(turns=turns):
                    context = without_turns(context, turns)
                case Compacted(has_history=False):
                    context, floor = self._old_history(document, step, context, findings), step.record
                case Said() | Closed() | Boundary():
                    context.append(step)
        return context, floor

    def _history(self, document: Document, compacted: Compacted, base: int) -> Iterator[Said]:
        """Yield the items of a replacement history."""
        holder = lenient(document.raw_value(Place(compacted.record, ("payload",))))
        message = text(holder.message)
        if is_list(holder.replacement_history):
            place = Place(compacted.record, ("payload", "replacement_history"))
            for index, raw in enumerate(elements(bytes(holder.replacement_history))):
                yield from self._kept(raw, place.at(index), compacted.line, message)
            return
        known = {step.key: step for step in self._steps[:base] if isinstance(step, Said) and step.key}
        place = Place(compacted.record, ("payload", "replacement_history_entries"))
        for index, raw in enumerate(elements(bytes(holder.replacement_history_entries))):
            yield from self._entry(raw, place.at(index), compacted.line, known, message)

    def _kept(self, raw: bytes, place: Place, line: int, message: str) -> Iterator[Said]:
        try:
            item = PAYLOAD.decode(raw)
        except msgspec.DecodeError:
            self._strangers.note("another shape in a replacement history", line)
            return
        if item.type in UNSENT_ITEMS:
            return
        said = self._items.read(item, place, line)
        if said is None:
            self._strangers.note(f"item type {item.type}", line)
        elif said.role != "system":
            self._weighed.append(said.parts)
            if said.role == "user":
                said.is_summary = said.is_handoff or says(item, message)
            yield said

    def _entry(self, raw: bytes, place: Place, line: int, known: Mapping[str, Said], message: str) -> Iterator[Said]:
        try:
            entry = ENTRY.decode(raw)
        except msgspec.DecodeError:
            self._strangers.note("another shape in a replacement history", line)
            return
        if entry.item is not None:
            start, end = span(raw, ("item",))
            yield from self._kept(raw[start:end], place.at("item"), line, message)
            return
        said = known.get(string(entry.item_id))
        if said is None:
            self._strangers.note("reference to an item that is not in the file", line)
        else:
            yield bound(said) if entry.type != "reference" else said

    def _old_history(
        self, document: Document, compacted: Compacted, context: Context, findings: list[Finding]
    ) -> Context:
        """Return what an old compaction leaves: the newest of what persons wrote, then its message."""
        kept: list[Said] = []
        room = KEPT_USER_BYTES
        for step in reversed(context):
            if isinstance(step, Said) and step.starts_turn and not step.is_handoff and room > 0:
                kept.insert(0, step)
                room -= sum(part.size_bytes for part in step.parts if isinstance(part, Text))
        place = Place(compacted.record, ("payload", "message"))
        told = text(lenient(document.raw_value(Place(compacted.record, ("payload",)))).message)
        if not told.strip():
            findings.append(Finding(compacted.line, "blank-summary", "a compaction kept no summary"))
        if told:
            parts = (Text(place, utf8_size(told)),)
            said = Said(compacted.record, compacted.line, "user", parts, starts_turn=True)
            said.is_summary, said.is_handoff = True, told.startswith(SUMMARY_START)
            kept.append(said)
            self._weighed.append(said.parts)
        return [*kept]

    def _outside(self, messages: tuple[Message, ...], floor_record: int) -> Iterator[OutsideResult]:
        """Yield the outputs of the file that are not in context; none of a replacement history is one of them."""
        inside = {message.result.place for message in messages if message.result is not None}
        for said in (step for step in self._steps if isinstance(step, Said)):
            result = said.parts[0] if said.parts else None
            if isinstance(result, ToolResult) and result.place not in inside:
                why = why_outside(said.record, floor_record)
                yield OutsideResult(said.line, result.name, result.size_bytes, why)

    def _bytes(self, document: Document) -> dict[str, int]:
        tally = part_bytes(chain.from_iterable(self._weighed))
        tally["copies"] = self._copied_bytes
        tally["progress"] = self._event_bytes - self._copied_bytes
        return file_bytes(tally, document.size_bytes)

    def _findings(self, messages: tuple[Message, ...]) -> list[Finding]:
        return [
            *pairing_findings(messages, order_matters=False),
            *self._strangers.findings(not_read),
            *lacks(messages, self._requests, "no token count of any request"),
        ]


def _parent(header: Payload) -> str | None:
    """Return the thread that started this one, where this is a subagent's."""
    told = string(header.parent_thread_id)
    try:
        return told or string(header.source["subagent"]["thread_spawn"]["parent_thread_id"]) or None
    except (KeyError, TypeError):
        return None
