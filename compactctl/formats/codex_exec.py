"""What `codex exec --json` prints: events of a thread, a record a line.

What they are like (printed by codex 0.171.0 against a mock of the API; the types of items as its source,
`exec/src/exec_events.rs`, lists them) and which of it decides here:

- `thread.started` names the thread. The prompt is not printed, nor is the model, its window, or a compaction.
- An item is what the agent did, not what the provider was sent: a command and its output are one item, which is read
  as a call and its result under the item's id and type. Where it was begun (`item.started`) is where the call stands;
  the newest record of an item says what it came to. Items that no result parts make one message.
- Ids count up from `item_0` and start again with each run: `turn.started` closes what was open.
- `turn.completed` has the thread's totals, over all its requests and all its turns, those of earlier runs included:
  never an anchor, so nothing tells how full the context is, and all is estimated.
- A thread's id that comes again is the same thread, resumed; another one is a session of its own.
- `error`, `turn.failed` and items of type `error` tell people what went wrong: nothing of them is sent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Place, Record
from compactctl.findings import Finding, sort
from compactctl.formats.blocks import Content, argument_bytes, read_result
from compactctl.formats.logs import Log
from compactctl.formats.strangers import Strangers
from compactctl.formats.whole import file_bytes, lacks
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
    context_bytes,
    utf8_size,
)
from compactctl.turns import pairing_findings

AGENT = "Codex"

ITEM_EVENTS = ("item.started", "item.updated", "item.completed")

UNSENT = frozenset(("error", "turn.completed", "turn.failed", "item.plan.delta", "request_user_input"))
"""Events that are known and hold nothing of the conversation."""

SUMS_ONLY = "turn.completed has totals over all requests of the thread; none says how full the context is"


class _Result(Struct):
    content: Content = None


class _Error(Struct):
    message: str = ""


class _Item(Struct):
    id: Content = None
    type: Content = None
    text: Content = None
    command: Raw = Raw()
    aggregated_output: Content = None
    exit_code: Content = None
    status: Content = None
    changes: Raw = Raw()
    server: Content = None
    tool: Content = None
    arguments: Raw = Raw()
    result: Raw = Raw()
    error: Raw = Raw()
    query: Raw = Raw()
    items: Raw = Raw()
    prompt: Raw = Raw()


class _Event(Struct):
    type: Content = None
    thread_id: Content = None
    item: Raw = Raw()


_EVENT = msgspec.json.Decoder(_Event)
_ITEM = msgspec.json.Decoder(_Item)
_RESULT = msgspec.json.Decoder(_Result)
_ERROR = msgspec.json.Decoder(_Error)

_ARGUMENTS = {"command_execution": "command", "file_change": "changes", "mcp_tool_call": "arguments"}
_ARGUMENTS |= {"collab_tool_call": "prompt", "web_search": "query"}
"""Types of items that are a call and its result, and the field that has the arguments."""


class CodexExec(Log, frozen=True):
    """The format of what `codex exec --json` prints."""

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a decoded record is certainly an event of `codex exec --json`."""
        kind = record.get("type")
        if kind == "thread.started":
            return isinstance(record.get("thread_id"), str)
        if kind in ITEM_EVENTS:
            return isinstance(record.get("item"), dict)
        return kind in ("turn.started", "turn.completed", "turn.failed") and "agentId" not in record

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the thread that the log is about, or each of several; [] where there is none."""
        threads: dict[str, _Thread] = {}
        sizes: dict[str, int] = {}
        strangers = Strangers()
        newest = ""
        for record in document.records(_EVENT):
            event = record.value
            kind = string(event.type) if event is not None else ""
            if kind == "thread.started" and event is not None:
                newest = string(event.thread_id)
            elif event is None or not (kind in ITEM_EVENTS or kind in UNSENT or kind == "turn.started"):
                strangers.note(f"event of type {kind}" if kind else "record without a type", record.line)
                continue
            thread = threads.setdefault(newest, _Thread(newest))
            sizes[newest] = sizes.get(newest, 0) + record.size_bytes
            if kind in ("thread.started", "turn.started"):
                thread.close()
            elif kind in ITEM_EVENTS:
                unknown = thread.add(record, event.item)
                if unknown:
                    strangers.note(f"item of type {unknown}", record.line)
        if threads:
            first = next(iter(threads))
            sizes[first] += document.size_bytes - sum(sizes.values())
        several = len(threads) > 1
        return [
            thread.transcript(sizes[name], index if several else None, [] if index else strangers.findings())
            for index, (name, thread) in enumerate(threads.items())
        ]


FORMAT = CodexExec("codex-exec", "codex exec --json", ".codex/sessions")


class _Exchange(Struct):
    """One message of the agent and the results that came of it."""

    parts: list[Part]
    records: list[int]
    line: int
    answers: list[tuple[ToolResult, int, int]] = []
    """Each with its record and its line."""


class _Thread:
    """One thread while its events are read."""

    def __init__(self, thread_id: str) -> None:
        self._id = thread_id or None
        self._exchanges: list[_Exchange] = []
        self._open: dict[str, _Exchange] = {}
        """Items that were begun, and where their calls stand."""
        self._last: _Exchange | None = None
        """The message that more may still be said in."""

    def close(self) -> None:
        """Begin a new run or turn: ids of items mean others from here on."""
        self._open, self._last = {}, None

    def add(self, record: Record[_Event], raw: Raw) -> str:
        """Take an event of an item in; return its type where that is unknown, else ""."""
        try:
            item = _ITEM.decode(raw)
        except msgspec.DecodeError:
            return "no known shape"
        kind, place = string(item.type), Place(record.index, ("item",))
        is_end = record.value is not None and record.value.type == "item.completed"
        if kind in _ARGUMENTS:
            self._call(record, item, kind, place, is_end=is_end)
        elif kind == "todo_list":
            if not is_end:  # at the end of a turn the list comes once more, as it was
                self._say(record, Opaque(place.at("items"), kind, len(item.items)))
        elif kind in ("agent_message", "plan", "reasoning"):
            text, where = string(item.text), place.at("text")
            if is_end and text:
                size = utf8_size(text)
                self._say(record, Reasoning(where, size) if kind == "reasoning" else Text(where, size))
        elif kind != "error":
            return kind or "nothing"
        return ""

    def _say(self, record: Record[_Event], part: Part) -> _Exchange:
        if self._last is None or self._last.answers:
            self._last = _Exchange([], [], record.line)
            self._exchanges.append(self._last)
        self._last.parts.append(part)
        self._last.records.append(record.index)
        return self._last

    def _call(self, record: Record[_Event], item: _Item, kind: str, place: Place, *, is_end: bool) -> None:
        call_id = string(item.id)
        name = f"{string(item.server)}.{string(item.tool)}" if kind == "mcp_tool_call" else string(item.tool) or kind
        exchange = self._open.get(call_id)
        if exchange is None:
            field = _ARGUMENTS[kind]
            arguments: Raw = getattr(item, field)
            where = place.at(field) if len(arguments) else place
            size = argument_bytes(arguments) if len(arguments) else 0
            exchange = self._open[call_id] = self._say(record, ToolCall(where, call_id, name, size))
        if is_end:
            exchange.answers.append((_answer(item, place, call_id, name), record.index, record.line))
            del self._open[call_id]

    def transcript(self, size_bytes: int, index: int | None, strangers: list[Finding]) -> Transcript:
        """Return what was read; `size_bytes` are the file's bytes that are this thread's."""
        messages = tuple(message for exchange in self._exchanges for message in _messages(exchange))
        return Transcript(
            format=FORMAT.name,
            messages=messages,
            session_id=self._id,
            agent=AGENT,
            index=index,
            bytes_by_kind=file_bytes(context_bytes(messages), size_bytes),
            findings=sort(
                [*strangers, *pairing_findings(messages, order_matters=False), *lacks(messages, (), SUMS_ONLY)]
            ),
        )


def _answer(item: _Item, place: Place, call_id: str, name: str) -> ToolResult:
    is_error = item.status in ("failed", "declined")
    if isinstance(item.aggregated_output, str):
        return read_result(item.aggregated_output, place.at("aggregated_output"), call_id, name, is_error)
    try:
        content = _RESULT.decode(item.result).content
        return read_result(content, place.at("result", "content"), call_id, name, is_error)
    except msgspec.DecodeError:
        pass
    try:
        message = _ERROR.decode(item.error).message
        return read_result(message, place.at("error", "message"), call_id, name, is_error)
    except msgspec.DecodeError:
        return read_result(None, place, call_id, name, is_error)


def _messages(exchange: _Exchange) -> list[Message]:
    said = Message("assistant", tuple(exchange.parts), tuple(exchange.records), exchange.line)
    return [said, *(Message("tool", (result,), (record,), line) for result, record, line in exchange.answers)]
