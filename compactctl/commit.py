"""The writing half of a compaction, in an order that a crash at any point leaves safe.

Spill files first, then what gives the original back, then the session in one rename, its receipt last. Nothing is
put in place before the new session was read again from disk and passed every check.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from compactctl import (
    __version__,
    disk,
    generations,
    history,
    holders,
    layout,
    originals,
    packing,
    receipt,
    spill_files,
    splicing,
    store,
    verify,
)
from compactctl.cut import summarised
from compactctl.document import Document
from compactctl.errors import OutputChanged, ReadError, SourceChanged, SpillFailed, VerifyError, WriteError
from compactctl.formats.fork import UUID
from compactctl.formats.interface import CompactionEdits, SideFile
from compactctl.job import Job, Planned, hidden_tokens, interval_after, plan, replan
from compactctl.job_edits import Edits, bytes_saved, make_edits
from compactctl.model import Transcript
from compactctl.outcome import Layer2Note
from compactctl.plan import Failure, Plan
from compactctl.receipt import FileNote, Receipt, SessionNote, TokensNote
from compactctl.session import Read, reread
from compactctl.settings import public
from compactctl.splicing import Splice, Splices
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
        before, session_file, kept = _write(on_disk, job)
        checked, noted = _checked(job, before, session_file, kept)
        _require_unchanged(job)
        is_new = _put_in_place(job, noted, session_file, kept)
    whole = kept.whole.path if kept.whole else None
    return Written(session_file.size_bytes, checked, is_new, whole, kept.slimmed_bytes)


def _write(on_disk: contextlib.ExitStack, job: Job) -> "tuple[Before, store.Candidate, Kept]":
    """Write the session and what gives the original back, not yet in place; return what is to hold of the session.

    Of a huge one there is room for its messages, for all its edits, or for the messages of the result.
    """
    document, source = job.session.document, Path(job.session.path)
    planned = make_edits(job)
    before = _before(job, planned.cuts)
    every = planned.splices(document)
    session_file = _candidate(on_disk, job.paths.session, source if job.is_in_place else None)
    if job.source_sha256:
        session_file.write(splicing.edited(document, every))
    else:
        read = sha256()
        session_file.write(splicing.edited(document, every, read=read.update))
        job.source_sha256 = read.hexdigest()
    kept = _write_kept(on_disk, job, planned, every, session_file)
    job.forget_edits()
    if not job.is_cut:
        document.forget()
    return before, session_file, kept


def _candidate(on_disk: contextlib.ExitStack, path: Path, like: Path | None = None) -> store.Candidate:
    candidate = store.Candidate(path, like)
    on_disk.callback(candidate.discard)
    return candidate


# what gives the original back ----------------------------------------------------------------------


class Kept(Struct):
    """The files that give the original back: the whole of it, or the values that were replaced."""

    header: originals.Header
    number: int | None
    whole: store.Candidate | None = None
    values: store.Candidate | None = None
    copies: store.Candidate | None = None
    history: store.Candidate | None = None
    summary: store.Candidate | None = None
    slimmed_bytes: int = 0

    @property
    def files(self) -> list[store.Candidate]:
        kept = (self.whole, self.history, self.summary, self.values, self.copies)
        return [file for file in kept if file is not None]

    def original(self, result: Document) -> Iterator[bytes]:
        """Yield the original session from what lies on disk, not yet in place."""
        return originals.restored(
            result,
            self.header.output.bytes,
            *(file.written if file else None for file in (self.whole, self.values, self.copies, self.history)),
        )


def _write_kept(
    on_disk: contextlib.ExitStack, job: Job, planned: Edits, every: Splices, session_file: store.Candidate
) -> Kept:
    document = job.session.document
    source = FileNote(Path(job.session.path).name, document.size_bytes, job.source_sha256, document.line_count)
    output = FileNote(job.paths.session.name, session_file.size_bytes, session_file.sha256)
    kept = Kept(originals.Header(originals.SCHEMA, source, output), _number(job))
    slimming = planned.slimmed(document, every)
    kept.slimmed_bytes = bytes_saved(slimming)
    rest = (splice for splice in every if splice not in slimming)
    moved = _write_history(on_disk, job, planned.moved, tuple(rest), kept) if job.is_cut else {}
    if job.keeps_whole:
        kept.whole = _candidate(on_disk, _backup_path(job, kept.number or 1))
        chunks = document.windows(0, document.size_bytes)
        kept.whole.write(packing.packed(chunks) if job.options.backup == "zst" else chunks)
        return kept
    values, copies = _values_paths(job, kept.number)
    kept.values = _candidate(on_disk, values)
    kept.values.write(originals.lines(kept.header, document, every, lambda splice: splice not in slimming, moved))
    if slimming:
        kept.copies = _candidate(on_disk, copies)
        kept.copies.write(packing.packed(originals.lines(kept.header, document, every, slimming.__contains__, moved)))
    return kept


def _write_history(
    on_disk: contextlib.ExitStack, job: Job, moved: frozenset[int], splices: Sequence[Splice], kept: Kept
) -> Mapping[Splice, int]:
    """Write the lines that summaries stand for, and the summaries; return where in it what was left out stands."""
    document = job.session.document
    planned = history.plan(document, moved, splices)
    kept.history = _candidate(on_disk, history_path(job, kept.number))
    kept.history.write(history.chunks(document, planned))
    kept.summary = _candidate(on_disk, summary_path(job, kept.number))
    kept.summary.write([_summaries(job).encode()])
    return planned.offsets


def _summaries(job: Job) -> str:
    """Return the text of the summary file: the summary; where the file has several sessions, each under its number."""
    texts = [(item.sized.transcript.index, item.summarised.text) for item in job.planned if item.summarised]
    if len(texts) == 1:
        return texts[0][1].rstrip("\n") + "\n"
    return "\n".join(f"# {index}\n\n{text.rstrip()}\n" for index, text in texts)


def history_path(job: Job, number: int | None = None) -> Path:
    """Return where the history goes; in place it is numbered, and `number` is the next one unless it is known."""
    number = _number(job) if number is None else number
    return job.paths.history if number is None else job.paths.numbered("history", number, ".jsonl")


def summary_path(job: Job, number: int | None = None) -> Path:
    """Return where the summary goes as a text of its own."""
    number = _number(job) if number is None else number
    return job.paths.summary if number is None else job.paths.numbered("summary", number, ".md")


def _number(job: Job) -> int | None:
    if not job.is_in_place:
        return None
    return generations.next_number(job.paths, _backup_folder(job))


def _backup_folder(job: Job) -> Path:
    if job.options.backup_dir is None:
        return job.paths.folder
    return Path(job.options.backup_dir).absolute() / job.paths.folder.name


def _backup_path(job: Job, number: int) -> Path:
    ending = ".jsonl.zst" if job.options.backup == "zst" else ".jsonl"
    return _backup_folder(job) / job.paths.numbered("original", number, ending).name


def _values_paths(job: Job, number: int | None) -> tuple[Path, Path]:
    if number is None:
        return job.paths.originals, job.paths.copies
    return job.paths.numbered("originals", number, ".jsonl"), job.paths.numbered("copies", number, ".jsonl.zst")


# the receipt, and the checks ------------------------------------------------------------------------


class Before(Struct, frozen=True):
    """What is known of the sessions of a file while their messages are there, for the checks and the receipt."""

    cuts: tuple[CompactionEdits, ...]
    contexts: list[verify.Context] | None = None
    """None where any of them is cut: then the messages are kept, since the result has few."""
    notes: list[SessionNote] | None = None


def _before(job: Job, cuts: tuple[CompactionEdits, ...]) -> Before:
    """Return what is to be known of the source, whose messages are given up for those of the result."""
    if job.is_cut:
        return Before(cuts)
    same_ids, same_sizes = job.new is None, not job.options.redact
    contexts = [
        verify.Context.of(transcript.messages, each, same_ids=same_ids, same_sizes=same_sizes)
        for transcript, each in zip(job.session.read.transcripts, job.plans, strict=True)
    ]
    before = Before(cuts, contexts, [_session_note(item) for item in job.planned])
    job.forget_contexts()
    return before


def _checked(job: Job, before: Before, session_file: store.Candidate, kept: Kept) -> tuple[Checks, Receipt]:
    """Return the checks on what lies on disk, and the receipt. Raises VerifyError where one of them fails."""
    with disk.reading(str(session_file.written)) as source:
        document, result = reread(source, job.session.path, job.session.read.format)
        result = result.with_contexts_alone()
        _measure(job, before.cuts, document, result)
        notes = before.notes or [_session_note(item) for item in job.planned]
        noted = _receipt(job, notes, kept, document.line_count)
        named = {
            "restorable": verify.not_restored(kept.original(document), job.session.document),
            "context_kept": _context_changes(job, before, result.transcripts),
            "no_new_problem": verify.new_problems(job.session.read.findings, result.findings),
            "spills_present": verify.missing_spills(
                job.plans, lambda name, digest: spill_files.is_whole(job.paths.spills, name, digest)
            ),
            **({"balanced": _unbalanced(job, kept)} if job.is_cut else {}),
            "settled": verify.unsettled(_second_run(job, document, result, noted)),
        }
    checks = verify.combine(named)
    if not checks.all_held:
        raise VerifyError(f"{job.paths.session}: not written, it failed its checks: {'; '.join(checks.problems)}")
    return checks, msgspec.structs.replace(noted, checks=checks.held)


def _second_run(job: Job, document: Document, result: Read, noted: Receipt) -> list[Plan]:
    """Return what a second run would do, but for what could not be done in this one. After a cut an exchange without
    a key has another number, so what failed is known by its call alone."""
    plans = replan(document, result, noted, job.paths, job.failed)
    failed = {call_id for _, call_id in job.failed} if job.is_cut else set()
    return [Plan(tuple(spill for spill in each.spills if spill.result.call_id not in failed)) for each in plans]


def _measure(job: Job, cuts: Sequence[CompactionEdits], document: Document, result: Read) -> None:
    """Set the tokens of each session that was cut to what the written one holds, and count the reasoning that went."""
    for item, transcript, edits in zip(job.planned, result.transcripts, cuts, strict=False):
        if item.summarised is None:
            continue
        estimator = item.sized.estimator.of(document)
        summary = [message for message in transcript.messages if message.is_summary]
        item.tokens_after = estimator.tokens(transcript.messages) + hidden_tokens(item.sized)
        item.interval = interval_after(job, item)
        item.emptied = edits.emptied
        item.layer2 = msgspec.structs.replace(
            item.summarised.note,
            summary_tokens=estimator.tokens(tuple(summary[:1])),
            reasoning_dropped=edits.dropped_reasoning,
            fates=item.fate_counts(),
        )


def _context_changes(job: Job, noted: Before, after: Sequence[Transcript]) -> list[str]:
    """Return where any session of the file is not what was planned."""
    if noted.contexts is not None:
        return verify.changes(noted.contexts, [transcript.messages for transcript in after])
    before = job.session.read.transcripts
    same_ids, same_sizes = job.new is None, not job.options.redact
    if len(before) != len(after):
        return [f"{len(before)} sessions before, {len(after)} after"]
    return [
        problem
        for old, new, item in zip(before, after, job.planned, strict=True)
        for problem in (
            verify.cut_changes(
                old.messages, new.messages, item.plan, item.cut, item.emptied, same_ids=same_ids, same_sizes=same_sizes
            )
            if item.cut
            else verify.context_changes([old], [new], [item.plan], same_ids=same_ids, same_sizes=same_sizes)
        )
    ]


def _unbalanced(job: Job, kept: Kept) -> list[str]:
    """Return where a message has no fate, or was summarised and its lines are not in the history on disk."""
    document = job.session.document
    lines = disk.line_digests(kept.history.written) if kept.history else frozenset()
    return [
        problem
        for item in job.planned
        if item.cut is not None
        for problem in verify.unbalanced(
            item.fate_counts(),
            (
                (message.line, all(verify.digest([document.raw(record)]) in lines for record in message.records))
                for message in (
                    item.sized.transcript.messages[index] for index in (*summarised(item.cut), *item.emptied)
                )
            ),
        )
    ]


def _receipt(job: Job, notes: Sequence[SessionNote], kept: Kept, output_lines: int) -> Receipt:
    return Receipt(
        schema=receipt.SCHEMA,
        version=__version__,
        command=job.command,
        source=kept.header.source,
        output=msgspec.structs.replace(kept.header.output, lines=output_lines),
        sessions=tuple(notes),
        settings=public(job.options.settings),
        place=job.options.place,
        new_session_id=job.new.session_id if job.new else None,
        originals=_note(job, kept.values),
        copies=_note(job, kept.copies),
        history=_note(job, kept.history),
        summary=_note(job, kept.summary),
        spills=job.spills,
        request=job.request,
        backup=_note(job, kept.whole),
        generation=kept.number,
    )


def _note(job: Job, file: store.Candidate | None) -> FileNote | None:
    """Return a file by its name in the folder beside the session, by its full path where it is elsewhere."""
    if file is None:
        return None
    is_beside = file.path.parent == job.paths.folder
    return FileNote(file.path.name if is_beside else str(file.path), file.size_bytes, file.sha256)


def _session_note(item: Planned) -> SessionNote:
    transcript, measured, after = item.sized.transcript, item.sized.measured, item.interval
    return SessionNote(
        format=transcript.format,
        session_id=transcript.session_id,
        index=transcript.index,
        messages=len(transcript.messages),
        tokens=TokensNote(
            estimator=item.sized.estimator.name,
            anchored=measured.anchored,
            before=measured.tokens,
            after=item.tokens_after,
            window=measured.window.tokens,
            threshold=measured.threshold,
            after_low=after.low if after else None,
            after_high=after.high if after else None,
        ),
        decisions=receipt.decisions(item.plan),
        failures=tuple(failure.error for failure in item.plan.failures),
        layer2=_layer2_note(item),
        fates=item.fates() if item.cut else (),
        model=transcript.model,
    )


def _layer2_note(item: Planned) -> Layer2Note | None:
    """Return what the receipt tells of Layer 2: files by their names, and the summary in its own."""
    if item.layer2 is None:
        return None
    return msgspec.structs.replace(item.layer2, history_file=None, summary_file=None, summary=None)


# what must hold before, and the last steps ---------------------------------------------------------


def require_place(job: Job) -> None:
    """Raise WriteError where the result must not be put: something else is there, or a process holds it open."""
    for path in (job.paths.report, job.paths.originals):
        if os.path.lexists(path) and not path.is_file():
            raise OutputChanged(f"{path}: something else is there; move it away")
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


def _put_in_place(job: Job, noted: Receipt, session_file: store.Candidate, kept: Kept) -> bool:
    """Put the files in place, the receipt last; return False where the very same files are there already."""
    if _is_in_place(job, session_file, kept, noted):
        return False
    for file in kept.files:
        file.commit()
    if kept.number is not None:
        _keep_receipts(job, kept.number, noted)
    for side_file in job.new.side_files if job.new else ():
        _write_side_file(job, side_file)
    session_file.commit()
    store.write_whole(job.paths.report, receipt.chunks(noted))
    return True


def _is_in_place(job: Job, session_file: store.Candidate, kept: Kept, noted: Receipt) -> bool:
    are_there = all(disk.file_sha256(file.path) == file.sha256 for file in (session_file, *kept.files))
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
