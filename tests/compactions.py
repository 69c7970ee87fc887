"""A compaction made by a format's edits, as the tests of formats and the laws look at it."""

import io

from msgspec import structs

from compactctl import splicing
from compactctl.document import Document
from compactctl.formats.cutting import signed_reasoning
from compactctl.formats.interface import Metas, RecordedCut, Spilled
from compactctl.model import Message
from compactctl.plan import Cut
from compactctl.splicing import DropTail
from tests import contexts

METAS = Metas("The story so far: a shop was moved.", "Noted.", "The summary is no transcript; read again what matters.")
TOKENS = 90_000, 4_000


def opened(raw: bytes, format_):
    """Return the document of these bytes, and its first session."""
    document = Document(io.BytesIO(raw))
    return document, format_.read(document)[0]


def compacted(format_, raw, cut, metas=METAS, *, keep_history=False, spilled=()):
    """Return the bytes after a compaction, and its edits; with the spills of `spilled` made in the same go."""
    document, transcript = opened(raw, format_)
    made = format_.compaction(document, transcript, RecordedCut(cut, metas, *TOKENS, keep_history))
    spills = format_.spill_edits(document, list(spilled))
    edits = [DropTail(), *made.edits, *spills]
    return b"".join(splicing.edited(document, splicing.concrete(document, edits))), made


def lines(format_, raw):
    """Return a line a message of the effective context."""
    document, transcript = opened(raw, format_)
    return contexts.lines(document, transcript)


def expected(format_, raw, cut: Cut, made):
    """Return the lines that the context must come to, without those of the summary itself."""
    document, transcript = opened(raw, format_)
    bare = [
        structs.replace(message, parts=tuple(unsigned(document, message))) if index >= cut.first_kept else message
        for index, message in enumerate(transcript.messages)
    ]
    told = contexts.lines(document, structs.replace(transcript, messages=tuple(bare)))
    kept = [i for i in range(cut.first_kept, len(told)) if i not in made.emptied]
    pinned = [cut.pinned] if cut.pinned is not None else []
    return told[: cut.leading], [told[i] for i in (*pinned, *kept)]


def unsigned(document, message: Message):
    """Yield the parts of a message without signed reasoning, which goes; a sealed summary is none."""
    stale = [] if message.is_summary else list(signed_reasoning(document, message))
    for part in message.parts:
        route = part.place.route
        if not any(route[: len(block.route)] == block.route and part.place.record == block.record for block in stale):
            yield part


def previews(messages: tuple[Message, ...]) -> list[Spilled]:
    """Return a spill of every result of these messages."""
    return [Spilled(message.result, "[preview]", "[moved]") for message in messages if message.result is not None]
