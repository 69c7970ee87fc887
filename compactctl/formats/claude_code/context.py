"""From the lines of a path to the messages that the model would be sent."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeVar

import msgspec
from msgspec import Struct

from compactctl.formats.claude_code.lines import Node
from compactctl.formats.claude_code.tree import Path
from compactctl.model import Message, Part, Reasoning, Text, ToolCall, ToolResult, Usage

T = TypeVar("T")

CLEARED = "[Old tool result content cleared]"
"""What stands in a request in place of a result that a microcompaction cleared."""


class _Draft(Struct, gc=False):
    """A message in the making: what one node says, or an answer that grows while its lines come in."""

    role: str
    key: str
    node: Node
    """The first that it was read from."""
    parts: Sequence[Part]
    others: list[Node] | None = None
    """The further nodes of an answer that has several."""


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
    drafts = [draft for draft in maker.drafts if _is_sent(draft)]
    floor = max(path.compaction.order if path.compaction else -1, maker.stale_before)
    return Drafts(drafts, _anchor_floor(drafts, floor), frozenset(maker.cleared))


def _anchor_floor(drafts: Sequence[_Draft], order: int) -> int:
    """Return the index behind the newest draft that is a summary or stood in the file before this order."""
    for index in range(len(drafts) - 1, -1, -1):
        node = drafts[index].node
        if node.order < order or (node.marks.is_summary and drafts[index].role == "user"):
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
        said = node.parts
        results = tuple(part for part in said if isinstance(part, ToolResult))
        if results:
            said = tuple(part for part in said if not isinstance(part, ToolResult))
        key = node.key or node.uuid
        draft = self._answers.get(key)
        if draft is None:
            self._answers[key] = draft = _Draft("assistant", key, node, said)
            self.drafts.append(draft)
        else:
            draft.parts = _extended(draft.parts, said)
            draft.others = _extended(draft.others or (), (node,))
        self._user(node, results)

    def _user(self, node: Node, parts: tuple[Part, ...]) -> None:
        """Add what a user line says: each result by itself, and what stands between them."""
        if len(parts) == 1:
            self.drafts.append(_Draft("user", node.uuid, node, parts))
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
            self.drafts.append(_Draft("user", node.uuid, node, parts))

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


def _extended(found: Sequence[T], more: Iterable[T]) -> list[T]:
    """Return a list with more at its end: the same one if it is a list already."""
    grown: list[T] = found if isinstance(found, list) else list(found)
    grown.extend(more)
    return grown


def _strings(value: object) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def _is_sent(draft: _Draft) -> bool:
    """Return whether a draft says anything. An answer of thinking alone is not sent (seen with 2.1.332)."""
    if draft.role == "user":
        return bool(draft.parts)
    return any(not isinstance(part, Reasoning) for part in draft.parts)


def _message(draft: _Draft, anchors: Mapping[str, Usage]) -> Message:
    node, key = draft.node, draft.key
    is_answer = draft.role == "assistant"
    records: tuple[int, ...] = (node.record,)
    if draft.others:
        records = tuple(sorted({node.record, *(other.record for other in draft.others)}))
    usage = anchors.get(key) if is_answer else None
    if usage is not None and 0 < usage.output_tokens <= PLACEHOLDER_TOKENS and _is_placeholder(usage, draft.parts):
        usage = msgspec.structs.replace(usage, is_output_known=False)
    return Message(
        draft.role,
        tuple(draft.parts),
        records,
        node.line,
        "" if key.startswith("#") else key,
        usage,
        not is_answer and node.marks.is_summary,
    )
