"""What `claude -p` prints: `--output-format stream-json` a record a line, `json` one of them or all in an array.

The array is what the public GitHub action saves of a run, too, spread over lines. What the records are like (printed
by Claude Code 2.1.332 against a mock of the API) and which of it decides here:

- `system`/`init` names session, folder, version and model. The prompt is not printed, unless input is replayed.
- A model with the long window has a mark (`[1m]`) in `init` and in `modelUsage`, and none in its answers, where it is
  called as the API calls it.
- An answer is printed a block a record, all with one `message.id`, and each with the usage that its stream began
  with: the input is right, the output a placeholder (1, where 40 were given). The true count comes in a `message_delta`
  where partial messages are printed; a `stop_reason` says that a count is final.
- So the usage of an answer with a placeholder stands, with no output, on the message before it: there the figure is
  exact, and the answer is estimated with what follows. Before the first answer there is none to stand on.
- `result` holds totals over all requests of the run: no anchor, unless there was one request. `modelUsage` has the
  window of each model, also of a small one that the client asked for titles.
- `stream_event` is a piece of what comes whole: never counted twice. `tool_use_result` is the display's copy.
- What a subagent says names its call (`parent_tool_use_id`) and is not in the context.
- `compact_boundary`: the context begins anew, with the summary that follows (`isSynthetic`), and what it kept
  (`preserved_messages`), if all of that is in the log.
- A run that resumes a session prints what is new: the context here is that alone, but recorded usage knows the rest.
- `<synthetic>` answers with an `error` were made by the client and not sent; nor was the output of its own commands.
- Several sessions may be in one file, as where runs were appended: each is one of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Place, Record
from compactctl.findings import Finding, sort
from compactctl.formats.blocks import Content, read_content
from compactctl.formats.claude_code.lines import SYNTHETIC_MODEL
from compactctl.formats.logs import Log
from compactctl.formats.strangers import Strangers
from compactctl.formats.whole import file_bytes, lacks
from compactctl.json_text import string
from compactctl.model import (
    Compaction,
    Message,
    OutsideResult,
    Part,
    SideRun,
    Text,
    ToolCall,
    ToolResult,
    Transcript,
    Usage,
    part_bytes,
    token_count,
    utf8_size,
)
from compactctl.turns import pairing_findings
from compactctl.windows import LONG_CONTEXT_MARK

WINDOW_TOKENS = 200_000

COMMAND_OUTPUT = ("<local-command-stdout>", "<local-command-stderr>")
"""How a user record begins that shows what a command of the client's own printed."""

UNSENT = frozenset(
    (
        "auth_status",
        "control_cancel_request",
        "control_request",
        "control_response",
        "keep_alive",
        "prompt_suggestion",
        "rate_limit_event",
        "tool_progress",
        "tool_use_summary",
    )
)
"""Types of record that are known and hold nothing of the conversation."""

TALK = ("user", "assistant")


class _Line(Struct):
    type: Content = None
    subtype: Content = None
    session_id: Content = None
    parent_tool_use_id: Content = None
    uuid: Content = None
    message: Raw = Raw()
    error: Content = None
    event: Raw = Raw()
    tool_use_result: Raw = Raw()
    isSynthetic: Content = None
    compact_metadata: Raw = Raw()
    cwd: Content = None
    model: Content = None
    claude_code_version: Content = None
    result: Content = None
    num_turns: Content = None
    usage: Raw = Raw()
    modelUsage: Raw = Raw()


class _Message(Struct):
    id: Content = None
    model: Content = None
    content: Content = None
    stop_reason: Content = None
    usage: Raw = Raw()


class _Event(Struct):
    type: Content = None
    message: _Message | None = None
    usage: Raw = Raw()


class _Counts(Struct):
    input_tokens: int | float | None = 0
    cache_creation_input_tokens: int | float | None = 0
    cache_read_input_tokens: int | float | None = 0
    output_tokens: int | float | None = 0


class _Preserved(Struct):
    anchor_uuid: str | None = None
    uuids: list[str] = []


class _Boundary(Struct):
    trigger: str | None = None
    pre_tokens: int | float | None = None
    preserved_messages: _Preserved | None = None


class _ModelUsage(Struct):
    inputTokens: int | float | None = None
    cacheReadInputTokens: int | float | None = None
    cacheCreationInputTokens: int | float | None = None
    contextWindow: int | float | None = None

    @property
    def taken(self) -> int:
        return sum(map(token_count, (self.inputTokens, self.cacheReadInputTokens, self.cacheCreationInputTokens)))


_LINE = msgspec.json.Decoder(_Line)
_MESSAGE = msgspec.json.Decoder(_Message)
_EVENT = msgspec.json.Decoder(_Event)
_COUNTS = msgspec.json.Decoder(_Counts)
_BOUNDARY = msgspec.json.Decoder(_Boundary)
_MODELS = msgspec.json.Decoder(dict[str, _ModelUsage])


class ClaudeStream(Log, frozen=True):
    """The format of what `claude -p` prints."""

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a decoded record is certainly one that `claude -p` printed."""
        if "session_id" not in record or record.keys() & {"sessionId", "parentUuid"}:
            return False
        match record.get("type"):
            case "user" | "assistant":
                return isinstance(record.get("message"), dict)
            case "system" | "result":
                return isinstance(record.get("subtype"), str)
            case "stream_event":
                return isinstance(record.get("event"), dict)
        return False

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the session that the log is about, or each of several; [] where there is none."""
        in_array = document.split_array()
        runs: dict[str, _Run] = {}
        strangers = Strangers()
        sizes: dict[str, int] = {}
        newest = ""
        for record in document.records(_LINE):
            line = record.value
            kind = string(line.type) if line is not None else ""
            if line is None or not _is_known(kind, line):
                strangers.note(f"of type {kind}" if kind else "record without a type", record.line)
                continue
            newest = string(line.session_id) or newest
            if in_array and len(line.message):  # the blanks of its layout were never sent
                line.message = Raw(msgspec.json.format(bytes(line.message), indent=-1))
            runs.setdefault(newest, _Run(newest)).add(record, line, kind)
            sizes[newest] = sizes.get(newest, 0) + record.size_bytes
        if runs:
            first = next(iter(runs))
            sizes[first] += document.size_bytes - sum(sizes.values())
        several = len(runs) > 1
        return [
            run.transcript(sizes[name], index if several else None, [] if index else strangers.findings())
            for index, (name, run) in enumerate(runs.items())
        ]


FORMAT = ClaudeStream("claude-stream", "claude -p --output-format stream-json", ".claude/projects", is_anthropic=True)


def _is_known(kind: str, line: _Line) -> bool:
    if kind in TALK:
        return len(line.message) > 0
    return kind in UNSENT or kind == "stream_event" or (kind in ("system", "result") and line.subtype is not None)


class _Draft(Struct):
    """A message while its pieces come."""

    role: str
    line: int
    parts: list[Part]
    records: list[int]
    key: str = ""
    uuids: list[str] = []
    is_summary: bool = False
    usage: Usage | None = None


class _Count(Struct):
    """What is known of a request's usage."""

    line: int
    model: str | None
    taken: int = 0
    cache_read: int = 0
    cache_write: int = 0
    given: int = 0
    is_final: bool = False

    def usage(self, key: str) -> Usage:
        return Usage(self.line, self.taken, self.given, self.cache_read, self.cache_write, self.model, key or None)


class _Run:
    """One session while its records are read."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id or None
        self._cwd: str | None = None
        self._version = ""
        self._model: str | None = None
        self._long: set[str] = set()
        """The models that were named with the mark of the long window, here without it."""
        self._windows: dict[str, int] = {}
        self._context: list[_Draft] = []
        self._sides: dict[str, list[_Draft]] = {}
        self._answers: dict[str, _Draft] = {}
        self._counts: dict[str, _Count] = {}
        self._side_keys: set[str] = set()
        self._streaming: dict[str, str] = {}
        """By parent, the message whose events are coming."""
        self._kept: list[_Draft] = []
        self._kept_after = ""
        """What a compaction keeps, until the record it stands behind has come."""
        self._names: dict[str, str] = {}
        self._results: list[tuple[ToolResult, _Draft]] = []
        self._compactions: list[Compaction] = []
        self._parts: list[Part] = []
        self._copied_bytes = 0
        self._event_bytes = 0

    # one record ------------------------------------------------------------------------------------

    def add(self, record: Record[_Line], line: _Line, kind: str) -> None:
        """Take one record of a known kind in."""
        if kind in TALK:
            self._talk(record, line, kind)
        elif kind == "stream_event":
            self._event_bytes += record.size_bytes
            self._event(line, record.line)
        elif kind == "result":
            self._totals(line, record)
        elif line.subtype == "init":
            self._cwd = self._cwd or string(line.cwd) or None
            self._version = string(line.claude_code_version) or self._version
            self._note_names([string(line.model)])
            self._model = self._model or string(line.model) or None
        elif line.subtype == "compact_boundary":
            self._compact(record, line)

    def _talk(self, record: Record[_Line], line: _Line, kind: str) -> None:
        self._copied_bytes += len(line.tool_use_result)
        try:
            message = _MESSAGE.decode(line.message)
        except msgspec.DecodeError:
            message = _Message()
        place = Place(record.index, ("message", "content"))
        parts = read_content(message.content, place, self._names)
        self._parts += parts
        self._names.update({part.call_id: part.name for part in parts if isinstance(part, ToolCall)})
        parent = string(line.parent_tool_use_id)
        into = self._sides.setdefault(parent, []) if parent else self._context
        if kind == "assistant":
            self._answer(record, line, message, parts, into)
        elif not string(message.content).startswith(COMMAND_OUTPUT):
            self._said(record, line, parts, into)
        if not parent and self._kept and (not self._kept_after or string(line.uuid) == self._kept_after):
            self._context += self._kept
            self._kept = []

    def _answer(
        self, record: Record[_Line], line: _Line, message: _Message, parts: list[Part], into: list[_Draft]
    ) -> None:
        model = string(message.model)
        if model == SYNTHETIC_MODEL and line.error is not None:
            return
        key = string(message.id) or string(line.uuid) or f"#{record.index}"
        draft = self._answers.get(key)
        if draft is None:
            draft = self._answers[key] = _Draft("assistant", record.line, [], [], key)
            into.append(draft)
        draft.parts += parts
        draft.records.append(record.index)
        draft.uuids = [*draft.uuids, string(line.uuid)]
        if model and model != SYNTHETIC_MODEL:
            if into is self._context:
                self._model = model
            else:
                self._side_keys.add(key)
            self._count(key, record.line, model, message.usage, is_final=bool(string(message.stop_reason)))

    def _said(self, record: Record[_Line], line: _Line, parts: list[Part], into: list[_Draft]) -> None:
        """Add what a user record holds: each result is a message of its own, and so is what stands between them."""
        rest: _Draft | None = None
        for part in parts:
            if isinstance(part, ToolResult):
                rest = None
                draft = _Draft("user", record.line, [part], [record.index], uuids=[string(line.uuid)])
                into.append(draft)
                self._results.append((part, draft))
            elif rest is None:
                rest = _Draft("user", record.line, [part], [record.index], uuids=[string(line.uuid)])
                is_first_since = bool(self._compactions) and not any(draft.is_summary for draft in self._context)
                rest.is_summary = into is self._context and line.isSynthetic is True and is_first_since
                into.append(rest)
            else:
                rest.parts.append(part)

    # usage -----------------------------------------------------------------------------------------

    def _count(self, key: str, line: int, model: str, raw: Raw, *, is_final: bool) -> None:
        counts = _counts(raw)
        if counts is None:
            return
        read, written = token_count(counts.cache_read_input_tokens), token_count(counts.cache_creation_input_tokens)
        taken, given = token_count(counts.input_tokens) + read + written, token_count(counts.output_tokens)
        known = self._counts.get(key)
        if taken and known is None:
            self._counts[key] = _Count(line, model, taken, read, written, given, is_final)
        elif known is not None and not known.is_final:
            known.given, known.is_final = max(known.given, given), is_final
            if taken:
                known.line, known.taken, known.cache_read, known.cache_write = line, taken, read, written

    def _event(self, line: _Line, number: int) -> None:
        """Take from the pieces of an answer what no whole record tells: how many tokens it came to."""
        try:
            event = _EVENT.decode(line.event)
        except msgspec.DecodeError:
            return
        parent = string(line.parent_tool_use_id)
        if event.type == "message_start" and event.message is not None:
            self._streaming[parent] = key = string(event.message.id)
            self._count(key, number, string(event.message.model), event.message.usage, is_final=False)
        elif event.type == "message_delta" and (known := self._counts.get(self._streaming.get(parent, ""))):
            counts = _counts(event.usage)
            if counts is not None:
                known.given, known.is_final = max(known.given, token_count(counts.output_tokens)), True

    def _totals(self, line: _Line, record: Record[_Line]) -> None:
        """Take the windows; and the usage, where it is that of one request and so no sum."""
        try:
            found = _MODELS.decode(line.modelUsage)
        except msgspec.DecodeError:
            found = {}
        self._note_names(found)
        self._windows.update({name: token_count(usage.contextWindow) for name, usage in found.items()})
        main = [key for key in self._counts if key not in self._side_keys]
        if len(self._counts) == len(main) == 1 and line.num_turns == 1:
            counts = _counts(line.usage)
            known = self._counts[main[0]]
            if counts is not None and not known.is_final and token_count(counts.input_tokens) <= known.taken:
                known.given, known.is_final = max(known.given, token_count(counts.output_tokens)), True
        elif not self._context and not self._compactions and string(line.result):
            self._lone_result(line, record, max(found, key=lambda name: found[name].taken, default=""))

    def _lone_result(self, line: _Line, record: Record[_Line], model: str) -> None:
        """Take the answer from the record that `--output-format json` prints alone."""
        part = Text(Place(record.index, ("result",)), utf8_size(string(line.result)))
        key = f"#{record.index}"
        self._parts.append(part)
        self._model = self._model or model or None
        self._answers[key] = _Draft("assistant", record.line, [part], [record.index], key)
        self._context.append(self._answers[key])
        if line.num_turns == 1:
            self._count(key, record.line, model, line.usage, is_final=True)

    # compaction ------------------------------------------------------------------------------------

    def _compact(self, record: Record[_Line], line: _Line) -> None:
        try:
            told = _BOUNDARY.decode(line.compact_metadata)
        except msgspec.DecodeError:
            told = _Boundary()
        self._compactions.append(Compaction(record.line, token_count(told.pre_tokens) or None, told.trigger))
        preserved = told.preserved_messages or _Preserved()
        wanted = set(preserved.uuids)
        self._kept = [draft for draft in self._context if wanted.intersection(draft.uuids)]
        if wanted - {uuid for draft in self._kept for uuid in draft.uuids}:
            self._kept = []
        for draft in self._kept:
            self._counts.pop(draft.key, None)
        self._kept_after = preserved.anchor_uuid or ""
        self._context, self._answers = [], {}

    # the transcript --------------------------------------------------------------------------------

    def transcript(self, size_bytes: int, index: int | None, strangers: list[Finding]) -> Transcript:
        """Return what was read; `size_bytes` are the file's bytes that are this session's."""
        context = [draft for draft in [*self._context, *self._kept] if draft.parts]
        self._place_usage(context)
        messages = tuple(_message(draft) for draft in context)
        usages = {key: count.usage(key) for key, count in self._counts.items()}
        requests = tuple(usage for key, usage in usages.items() if key not in self._side_keys)
        model = self._name()
        peaks = [usage.input_tokens for usage in requests]
        peaks += [compaction.tokens_before or 0 for compaction in self._compactions]
        return Transcript(
            format=FORMAT.name,
            messages=messages,
            session_id=self._session_id,
            agent=f"Claude Code {self._version}" if self._version else "Claude Code",
            model=model,
            cwd=self._cwd,
            index=index,
            recorded_window_tokens=self._window(),
            default_window_tokens=WINDOW_TOKENS,
            peak_tokens=max(peaks, default=0),
            requests=requests,
            compactions=tuple(self._compactions),
            outside=tuple(self._outside(context)),
            side_runs=tuple(_side_run(name, drafts, usages) for name, drafts in self._sides.items()),
            bytes_by_kind=self._bytes(size_bytes),
            findings=sort([*strangers, *_findings(messages, requests)]),
        )

    def _place_usage(self, context: list[_Draft]) -> None:
        """Put each usage on the answer it counts, or on the message before where nobody told what the answer took."""
        for index, draft in enumerate(context):
            count = self._counts.get(draft.key) if draft.role == "assistant" else None
            if count is None or not count.taken:
                continue
            usage = count.usage(draft.key)
            if count.is_final:
                draft.usage = usage
            elif index:
                context[index - 1].usage = msgspec.structs.replace(usage, output_tokens=0)

    def _window(self) -> int | None:
        """Return the window that the result names for the model; of a single model whatever it is called."""
        if len(self._windows) == 1:
            return next(iter(self._windows.values())) or None
        return self._windows.get(self._name() or "") or None

    def _note_names(self, models: Iterable[str]) -> None:
        self._long |= {name.removesuffix(LONG_CONTEXT_MARK) for name in models if name.endswith(LONG_CONTEXT_MARK)}

    def _name(self) -> str | None:
        """Return the model, with the mark of the long window where it has that."""
        return f"{self._model}{LONG_CONTEXT_MARK}" if self._model in self._long else self._model

    def _outside(self, context: list[_Draft]) -> Iterator[OutsideResult]:
        inside = set(map(id, context))
        side = {id(draft) for drafts in self._sides.values() for draft in drafts}
        for result, draft in self._results:
            if id(draft) not in inside:
                why = "a subagent's" if id(draft) in side else "before the newest compaction"
                yield OutsideResult(draft.line, result.name, result.size_bytes, why)

    def _bytes(self, size_bytes: int) -> dict[str, int]:
        tally = {**part_bytes(self._parts), "copies": self._copied_bytes, "progress": self._event_bytes}
        return file_bytes(tally, size_bytes)


def _counts(raw: Raw) -> _Counts | None:
    try:
        return _COUNTS.decode(raw)
    except msgspec.DecodeError:
        return None


def _message(draft: _Draft) -> Message:
    return Message(
        draft.role,
        tuple(draft.parts),
        tuple(draft.records),
        draft.line,
        draft.key,
        draft.usage,
        is_summary=draft.is_summary,
    )


def _side_run(name: str, drafts: list[_Draft], usages: Mapping[str, Usage]) -> SideRun:
    found = [usages[draft.key] for draft in drafts if draft.key in usages]
    return SideRun(name, sum(bool(draft.parts) for draft in drafts), found[-1] if found else None)


def _findings(messages: Sequence[Message], requests: Sequence[Usage]) -> list[Finding]:
    lacking = lacks(messages, requests, "no usage was recorded", empty="no message in its context")
    return [*pairing_findings(messages, order_matters=False), *lacking]
