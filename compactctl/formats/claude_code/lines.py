"""The lines of a Claude Code session: what each one adds to the file's tree and figures."""

import sys
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from compactctl.document import Document, Place, Record
from compactctl.findings import Finding
from compactctl.formats.blocks import read_content
from compactctl.formats.claude_code import shapes
from compactctl.formats.claude_code.attachments import read_attachment
from compactctl.formats.claude_code.shapes import LINE, Line, LookedInto, text_of
from compactctl.formats.strangers import Strangers
from compactctl.json_text import read_json
from compactctl.model import KINDS, Copy, Part, ToolCall, Usage, part_bytes
from compactctl.spans import Route

SYNTHETIC_MODEL = "<synthetic>"

BOOKKEEPING = frozenset(
    (
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "atis-latch",
        "attribution-snapshot",
        "bridge-session",
        "content-replacement",
        "cost-state",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "frame-link",
        "last-prompt",
        "marble-origami-commit",
        "marble-origami-snapshot",
        "mode",
        "permission-mode",
        "pr-link",
        "queue-operation",
        "relocated",
        "result",
        "saved_hook_context",
        "speculation-accept",
        "started",
        "summary",
        "tag",
        "task-summary",
        "tools-used",
        "worktree-state",
    )
)
"""Types of line that the model is never sent and that nothing hangs on: kept as they are, and not looked into."""

SHADOWS = frozenset(("api-request", "api-request-blob", "api-request-shape"))
"""Types of line that repeat whole requests; not read on resume (research: clients, 5)."""


_MESSAGE = ("message",)
_CONTENT = ("message", "content")

NodeKind = Literal["user", "assistant", "attachment", "compaction", "microcompaction"]


class Marks(Struct, frozen=True, gc=False):
    """What sets few lines apart. All others share one value of this, since a session has millions of lines."""

    agent: str = ""
    is_team: bool = False
    is_meta: bool = False
    is_summary: bool = False
    is_blank: bool = False
    """A summary without a word in it."""
    is_local_error: bool = False
    """An error note that the client made itself and does not send."""
    metadata: Mapping[str, Any] | None = None
    """What a compaction or microcompaction recorded about itself."""


PLAIN = Marks()


class Node(Struct, gc=False):
    """A line of the tree that may matter to the context.

    `order` is the record in which its uuid first stood in the file; `record` and `line` are where it was written
    last, since that is what the client reads (seen with 2.1.332).
    """

    kind: NodeKind
    order: int
    record: int
    line: int
    uuid: str
    parent: str | UnsetType | None
    """UNSET: the line says nothing about a parent."""
    is_side: bool
    source: str = ""
    """The uuid of the assistant line whose call this line's result answers."""
    marks: Marks = PLAIN
    key: str = ""
    """The provider's message id."""
    model: str | None = None
    parts: tuple[Part, ...] = ()

    @property
    def is_talk(self) -> bool:
        return self.kind in ("user", "assistant")


class Replay(Struct, frozen=True):
    """A record whose uuid stood in the file before."""

    line: int
    first_line: int
    parts: tuple[Part, ...]


class Lines:
    """All that one walk over the file finds out."""

    def __init__(self, document: Document) -> None:
        self.nodes: list[Node] = []
        self.compactions: list[Node] = []
        self.has_side = False
        """Whether any node is a subagent's."""
        self.targets: dict[str, Node | str | None] = {}
        """What a uuid leads to: a node; through a line that is none, the node above it (None: a root); a uuid
        that was not there yet."""
        self.orphans: dict[str, int] = {}
        """Parents that had not been there before the line that names them first, and that line."""
        self.named_leaf: str | None = None
        """Where the client last said the conversation is, since the newest compaction."""
        self.replays: list[Replay] = []
        self.requests: dict[str, Usage] = {}
        self.side_requests: dict[str, Usage] = {}
        self.blind: set[str] = set()
        """Requests whose usage is no anchor: answers that the client made itself, that failed or broke off."""
        self.session_id: str | None = None
        self.version: str | None = None
        self.cwd: str | None = None
        self.is_known = False
        """Whether any record is of a known type."""
        self.bytes: dict[str, int] = dict.fromkeys(KINDS, 0)
        self._names: dict[str, str] = {}
        self._strangers = Strangers()
        self._last_talk: Node | None = None
        self._last_uuid: str | None = None
        self._last_marks = PLAIN
        for record in document.records(LINE):
            self._read(record)
        self._names, self._last_talk = {}, None
        self.names_parents = any(isinstance(node.parent, str) for node in self.nodes if node.is_talk)
        """Whether any line of talk names its parent."""
        self._record_count = len(document)
        self._add_up(document.size_bytes)

    def forget_targets(self) -> None:
        """Give up what uuids lead to. Of a session of gigabytes there is room for one thing after another only."""
        self.targets = {}

    def forget_nodes(self) -> None:
        """Give up the nodes."""
        self.nodes, self.compactions = [], []

    def flags(self, nodes: Iterable[Node]) -> bytearray:
        """Return by order which nodes are among these: in a byte for each record, where a set would take sixty."""
        flags = bytearray(self._record_count)
        for node in nodes:
            flags[node.order] = True
        return flags

    def findings(self) -> list[Finding]:
        """Return what is wrong with single records."""
        found = self._strangers.findings()
        if self.replays:
            count = len(self.replays)
            text = f"{count:,} records repeat earlier ones" if count > 1 else "one record repeats an earlier one"
            found.append(Finding(self.replays[0].line, "replayed-records", text))
        return found

    def _read(self, record: Record[Line]) -> None:
        line = record.value
        if line is None:
            self._strangers.note("not an object of a known shape", record.line)
            return
        kind = line.type
        if (kind == "assistant" or kind == "user") and (message := line.message) is not UNSET:
            self._talk(record, line, message)
        elif kind == "progress":
            self.bytes["progress"] += record.size_bytes
            self._pass_through(record, line)
        elif kind == "attachment":
            self._attachment(record, line)
        elif kind == "system":
            self._system(record, line)
        elif kind == "last-prompt":
            self.named_leaf = line.leafUuid or self.named_leaf
        elif kind in SHADOWS:
            self.bytes["copies"] += record.size_bytes
        elif kind not in BOOKKEEPING:
            self._strangers.note(f"of type {kind}" if kind else "without a type", record.line)
            self._pass_through(record, line)
            return
        self.is_known = True

    # talk ------------------------------------------------------------------------------------------

    def _talk(self, record: Record[Line], line: Line, message: shapes.Message | LookedInto | None) -> None:
        route: Route = _CONTENT
        if message is None:
            self._strangers.note(f"of type {line.type} with a message of unknown shape", record.line)
            message = LookedInto()
        elif message.is_plain:
            route = _MESSAGE
        parts = read_content(message.content, Place(record.index, route), self._names)
        for part in parts:
            if isinstance(part, ToolCall):
                self._names[part.call_id] = part.name
        self.bytes["copies"] += len(line.toolUseResult)
        if line.type == "assistant":
            node = self._answer(record, line, message, tuple(parts))
        else:
            node = self._node(record, line, "user", tuple(parts))
            if node.marks.is_summary and not text_of(message.content).strip():
                node.marks = replace(node.marks, is_blank=True)
        if line.sessionId != self.session_id or line.version != self.version or self.cwd is None:
            self._envelope(line)
        if self._add(node) and not node.is_side:
            self._last_talk = node

    def _answer(
        self, record: Record[Line], line: Line, message: shapes.Message | LookedInto, parts: tuple[Part, ...]
    ) -> Node:
        model = sys.intern(message.model) if message.model else None
        node = self._node(record, line, "assistant", parts, sys.intern(message.id or ""), model)
        if line.isApiErrorMessage is True or line.isAbortedMidStream is True or model == SYNTHETIC_MODEL:
            self.blind.add(node.key or node.uuid)
        if model != SYNTHETIC_MODEL:
            if message.usage is not None:
                self._usage(node, message.usage, line.requestId)
        elif line.isApiErrorMessage is True:
            node.marks = replace(node.marks, is_local_error=True)
        return node

    def _usage(self, node: Node, found: shapes.Usage, request_id: str | None) -> None:
        """Note what the provider counted: of an answer's lines the one with most output, and of those the last."""
        read, written, given = found.cache_read_input_tokens, found.cache_creation_input_tokens, found.output_tokens
        taken = found.input_tokens + read + written
        requests = self.side_requests if node.is_side else self.requests
        key = node.key or node.uuid
        before = requests.get(key)
        if taken > 0 and (before is None or given >= before.output_tokens):
            request_id = request_id or node.key or None
            requests[key] = Usage(node.line, taken, given, read, written, node.model, request_id)

    def _envelope(self, line: Line) -> None:
        self.session_id = line.sessionId or self.session_id
        self.version = line.version or self.version
        self.cwd = self.cwd or line.cwd

    # other lines of the tree -----------------------------------------------------------------------

    def _attachment(self, record: Record[Line], line: Line) -> None:
        place = Place(record.index, ("attachment",))
        parts = read_attachment(line.attachment, line.rendered, place) if len(line.attachment) else ()
        if not parts:
            self._pass_through(record, line)
            return
        self._add(self._node(record, line, "attachment", parts))

    def _system(self, record: Record[Line], line: Line) -> None:
        if line.subtype == "compact_boundary":
            node, metadata = self._node(record, line, "compaction"), line.compactMetadata
            self.named_leaf = None
        elif line.subtype == "microcompact_boundary":
            node, metadata = self._node(record, line, "microcompaction"), line.microcompactMetadata
        else:
            self._pass_through(record, line)
            return
        value = read_json(bytes(metadata)) if len(metadata) else None
        node.marks = replace(node.marks, metadata=value if isinstance(value, dict) else None)
        self._envelope(line)
        if self._add(node) and node.kind == "compaction":
            self.compactions.append(node)

    # the tree --------------------------------------------------------------------------------------

    def _node(
        self,
        record: Record[Line],
        line: Line,
        kind: NodeKind,
        parts: tuple[Part, ...] = (),
        key: str = "",
        model: str | None = None,
    ) -> Node:
        index, source = record.index, line.sourceToolAssistantUUID
        is_marked = line.isMeta or line.isCompactSummary or line.agentId or line.teamName is not None
        return Node(
            kind,
            index,
            index,
            record.line,
            line.uuid or f"#{index}",
            self._parent(line.parentUuid, record.line),
            line.isSidechain is True,
            self._known(source) if source else "",
            self._marks(line) if is_marked else PLAIN,
            key,
            model,
            parts,
        )

    def _marks(self, line: Line) -> Marks:
        """Return what sets a line apart, as the value of the last such line where it is the same."""
        marks = Marks(line.agentId or "", line.teamName is not None, line.isMeta is True, line.isCompactSummary is True)
        if marks != self._last_marks:
            self._last_marks = marks
        return self._last_marks

    def _parent(self, uuid: str | UnsetType | None, line: int) -> str | UnsetType | None:
        """Return the parent that a line names, and note it where it has not been there."""
        if uuid == self._last_uuid:
            return self._last_uuid
        if not isinstance(uuid, str):
            return uuid
        if uuid not in self.targets:
            self.orphans.setdefault(uuid, line)
        return self._known(uuid)

    def _known(self, uuid: str) -> str:
        """Return a uuid as the string that its node keeps it in, so that it is in memory once."""
        target = self.targets.get(uuid)
        return target.uuid if isinstance(target, Node) and target.uuid == uuid else uuid

    def _add(self, node: Node) -> bool:
        """Take a node in; return False for one that was there, which takes this record as its newest."""
        first = self.targets.get(node.uuid)
        if isinstance(first, Node):
            self._replay(first, node)
            return False
        self.targets[node.uuid] = node
        self.nodes.append(node)
        self._last_uuid = node.uuid
        if node.is_side:
            self.has_side = True
        return True

    def _replay(self, first: Node, node: Node) -> None:
        """Take the record as it was written last, at the place in the order where it stood first."""
        self.replays.append(Replay(node.line, first.line, first.parts))
        first.record, first.line, first.parts = node.record, node.line, node.parts
        if node.parent is not UNSET:
            first.parent = node.parent

    def _pass_through(self, record: Record[Line], line: Line) -> None:
        """Let the line's uuid lead on to what stands above it."""
        uuid, parent = line.uuid, line.parentUuid
        if not uuid or isinstance(self.targets.get(uuid), Node):
            return
        if isinstance(parent, str):
            known = str(self._parent(parent, record.line))
            self.targets[uuid] = self.targets.get(known, known)
        else:
            self.targets[uuid] = self._last_talk if parent is UNSET else None
        self._last_uuid = uuid

    def _add_up(self, file_bytes: int) -> None:
        """Add up the bytes of all parts; of the file's bytes, what is of no kind is `other`."""
        said = chain((node.parts for node in self.nodes), (replay.parts for replay in self.replays))
        sizes = part_bytes(chain.from_iterable(said))
        del sizes["other"]
        for kind, size_bytes in sizes.items():
            self.bytes[kind] += size_bytes
        self.bytes["other"] = max(0, file_bytes - sum(self.bytes.values()))


def copies(document: Document, record: int) -> tuple[Copy, ...]:
    """Return the display's copy of a result on a record: of the only one there.

    It is looked for when it is asked for, since every result has one and few are spilled.
    """
    copy, content = Place(record, ("toolUseResult",)), Place(record, _CONTENT)
    size_bytes = document.size_at(copy)
    if size_bytes is None:
        return ()
    is_alone = document.length(content) == 1 or _results_in(document.raw_value(content)) == 1
    return (Copy(copy, size_bytes),) if is_alone else ()


class _Kind(Struct, gc=False):
    type: str = ""


_KINDS = msgspec.json.Decoder(list[_Kind])


def _results_in(content: bytes) -> int:
    try:
        return sum(block.type == "tool_result" for block in _KINDS.decode(content))
    except msgspec.DecodeError:
        return 0
