"""`audit --fix`: the faults of one file that can be mended without guessing, mended in a new file.

The promise: what is not mended keeps its bytes, every message of the context stays but for the results that are taken
out, and nothing is written that has a problem which its source lacked. The source stays as it is: to undo is to use it.
"""

import contextlib
import io
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from compactctl import audit, disk, layout, splicing, store, verify
from compactctl.document import Document
from compactctl.errors import OutputChanged, SourceChanged, VerifyError
from compactctl.formats.interface import Format, Mend
from compactctl.model import Message, Transcript
from compactctl.options import Options
from compactctl.outcome import Bytes, EditNote, FixNote, Outcome, Status
from compactctl.session import Session, reread
from compactctl.splicing import DropTail, Edit
from compactctl.turns import misfits

LINKS = frozenset({"torn-tail", "parent-cycle", "dangling-parent"})
"""The rules of what is mended before calls and results are."""

MENDED = LINKS | {
    "result-without-call",
    "duplicate-result",
    "call-without-result",
    "unfinished-call",
}
"""The rules that are mended. A result that names no call (`bad-call-id`) goes as well; a call without an id stays, and
so do calls that share one."""

MOST_TOLD = 5
"""So many reasons are told why a result is refused."""

IN_MEMORY_BYTES = 1 << 26
"""A mended file up to this size is checked in memory, a larger one in a temporary file."""

Step = Callable[[Format, Document, Sequence[Transcript]], list[Mend]]


def fix(session: Session, options: Options, paths: layout.Paths) -> list[Outcome]:
    """Return what an audit of the mended file finds, with what was mended; with `apply`, write it first.

    Where nothing can be mended that is the audit of the file itself. Raises VerifyError, WriteError, OutputChanged or
    SourceChanged, and has written nothing then.
    """
    with contextlib.ExitStack() as on_disk:
        mended, mends = _mended(session, options, on_disk)
        outcomes = audit.audit(mended, options)
        if mends:
            status = _put(mended, session, paths.fixed) if options.apply else "planned"
            notes = tuple(EditNote(mend.line, mend.rule, mend.text) for mend in mends)
            outcomes[0].status = status
            outcomes[0].fix = FixNote(str(paths.fixed), notes)
            outcomes[0].bytes = Bytes(session.document.size_bytes, mended.document.size_bytes)
        return outcomes


# mending -----------------------------------------------------------------------------------------


def _mended(session: Session, options: Options, on_disk: contextlib.ExitStack) -> tuple[Session, list[Mend]]:
    """Return the file as it is once it is mended, and what was done, by line of the source.

    No step before the last one moves a line.
    """
    wanted = audit.wanted_rules(options.audit, options.settings)
    done: list[Mend] = []
    states = [session]
    for step in (_tail, _links, _pairs):
        current = states[-1]
        mends = [
            mend
            for mend in step(current.read.format, current.document, current.read.transcripts)
            if mend.rule in wanted
        ]
        edits = [edit for mend in mends for edit in mend.edits]
        done += mends
        states.append(_next(current, edits, on_disk) if edits else current)
    if done:
        _require_sound(session, states[-2], states[-1], done)
    return states[-1], sorted(done, key=lambda mend: mend.line)


def _tail(format_: Format, document: Document, transcripts: Sequence[Transcript]) -> list[Mend]:
    torn = document.torn_tail
    if torn is None:
        return []
    size = torn[1] - torn[0]
    return [Mend(document.line_count, "torn-tail", f"leaves out the torn last line, {size:,} bytes", (DropTail(),))]


def _links(format_: Format, document: Document, transcripts: Sequence[Transcript]) -> list[Mend]:
    return [mend for transcript in transcripts for mend in format_.mend_links(document, transcript)]


def _pairs(format_: Format, document: Document, transcripts: Sequence[Transcript]) -> list[Mend]:
    return [mend for transcript in transcripts for mend in format_.mend_pairs(document, transcript)]


def _next(session: Session, edits: Sequence[Edit], on_disk: contextlib.ExitStack) -> Session:
    """Return the session with these edits made, read anew."""
    document = session.document
    is_small = document.size_bytes <= IN_MEMORY_BYTES
    target: BinaryIO = io.BytesIO() if is_small else on_disk.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    target.writelines(splicing.edited(document, splicing.concrete(document, edits)))
    made, read = reread(target, session.path, session.read.format)
    return Session(session.path, made, read, session.snapshot, session.own_receipt)


# checking ----------------------------------------------------------------------------------------


def _require_sound(before: Session, linked: Session, after: Session, done: Sequence[Mend]) -> None:
    """Raise VerifyError where the mended file lost a message, has a new problem, or still one that was mended.

    What linking brought back into context has problems of its own, which are not new to the file. What was read in a
    circle says nothing of what the context is, so there only the linked file is what nothing may be lost from.
    """
    rules = {mend.rule for mend in done}
    left = {finding.rule for finding in after.read.findings} & LINKS
    new = left - rules - {finding.rule for finding in before.read.findings}
    problems = [f"{rule} is new" for rule in sorted(new)]
    problems += verify.new_problems(linked.read.findings, after.read.findings)
    if len(before.read.transcripts) != len(after.read.transcripts):
        problems.append(f"{len(before.read.transcripts)} sessions before, {len(after.read.transcripts)} after")
    for old, whole, new in zip(*(each.read.transcripts for each in (before, linked, after)), strict=False):
        taken = {each.index for each in misfits(whole.messages)[0] if each.rule in rules}
        kept = [message for index, message in enumerate(whole.messages) if index not in taken]
        lost = [
            *_lost(kept, new.messages),
            *(_lost(old.messages, whole.messages) if "parent-cycle" not in rules else ()),
        ]
        problems += [f"line {line}: something of it is gone from the context" for line in lost]
        surplus, gaps = misfits(new.messages)
        left |= {each.rule for each in surplus} | {each.rule for each in gaps}
    problems += [f"{rule} is left" for rule in sorted(left & rules)]
    if problems:
        told = "; ".join(problems[:MOST_TOLD]) + ("; ..." if len(problems) > MOST_TOLD else "")
        raise VerifyError(f"{before.path}: not mended, the result failed its checks: {told}")


def _lost(old: Iterable[Message], new: Iterable[Message]) -> list[int]:
    """Return the lines of what was said by the old messages and is not said by the new ones, in the same order.

    Messages are not told apart: answers that nothing parts any more may be read as one.
    """
    said = [(message.role, verify.weight(part)) for message in new for part in message.parts]
    lost = []
    at = 0
    for message in old:
        for part in message.parts:
            wanted = message.role, verify.weight(part)
            found = next((index for index in range(at, len(said)) if said[index] == wanted), None)
            if found is None:
                lost.append(message.line)
            else:
                at = found + 1
    return lost


# writing -----------------------------------------------------------------------------------------


def _put(mended: Session, source: Session, target: Path) -> Status:
    """Write the mended file unless it is there already. Raises OutputChanged where something else is."""
    document = mended.document
    if target.exists():
        if disk.file_sha256(target) == document.sha256():
            return "unchanged"
        raise OutputChanged(f"{target}: something else is there; move it away or mend elsewhere with --out DIR")
    if source.snapshot is not None and disk.Snapshot.of(Path(source.path)) != source.snapshot:
        raise SourceChanged(f"{source.path}: it changed while it was read; run it again")
    store.write_whole(target, document.windows(0, document.size_bytes))
    return "applied"
