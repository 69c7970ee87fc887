"""What must hold of a written session before it is put in place: checked on what lies on disk, told in its receipt."""

from collections.abc import Iterable, Sequence
from typing import BinaryIO

import msgspec
from msgspec import Struct

from compactctl import __version__, disk, receipt, spill_files, store, verify
from compactctl.cut import summarised
from compactctl.document import Document
from compactctl.errors import VerifyError
from compactctl.formats.interface import CompactionEdits
from compactctl.job import Job, Planned, hidden_tokens, interval_after, replan
from compactctl.job_edits import Edits
from compactctl.kept import Kept
from compactctl.line_checks import Swap, read_again
from compactctl.model import Transcript
from compactctl.outcome import Layer2Note
from compactctl.plan import Plan
from compactctl.receipt import FileNote, Receipt, SessionNote, TokensNote
from compactctl.rewrite import with_results
from compactctl.session import Read, reread
from compactctl.settings import public
from compactctl.splicing import DropTail, Replace, Splices
from compactctl.texts import result_text
from compactctl.verify import Checks


class Before(Struct, frozen=True):
    """What is known of the sessions of a file while their messages are there, for the checks and the receipt."""

    cuts: tuple[CompactionEdits, ...]
    contexts: list[verify.Context] | None = None
    """None where any of them is cut: then the messages are kept, since the result has few."""
    notes: list[SessionNote] | None = None


def known_before(job: Job, cuts: tuple[CompactionEdits, ...]) -> Before:
    """Return what is to be known of the source, whose messages are given up for those of the result."""
    if job.is_cut:
        return Before(cuts)
    same_ids, same_sizes = job.new is None, not job.options.redact
    contexts = [
        verify.Context.of(transcript.messages, each, same_ids=same_ids, same_sizes=same_sizes)
        for transcript, each in zip(job.session.read.transcripts, job.plans, strict=True)
    ]
    known = Before(cuts, contexts, [_session_note(item) for item in job.planned])
    job.forget_contexts()
    return known


class Replaced(Struct, frozen=True):
    """The edits of a file, in order of lines, where they do no more than replace values in sound lines."""

    edits: list[Replace]
    splices: Splices


class Unchecked(Struct, frozen=True):
    """What was written of a job, and is not yet in place."""

    session_file: store.Candidate
    kept: Kept
    known: Replaced | Before
    """Where no more than values were replaced, all of the session is still there; otherwise what is known of it."""


def values_replaced(job: Job, planned: Edits) -> list[Replace] | None:
    """Return all edits, in order of lines, where they do no more than replace values in sound lines."""
    is_more = job.new or job.is_cut or job.options.redact or planned.slimming
    if is_more or job.session.document.findings:
        return None
    found = [edit for edit in planned.planned if not isinstance(edit, DropTail)]
    edits = [edit for edit in found if isinstance(edit, Replace)]
    return sorted(edits, key=lambda edit: edit.place) if len(edits) == len(found) else None


Found = dict[str, list[str]]
"""What each check found, by its name."""


def check(job: Job, written: Unchecked) -> tuple[Checks, Receipt]:
    """Return the checks on what lies on disk, and the receipt. Raises VerifyError where one of them fails."""
    with disk.reading(str(written.session_file.written)) as source:
        found, noted = _check_lines(job, written, source) or _check_all(job, written, source)
    checks = verify.combine(found)
    if not checks.all_held:
        raise VerifyError(f"{job.paths.session}: not written, it failed its checks: {'; '.join(checks.problems)}")
    return checks, msgspec.structs.replace(noted, checks=checks.held)


def _check_lines(job: Job, written: Unchecked, source: BinaryIO) -> tuple[Found, Receipt] | None:
    """Return what is found by reading the lines that changed; None where those alone do not tell."""
    known = written.known
    if not isinstance(known, Replaced):
        return None
    session, result = job.session, Document(source)
    put_back: list[Swap] = []
    original = written.kept.original(result, lambda splice: put_back.append(Swap.undone_by(splice)))
    not_restored = verify.not_restored(original, session.document)
    undone = [] if not_restored else put_back
    lines = read_again(session.document, result, session.read.format, job.plans, known.edits, known.splices, undone)
    if lines is None:
        return None
    noted = _receipt(job, [_session_note(item) for item in job.planned], written.kept, session.document.line_count)
    contexts = [with_results(transcript, lines.results) for transcript in session.read.transcripts]
    return {
        "restorable": not_restored,
        "context_kept": lines.changes,
        "no_new_problem": lines.new_problems,
        "spills_present": _missing_spills(job),
        "settled": _unsettled(job, session.document, contexts, noted),
    }, noted


def _check_all(job: Job, written: Unchecked, source: BinaryIO) -> tuple[Found, Receipt]:
    """Return what is found by reading all of the result as any session is read."""
    before = written.known if isinstance(written.known, Before) else known_before(job, ())
    kept, session = written.kept, job.session
    if not job.is_cut:
        session.document.forget()
    document, result = reread(source, session.path, session.read.format)
    result = result.with_contexts_alone()
    _measure(job, before.cuts, document, result)
    notes = before.notes or [_session_note(item) for item in job.planned]
    noted = _receipt(job, notes, kept, document.line_count)
    return {
        "restorable": verify.not_restored(kept.original(document), session.document),
        "context_kept": [
            *_context_changes(job, before, result.transcripts),
            *_preview_changes(job, document, result.transcripts),
        ],
        "no_new_problem": verify.new_problems(session.read.findings, result.findings),
        "spills_present": _missing_spills(job),
        **({"balanced": _unbalanced(job, kept)} if job.is_cut else {}),
        "settled": _unsettled(job, document, result.transcripts, noted),
    }, noted


def _missing_spills(job: Job) -> list[str]:
    return verify.missing_spills(job.plans, lambda name, digest: spill_files.is_whole(job.paths.spills, name, digest))


def _unsettled(job: Job, document: Document, contexts: Iterable[Transcript], noted: Receipt) -> list[str]:
    """Return what a second run would do, but for what could not be done in this one. After a cut an exchange without
    a key has another number, so what failed is known by its call alone."""
    plans = replan(document, job.session.read.format, contexts, noted, job.paths, job.failed)
    failed = {call_id for _, call_id in job.failed} if job.is_cut else set()
    return verify.unsettled(
        Plan(tuple(spill for spill in each.spills if spill.result.call_id not in failed)) for each in plans
    )


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


def _preview_changes(job: Job, document: Document, after: Iterable[Transcript]) -> list[str]:
    """Return which previews are not what was planned; secrets may have been struck out of them."""
    if job.options.redact:
        return []
    sizes = {len(spill.preview.encode()) for plan in job.plans for spill in plan.spills}
    results = (message.result for transcript in after for message in transcript.messages)
    texts = (result_text(document, each) for each in results if each is not None and each.size_bytes in sizes)
    return verify.preview_changes(job.plans, texts)


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
