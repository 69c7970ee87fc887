"""From the lines of a path to the messages that the model would be sent."""

from collections.abc import Iterable, Mapping, Sequence, Set

import msgspec
from msgspec import Struct

from compactctl.formats.claude_code.lines import Node
from compactctl.formats.claude_code.tree import Path
from compactctl.model import Message, Part, Reasoning, Text, ToolCall, ToolResult, Usage

CLEARED = "[Old tool result content cleared]"
"""What stands in a request in place of a result that a microcompaction cleared."""


_SILENT = frozenset((Reasoning,))


class _Draft(Struct, gc=False):
    """A message in the making: what one node says, or an answer that grows while its lines come in."""

    is_answer: bool
    node: Node
    """The first that it was read from."""
    parts: tuple[Part, ...]
    """What that one says of it."""
    others: list[Node] | None = None
    """The further nodes of an answer that has several."""

    @property
    def key(self) -> str:
        return _key(self.node) if self.is_answer else self.node.uuid

    def said(self) -> tuple[Part, ...]:
        """Return all its parts."""
        if self.others is None:
            return self.parts
        parts = list(self.parts)
        for node in self.others:
            parts += _said(node)
        return tuple(parts)

    def is_sent(self) -> bool:
        """Return whether it says anything. An answer of thinking alone is not sent (seen with 2.1.332)."""
        if not self.is_answer:
            return bool(self.parts)
        return not (_SILENT.issuperset(map(type, self.parts)) and _SILENT.issuperset(map(type, self.said())))


class Drafts(Struct):
    """The effective context in the making.

    It is done before its messages are, so that the tree can be forgotten in between: of a session of gigabytes there
    is room for one of the two.
    """

    drafts: list[_Draft]
    anchor_floor: int
    cleared: frozenset[int]
    """The records whose results a microcompaction took out of the context."""

    def messages(self, requests: Mapping[str, Usage], blind: Set[str]) -> tuple[Message, ...]:
        """Return the messages, and give the drafts up. `blind` are requests whose usage is no anchor."""
        anchors = {key: usage for key, usage in requests.items() if key not in blind} if blind else requests
        self.drafts.reverse()
        return tuple(_message(self.drafts.pop(), anchors) for _ in range(len(self.drafts)))


def drafted(path: Path) -> Drafts:
    """Return what a path comes to.

    All lines of a provider's answer are one message, at the place of the first; each result is one of its own.
    Usage counts from behind the newest compaction, what that kept included, or microcompaction.
    """
    maker = _Maker()
    for node in path.nodes:
        maker.add(node)
    drafts = [draft for draft in maker.drafts if draft.is_sent()]
    floor = max(path.compaction.order if path.compaction else -1, maker.stale_before)
    return Drafts(drafts, _anchor_floor(drafts, floor), frozenset(maker.cleared))


def _anchor_floor(drafts: Sequence[_Draft], order: int) -> int:
    """Return the index behind the newest draft that is a summary or stood in the file before this order."""
    for index in range(len(drafts) - 1, -1, -1):
        node = drafts[index].node
        if node.order < order or (node.marks.is_summary and not drafts[index].is_answer):
            return index + 1
    return 0


class _Maker:
    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self.stale_before = -1
        """The order of the newest microcompaction."""
        self.cleared: set[int] = set()
        self._answers: dict[str, _Draft] = {}

    def add(self, node: Node) -> None:
        if node.kind == "assistant":
            self._assistant(node)
        elif node.kind == "user" or node.kind == "attachment":
            self._user(node, node.parts)
        elif node.kind == "microcompaction":
            self._clear(node)

    def _assistant(self, node: Node) -> None:
        if node.marks.is_local_error:
            return
        key, parts, said = _key(node), node.parts, _said(node)
        draft = self._answers.get(key)
        if draft is None:
            self._answers[key] = draft = _Draft(True, node, said)
            self.drafts.append(draft)
        elif draft.others is None:
            draft.others = [node]
        else:
            draft.others.append(node)
        if said is not parts:
            self._user(node, tuple(part for part in parts if isinstance(part, ToolResult)))

    def _user(self, node: Node, parts: tuple[Part, ...]) -> None:
        """Add what a user line says: each result by itself, and what stands between them."""
        if len(parts) == 1:
            self.drafts.append(_Draft(False, node, parts))
            return
        start = 0
        for index, part in enumerate(parts):
            if isinstance(part, ToolResult):
                self._append(node, parts[start:index])
                self._append(node, (part,))
                start = index + 1
        self._append(node, parts[start:])

    def _append(self, node: Node, parts: tuple[Part, ...]) -> None:
        if parts:
            self.drafts.append(_Draft(False, node, parts))

    def _clear(self, node: Node) -> None:
        """Take out what a microcompaction says it cleared. The file keeps it whole; the request does not."""
        metadata = node.marks.metadata or {}
        ids = _strings(metadata.get("compactedToolIds"))
        uuids = _strings(metadata.get("clearedAttachmentUUIDs"))
        self.stale_before = node.order
        for draft in self.drafts:
            if draft.node.kind == "attachment" and draft.key in uuids:
                draft.parts = ()
            draft.parts = tuple(self._cleared(part, ids) for part in draft.parts)

    def _cleared(self, part: Part, ids: set[str]) -> Part:
        if not isinstance(part, ToolResult) or part.call_id not in ids or part.size_bytes <= len(CLEARED):
            return part
        self.cleared.add(part.place.record)
        return msgspec.structs.replace(part, size_bytes=len(CLEARED), made=CLEARED, is_preview=True, media=())


PLACEHOLDER_TOKENS = 10
"""What stands as output when an answer begins is at most this (measured: 1 to 8 in 2.0.64 to 2.1.62)."""

PLACEHOLDER_BYTES_PER_TOKEN = 12
"""No tokenizer makes so few tokens of what an answer says; real ones make 3 to 6 bytes a token."""


def _is_placeholder(usage: Usage, parts: Iterable[Part]) -> bool:
    """Return whether an answer says far more than its output tokens could (anthropics/claude-code#22686)."""
    said = 0
    for part in parts:
        if isinstance(part, Text):
            said += part.size_bytes
        elif isinstance(part, ToolCall):
            said += part.arguments_bytes
    return said > PLACEHOLDER_BYTES_PER_TOKEN * usage.output_tokens


def _key(node: Node) -> str:
    return node.key or node.uuid


def _said(node: Node) -> tuple[Part, ...]:
    """Return what an answer's line says; results on it are messages of their own."""
    parts = node.parts
    if ToolResult not in map(type, parts):
        return parts
    return tuple(part for part in parts if not isinstance(part, ToolResult))


def _strings(value: object) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def _message(draft: _Draft, anchors: Mapping[str, Usage]) -> Message:
    node = draft.node
    if not draft.is_answer:
        return Message("user", draft.parts, (node.record,), node.line, _known(node.uuid), None, node.marks.is_summary)
    key, said = _key(node), draft.said()
    records: tuple[int, ...] = (node.record,)
    if draft.others:
        records = tuple(sorted({node.record, *(other.record for other in draft.others)}))
    usage = anchors.get(key)
    if usage is not None and 0 < usage.output_tokens <= PLACEHOLDER_TOKENS and _is_placeholder(usage, said):
        usage = msgspec.structs.replace(usage, is_output_known=False)
    return Message("assistant", said, records, node.line, _known(key), usage)


def _known(key: str) -> str:
    """Return a key that stands in the file; "" for one that was made up for a line without any."""
    return "" if key.startswith("#") else key
