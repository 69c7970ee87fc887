"""From the entries of a pi session to the messages that the model would be sent."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from compactctl.findings import Finding
from compactctl.model import (
    Message,
    Part,
    Reasoning,
    ToolResult,
    Usage,
)


class System(Struct, gc=False):
    """What one system message changes: texts to append, sections and tools by name (None where one goes)."""

    texts: tuple[Part, ...] = ()
    sections: tuple[tuple[str, Part | None], ...] = ()
    tools: tuple[tuple[str, Part | None], ...] = ()

    def parts(self) -> tuple[Part, ...]:
        """Return all that it says."""
        named = (part for _, part in (*self.sections, *self.tools))
        return (*self.texts, *(part for part in named if part is not None))


class Node(Struct, gc=False):
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
    system: System | None = None
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


def walk(nodes: Sequence[Node], header_id: str) -> tuple[list[Node], list[Finding]]:
    """Return the path to the last entry by parents. Of entries with one id the last one counts."""
    by_id = {node.id: node for node in nodes if node.id}
    path: list[Node] = []
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


class Context:
    """The messages that a path comes to."""

    def __init__(self, path: Sequence[Node]) -> None:
        self._on_path = {node.record for node in path}
        self._entries, self._settled = entries(path)
        self._edits = {node.target: node for node in self._entries if node.kind == "context_edit"}
        self._inside: set[int] = set()
        self.model = next((node.model for node in reversed(path) if node.model is not None), ("", ""))
        """Provider and model that the session goes on with."""
        self.floor = 0
        self.messages = self._build()

    def _build(self) -> tuple[Message, ...]:
        messages: list[Message] = []
        head = head_of([node for node in self._entries if node.system is not None])
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

    def _message(self, node: Node, *, is_first: bool) -> Message | None:
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

    def _edited(self, node: Node) -> tuple[Part, ...]:
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

    def why_outside(self, node: Node) -> str:
        """Return in words why an entry is not in context; empty where it is."""
        if node.record in self._inside:
            return ""
        return "before the last compaction" if node.record in self._on_path else "not on the path to the last entry"

    def findings(self) -> list[Finding]:
        """Return what is wrong with the compaction that the context starts from."""
        blank = [node for node in self._entries[:1] if node.is_blank]
        return [Finding(node.line, "blank-summary", "the last compaction kept no summary") for node in blank]


def entries(path: Sequence[Node]) -> tuple[list[Node], int]:
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


def head_of(nodes: Sequence[Node]) -> Message | None:
    """Return the one system message that all of them come to."""
    texts: list[Part] = []
    named: dict[tuple[str, str], Part] = {}
    for node in nodes:
        system = node.system or System()
        texts += system.texts
        for kind, changes in (("section", system.sections), ("tool", system.tools)):
            for name, part in changes:
                named.pop((kind, name), None) if part is None else named.update({(kind, name): part})
    parts = (*texts, *named.values())
    if not parts:
        return None
    records = tuple(sorted({part.place.record for part in parts}))
    return Message("system", parts, records, nodes[0].line, is_leading=True)
