"""pi sessions: a header line, then entries that form a tree by `id` and `parentId`.

Versions: 1 is a line without ids (a compaction says `firstKeptEntryIndex`, counting the header); 2 is the tree;
3 calls the role `hookMessage` `custom`. pi rewrites old files on load.

What is sent (earendil-works/pi, `session-manager` and `transform-messages`; seen again with pi 1.6.0 and 0.73.1,
see tests/clients): the path from the last entry in the file up by parent.

* A parent that is missing ends the path there: what stands above it is not sent.
* Of the newest `compaction` on the path its summary (as a user message), then the entries from `firstKeptEntryId`
  on, then what follows it. An older compaction among the kept ones is skipped (earendil-works/pi#8667). An unknown
  `firstKeptEntryId` keeps nothing.
* `branch_summary` and `custom_message` are user messages; so is `bashExecution`, unless it is excluded. `custom`,
  `label`, `session_info`, `model_change` and `thinking_level_change` say nothing to the model.
* `context_edit` (1.6) puts other content in an earlier entry's place, or takes it out; the last one counts.
* An answer whose `stopReason` is `error` or `aborted` is left out; results of its calls are not. Thinking of
  another model than the session's last is left out (0.73 sends it as text).
* `system` messages (1.6) are replayed into one in front: contents are appended, `sections` patched by name, tools
  added and removed. A compaction carries the replay of those before it.
* A call without result gets one of 18 characters; a result without call is sent as it is; messages stay in their
  order, also between a call and its result.

Usage is per answer: `input` beside `cacheRead` and `cacheWrite`; `totalTokens`, where there is one, is their sum
with `output`. Nothing before the newest compaction or context edit says what the context is. The window is not
recorded. pi 1.6 does not decide by recorded usage on resume; 0.73 compacts when the last answer's says so
(research: clients, finding A). `details` of a result is never sent (see `pi_slim`).

OpenClaw writes the same entries with pi's own code; its sessions are read the same way.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Edit, Place, Record, Replace
from compactctl.findings import Finding, sort
from compactctl.formats.blocks import Content, read_content, read_result
from compactctl.formats.edits import replace_text, slim_copies
from compactctl.formats.interface import CompactionEdits, Mend, Metas, NewSession, Resume, Spilled
from compactctl.formats.mending import mend_pairs
from compactctl.formats.pi_compact import compaction
from compactctl.formats.pi_fork import new_session
from compactctl.formats.pi_mend import CHAIN, mend_links, unknown_results
from compactctl.formats.pi_slim import OWN_TOOLS, slim_edits
from compactctl.json_text import read_json, write_json
from compactctl.model import (
    Compaction,
    Copy,
    Message,
    Opaque,
    Part,
    Reasoning,
    SeenResult,
    Text,
    ToolResult,
    Transcript,
    Usage,
    context_bytes,
    part_bytes,
    utf8_size,
)
from compactctl.plan import Cut
from compactctl.turns import pairing_findings

ENTRIES = frozenset(
    (
        "message",
        "custom_message",
        "branch_summary",
        "compaction",
        "context_edit",
        "custom",
        "label",
        "session_info",
        "model_change",
        "thinking_level_change",
    )
)
"""The entry types of all versions."""

OLD_MARKS = {"compaction": "firstKeptEntryIndex", "model_change": "modelId", "thinking_level_change": "thinkingLevel"}
"""What tells an entry of version 1, which has no parent."""

ROLES = frozenset(
    (
        "user",
        "assistant",
        "toolResult",
        "bashExecution",
        "custom",
        "hookMessage",
        "branchSummary",
        "compactionSummary",
        "system",
    )
)

UNFINISHED = ("error", "aborted")
"""Stop reasons of answers that are never sent again."""


# what a record holds -------------------------------------------------------------------------------


_Odd = list[Raw] | str | int | float | bool | None
"""What stands in an object's place in a damaged or strange file, so that its record is read all the same."""


class _Usage(Struct, gc=False):
    input: Any = None
    output: Any = None
    cacheRead: Any = None
    cacheWrite: Any = None
    totalTokens: Any = None


class _Message(Struct, gc=False):
    role: str = ""
    content: Content = None
    usage: _Usage | _Odd = None
    stopReason: Any = None
    provider: Any = None
    model: Any = None
    responseId: Any = None
    toolCallId: Any = None
    toolName: Any = None
    isError: Any = None
    details: Raw = Raw()
    command: Content = None
    output: Content = None
    excludeFromContext: Any = None
    summary: Content = None
    sections: Content = None
    toolsAdded: Content = None
    toolsRemoved: Content = None


class _Replacement(Struct, gc=False):
    content: Content = None


class _Line(Struct, gc=False):
    type: Any = None
    id: Any = None
    parentId: Any = msgspec.UNSET
    version: Any = None
    cwd: Any = None
    message: _Message | _Odd = None
    content: Content = None
    summary: Content = None
    firstKeptEntryId: Any = None
    firstKeptEntryIndex: Any = None
    tokensBefore: Any = None
    systemMessage: _Message | _Odd = None
    targetId: Any = None
    replacement: _Replacement | _Odd = None
    provider: Any = None
    modelId: Any = None


class _Named(Struct, gc=False):
    name: str = ""


_LINE = msgspec.json.Decoder(_Line)
_NAMED = msgspec.json.Decoder(_Named)


# what it comes to ----------------------------------------------------------------------------------


class _System(Struct, gc=False):
    """What one system message changes: texts to append, sections and tools by name (None where one goes)."""

    texts: tuple[Part, ...] = ()
    sections: tuple[tuple[str, Part | None], ...] = ()
    tools: tuple[tuple[str, Part | None], ...] = ()

    def parts(self) -> tuple[Part, ...]:
        """Return all that it says."""
        named = (part for _, part in (*self.sections, *self.tools))
        return (*self.texts, *(part for part in named if part is not None))


class _Node(Struct, gc=False):
    """An entry: where it is in the tree, and what it says."""

    id: str
    parent: str
    record: int
    line: int
    kind: str
    role: str = ""
    """Of the message that it adds; empty where it adds none."""
    parts: tuple[Part, ...] = ()
    usage: Usage | None = None
    model: tuple[str, str] | None = None
    """Provider and model that answered, or that were chosen."""
    system: _System | None = None
    first_kept: str = ""
    target: str = ""
    edited: ToolResult | None = None
    """What a context edit puts in a result's place; None where it takes its target out."""
    is_sent: bool = True
    is_blank: bool = False
    """A compaction without a summary."""

    def all_parts(self) -> tuple[Part, ...]:
        """Return what it says and what it changes of the system message."""
        return self.parts if self.system is None else (*self.parts, *self.system.parts())


class PiSession(Struct, frozen=True):
    """The format of pi's sessions."""

    name: str = "pi"
    is_anthropic: bool = False
    home: str = ".pi/agent/sessions"
    printed_by: str = ""
    in_place_risk: str = ""
    preview_style: str = "seed"

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether this is a header or an entry of a pi session."""
        kind = record.get("type")
        if "timestamp" not in record or not isinstance(kind, str):
            return False
        if kind == "session":
            return isinstance(record.get("id"), str) and isinstance(record.get("cwd"), str)
        if kind == "message":
            message = record.get("message")
            return isinstance(message, dict) and message.get("role") in ROLES
        return kind in ENTRIES and ("parentId" in record or OLD_MARKS.get(kind) in record)

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the session that pi would resume; nothing where no record is a pi session's."""
        reader = _Reader()
        for record in document.records(_LINE):
            reader.take(record)
        return [reader.transcript(document)] if reader.is_pi else []

    def spill_edits(self, document: Document, spilled: Sequence[Spilled]) -> list[Edit]:
        """Return the edits that put previews where results stand, and slim their details."""
        edits: list[Edit] = []
        for item in spilled:
            edits.append(replace_text(document, item.result.place, item.preview))
            edits += slim_copies(document, item)
        return edits

    def usage_edits(self, document: Document, transcript: Transcript, tokens_after: int) -> list[Edit]:
        """Return the edits that make the usage of the last answer on the path say what the context now is."""
        record = _deciding_record(document)
        if record is None:
            return []
        place = Place(record, ("message", "usage"))
        counts = document.value(place)
        given = min(_number(counts.get("output")), tokens_after)
        fresh = tokens_after - given
        wanted = {"input": fresh, "output": given, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens_after}
        return [
            Replace(place.at(name), write_json(value))
            for name, value in wanted.items()
            if name in counts and counts[name] != value
        ]

    def compaction(
        self,
        document: Document,
        transcript: Transcript,
        cut: Cut,
        metas: Metas,
        tokens_before: int,
        tokens_after: int,
        keep_history: bool,
    ) -> CompactionEdits:
        """Return the edits that add a compaction entry, and take out what it stands for."""
        deciding = _deciding_record(document)
        made = compaction(document, transcript, cut, metas.summary, tokens_before, deciding, keep_history)
        usage = self.usage_edits(document, transcript, tokens_after)
        return msgspec.structs.replace(made, edits=(*made.edits, *usage))

    def slim_edits(self, document: Document, limit_bytes: int, path: str) -> list[Edit]:
        """Return the edits that shorten the details of results, as far as only the display reads them."""
        return slim_edits(document, limit_bytes, path)

    def mend_links(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what links entries anew to the ones before them in the file."""
        return mend_links(document)

    def mend_pairs(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what makes calls and results pair up."""
        return mend_pairs(document, transcript, unknown_results, CHAIN)

    def new_session(self, document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
        """Return the session under an id derived from `seed`; None for a file without a header."""
        return new_session(document, transcript, name, seed)

    def resume(self, path: str, session_id: str | None) -> Resume:
        """Return the command that opens a session by its path."""
        return Resume(("pi", "--session", path))


FORMAT = PiSession()


def _deciding_record(document: Document) -> int | None:
    """Return the record of the last answer on the path that tells a usage; None behind a compaction."""
    wanted: Any = None
    for index in reversed(range(len(document))):
        entry = _entry(document.raw(index))
        if entry.get("type") == "session" or (wanted is not None and entry.get("id") != wanted):
            continue
        if entry.get("type") == "compaction":
            return None
        if _tells_usage(entry.get("message")):
            return index
        wanted = entry.get("parentId")
        if wanted is None and "parentId" in entry:
            return None
    return None


def _entry(raw: bytes) -> dict[str, Any]:
    try:
        value = read_json(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _tells_usage(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "assistant" or message.get("stopReason") == "error":
        return False
    counts = message.get("usage")
    return isinstance(counts, dict) and any(_number(count) for count in counts.values())


# reading -------------------------------------------------------------------------------------------


class _Reader:
    """The entries that were read so far, and what is told of the whole file."""

    def __init__(self) -> None:
        self.is_pi = False
        self._header: _Line | None = None
        self._nodes: list[_Node] = []
        self._by_number: dict[int, _Node] = {}
        self._count = 0
        self._has_parents = False
        self._requests: dict[str, Usage] = {}
        self._compactions: list[Compaction] = []
        self._strangers: dict[str, tuple[int, int]] = {}
        self._unread: list[int] = []

    def take(self, record: Record[_Line]) -> None:
        """Read one record."""
        number = self._count
        self._count += 1
        entry = record.value
        if entry is None:
            self._unread.append(record.index)
        elif entry.type == "session":
            self.is_pi = True
            self._header = self._header or entry
        else:
            self._has_parents = self._has_parents or entry.parentId is not msgspec.UNSET
            node = self._node(entry, record)
            self._nodes.append(node)
            self._by_number[number] = node

    def _stranger(self, kind: str, line: int) -> None:
        """Note something that is not read: `kind` is what it is, in words."""
        first, count = self._strangers.get(kind, (line, 0))
        self._strangers[kind] = first, count + 1

    def _node(self, entry: _Line, record: Record[_Line]) -> _Node:
        kind = _string(entry.type)
        node = _Node(_string(entry.id), _string(entry.parentId), record.index, record.line, kind)
        self.is_pi = self.is_pi or kind in ENTRIES
        place = Place(record.index)
        match kind:
            case "message":
                self._read_message(node, entry.message, place.at("message"))
            case "custom_message":
                node.role, node.parts = "user", tuple(read_content(entry.content, place.at("content")))
            case "branch_summary":
                node.role, node.parts = "user", tuple(read_content(entry.summary, place.at("summary")))
            case "compaction":
                self._read_compaction(node, entry, place)
            case "context_edit":
                _read_edit(node, entry, place)
            case "model_change":
                node.model = _string(entry.provider), _string(entry.modelId)
            case _ if kind not in ENTRIES:
                self._stranger(f"type {kind}" if kind else "no type", record.line)
        return node

    def _read_message(self, node: _Node, message: _Message | _Odd, place: Place) -> None:
        if not isinstance(message, _Message):
            self._stranger("a message that is no object", node.line)
            return
        match message.role:
            case "user" | "custom" | "hookMessage":
                node.role, node.parts = "user", tuple(read_content(message.content, place.at("content")))
            case "assistant":
                self._read_answer(node, message, place)
            case "toolResult":
                node.role, node.parts = "toolResult", (_result(message, place),)
            case "bashExecution":
                node.role, node.parts = "user", _ran(message, place)
                node.is_sent = message.excludeFromContext is not True
            case "branchSummary" | "compactionSummary":
                node.role, node.parts = "user", tuple(read_content(message.summary, place.at("summary")))
            case "system":
                node.role, node.system = "system", _system(message, place)
            case role:
                self._stranger(f"a message of role {role}", node.line)

    def _read_answer(self, node: _Node, message: _Message, place: Place) -> None:
        node.role, node.parts = "assistant", tuple(read_content(message.content, place.at("content")))
        node.model = _string(message.provider), _string(message.model)
        node.is_sent = message.stopReason not in UNFINISHED
        node.usage = _usage(message, node.line) if node.is_sent else None
        if node.usage is not None:
            self._requests[node.id or f"#{node.record}"] = node.usage

    def _read_compaction(self, node: _Node, entry: _Line, place: Place) -> None:
        node.role, node.parts = "user", tuple(read_content(entry.summary, place.at("summary")))
        node.is_blank = not _string(entry.summary).strip()
        node.first_kept = _string(entry.firstKeptEntryId)
        if isinstance(entry.firstKeptEntryIndex, int):
            node.target = str(entry.firstKeptEntryIndex)
        if isinstance(entry.systemMessage, _Message):
            node.system = _system(entry.systemMessage, place.at("systemMessage"))
        self._compactions.append(Compaction(node.line, _number(entry.tokensBefore) or None))

    # the whole

    def transcript(self, document: Document) -> Transcript:
        """Return the session. The document was walked to its end."""
        for index in self._unread:
            self._stranger("another shape", document.line(index))
        header = self._header or _Line()
        path, tree_findings = self._path(header)
        context = _Context(path)
        requests = tuple(self._requests.values())
        in_context = context_bytes(context.messages)
        return Transcript(
            format=FORMAT.name,
            messages=context.messages,
            session_id=_string(header.id) or None,
            agent="pi",
            model=context.model[1] or _string(header.modelId) or None,
            cwd=_string(header.cwd) or None,
            anchor_floor=context.floor,
            peak_tokens=max((usage.total_tokens for usage in requests), default=0),
            requests=requests,
            compactions=tuple(self._compactions),
            results=tuple(self._seen(context)),
            bytes_by_kind=self._bytes(document),
            context_bytes_by_kind=in_context,
            findings=sort([*tree_findings, *context.findings(), *self._findings(context.messages)]),
        )

    def _path(self, header: _Line) -> tuple[list[_Node], list[Finding]]:
        """Return the entries from the root to the last one in the file, and what is wrong with the tree."""
        version = header.version if isinstance(header.version, int) else 3 if self._has_parents else 1
        if version < 2:
            self._resolve_numbers()
            return self._nodes, []
        if not self._has_parents and len(self._nodes) > 1:
            text = "no entry says its parent; read in the order of the file"
            return self._nodes, [Finding(self._nodes[0].line, "dangling-parent", text)]
        return _walk(self._nodes, _string(header.id))

    def _resolve_numbers(self) -> None:
        """Give the entries of a version 1 file ids, and let its compactions name those."""
        for number, node in self._by_number.items():
            node.id = f"#{number}"
        for node in self._nodes:
            if node.kind == "compaction" and node.target:
                node.first_kept = f"#{node.target}"

    def _seen(self, context: "_Context") -> Iterator[SeenResult]:
        for node in self._nodes:
            result = node.parts[0] if node.role == "toolResult" else None
            if isinstance(result, ToolResult):
                yield SeenResult(node.line, result.name, result.size_bytes, context.why_outside(node))

    def _bytes(self, document: Document) -> dict[str, int]:
        tally = part_bytes(part for node in self._nodes for part in node.all_parts())
        results = [part for node in self._nodes if node.role == "toolResult" for part in node.parts]
        copies = (copy for part in results if isinstance(part, ToolResult) for copy in part.copies)
        tally["copies"] = sum(copy.size_bytes for copy in copies)
        tally["other"] = 0
        return {**tally, "other": document.size_bytes - sum(tally.values())}

    def _findings(self, messages: tuple[Message, ...]) -> list[Finding]:
        findings = pairing_findings(messages, order_matters=True)
        for kind, (line, count) in self._strangers.items():
            which = "not read" if count == 1 else f"{count:,} of them, the first here; not read"
            findings.append(Finding(line, "unknown-record", f"{kind}: {which}"))
        if not messages:
            findings.append(Finding(None, "empty-session", "no message in it"))
        elif not self._requests and any(message.role == "assistant" for message in messages):
            findings.append(Finding(None, "no-usage", "no answer tells its usage"))
        return findings


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < 1 << 53 else 0


# parts of entries ----------------------------------------------------------------------------------


def _result(message: _Message, place: Place) -> ToolResult:
    where = place if message.content is None else place.at("content")
    name, is_error = _string(message.toolName), message.isError is True
    result = read_result(message.content, where, _string(message.toolCallId), name=name, is_error=is_error)
    if len(message.details) <= len("null") or name not in OWN_TOOLS:
        return result
    return msgspec.structs.replace(result, copies=(Copy(place.at("details"), len(message.details)),))


def _ran(message: _Message, place: Place) -> tuple[Part, ...]:
    """Return the command that a person ran, and what it put out."""
    command = read_content(message.command, place.at("command"))
    return (*command, *read_content(message.output, place.at("output")))


def _usage(message: _Message, line: int) -> Usage | None:
    counts = message.usage
    if not isinstance(counts, _Usage):
        return None
    given, read, written = _number(counts.output), _number(counts.cacheRead), _number(counts.cacheWrite)
    total = _number(counts.totalTokens) or _number(counts.input) + given + read + written
    if not total:
        return None
    taken = max(0, total - given)
    return Usage(line, taken, given, read, written, _string(message.model) or None, _string(message.responseId) or None)


def _system(message: _Message, place: Place) -> _System:
    sections = message.sections if isinstance(message.sections, dict) else {}
    added = message.toolsAdded if isinstance(message.toolsAdded, list) else []
    removed = message.toolsRemoved if isinstance(message.toolsRemoved, list) else []
    tools = [(_name(raw), Opaque(place.at("toolsAdded", index), "tool", len(raw))) for index, raw in enumerate(added)]
    return _System(
        tuple(read_content(message.content, place.at("content"))),
        tuple((name, _section(raw, place.at("sections", name))) for name, raw in sections.items()),
        (*((_name(raw), None) for raw in removed), *tools),
    )


def _section(raw: Raw, place: Place) -> Part | None:
    value = msgspec.json.decode(raw)
    return Text(place, utf8_size(value)) if isinstance(value, str) and value else None


def _name(raw: Raw) -> str:
    try:
        return _NAMED.decode(raw).name
    except msgspec.DecodeError:
        return ""


def _read_edit(node: _Node, entry: _Line, place: Place) -> None:
    node.target = _string(entry.targetId)
    if isinstance(entry.replacement, _Replacement):
        where = place.at("replacement", "content")
        node.parts = tuple(read_content(entry.replacement.content, where))
        node.edited = read_result(entry.replacement.content, where, "")


# the effective context -----------------------------------------------------------------------------


def _walk(nodes: Sequence[_Node], header_id: str) -> tuple[list[_Node], list[Finding]]:
    """Return the path to the last entry by parents. Of entries with one id the last one counts."""
    by_id = {node.id: node for node in nodes if node.id}
    path: list[_Node] = []
    visited: set[int] = set()
    findings: list[Finding] = []
    node = nodes[-1] if nodes else None
    while node is not None:
        if node.record in visited:
            findings.append(Finding(node.line, "parent-cycle", f"entry {node.id} is among its own ancestors"))
            break
        visited.add(node.record)
        path.append(node)
        node = by_id.get(node.parent)
    for node in nodes:
        if node.parent and node.parent not in by_id and node.parent != header_id:
            lost = "what stood above it is not sent" if node.record in visited else "it is on no path that is sent"
            findings.append(Finding(node.line, "dangling-parent", f"parent {node.parent} is not in the file; {lost}"))
    repeated = [node for node in nodes if node.id and by_id[node.id] is not node]
    if repeated:
        text = f"{len(repeated):,} entries stand under an id that comes again; the last of each counts"
        findings.append(Finding(repeated[0].line, "replayed-records", text))
    return path[::-1], findings


class _Context:
    """The messages that a path comes to."""

    def __init__(self, path: Sequence[_Node]) -> None:
        self._on_path = {node.record for node in path}
        self._entries, self._settled = _entries(path)
        self._edits = {node.target: node for node in self._entries if node.kind == "context_edit"}
        self._inside: set[int] = set()
        self.model = next((node.model for node in reversed(path) if node.model is not None), ("", ""))
        """Provider and model that the session goes on with."""
        self.floor = 0
        self.messages = self._build()

    def _build(self) -> tuple[Message, ...]:
        messages: list[Message] = []
        head = _head([node for node in self._entries if node.system is not None])
        if head is not None:
            messages.append(head)
        for position, node in enumerate(self._entries):
            message = self._message(node, is_first=position == 0)
            if message is not None:
                messages.append(message)
                self._inside.add(node.record)
            if position < self._settled:
                self.floor = len(messages)
        return tuple(messages)

    def _message(self, node: _Node, *, is_first: bool) -> Message | None:
        is_compaction = node.kind == "compaction"
        if not node.role or node.role == "system" or not node.is_sent or (is_compaction and not is_first):
            return None
        parts = self._edited(node) if node.id in self._edits and not is_compaction else node.parts
        if node.model is not None and node.model != self.model:
            parts = tuple(part for part in parts if not isinstance(part, Reasoning))
        if not parts:
            return None
        key = node.id if node.role == "assistant" and not node.id.startswith("#") else ""
        return Message(node.role, parts, (node.record,), node.line, key, node.usage, is_summary=is_compaction)

    def _edited(self, node: _Node) -> tuple[Part, ...]:
        """Return what the last edit of an entry left of it."""
        edit = self._edits[node.id]
        original = node.parts[0] if node.parts else None
        if edit.edited is None or not isinstance(original, ToolResult):
            return edit.parts
        result = edit.edited
        return (
            msgspec.structs.replace(
                original,
                place=result.place,
                size_bytes=result.size_bytes,
                is_preview=result.is_preview,
                media=result.media,
            ),
        )

    def why_outside(self, node: _Node) -> str:
        """Return in words why an entry is not in context; empty where it is."""
        if node.record in self._inside:
            return ""
        return "before the last compaction" if node.record in self._on_path else "not on the path to the last entry"

    def findings(self) -> list[Finding]:
        """Return what is wrong with the compaction that the context starts from."""
        blank = [node for node in self._entries[:1] if node.is_blank]
        return [Finding(node.line, "blank-summary", "the last compaction kept no summary") for node in blank]


def _entries(path: Sequence[_Node]) -> tuple[list[_Node], int]:
    """Return the entries that count, and how many of them usage recorded earlier does not tell of."""
    newest = next((index for index in reversed(range(len(path))) if path[index].kind == "compaction"), None)
    entries = list(path)
    settled = 0
    if newest is not None:
        compaction = path[newest]
        kept = [index for index in range(newest) if path[index].id and path[index].id == compaction.first_kept]
        before = path[kept[0] : newest] if kept else []
        entries = [compaction, *(node for node in before if node.role != "system")]
        settled = len(entries)
        entries += path[newest + 1 :]
    edits = [index + 1 for index, node in enumerate(entries) if node.kind == "context_edit"]
    return entries, max([settled, *edits])


def _head(nodes: Sequence[_Node]) -> Message | None:
    """Return the one system message that all of them come to."""
    texts: list[Part] = []
    named: dict[tuple[str, str], Part] = {}
    for node in nodes:
        system = node.system or _System()
        texts += system.texts
        for kind, changes in (("section", system.sections), ("tool", system.tools)):
            for name, part in changes:
                named.pop((kind, name), None) if part is None else named.update({(kind, name): part})
    parts = (*texts, *named.values())
    if not parts:
        return None
    records = tuple(sorted({part.place.record for part in parts}))
    return Message("system", parts, records, nodes[0].line, is_leading=True)
