"""A plan made into edits, and the context as it will be, without writing anything."""

from collections.abc import Callable, Sequence

import msgspec

from compactctl.document import Document, DropTail, Edit, Place
from compactctl.formats.edits import saved_note
from compactctl.formats.interface import Format, Spilled
from compactctl.model import Message, Transcript
from compactctl.plan import Plan, Spill


def planned_messages(messages: tuple[Message, ...], plan: Plan) -> tuple[Message, ...]:
    """Return the effective context as it will be once the plan is carried out."""
    spills = {spill.result.place: spill for spill in plan.spills}
    return tuple(_planned(message, spills) for message in messages)


def _planned(message: Message, spills: dict[Place, Spill]) -> Message:
    result = message.result
    if result is None or result.place not in spills:
        return message
    size_bytes = len(spills[result.place].preview.encode())
    shrunk = msgspec.structs.replace(result, size_bytes=size_bytes, is_preview=True)
    return msgspec.structs.replace(message, parts=(shrunk, *message.parts[1:]))


def spill_edits(
    format_: Format,
    document: Document,
    plans: Sequence[tuple[Transcript, Plan, int]],
    path: Callable[[str], str],
) -> list[Edit]:
    """Return the edits of one file: previews, slimmed copies, the usage record that decides, and no torn tail.

    `plans` are the file's sessions with their plans and their tokens afterwards; one without spills gets no edit.
    """
    edits: list[Edit] = [DropTail()]
    for transcript, plan, tokens_after in plans:
        if plan.spills:
            edits += format_.spill_edits(document, [_spilled(spill, path) for spill in plan.spills])
            edits += format_.usage_edits(document, transcript, tokens_after)
    return edits


def _spilled(spill: Spill, path: Callable[[str], str]) -> Spilled:
    return Spilled(spill.result, spill.preview, saved_note(spill.result.size_bytes, path(spill.file)))
