"""What codex goes on with: the steps of a session replayed as codex replays them, and joined into messages."""

from collections.abc import Iterable, Sequence
from itertools import takewhile

import msgspec
from msgspec import Struct

from compactctl.formats.codex.items import Said
from compactctl.model import Message, Part, ToolResult, Usage


class Closed(Struct):
    """A response ended here, and this is what it took."""

    usage: Usage


class Boundary(Struct):
    """A turn started here, or its settings were told."""

    starts_segment: bool


class Compacted(Struct):
    """A compaction was recorded here, with the history that replaces all before it or only with a message."""

    record: int
    line: int
    has_history: bool


class RolledBack(Struct):
    """The last turns were taken back here."""

    turns: int


Step = Said | Closed | Boundary | Compacted | RolledBack
Context = list[Said | Closed | Boundary]


def surviving_base(steps: Sequence[Step]) -> int | None:
    """Return the index of the newest compaction with a history that no rollback took back.

    Backwards, a segment ends at the start of its turn; a rollback takes the next N segments in which somebody spoke.
    """
    pending = 0
    newest: int | None = None
    spoke = False
    for index in reversed(range(len(steps))):
        match steps[index]:
            case RolledBack(turns=turns):
                pending += turns
            case Compacted(has_history=True) if newest is None:
                newest = index
            case Said(starts_turn=True):
                spoke = True
            case Boundary(starts_segment=True):
                if not pending and newest is not None:
                    return newest
                pending -= 1 if pending and spoke else 0
                newest, spoke = None, False
    return newest if not pending else None


def without_turns(context: Context, turns: int) -> Context:
    """Return the context without its last turns; what came before the first turn stays."""
    starts = [index for index, step in enumerate(context) if isinstance(step, Said) and step.starts_turn]
    if not starts or not turns:
        return context
    cut = starts[-turns] if turns < len(starts) else starts[0]
    while cut > starts[0] and _goes_with_the_turn(context[cut - 1]):
        cut -= 1
    return context[:cut]


def _goes_with_the_turn(step: Said | Closed | Boundary) -> bool:
    return isinstance(step, Boundary) or (isinstance(step, Said) and step.is_context)


def why_outside(record: int, floor_record: int) -> str:
    """Return in words why a result is not in context."""
    return "before the last compaction" if record < floor_record else "rolled back"


def joined(context: Context) -> list[Message]:
    """Return the messages: neighbouring items of the assistant are one, all others one each."""
    messages: list[Message] = []
    answer: list[Said] = []
    unpaid: int | None = None

    def flush() -> None:
        nonlocal unpaid
        if parts := tuple(part for said in answer for part in said.parts):
            unpaid = len(messages)
            messages.append(_one(answer, parts))
        answer.clear()

    for step in context:
        match step:
            case Said(role="assistant", stands_alone=False):
                answer.append(step)
            case Said():
                flush()
                if step.parts:
                    messages.append(_one([step], _with_copies(step)))
            case Closed(usage=usage):
                flush()
                if unpaid is not None:
                    messages[unpaid] = msgspec.structs.replace(messages[unpaid], usage=usage)
                unpaid = None
            case Boundary():
                flush()
    flush()
    return messages


def _one(said: Sequence[Said], parts: tuple[Part, ...]) -> Message:
    records = tuple(dict.fromkeys(item.record for item in said))
    key, unsealed = _key(said), _key(item for item in said if not item.is_sealed)
    first = said[0]
    return Message(
        first.role,
        parts,
        records,
        first.line,
        key,
        is_summary=first.is_summary,
        unsealed_key=unsealed if unsealed != key else None,
    )


def _key(said: Iterable[Said]) -> str:
    """Return what an answer is called: by the first of its items that has an id."""
    return next((item.key for item in said if item.key), "")


def _with_copies(said: Said) -> tuple[Part, ...]:
    first = said.parts[0]
    if not said.copies or not isinstance(first, ToolResult):
        return said.parts
    return (msgspec.structs.replace(first, copies=tuple(said.copies)), *said.parts[1:])


def mark_leading(messages: list[Message], context: Context) -> tuple[Message, ...]:
    """Return the messages with those at the very front marked that stay in front of any cut: what developers, and
    codex itself in a user's name (instructions, the environment), told before anybody spoke.
    """
    said = (step for step in context if isinstance(step, Said) and step.parts)
    front = takewhile(lambda step: step.role == "developer" or (step.role == "user" and step.is_context), said)
    for index, _ in enumerate(front):
        messages[index] = msgspec.structs.replace(messages[index], is_leading=True)
    return tuple(messages)
