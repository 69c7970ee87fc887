"""The way back: `restore` gives the original, `verify` says whether a compacted session is whole.

Both need only what compaction kept: the session, what gives its original back and, for `verify`, its receipt and
spills. What an agent appended since is never lost: it goes to a file of its own.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from compactctl import disk, generations, holders, layout, originals, spill_files, store, verify
from compactctl.document import Document
from compactctl.errors import NoReceipt, NotRestorable, OutputChanged, UsageError, VerifyError, WriteError
from compactctl.job import replan
from compactctl.options import IN_PLACE, Options
from compactctl.outcome import Bytes, Outcome, Output, Problem, Status, notes
from compactctl.plan import Plan
from compactctl.receipt import FileNote, Receipt
from compactctl.session import STANDARD_INPUT, Read, Session, opened, read_document

FOUND_SOMETHING = 1
"""The exit code of `verify` when a check does not hold."""


class Kept(Struct):
    """A compacted session opened beside what was kept of its original."""

    paths: layout.Paths
    document: Document
    source: FileNote
    output: FileNote
    receipt: Receipt | None

    @property
    def appended_bytes(self) -> int:
        """Return how many bytes stand after what compaction wrote."""
        return self.document.size_bytes - self.output.bytes

    def original(self) -> Iterator[bytes]:
        """Yield the original session, byte for byte. Raises NoReceipt where what was kept is damaged."""
        yield from originals.restored(self.document, self.output.bytes, *_files(self.paths, self.receipt))

    def appended(self) -> Iterator[bytes]:
        """Yield what was appended since."""
        yield from self.document.windows(self.output.bytes, self.document.size_bytes)


def _files(paths: layout.Paths, receipt: Receipt | None) -> tuple[Path | None, ...]:
    """Return where the whole original, the replaced values, the copies and the history are, as far as each was kept."""
    if receipt is None:
        beside = [path if os.path.exists(path) else None for path in (paths.copies, paths.history)]
        return None, paths.originals, *beside
    kept = receipt.backup, receipt.originals, receipt.copies, receipt.history
    for note in kept[1:]:
        if note is not None and not layout.is_plain_name(note.name):
            raise NoReceipt(f"{paths.report}: it names {note.name}, which is not in {paths.folder}")
    return tuple(paths.folder / note.name if note else None for note in kept)


@contextlib.contextmanager
def _kept(path: str) -> Iterator[Kept]:
    """Open a compacted session for undoing. Raises NoReceipt or NotRestorable, saying what is missing."""
    paths = generations.paths_of(path)
    with disk.reading(path) as source:
        document = Document(source)
        receipt = generations.own(paths, document.starts_as)
        written = (receipt.source, receipt.output) if receipt else _as_originals_say(paths)
        if receipt is not None and not document.starts_as(receipt.output.bytes, receipt.output.sha256):
            written = _as_originals_say(paths) if os.path.exists(paths.originals) else written
            receipt = None
        kept = Kept(paths, document, *written, receipt)
        for file in _files(paths, receipt):
            if file is not None and not os.path.exists(file):
                raise NoReceipt(f"{path}: {file} is missing: nothing to restore from")
        if not document.starts_as(kept.output.bytes, kept.output.sha256):
            raise NotRestorable(
                f"{path}: its first {kept.output.bytes:,} bytes are not what compactctl wrote, so the original can't "
                "be put together; if a run was interrupted, run it again over the source"
            )
        yield kept


def _as_originals_say(paths: layout.Paths) -> tuple[FileNote, FileNote]:
    """Return source and output as the originals file names them: a run that was killed may have left no receipt."""
    if not os.path.exists(paths.originals):
        raise _without_originals(paths)
    with disk.reading(str(paths.originals)) as rows:
        header, _ = originals.read(rows, str(paths.originals))
    if header.output.name != paths.session.name:
        made = paths.session.with_name(header.output.name)
        raise NoReceipt(f"{paths.session}: not a compacted session; what was made of it is {made}")
    return header.source, header.output


def _without_originals(paths: layout.Paths) -> NoReceipt | NotRestorable:
    """Return why a session can't be undone that no receipt fits: it never was compacted, or it was changed since."""
    receipt = generations.newest(paths)
    if receipt is None:
        return NoReceipt(f"{paths.session}: not a compacted session: no receipt or originals in {paths.folder}")
    changed = f"{paths.session}: its first {receipt.output.bytes:,} bytes are not what compactctl wrote"
    kept = f"; its original is kept whole in {paths.folder / receipt.backup.name}" if receipt.backup else ""
    return NotRestorable(f"{changed}, so nothing can be undone{kept}")


# restore -----------------------------------------------------------------------------------------


def restore(path: str, options: Options, folder: Path) -> list[Outcome]:
    """Write the original of a compacted session to `folder` (or in place of it) and return what was done.

    Raises NoReceipt, NotRestorable, or WriteError; nothing is written then.
    """
    with _kept(path) as kept:
        if verify.digest(kept.original()) != kept.source.sha256:
            raise NotRestorable(f"{path}: what was kept does not give its source back: {kept.paths.folder} is damaged")
        if options.place == IN_PLACE:
            return [_restored_in_place(path, kept, options)]
        return [_restored(path, kept, options, folder)]


def _restored(path: str, kept: Kept, options: Options, folder: Path) -> Outcome:
    target, beside = folder / kept.paths.restored.name, folder / kept.paths.appended.name
    status = _put(target, kept.source.sha256, kept.original(), options.apply)
    said = [f"{target} is {_what_it_equals(kept)} byte for byte (sha256 {kept.source.sha256})"]
    if kept.appended_bytes:
        _put(beside, verify.digest(kept.appended()), kept.appended(), options.apply)
        said.append(f"{kept.appended_bytes:,} bytes that were appended since are in {beside}")
    return _undone(path, kept, status, target, said)


def _what_it_equals(kept: Kept) -> str:
    """Return what an original is the same as. Its source may have changed since, and is not looked at."""
    name = kept.source.name
    if name == STANDARD_INPUT:
        return "what came from standard input,"
    if name != kept.output.name:
        return f"what {name} was when it was compacted,"
    generation = kept.receipt.generation if kept.receipt else None
    return f"what {name} was before {'it was compacted' if generation is None else f'compaction {generation}'},"


def _restored_in_place(path: str, kept: Kept, options: Options) -> Outcome:
    """Undo the newest compaction in place: the original takes the session's place, its receipt is set aside."""
    receipt = kept.receipt
    if receipt is None or receipt.generation is None:
        raise UsageError(f"{path}: it was not compacted in place; restore without --in-place writes its original")
    target = Path(os.path.realpath(path))
    said = [f"{target} is again what it was before compaction {receipt.generation} (sha256 {kept.source.sha256})"]
    if kept.appended_bytes:
        if not options.discard_new:
            raise WriteError(
                f"{path}: {kept.appended_bytes:,} bytes were appended since it was compacted; restore without "
                "--in-place keeps both, --discard-new takes them out of the session"
            )
        beside = _free_name(kept.paths.appended)
        _put(beside, verify.digest(kept.appended()), kept.appended(), options.apply)
        said.append(f"{kept.appended_bytes:,} bytes that were appended since are in {beside}")
    if not options.apply:
        return _undone(path, kept, "planned", target, said)
    pids = holders.pids(target)
    if pids:
        raise WriteError(f"{path}: held open by another process ({pids[0]}); close it and run again")
    original = store.Candidate(target, like=target)
    original.write(kept.original())
    original.commit()
    generations.set_aside(kept.paths, receipt)
    return _undone(path, kept, "applied", target, said)


def _free_name(path: Path) -> Path:
    """Return a name that no file has, so that nothing an earlier restore kept is in the way."""
    numbered = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in range(2, 10_000))
    return path if not path.exists() else next(name for name in numbered if not name.exists())


def _put(target: Path, digest: str, chunks: Iterator[bytes], is_applied: bool) -> Status:
    """Write a file unless it is there already. Raises OutputChanged where something else is."""
    if target.exists():
        if disk.file_sha256(target) == digest:
            return "unchanged"
        raise OutputChanged(f"{target}: something else is there; move it away or restore elsewhere with --out DIR")
    if not is_applied:
        return "planned"
    store.write_whole(target, chunks)
    return "applied"


def _undone(path: str, kept: Kept, status: Status, target: Path, said: list[str]) -> Outcome:
    return Outcome(
        path=path,
        status=status,
        bytes=Bytes(kept.document.size_bytes, kept.source.bytes),
        output=Output(str(target), str(kept.paths.report), str(kept.paths.spills)),
        notes=tuple(said),
        checks={"original": True},
    )


# verify ------------------------------------------------------------------------------------------


def check(path: str, options: Options) -> list[Outcome]:
    """Return whether a compacted session is whole: the checks of its commit again, without the source.

    Raises NoReceipt or NotRestorable where there is nothing to check against.
    """
    with _kept(path) as kept, opened(path, options.format) as session:
        receipt = kept.receipt
        if receipt is None:
            raise NoReceipt(f"{path}: {kept.paths.report.name} is missing or damaged")
        last = receipt.output.lines or 0
        settled = verify.unsettled(_second_run(session.document, session.read, receipt, kept.paths))
        session.read = session.read.without_contexts()  # of a huge session there is no room for those of the original
        with tempfile.TemporaryFile() as source:
            for chunk in kept.original():
                source.write(chunk)
            document = Document(source)
            before = read_document(path, document, session.read.format.name).findings
            is_original = document.sha256() == receipt.source.sha256
        own_problems = [finding for finding in session.read.findings if (finding.line or 0) <= last]
        checks = verify.combine(
            {
                "restorable": [] if is_original else ["putting the originals back gives another file"],
                "no_new_problem": verify.new_problems(before, own_problems),
                "spills_present": _missing(receipt, kept.paths),
                **_history_check(receipt, kept.paths),
                "settled": settled,
            }
        )
        return [_verified(session, kept, checks, max(0, session.document.line_count - last))]


def _second_run(document: Document, read: Read, receipt: Receipt, paths: layout.Paths) -> list[Plan]:
    """Return what a second run would do to the part that compaction wrote; what came later is not its matter."""
    if any(session.failures for session in receipt.sessions):
        return []
    last = receipt.output.lines or 0
    plans = replan(document, read.format, read.transcripts, receipt, paths)
    return [Plan(spills=tuple(spill for spill in plan.spills if spill.line <= last)) for plan in plans]


def _missing(receipt: Receipt, paths: layout.Paths) -> list[str]:
    return [
        f"{decision.file} is gone or changed"
        for session in receipt.sessions
        for decision in session.decisions
        if decision.file and not spill_files.is_whole(paths.spills, decision.file, decision.sha256 or "")
    ]


def _history_check(receipt: Receipt, paths: layout.Paths) -> dict[str, list[str]]:
    """Return the check of the history file, where there is one."""
    note = receipt.history
    if note is None:
        return {}
    is_whole = disk.file_sha256(paths.folder / note.name) == note.sha256
    return {"history_kept": [] if is_whole else [f"{note.name} is changed"]}


def _verified(session: Session, kept: Kept, checks: verify.Checks, appended_lines: int) -> Outcome:
    said = list(checks.problems)
    if appended_lines:
        said.append(f"lines appended since: {appended_lines}; they are not part of the checks")
    made = Outcome(
        path=session.path,
        format=session.read.format.name,
        session_id=session.read.transcripts[0].session_id,
        bytes=Bytes(kept.document.size_bytes, kept.document.size_bytes, disk.size_bytes(kept.paths.folder)),
        checks=checks.held,
        findings=notes(session.read.findings),
        notes=tuple(said),
    )
    if not checks.all_held:
        made.status = "failed"
        made.error = Problem(VerifyError("").code, checks.problems[0])
        made.exit_code = FOUND_SOMETHING
    return made
