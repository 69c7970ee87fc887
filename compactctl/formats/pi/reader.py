"""The entries of a pi session: what each one adds to its tree and figures."""

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from compactctl.document import Document, Place, Record
from compactctl.findings import Finding, sort
from compactctl.formats.blocks import read_content, read_result
from compactctl.formats.pi.context import Context, Node, System, walk
from compactctl.formats.pi.shapes import (
    ENTRIES,
    NAME,
    NAMED,
    UNFINISHED,
    Line,
    MessageField,
    Odd,
    Replacement,
    UsageField,
    count_of,
)
from compactctl.formats.pi.slim import OWN_TOOLS
from compactctl.formats.strangers import Strangers, not_read
from compactctl.formats.whole import file_bytes, lacks
from compactctl.json_text import string
from compactctl.model import (
    Compaction,
    Copy,
    Message,
    Opaque,
    OutsideResult,
    Part,
    Text,
    ToolResult,
    Transcript,
    Usage,
    part_bytes,
    utf8_size,
)
from compactctl.turns import pairing_findings


class Reader:
    """The entries that were read so far, and what is told of the whole file."""

    def __init__(self) -> None:
        self.is_pi = False
        self._header: Line | None = None
        self._nodes: list[Node] = []
        self._by_number: dict[int, Node] = {}
        self._count = 0
        self._has_parents = False
        self._requests: dict[str, Usage] = {}
        self._compactions: list[Compaction] = []
        self._strangers = Strangers()
        self._unread: list[int] = []

    def take(self, record: Record[Line]) -> None:
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

    def _node(self, entry: Line, record: Record[Line]) -> Node:
        kind = string(entry.type)
        node = Node(string(entry.id), string(entry.parentId), record.index, record.line, kind)
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
                node.model = string(entry.provider), string(entry.modelId)
            case _ if kind not in ENTRIES:
                self._strangers.note(f"type {kind}" if kind else "no type", record.line)
        return node

    def _read_message(self, node: Node, message: MessageField | Odd, place: Place) -> None:
        if not isinstance(message, MessageField):
            self._strangers.note("a message that is no object", node.line)
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
                self._strangers.note(f"a message of role {role}", node.line)

    def _read_answer(self, node: Node, message: MessageField, place: Place) -> None:
        node.role, node.parts = "assistant", tuple(read_content(message.content, place.at("content")))
        node.model = string(message.provider), string(message.model)
        node.is_sent = message.stopReason not in UNFINISHED
        node.usage = _usage(message, node.line) if node.is_sent else None
        if node.usage is not None:
            self._requests[node.id or f"#{node.record}"] = node.usage

    def _read_compaction(self, node: Node, entry: Line, place: Place) -> None:
        node.role, node.parts = "user", tuple(read_content(entry.summary, place.at("summary")))
        node.is_blank = not string(entry.summary).strip()
        node.first_kept = string(entry.firstKeptEntryId)
        if isinstance(entry.firstKeptEntryIndex, int):
            node.target = str(entry.firstKeptEntryIndex)
        if isinstance(entry.systemMessage, MessageField):
            node.system = _system(entry.systemMessage, place.at("systemMessage"))
        self._compactions.append(Compaction(node.line, count_of(entry.tokensBefore) or None))

    # the whole

    def transcript(self, document: Document) -> Transcript:
        """Return the session. The document was walked to its end."""
        for index in self._unread:
            self._strangers.note("another shape", document.line(index))
        header = self._header or Line()
        path, tree_findings = self._path(header)
        context = Context(path)
        requests = tuple(self._requests.values())
        return Transcript(
            format=NAME,
            messages=context.messages,
            session_id=string(header.id) or None,
            agent="pi",
            model=context.model[1] or string(header.modelId) or None,
            cwd=string(header.cwd) or None,
            anchor_floor=context.floor,
            peak_tokens=max((usage.total_tokens for usage in requests), default=0),
            requests=requests,
            compactions=tuple(self._compactions),
            outside=tuple(self._outside(context)),
            bytes_by_kind=self._bytes(document),
            findings=sort([*tree_findings, *context.findings(), *self._findings(context.messages)]),
        )

    def _path(self, header: Line) -> tuple[list[Node], list[Finding]]:
        """Return the entries from the root to the last one in the file, and what is wrong with the tree."""
        version = header.version if isinstance(header.version, int) else 3 if self._has_parents else 1
        if version < 2:
            self._resolve_numbers()
            return self._nodes, []
        if not self._has_parents and len(self._nodes) > 1:
            text = "no entry says its parent; read in the order of the file"
            return self._nodes, [Finding(self._nodes[0].line, "dangling-parent", text)]
        return walk(self._nodes, string(header.id))

    def _resolve_numbers(self) -> None:
        """Give the entries of a version 1 file ids, and let its compactions name those."""
        for number, node in self._by_number.items():
            node.id = f"#{number}"
        for node in self._nodes:
            if node.kind == "compaction" and node.target:
                node.first_kept = f"#{node.target}"

    def _outside(self, context: "Context") -> Iterator[OutsideResult]:
        for node in self._nodes:
            result = node.parts[0] if node.role == "toolResult" else None
            if isinstance(result, ToolResult) and (why := context.why_outside(node)):
                yield OutsideResult(node.line, result.name, result.size_bytes, why)

    def _bytes(self, document: Document) -> dict[str, int]:
        tally = part_bytes(part for node in self._nodes for part in node.all_parts())
        results = [part for node in self._nodes if node.role == "toolResult" for part in node.parts]
        copies = (copy for part in results if isinstance(part, ToolResult) for copy in part.copies)
        tally["copies"] = sum(copy.size_bytes for copy in copies)
        return file_bytes(tally, document.size_bytes)

    def _findings(self, messages: tuple[Message, ...]) -> list[Finding]:
        return [
            *pairing_findings(messages, order_matters=True),
            *self._strangers.findings(not_read),
            *lacks(messages, self._requests, "no answer tells its usage"),
        ]


# parts of entries ----------------------------------------------------------------------------------


def _result(message: MessageField, place: Place) -> ToolResult:
    where = place if message.content is None else place.at("content")
    name, is_error = string(message.toolName), message.isError is True
    result = read_result(message.content, where, string(message.toolCallId), name=name, is_error=is_error)
    if len(message.details) <= len("null") or name not in OWN_TOOLS:
        return result
    return msgspec.structs.replace(result, copies=(Copy(place.at("details"), len(message.details)),))


def _ran(message: MessageField, place: Place) -> tuple[Part, ...]:
    """Return the command that a person ran, and what it put out."""
    command = read_content(message.command, place.at("command"))
    return (*command, *read_content(message.output, place.at("output")))


def _usage(message: MessageField, line: int) -> Usage | None:
    counts = message.usage
    if not isinstance(counts, UsageField):
        return None
    given, read, written = count_of(counts.output), count_of(counts.cacheRead), count_of(counts.cacheWrite)
    total = count_of(counts.totalTokens) or count_of(counts.input) + given + read + written
    if not total:
        return None
    taken = max(0, total - given)
    return Usage(line, taken, given, read, written, string(message.model) or None, string(message.responseId) or None)


def _system(message: MessageField, place: Place) -> System:
    sections = message.sections if isinstance(message.sections, dict) else {}
    added = message.toolsAdded if isinstance(message.toolsAdded, list) else []
    removed = message.toolsRemoved if isinstance(message.toolsRemoved, list) else []
    tools = [(_name(raw), Opaque(place.at("toolsAdded", index), "tool", len(raw))) for index, raw in enumerate(added)]
    return System(
        tuple(read_content(message.content, place.at("content"))),
        tuple((name, _section(raw, place.at("sections", name))) for name, raw in sections.items()),
        (*((_name(raw), None) for raw in removed), *tools),
    )


def _section(raw: Raw, place: Place) -> Part | None:
    value = msgspec.json.decode(raw)
    return Text(place, utf8_size(value)) if isinstance(value, str) and value else None


def _name(raw: Raw) -> str:
    try:
        return NAMED.decode(raw).name
    except msgspec.DecodeError:
        return ""


def _read_edit(node: Node, entry: Line, place: Place) -> None:
    node.target = string(entry.targetId)
    if isinstance(entry.replacement, Replacement):
        where = place.at("replacement", "content")
        node.parts = tuple(read_content(entry.replacement.content, where))
        node.edited = read_result(entry.replacement.content, where, "")
