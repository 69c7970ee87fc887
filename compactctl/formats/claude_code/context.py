"""From the lines of a path to the messages that the model would be sent."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from compactctl.formats.claude_code.lines import Node
from compactctl.formats.claude_code.tree import Path
from compactctl.model import Message, Part, Reasoning, ToolResult, Usage

CLEARED_BYTES = len(b"[Old tool result content cleared]")
"""What stands in a request in place of a result that a microcompaction cleared."""


class Context(Struct, frozen=True):
    """The effective context. `cleared` are the records whose results a microcompaction took out of it."""

    messages: tuple[Message, ...]
    anchor_floor: int
    cleared: frozenset[int]


class _Draft(Struct):
    """A message in the making: an answer grows while its lines come in."""

    role: str
    parts: list[Part]
    nodes: list[Node]
    key: str
    is_summary: bool = False


def read_context(path: Path, requests: Mapping[str, Usage], blind: Iterable[str]) -> Context:
    """Return the messages of a path.

    All lines of a provider's answer are one message, at the place of the first; each result is one of its own.
    Usage counts from behind the newest compaction, what that kept included, or microcompaction.
    """
    maker = _Maker()
    for node in path.nodes:
        maker.add(node)
    drafts = [draft for draft in maker.drafts if _is_sent(draft)]
    old = path.compaction.order if path.compaction else -1
    stale = [
        index
        for index, draft in enumerate(drafts)
        if draft.is_summary or draft.nodes[0].order < max(old, maker.stale_before)
    ]
    blind = set(blind)
    anchors = {key: usage for key, usage in requests.items() if key not in blind}
    return Context(
        tuple(_message(draft, anchors) for draft in drafts),
        stale[-1] + 1 if stale else 0,
        frozenset(maker.cleared),
    )


class _Maker:
    def __init__(self) -> None:
        self.drafts: list[_Draft] = []
        self.stale_before = -1
        """The order of the newest microcompaction."""
        self.cleared: set[int] = set()
        self._answers: dict[str, _Draft] = {}

    def add(self, node: Node) -> None:
        if node.kind == "microcompaction":
            self._clear(node)
        elif node.kind == "assistant":
            self._assistant(node)
        elif node.kind != "compaction":
            self._user(node)

    def _assistant(self, node: Node) -> None:
        if node.is_local_error:
            return
        key = node.key or node.uuid
        said: list[Part] = [part for part in node.parts if not isinstance(part, ToolResult)]
        draft = self._answers.get(key)
        if draft is None:
            self._answers[key] = draft = _Draft("assistant", said, [node], key)
            self.drafts.append(draft)
        else:
            draft.parts += said
            draft.nodes.append(node)
        if len(said) < len(node.parts):
            self._user(node, [part for part in node.parts if isinstance(part, ToolResult)])

    def _user(self, node: Node, parts: Sequence[Part] | None = None) -> None:
        said: list[Part] = []
        for part in node.parts if parts is None else parts:
            if isinstance(part, ToolResult):
                self._append(node, said)
                self._append(node, [part])
                said = []
            else:
                said.append(part)
        self._append(node, said)

    def _append(self, node: Node, parts: list[Part]) -> None:
        if parts:
            self.drafts.append(_Draft("user", parts, [node], node.uuid, node.is_summary))

    def _clear(self, node: Node) -> None:
        """Take out what a microcompaction says it cleared. The file keeps it whole; the request does not."""
        metadata = node.metadata or {}
        ids = _strings(metadata.get("compactedToolIds"))
        uuids = _strings(metadata.get("clearedAttachmentUUIDs"))
        self.stale_before = node.order
        for draft in self.drafts:
            if draft.nodes[0].kind == "attachment" and draft.key in uuids:
                draft.parts = []
            draft.parts = [self._cleared(part, ids) for part in draft.parts]

    def _cleared(self, part: Part, ids: set[str]) -> Part:
        if not isinstance(part, ToolResult) or part.call_id not in ids or part.size_bytes <= CLEARED_BYTES:
            return part
        self.cleared.add(part.place.record)
        return msgspec.structs.replace(part, size_bytes=CLEARED_BYTES, is_preview=True, media=())


def _strings(value: object) -> set[str]:
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def _is_sent(draft: _Draft) -> bool:
    """Return whether a draft says anything. An answer of thinking alone is not sent (seen with 2.1.332)."""
    if draft.role == "assistant":
        return any(not isinstance(part, Reasoning) for part in draft.parts)
    return bool(draft.parts)


def _message(draft: _Draft, anchors: Mapping[str, Usage]) -> Message:
    key = draft.key
    return Message(
        draft.role,
        tuple(draft.parts),
        tuple(sorted({node.record for node in draft.nodes})),
        draft.nodes[0].line,
        key="" if key.startswith("#") else key,
        usage=anchors.get(key) if draft.role == "assistant" else None,
        is_summary=draft.is_summary,
    )
