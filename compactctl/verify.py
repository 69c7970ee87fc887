"""The checks that a compacted session must pass: before it is put in place, and again whenever it is asked for.

Each check has a name and is true or false; what failed is said in words.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from compactctl.document import Place
from compactctl.findings import RULES, Finding
from compactctl.model import Message, Reasoning, ToolResult, Transcript
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
    if len(before) != len(after):
        return [f"{len(before)} sessions before, {len(after)} after"]
    return [
        problem
        for old, new, plan in zip(before, after, plans, strict=True)
        for problem in _message_changes(old.messages, new.messages, plan, same_ids, same_sizes)
    ]


def _message_changes(
    before: Sequence[Message], after: Sequence[Message], plan: Plan, same_ids: bool, same_sizes: bool
) -> list[str]:
    if len(before) != len(after):
        return [f"{len(before)} messages before, {len(after)} after"]
    spills = {spill.result.place: spill for spill in plan.spills}
    return [
        f"message {index + 1} (line {old.line}) is not what it was"
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if not _is_same(old, new, spills, same_ids, same_sizes)
    ]


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
    if len(old.parts) == len(new.parts):
        return old
    left = sum(isinstance(part, Reasoning) for part in new.parts)
    parts = tuple(part for part in old.parts if left or not isinstance(part, Reasoning))
    return msgspec.structs.replace(old, parts=parts)


def unbalanced(counts: FateCounts, summarised: Iterable[tuple[int, bool]]) -> list[str]:
    """Return where the loss balance does not hold: a message without a fate, or one that was summarised and whose
    lines are not in the history. `summarised` are lines, and whether the history has them."""
    found = [f"line {line} was summarised and is not in the history" for line, is_there in summarised if not is_there]
    if counts.kept + counts.spilled + counts.summarised != counts.messages:
        found.append(f"the fates of {counts.messages} messages do not add up: {counts}")
    return found


def _is_same(old: Message, new: Message, spills: dict[Place, Spill], same_ids: bool, same_sizes: bool) -> bool:
    if (old.role, len(old.parts)) != (new.role, len(new.parts)) or (same_ids and old.key != new.key):
        return False
    if not same_sizes:
        return all(
            weight(a, ids_alone=True) == weight(b, ids_alone=True) for a, b in zip(old.parts, new.parts, strict=True)
        )
    spill = spills.get(old.result.place) if old.result else None
    if spill is not None and old.result is not None and new.result is not None:
        return _is_replaced(old.result, new.result, spill)
    return all(weight(a) == weight(b) for a, b in zip(old.parts, new.parts, strict=True))


def _is_replaced(old: ToolResult, new: ToolResult, spill: Spill) -> bool:
    kept = (old.call_id, old.is_error, len(old.media)) == (new.call_id, new.is_error, len(new.media))
    return kept and new.size_bytes == len(spill.preview.encode())


def weight(part: object, *, ids_alone: bool = False) -> tuple[object, ...]:
    """Return what must not change about a part: its type, its sizes and ids."""
    if ids_alone:
        return (type(part), *(getattr(part, name, None) for name in ("call_id", "name", "kind", "is_error")))
    names = (
        "size_bytes",
        "sealed_bytes",
        "arguments_bytes",
        "call_id",
        "name",
        "kind",
        "width",
        "height",
        "pages",
        "is_error",
    )
    return (type(part), *(getattr(part, name, None) for name in names))


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
