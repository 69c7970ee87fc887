"""The checks that a compacted session must pass: before it is put in place, and again whenever it is asked for.

Each check has a name and is true or false; what failed is said in words.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Struct

from compactctl.document import Document, Place
from compactctl.findings import RULES, Finding
from compactctl.model import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, Transcript
from compactctl.outcome import FateCounts
from compactctl.plan import Cut, Plan, Spill

NOT_A_PROBLEM = frozenset({"stale-usage"})
"""Rules that a spill brings about by its nature: what was counted before it no longer holds."""


class Checks(Struct, frozen=True):
    """Every check by name, and what failed in words."""

    held: dict[str, bool]
    problems: tuple[str, ...]

    @property
    def all_held(self) -> bool:
        return all(self.held.values())


def combine(named: dict[str, list[str]]) -> Checks:
    """Return the checks from the problems that each of them found."""
    return Checks(
        {name: not found for name, found in named.items()},
        tuple(f"{name}: {problem}" for name, found in named.items() for problem in found),
    )


def new_problems(before: Iterable[Finding], after: Iterable[Finding]) -> list[str]:
    """Return the problems (errors and warnings) that are in `after` more often than in `before`."""
    known = Counter(finding.rule for finding in before)
    counted: Counter[str] = Counter()
    found = []
    for finding in after:
        counted[finding.rule] += 1
        is_problem = RULES[finding.rule] != "note" and finding.rule not in NOT_A_PROBLEM
        if is_problem and counted[finding.rule] > known[finding.rule]:
            found.append(f"line {finding.line}: {finding.rule}: {finding.message}")
    return found


def context_changes(
    before: Sequence[Transcript],
    after: Sequence[Transcript],
    plans: Sequence[Plan],
    *,
    same_ids: bool = True,
    same_sizes: bool = True,
) -> list[str]:
    """Return where the effective context differs by anything but the planned previews (and ids, unless `same_ids`;
    and texts, unless `same_sizes`).

    Together with the check that restoring gives the source back, this says that every message is kept or spilled.
    """
    noted = [
        Context.of(transcript.messages, plan, same_ids=same_ids, same_sizes=same_sizes)
        for transcript, plan in zip(before, plans, strict=True)
    ]
    return changes(noted, [transcript.messages for transcript in after])


def changes(before: Sequence["Context"], after: Sequence[Sequence[Message]]) -> list[str]:
    """Return where the contexts of a file are not what was to become of those before, as far as sessions go, and in
    them."""
    if len(before) != len(after):
        return [f"{len(before)} sessions before, {len(after)} after"]
    return [
        problem for context, messages in zip(before, after, strict=True) for problem in context.changes_in(messages)
    ]


class Context(Struct, frozen=True):
    """What must not change about the messages of a context: a hash and a line each, so that of a huge session they
    need not be held while its result is read."""

    lines: "array[int]"
    hashes: "array[int]"
    """Of 64 bits each, of this process."""
    spilled: frozenset[int]
    """The indexes of the messages that are replaced by previews."""
    same_ids: bool
    same_sizes: bool

    @classmethod
    def of(
        cls, messages: Sequence[Message], plan: Plan, *, same_ids: bool = True, same_sizes: bool = True
    ) -> "Context":
        """Return what must hold of these messages once the plan is carried out."""
        spills = {spill.result.place: spill for spill in plan.spills}
        spilled: dict[int, Spill] = {}
        if spills:
            for index, message in enumerate(messages):
                if message.result is not None and message.result.place in spills:
                    spilled[index] = spills[message.result.place]
        hashes = array("q")
        for index, message in enumerate(messages):
            hashes.append(hash(_constant(message, same_ids, same_sizes, spilled.get(index))))
        lines = array("Q", (message.line for message in messages))
        return cls(lines, hashes, frozenset(spilled), same_ids, same_sizes)

    def changes_in(self, messages: Sequence[Message]) -> list[str]:
        """Return which of these messages are not what they were to be."""
        if len(self.lines) != len(messages):
            return [f"{len(self.lines)} messages before, {len(messages)} after"]
        return [
            f"message {index + 1} (line {self.lines[index]}) is not what it was"
            for index, message in enumerate(messages)
            if not self._has(index, message)
        ]

    def _has(self, index: int, message: Message) -> bool:
        constant = _constant(message, self.same_ids, self.same_sizes, index in self.spilled)
        return self.hashes[index] == hash(constant)


MOST_METAS = 3
"""How many messages stand in place of what was summarised, at most."""


def cut_changes(
    before: Sequence[Message],
    after: Sequence[Message],
    plan: Plan,
    cut: Cut,
    emptied: Sequence[int] = (),
    *,
    same_ids: bool = True,
    same_sizes: bool = True,
) -> list[str]:
    """Return where a context that was cut is not: the leading messages, a summary, the pinned request, what is kept.

    What is kept may differ by its planned previews, and by reasoning that went whole; messages that held nothing else
    are `emptied`.
    """
    pinned = [] if cut.pinned is None else [before[cut.pinned]]
    behind = [message for index, message in enumerate(before) if index >= cut.first_kept and index not in emptied]
    kept = [*before[: cut.leading], *pinned, *behind]
    metas = len(after) - len(kept)
    if not 1 <= metas <= MOST_METAS:
        return [f"{len(kept)} messages were to be kept behind a summary, {len(after)} are there"]
    if not after[cut.leading].is_summary:
        return [f"message {cut.leading + 1} is no summary"]
    rest = [*after[: cut.leading], *after[cut.leading + metas :]]
    spills = {spill.result.place: spill for spill in plan.spills}
    return [
        f"message {index + 1} (line {old.line}) is not what it was"
        for index, (old, new) in enumerate(zip(kept, rest, strict=True))
        if not _is_same(_without_gone_reasoning(old, new), new, spills, same_ids and old not in pinned, same_sizes)
    ]


def _without_gone_reasoning(old: Message, new: Message) -> Message:
    """Return what a message was to become if the reasoning that the new one lacks went: it alone, and the key that a
    format reads from it."""
    if len(old.parts) == len(new.parts):
        return old
    left = [weight(part) for part in reversed(new.parts) if isinstance(part, Reasoning)]
    parts: list[Part] = []
    for part in old.parts:
        if not isinstance(part, Reasoning):
            parts.append(part)
        elif left and left[-1] == weight(part):
            parts.append(part)
            left.pop()
    key = old.key if old.unsealed_key is None else old.unsealed_key
    return msgspec.structs.replace(old, parts=tuple(parts), key=key)


def preview_changes(plans: Iterable[Plan], texts: Iterable[str]) -> list[str]:
    """Return which planned previews are not among the texts of results, as often as they were planned."""
    missing = Counter(spill.preview for plan in plans for spill in plan.spills)
    missing.subtract(texts)
    return [
        f"the preview of line {spill.line} is not what was planned"
        for plan in plans
        for spill in plan.spills
        if missing[spill.preview] > 0
    ]


def unbalanced(counts: FateCounts, summarised: Iterable[tuple[int, bool]]) -> list[str]:
    """Return where the loss balance does not hold: a message without a fate, or one that was summarised and whose
    lines are not in the history. `summarised` are lines, and whether the history has them."""
    found = [f"line {line} was summarised and is not in the history" for line, is_there in summarised if not is_there]
    if counts.kept + counts.spilled + counts.summarised != counts.messages:
        found.append(f"the fates of {counts.messages} messages do not add up: {counts}")
    return found


def _is_same(old: Message, new: Message, spills: dict[Place, Spill], same_ids: bool, same_sizes: bool) -> bool:
    spill = spills.get(old.result.place) if old.result else None
    return _constant(old, same_ids, same_sizes, spill) == _constant(new, same_ids, same_sizes, spill is not None)


def _constant(message: Message, same_ids: bool, same_sizes: bool, spill: Spill | bool | None) -> tuple[object, ...]:
    """Return what must not change about a message: of one that is spilled (`spill`) with the size of its preview, of
    one that was (True) with its own."""
    said = message.role, message.key if same_ids else "", len(message.parts)
    result = message.result
    if same_sizes and spill and result is not None:
        size_bytes = result.size_bytes if spill is True else len(spill.preview.encode())
        return (*said, result.call_id, result.is_error, len(result.media), size_bytes)
    return (*said, *[weight(part, ids_alone=not same_sizes) for part in message.parts])


def weight(part: Part, *, ids_alone: bool = False) -> tuple[object, ...]:
    """Return what must not change about a part: its type, its sizes and ids."""
    kind = type(part)
    return kind.__name__, (_IDS if ids_alone else _WEIGHTS)[kind](part)


_IDS: dict[type[Part], Callable[[Any], object]] = {
    ToolResult: attrgetter("call_id", "name", "is_error"),
    ToolCall: attrgetter("call_id", "name"),
    Media: attrgetter("kind"),
    Opaque: attrgetter("kind"),
    Text: lambda part: None,
    Reasoning: lambda part: None,
}
_WEIGHTS: dict[type[Part], Callable[[Any], object]] = {
    ToolResult: attrgetter("call_id", "name", "is_error", "size_bytes"),
    ToolCall: attrgetter("call_id", "name", "arguments_bytes"),
    Media: attrgetter("kind", "size_bytes", "width", "height", "pages"),
    Opaque: attrgetter("kind", "size_bytes"),
    Text: attrgetter("size_bytes"),
    Reasoning: attrgetter("size_bytes", "sealed_bytes"),
}


def not_restored(original: Iterable[bytes], source: Document) -> list[str]:
    """Return that these bytes are not the source's, where they are not: it is read again and compared byte by byte."""
    offset = 0
    for piece in original:
        if source.slice(offset, offset + len(piece)) != piece:
            break
        offset += len(piece)
    else:
        if offset == source.size_bytes:
            return []
    return ["putting the originals back gives another file"]


def missing_spills(plans: Iterable[Plan], is_whole: Callable[[str, str], bool]) -> list[str]:
    """Return the spills whose file `is_whole` (by name and sha256) does not find."""
    return [
        f"{spill.file} is gone or changed"
        for plan in plans
        for spill in plan.spills
        if not is_whole(spill.file, spill.sha256)
    ]


def unsettled(plans: Iterable[Plan]) -> list[str]:
    """Return what a second run would still spill."""
    return [
        f"line {spill.line}: a second run would spill call {spill.result.call_id}"
        for plan in plans
        for spill in plan.spills
    ]


def digest(chunks: Iterable[bytes]) -> str:
    """Return the hex sha256 of bytes that come in pieces."""
    made = sha256()
    for chunk in chunks:
        made.update(chunk)
    return made.hexdigest()
