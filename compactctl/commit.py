"""The writing half of a compaction, in an order that a crash at any point leaves safe.

Spill files first, then what gives the original back, then the session in one rename, its receipt last. Nothing is
put in place before the new session was read again from disk and passed every check.
"""

import contextlib
import os
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from compactctl import disk, generations, holders, layout, originals, receipt, spill_files, splicing, store, verify
from compactctl.commit_checks import Replaced, Unchecked, check, known_before, values_replaced
from compactctl.errors import OutputChanged, ReadError, SourceChanged, SpillFailed, WriteError
from compactctl.formats.fork import UUID
from compactctl.formats.interface import SideFile
from compactctl.job import Job, Planned, plan
from compactctl.job_edits import make_edits
from compactctl.kept import candidate, write_kept
from compactctl.plan import Failure
from compactctl.receipt import Receipt
from compactctl.texts import result_text
from compactctl.verify import Checks


class Written(Struct, frozen=True):
    """What a commit came to. `is_new` is False where the very same files were there already."""

    size_bytes: int
    checks: Checks
    is_new: bool
    original: Path | None = None
    """Where the whole original is kept, if it is."""
    slimmed_bytes: int = 0
    """What was taken out that the model never sees."""


def write_spills(job: Job) -> None:
    """Write every planned spill; where one fails, plan again without it: its result stays where it is."""
    failures: list[Failure] = []
    while True:
        fresh = [failure for item in job.planned for failure in _spill_failures(job, item)]
        if not fresh:
            if any(plan.spills for plan in job.plans):
                spill_files.keep(job.paths.spills)
            return
        failures += fresh
        plan(job, failures)


def _spill_failures(job: Job, item: Planned) -> list[Failure]:
    failures = []
    for spill in item.plan.spills:
        text = result_text(job.session.document, spill.result)
        try:
            spill_files.write(job.paths.spills, spill.file, text.encode())
        except SpillFailed as error:
            place = spill.result.call_id, spill.exchange, spill.line
            failures.append(Failure(*place, str(error), item.sized.transcript.index))
    return failures


def commit(job: Job) -> Written:
    """Write the session and what belongs to it. Raises WriteError or VerifyError, and has changed nothing then."""
    with contextlib.ExitStack() as on_disk:
        written = _write(on_disk, job)
        checks, noted = check(job, written)
        _require_unchanged(job)
        is_new = _put_in_place(job, noted, written)
    kept = written.kept
    whole = kept.whole.path if kept.whole else None
    return Written(written.session_file.size_bytes, checks, is_new, whole, kept.slimmed_bytes)


def _write(on_disk: contextlib.ExitStack, job: Job) -> Unchecked:
    """Write the session and what gives the original back, not yet in place; return what is to hold of the session.

    Of a huge one there is room for its messages, for all its edits, or for the messages of the result.
    """
    document, source = job.session.document, Path(job.session.path)
    planned = make_edits(job)
    edits = values_replaced(job, planned)
    before = known_before(job, planned.cuts) if edits is None else None
    every = planned.splices(document)
    session_file = candidate(on_disk, job.paths.session, source if job.is_in_place else None)
    if job.source_sha256:
        session_file.write(splicing.edited(document, every))
    else:
        read = sha256()
        session_file.write(splicing.edited(document, every, read=read.update))
        job.source_sha256 = read.hexdigest()
    kept = write_kept(on_disk, job, planned, every, session_file)
    job.forget_edits()
    return Unchecked(session_file, kept, before or Replaced(edits or [], every))


# what must hold before, and the last steps ---------------------------------------------------------


def require_place(job: Job) -> None:
    """Raise WriteError where the result must not be put: something else is there, or a process holds it open."""
    for path in (job.paths.report, job.paths.originals):
        store.require_ours(path)
    if job.is_in_place:
        _require_not_held(job)
    elif os.path.exists(job.paths.session) and disk.file_sha256(job.paths.session) not in _own_digests(job.paths):
        raise OutputChanged(
            f"{job.paths.session}: it is there and is not what compactctl wrote (an agent may have gone on in it); "
            f"move it away, or compact it instead: compactctl {job.command} {job.paths.session}"
        )


def _require_not_held(job: Job) -> None:
    pids = holders.pids(job.paths.session)
    if pids:
        told = ", ".join(str(pid) for pid in pids)
        raise WriteError(f"{job.session.path}: held open by another process ({told}); close it and run again")


def _own_digests(paths: layout.Paths) -> set[str]:
    """Return the digests of the sessions that compaction wrote there: as its receipt says, and as its originals
    say, since a run that was killed may have left no receipt."""
    earlier = generations.receipt_at(paths.report)
    known = {earlier.output.sha256} if earlier else set()
    with contextlib.suppress(ReadError), disk.reading(str(paths.originals)) as source:
        known.add(originals.read(source, str(paths.originals))[0].output.sha256)
    return known


def _require_unchanged(job: Job) -> None:
    snapshot = job.session.snapshot
    if snapshot is not None and disk.Snapshot.of(Path(job.session.path)) != snapshot:
        raise SourceChanged(f"{job.session.path}: it changed while it was read; nothing was written, run it again")
    if job.is_in_place:
        _require_not_held(job)


def _put_in_place(job: Job, noted: Receipt, written: Unchecked) -> bool:
    """Put the files in place, the receipt last; return False where the very same files are there already."""
    kept = written.kept
    if _is_in_place(job, written, noted):
        return False
    for file in kept.files:
        file.commit()
    if kept.number is not None:
        _keep_receipts(job, kept.number, noted)
    for side_file in job.new.side_files if job.new else ():
        _write_side_file(job, side_file)
    written.session_file.commit()
    store.write_whole(job.paths.report, receipt.chunks(noted))
    return True


def _is_in_place(job: Job, written: Unchecked, noted: Receipt) -> bool:
    files = written.session_file, *written.kept.files
    are_there = all(disk.file_sha256(file.path) == file.sha256 for file in files)
    return are_there and disk.file_sha256(job.paths.report) == verify.digest(receipt.chunks(noted))


def _keep_receipts(job: Job, number: int, noted: Receipt) -> None:
    """Write a compaction's receipt under its number, and first the one beside it that the new one will replace."""
    earlier = generations.receipt_at(job.paths.report)
    if earlier is not None and earlier.generation is None:
        kept = disk.read_beside(job.paths.report) or b""
        store.write_whole(job.paths.numbered("report", number, generations.REPORT_ENDING), [kept])
        number += 1
    store.write_whole(job.paths.numbered("report", number, generations.REPORT_ENDING), receipt.chunks(noted))


def _write_side_file(job: Job, side_file: SideFile) -> None:
    """Copy what a new session takes along; a file that is there with other bytes is never overwritten.

    What is in a store of the agent's own stays where the new session does not lie beside the old one.
    """
    folder = Path(job.session.path).parent
    if side_file.is_outside and not folder.samefile(job.paths.session.parent):
        return
    source = folder / side_file.source
    target = job.paths.session.parent / side_file.target
    files = sorted(source.rglob("*")) if source.is_dir() else [source]
    for path in (file for file in files if file.is_file()):
        place = target / path.relative_to(source) if source.is_dir() else target
        data = _renamed(job, path) if side_file.rewrite_id and path.suffix == ".jsonl" else _bytes_of(path)
        if not os.path.lexists(place):
            store.write_whole(place, [data])
        elif disk.read_beside(place) != data:
            raise OutputChanged(f"{place}: something else is there; nothing was written")


def _renamed(job: Job, path: Path) -> bytes:
    """Return a side file's bytes with the new session's id for the old one, where that is an id and no mere word."""
    data, old = _bytes_of(path), job.session.read.transcripts[0].session_id or ""
    return data.replace(old.encode(), job.new.session_id.encode()) if job.new and UUID.fullmatch(old) else data


def _bytes_of(path: Path) -> bytes:
    try:
        with disk.open_plain(path) as source:
            return source.read()
    except OSError as error:
        raise disk.read_error(str(path), error) from None
