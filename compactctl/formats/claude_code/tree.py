"""Which lines of the tree the client would resume with, and in which order.

Every line names its parent, so a session forks: at rewinds, at parallel calls (each result hangs on the line of its
own call), at lines of the display. The context is the path from the newest leaf up to a root or to the newest
compaction, with what the compaction kept and with the parallel calls and results that the path misses.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence, Set
from operator import attrgetter
from typing import Any

from msgspec import Struct

from compactctl.findings import Finding
from compactctl.formats.claude_code.lines import Lines, Marks, Node
from compactctl.model import ToolCall, ToolResult


class Lost(Struct, frozen=True):
    """A node from which its parents lead nowhere, and the node above it with which reading goes on."""

    node: Node
    rule: str
    above: Node | None


class Path(Struct, frozen=True):
    """The nodes of the effective context in order, and the compaction that they start after."""

    nodes: tuple[Node, ...]
    compaction: Node | None
    findings: tuple[Finding, ...]
    lost: tuple[Lost, ...] = ()


def effective(lines: Lines, is_side: bool, agent: str) -> Path:
    """Return the path that would be resumed: of the main conversation, or of one subagent."""
    own = lines.nodes if not lines.has_side else [node for node in lines.nodes if _is_of(node, is_side, agent)]
    tree = _Tree(lines, own)
    leaf = _leaf(own)
    if leaf is None:
        return Path((), None, ())
    walked = tree.walked(leaf, lines.named_leaf)
    start = (
        max((i for i, node in enumerate(walked) if node.kind == "compaction"), default=-1) if lines.compactions else -1
    )
    compaction = walked[start] if start >= 0 else None
    kept = walked[start + 1 :]
    if lines.has_side:
        kept = [node for node in kept if node.is_side == is_side]
    if compaction is not None:
        kept = tree.with_preserved(compaction, kept)
    return Path(tuple(tree.with_parallel(kept)), compaction, tuple(tree.findings), tuple(tree.lost))


def _is_of(node: Node, is_side: bool, agent: str) -> bool:
    return node.is_side == is_side and (not is_side or node.marks.agent == agent)


def _leaf(own: Sequence[Node]) -> Node | None:
    """Return the newest line of talk. A meta line decides no branch, nor does a line of another team member."""
    tests: list[Callable[[Marks], bool]] = [
        lambda marks: not marks.is_team and not marks.is_meta,
        lambda marks: not marks.is_team,
        lambda marks: not marks.is_meta,
        lambda marks: True,
    ]
    newest = (next((n for n in reversed(own) if n.is_talk and test(n.marks)), None) for test in tests)
    return next((node for node in newest if node is not None), None)


class _Tree:
    """The own nodes of one conversation, walked in both directions."""

    def __init__(self, lines: Lines, own: Sequence[Node]) -> None:
        self._lines = lines
        self._names_parents = lines.names_parents
        self._targets = lines.targets
        self._own = own
        self.findings: list[Finding] = []
        self.lost: list[Lost] = []

    # up and down -----------------------------------------------------------------------------------

    def walked(self, newest: Node, named_leaf: str | None) -> list[Node]:
        """Return the path through the newest leaf, or to the one that the client named where that lies elsewhere.

        Parallel results are dead ends that the client may have named; they lie on the path of their answer.
        """
        path = self.up_from(newest)
        path += self.down_from(newest, self._lines.flags(path))
        named = self._resolve(named_leaf) if named_leaf else None
        if not isinstance(named, Node) or self._position(named) is None:
            return path
        if any(node is named for node in path) or any(node is named for node in self.with_parallel(path)):
            return path
        self.findings.clear()
        self.lost.clear()
        return self.up_from(named)

    def up_from(self, leaf: Node) -> list[Node]:
        """Return the nodes from the root to the leaf. Ends whatever the parents say: no node comes twice."""
        path: list[Node] = []
        visited = self._lines.flags(())
        node: Node | None = leaf
        while node is not None:
            path.append(node)
            visited[node.order] = True
            node = self._above(node, visited)
        path.reverse()
        return path

    def _above(self, node: Node, visited: bytearray) -> Node | None:
        target = self._targets.get(node.parent) if node.parent else None
        if isinstance(target, Node) and not visited[target.order]:
            return target
        if node.parent is None and (self._names_parents or node.kind == "compaction"):
            return None
        if not isinstance(node.parent, str):
            return self._before(node, visited)
        target = self._targets.get(node.parent, node.parent)
        if isinstance(target, str):
            target = self._resolve(target)
        if isinstance(target, str):
            rule = self._note_lost(target, node.line)
        elif target is None or not visited[target.order]:
            return target
        else:
            rule = self._note_cycle(node.line)
        above = self._before(node, visited)
        self.lost.append(Lost(node, rule, above))
        return above

    def _resolve(self, uuid: str) -> Node | str | None:
        """Return the node that a uuid leads to, None for a root, or a uuid where it leads nowhere or in a circle."""
        seen: set[str] = set()
        target: Node | str | None = uuid
        while isinstance(target, str) and target in self._targets and target not in seen:
            seen.add(target)
            target = self._targets[target]
        return target

    def _note_lost(self, uuid: str, line: int) -> str:
        if uuid in self._targets:
            return self._note_cycle(line)
        text = "its parent is not in the file; read on from the line before, where there is one"
        self.findings.append(Finding(self._lines.orphans.get(uuid, line), "dangling-parent", text))
        return "dangling-parent"

    def _note_cycle(self, line: int) -> str:
        self.findings.append(Finding(line, "parent-cycle", "its parents lead back to it; read on from the line before"))
        return "parent-cycle"

    def _position(self, node: Node) -> int | None:
        """Return where a node stands among the own ones; None for one of another conversation."""
        index = bisect_left(self._own, node.order, key=_order)
        return index if index < len(self._own) and self._own[index] is node else None

    def _before(self, node: Node, visited: bytearray) -> Node | None:
        """Return the talk or compaction that stands before a node in the file, for one whose parent is lost."""
        index = self._position(node) or 0
        while index > 0:
            index -= 1
            candidate = self._own[index]
            if not visited[candidate.order] and (candidate.is_talk or candidate.kind == "compaction"):
                return candidate
        return None

    def down_from(self, leaf: Node, above: bytearray) -> list[Node]:
        """Return what hangs below the newest talk without being an answer to it: reminders, meta lines."""
        below: list[Node] = []
        tip = leaf
        for node in self._own[(self._position(leaf) or 0) + 1 :]:
            if not isinstance(node.parent, str) or above[node.order] or not _is_aside(node):
                continue
            if self._targets.get(node.parent) is tip:
                below.append(node)
                tip = node
        return below

    # what the newest path misses -------------------------------------------------------------------

    def with_preserved(self, compaction: Node, kept: list[Node]) -> list[Node]:
        """Return what follows a compaction, with the messages from before it that it kept, where it put them."""
        metadata = compaction.marks.metadata or {}
        there = self._lines.flags(kept)
        once = {node.order: node for node in self._preserved(metadata)}
        preserved = [node for node in once.values() if not there[node.order]]
        if not preserved:
            return kept
        anchors = [_field(metadata, name, "anchorUuid") for name in ("preservedMessages", "preservedSegment")]
        anchor = anchors[0] or anchors[1]
        if anchor == compaction.uuid:
            return [*preserved, *kept]
        after = next((i for i, node in enumerate(kept) if node.uuid == anchor), None)
        if after is None:
            after = next((i for i, node in enumerate(kept) if node.marks.is_summary), -1)
        return [*kept[: after + 1], *preserved, *kept[after + 1 :]]

    def _preserved(self, metadata: Any) -> list[Node]:
        """Return the nodes that a compaction says it kept; none where one of them is gone."""
        listed = _field(metadata, "preservedMessages", "uuids")
        if isinstance(listed, list) and listed:
            if any(uuid not in self._targets for uuid in listed if isinstance(uuid, str)):
                return []
            found = [self._targets[uuid] for uuid in listed if isinstance(uuid, str)]
            return [node for node in found if isinstance(node, Node)]
        return self._segment(
            _field(metadata, "preservedSegment", "headUuid"), _field(metadata, "preservedSegment", "tailUuid")
        )

    def _segment(self, head: Any, tail: Any) -> list[Node]:
        segment: list[Node] = []
        seen: set[str] = set()
        uuid = tail
        while isinstance(uuid, str) and uuid not in seen:
            seen.add(uuid)
            target = self._targets.get(uuid)
            if isinstance(target, str):
                uuid = target
                continue
            if target is None:
                return []
            segment.append(target)
            if target.uuid == head:
                return segment[::-1]
            uuid = target.parent
        return []

    def with_parallel(self, path: list[Node]) -> list[Node]:
        """Return the path with the lines of its answers, and the results of their calls, that it missed.

        They join the stretch from the answer's first line to its last result, in the order of the file.
        """
        on_path = self._lines.flags(path)
        off_path = [node for node in self._own if not on_path[node.order]]
        if not off_path:
            return path
        last = {node.key: index for index, node in enumerate(path) if node.kind == "assistant" and node.key}
        strays = _Strays(self._own, self._targets, path, off_path, last.keys())
        whole: list[Node] = []
        index = 0
        while index < len(path):
            node = path[index]
            missed = strays.pop(node.key) if node.kind == "assistant" else []
            if not missed:
                whole.append(node)
                index += 1
                continue
            end = last[node.key] + 1
            while end < len(path) and _has_results(path[end]):
                end += 1
            whole += sorted([*path[index:end], *missed], key=_order)
            index = end
        return whole


class _Strays:
    """What belongs to the answers on a path and is not on it."""

    def __init__(
        self, own: Iterable[Node], targets: Any, path: Iterable[Node], off_path: Iterable[Node], keys: Set[str]
    ) -> None:
        self._of: dict[str, list[Node]] = {}
        for node in off_path:
            if node.kind == "assistant" and node.key in keys:
                self._of.setdefault(node.key, []).append(node)
        results = [node for node in off_path if _has_results(node)]
        if results:
            results.sort(key=lambda node: not self._hangs_on_answer(node, targets, keys))
            self._give(results, self._open_calls(own, path, keys))

    @staticmethod
    def _open_calls(own: Iterable[Node], path: Iterable[Node], keys: Set[str]) -> dict[str, str]:
        """Return the calls of these answers that nothing on the path answers, each with its answer's key."""
        calls = {
            part.call_id: node.key
            for node in own
            if node.kind == "assistant" and node.key in keys
            for part in node.parts
            if isinstance(part, ToolCall)
        }
        for node in path:
            for call_id in _answered(node):
                calls.pop(call_id, None)
        return calls

    def _give(self, results: Iterable[Node], open_calls: dict[str, str]) -> None:
        for node in results:
            answered = _answered(node)
            key = next((open_calls[call_id] for call_id in answered if call_id in open_calls), None)
            if key is not None:
                self._of.setdefault(key, []).append(node)
                for call_id in answered:
                    open_calls.pop(call_id, None)

    @staticmethod
    def _hangs_on_answer(node: Node, targets: Any, keys: Set[str]) -> bool:
        owners = (targets.get(node.parent), targets.get(node.source))
        return any(isinstance(owner, Node) and owner.key in keys for owner in owners)

    def pop(self, key: str) -> list[Node]:
        """Return the other lines of an answer and the results of its calls, once."""
        return self._of.pop(key, [])


_order = attrgetter("order")


def _has_results(node: Node) -> bool:
    return node.kind == "user" and any(isinstance(part, ToolResult) for part in node.parts)


def _answered(node: Node) -> list[str]:
    return [part.call_id for part in node.parts if isinstance(part, ToolResult) and part.call_id]


def _is_aside(node: Node) -> bool:
    return node.kind in ("attachment", "microcompaction") or (node.kind == "user" and node.marks.is_meta)


def _field(metadata: Any, *keys: str) -> Any:
    for key in keys:
        metadata = metadata.get(key) if isinstance(metadata, dict) else None
    return metadata
