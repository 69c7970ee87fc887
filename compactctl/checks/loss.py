"""Loss: what a compaction took that was needed again."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from compactctl import generations, spill_files
from compactctl.checks.interface import Check, Subject
from compactctl.findings import BY_GROUP, Finding
from compactctl.model import Transcript
from compactctl.outcome import LossNote, MissedNote, SurvivalNote
from compactctl.redact import redact
from compactctl.session import STANDARD_INPUT, Session
from compactctl.survival import Loss, loss, moments

RULES = tuple(BY_GROUP["loss"])

TOLD = 3
"""So many examples stand in a message."""

MOST_MISSED = 100
"""So many misses of one compaction stand in the JSON."""


class Losses(Struct, frozen=True):
    """What each compaction of a session lost, as far as an answer came after it; so many earlier ones were left out."""

    found: tuple[Loss, ...] = ()
    left_out: int = 0


def losses(session: Session, transcript: Transcript, read_bytes: int | None = None) -> Losses:
    """Return what each compaction of a session lost, without reading more than so many bytes of it again."""
    own = {f"{transcript.session_id}.jsonl"} if transcript.session_id else set()
    file = None if session.path == STANDARD_INPUT else generations.paths_of(session.path).session
    if file is not None:
        own |= {Path(session.path).name, file.name}

    def files(text: str) -> Sequence[str]:
        return () if file is None else spill_files.texts_named(file, text)

    written_lines = (session.own_receipt.output.lines or 0) if session.own_receipt else 0
    made = moments(session.document, session.read.format, transcript, written_lines, read_bytes)
    return Losses(tuple(loss(moment, own, files) for moment in made.found), made.left_out)


def note(found: Loss) -> LossNote:
    """Return a loss as it stands in JSON."""
    reads = found.rereads
    return LossNote(
        line=found.line,
        sealed=found.is_sealed,
        survival={
            kind: SurvivalNote(each.total, each.present, each.reachable) for kind, each in found.survival.items()
        },
        missed=tuple(
            MissedNote(each.reference.kind, redact(each.reference.text).text, each.line, each.is_reachable)
            for each in found.missed[:MOST_MISSED]
        ),
        instructions=tuple(redact(each.text).text for each in found.instructions),
        reads=reads.reads,
        reads_again=reads.again,
        read_bytes=reads.read_bytes,
        read_again_bytes=reads.again_bytes,
    )


def lost(subject: Subject) -> Iterator[Finding]:
    """Yield each compaction after which much of what was used again is gone."""
    audit = subject.settings.audit
    for found in subject.losses:
        total = sum(each.total for each in found.survival.values())
        gone = len(found.missed)
        if gone >= audit.lost_count and gone * 100 > total * audit.lost_percent:
            kinds = ", ".join(
                f"{kind} {each.total - each.present:,} of {each.total:,}"
                for kind, each in found.survival.items()
                if each.total > each.present
            )
            told = ", ".join(f"{redact(each.reference.text).text} (line {each.line})" for each in found.missed[:TOLD])
            reachable = sum(each.is_reachable for each in found.missed)
            ways = f", {reachable:,} of them in a file that it names" if reachable else ""
            text = f"{gone:,} of {total:,} things used again are not in the context after it{ways} ({kinds}): {told}"
            yield Finding(found.line, "lost-after-compaction", text + (", ..." if gone > TOLD else ""))


def lost_instructions(subject: Subject) -> Iterator[Finding]:
    """Yield each instruction of a person that a compaction took and that was given again."""
    for found in subject.losses:
        for each in found.instructions:
            text = f"not in the context after it, and said again at line {each.line}: {redact(each.text).text}"
            yield Finding(found.line, "lost-instruction", text)


def read_again(subject: Subject) -> Iterator[Finding]:
    """Yield each compaction after which mostly files were read that had been read before."""
    audit = subject.settings.audit
    for found in subject.losses:
        reads = found.rereads
        if reads.again >= audit.read_again_count and reads.again * 100 > reads.reads * audit.read_again_percent:
            told = ", ".join(redact(path).text for path in reads.paths[:TOLD])
            text = (
                f"{reads.again:,} of {reads.reads:,} reads until the next compaction read a file again "
                f"({reads.again_bytes:,} bytes): {told}"
            )
            yield Finding(found.line, "read-again", text + (", ..." if len(reads.paths) > TOLD else ""))


CHECKS = (
    Check(("lost-after-compaction",), lost),
    Check(("lost-instruction",), lost_instructions),
    Check(("read-again",), read_again),
)
