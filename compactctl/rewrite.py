"""A plan made into edits, and the context as it will be, without writing anything."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from compactctl.document import Document, Place
from compactctl.formats.edits import saved_note
from compactctl.formats.interface import Format, Metas, Spilled
from compactctl.model import Message, Text, ToolResult, Transcript, utf8_size
from compactctl.plan import Cut, Plan, Spill
from compactctl.splicing import Drop, DropTail, Edit, Remove, Replace
from compactctl.turns import Pairs, pairs


def planned_messages(messages: tuple[Message, ...], plan: Plan) -> tuple[Message, ...]:
    """Return the effective context as it will be once the plan is carried out."""
    planned = previews(messages, pairs(messages), plan.spills)
    return tuple(planned.get(index, message) for index, message in enumerate(messages)) if planned else messages


def previews(messages: Sequence[Message], paired: Pairs, spills: Iterable[Spill]) -> dict[int, Message]:
    """Return the messages, by index, of which previews are left, as they will be. `paired` is of these messages."""
    made = {spill.result.place: spill.preview for spill in spills}
    return {
        item.message_index: _with_preview(messages[item.message_index], item.result, made[item.result.place])
        for item in (paired.results if made else ())
        if item.result.place in made
    }


def _with_preview(message: Message, result: ToolResult, preview: str) -> Message:
    shrunk = msgspec.structs.replace(result, size_bytes=len(preview.encode()), is_preview=True, made=preview)
    return msgspec.structs.replace(message, parts=(shrunk, *message.parts[1:]))


def with_results(transcript: Transcript, results: Mapping[Place, ToolResult]) -> Transcript:
    """Return a session with other results at these places."""
    messages = tuple(
        message
        if message.result is None or message.result.place not in results
        else msgspec.structs.replace(message, parts=(results[message.result.place], *message.parts[1:]))
        for message in transcript.messages
    )
    return msgspec.structs.replace(transcript, messages=messages)


def spill_edits(
    format_: Format,
    document: Document,
    plans: Sequence[tuple[Transcript, Plan, int | None]],
    path: Callable[[str], str],
) -> list[Edit]:
    """Return the edits of one file: previews, slimmed copies, the usage record that decides, and no torn tail.

    `plans` are the file's sessions with their plans and their tokens afterwards; one without spills gets no edit.
    Without tokens its usage record is somebody else's matter.
    """
    edits: list[Edit] = [DropTail()]
    for transcript, plan, tokens_after in plans:
        if plan.spills:
            edits += format_.spill_edits(document, [_spilled(spill, path) for spill in plan.spills])
            edits += [] if tokens_after is None else format_.usage_edits(document, transcript, tokens_after)
    return edits


def beside(edits: Iterable[Edit], others: Iterable[Edit]) -> list[Edit]:
    """Return the edits that touch nothing that another one replaces or takes out already."""
    others = list(others)
    taken = {edit.place for edit in others if isinstance(edit, Replace | Remove)}
    dropped = {edit.record for edit in others if isinstance(edit, Drop)}
    return [
        edit
        for edit in edits
        if not isinstance(edit, Replace) or not (edit.place.record in dropped or is_within(edit.place, taken))
    ]


def is_within(place: Place, taken: Collection[Place]) -> bool:
    """Return whether a place is one of these, or lies in one of them."""
    return any(Place(place.record, place.route[:length]) in taken for length in range(len(place.route) + 1))


def cut_messages(messages: tuple[Message, ...], plan: Plan, cut: Cut, metas: Sequence[Message]) -> tuple[Message, ...]:
    """Return the effective context as it will be once it is cut and the plan carried out."""
    planned = planned_messages(messages, plan)
    pinned = () if cut.pinned is None else (planned[cut.pinned],)
    return (*planned[: cut.leading], *metas, *pinned, *planned[cut.first_kept :])


def meta_messages(format_: Format, metas: Metas) -> tuple[Message, ...]:
    """Return what stands in place of the summarised messages as messages, for counting alone: an agent's own record of
    a compaction is one, a log of messages has all three."""
    said = [("user", metas.summary)]
    if not format_.home:
        said += [("assistant", metas.acknowledged), ("user", metas.reminder)]
    return tuple(
        Message(role, (Text(Place(0), utf8_size(text), text),), (), 0, is_summary=index == 0)
        for index, (role, text) in enumerate(said)
    )


def _spilled(spill: Spill, path: Callable[[str], str]) -> Spilled:
    return Spilled(spill.result, spill.preview, saved_note(spill.result.size_bytes, path(spill.file)))
