"""Layer 1 on one session file: plan, and on request write, in an order that a crash at any point leaves safe.

Order of writes: spill files and originals, then the session, the receipt last. The session is put in place only
after it was read again from disk and passed every check.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from compactctl import __version__, originals, receipt, store, verify, views
from compactctl.document import Document, Splice
from compactctl.errors import NoReceipt, OutputChanged, SourceChanged, SpillFailed, VerifyError
from compactctl.formats.edits import result_text
from compactctl.formats.interface import Format
from compactctl.options import Options
from compactctl.outcome import Bytes, Outcome, Output, Problem, Status
from compactctl.plan import Failure, Plan
from compactctl.policy import DecisionKey, Ledger, Texts, make_plan
from compactctl.receipt import FileNote, Receipt, SessionNote, TokensNote
from compactctl.rewrite import planned_messages, spill_edits
from compactctl.session import Read, Session, receipt_at, reread
from compactctl.settings import Layer1
from compactctl.spill_names import SpillNames
from compactctl.verify import Checks


class Planned(Struct):
    """One session of the file with its plan, and its tokens before and after."""

    sized: views.Sized
    plan: Plan
    tokens_after: int


class Job(Struct):
    """One file on its way: what is planned for each session in it, and where the result goes."""

    session: Session
    options: Options
    paths: store.Paths
    planned: list[Planned]

    @property
    def plans(self) -> list[Plan]:
        return [item.plan for item in self.planned]

    @property
    def has_spills(self) -> bool:
        return any(plan.spills for plan in self.plans)


def spill(session: Session, options: Options, paths: store.Paths) -> list[Outcome]:
    """Return what Layer 1 does (or, without `apply`, would do) to a session file whose results go to `paths`.

    Raises WriteError or VerifyError where the session could not be written; the source is as it was then.
    """
    job = Job(session, options, paths, [])
    _plan(job, ())
    if not job.has_spills:
        return [_described(job, item, "unchanged") for item in job.planned]
    if not options.apply:
        return _dry_run(job)
    return _applied(job)


def _plan(job: Job, failures: Sequence[Failure]) -> None:
    """Plan (again) every session of the file; results in `failures` stay where they are."""
    session, options = job.session, job.options
    names = SpillNames(store.existing_spills(job.paths.spills))
    texts = _texts(session.document, job.paths, session.read.format, options.settings.layer1)
    receipts = _receipts(job)
    failed = {(failure.exchange, failure.call_id) for failure in failures}
    job.planned = []
    for transcript in session.read.transcripts:
        sized = views.size(session, transcript, options)
        ledger: Ledger = receipt.ledger(receipts, transcript, options.settings.layer1)
        plan = make_plan(transcript.messages, options.settings.layer1, ledger, texts, names, failed)
        own = tuple(f for f in failures if f.session_index == transcript.index)
        plan = msgspec.structs.replace(plan, failures=own)
        after = sized.tokens_after(planned_messages(transcript.messages, plan))
        job.planned.append(Planned(sized, plan, after))


def _receipts(job: Job) -> tuple[Receipt, ...]:
    """Return the receipts whose decisions bind this run: of the file itself, and of an earlier run over it."""
    found = (job.session.own_receipt, receipt_at(job.paths.report))
    return tuple(item for item in found if item is not None)


def _splices(job: Job) -> tuple[Splice, ...]:
    plans = [(item.sized.transcript, item.plan, item.tokens_after) for item in job.planned]
    edits = spill_edits(job.session.read.format, job.session.document, plans, job.paths.spill_path)
    return job.session.document.splices(edits)


def _dry_run(job: Job) -> list[Outcome]:
    splices = _splices(job)
    size_after = job.session.document.size_bytes + sum(len(s.new) - (s.end - s.start) for s in splices)
    spilled = sum(item.result.size_bytes for plan in job.plans for item in plan.spills)
    beside = spilled + sum(s.end - s.start for s in splices)
    made = [_described(job, item, "planned" if item.plan.spills else "unchanged") for item in job.planned]
    made[0].bytes = Bytes(job.session.document.size_bytes, size_after, beside)
    return made


# writing -----------------------------------------------------------------------------------------


def _applied(job: Job) -> list[Outcome]:
    source_sha256 = job.session.document.sha256()
    _require_ours(job)
    failures = _write_spills(job)
    if not job.has_spills:
        return _nothing_worked(job, failures)
    splices = _splices(job)
    session_file, originals_file = store.Candidate(job.paths.session), store.Candidate(job.paths.originals)
    try:
        session_file.write(job.session.document.edited(splices))
        made = _receipt(job, source_sha256, session_file, splices)
        header = originals.Header(originals.SCHEMA, made.source, made.output)
        originals_file.write(originals.lines(header, job.session.document, splices))
        checks = _checked(job, made, session_file, originals_file)
        made = msgspec.structs.replace(made, checks=checks.held, originals=_note(job.paths.originals, originals_file))
        _require_unchanged_source(job)
        is_new = _commit(job, made, session_file, originals_file)
    finally:
        session_file.discard()
        originals_file.discard()
    return _written(job, session_file.size_bytes, checks, failures, "applied" if is_new else "unchanged")


def _write_spills(job: Job) -> list[Failure]:
    """Write every planned spill; where one fails, plan again without it. Return the failures."""
    failures: list[Failure] = []
    while True:
        fresh = [failure for item in job.planned for failure in _spill_failures(job, item)]
        if not fresh:
            return failures
        failures += fresh
        _plan(job, failures)


def _spill_failures(job: Job, item: Planned) -> list[Failure]:
    failures = []
    for planned in item.plan.spills:
        text = result_text(job.session.document, planned.result)
        try:
            store.write_spill(job.paths.spills, planned.file, text.encode())
        except SpillFailed as error:
            failures.append(
                Failure(
                    planned.result.call_id,
                    planned.exchange,
                    planned.line,
                    str(error),
                    item.sized.transcript.index,
                )
            )
    return failures


def _require_ours(job: Job) -> None:
    """Raise OutputChanged where the output is there and is not what compaction wrote."""
    path = job.paths.session
    if not path.exists():
        return
    earlier = receipt_at(job.paths.report)
    known = {earlier.output.sha256} if earlier else set()
    known |= _digests_in_originals(job.paths)
    if store.file_sha256(path) not in known:
        raise OutputChanged(
            f"{path}: it is there and is not what compactctl wrote (an agent may have gone on in it); "
            f"move it away, or compact it instead: compactctl spill {path}"
        )


def _digests_in_originals(paths: store.Paths) -> set[str]:
    """Return the output that the originals file belongs to: a run that was killed may have left no receipt."""
    if not paths.originals.exists():
        return set()
    with store.reading(str(paths.originals)) as source:
        try:
            header, _ = originals.read(source, str(paths.originals))
        except NoReceipt:
            return set()
    return {header.output.sha256}


def _require_unchanged_source(job: Job) -> None:
    snapshot = job.session.snapshot
    if snapshot is not None and store.Snapshot.of(Path(job.session.path)) != snapshot:
        raise SourceChanged(f"{job.session.path}: it changed while it was read; nothing was written, run it again")


def _receipt(job: Job, source_sha256: str, session_file: store.Candidate, splices: Sequence[Splice]) -> Receipt:
    document = job.session.document
    lines_dropped = sum(1 for splice in splices if splice.end == document.size_bytes and splice.start < splice.end)
    output_lines = document.line_count - (lines_dropped if document.torn_tail else 0)
    return Receipt(
        schema=receipt.SCHEMA,
        version=__version__,
        command="spill",
        source=FileNote(Path(job.session.path).name, document.size_bytes, source_sha256, document.line_count),
        output=FileNote(job.paths.session.name, session_file.size_bytes, session_file.sha256, output_lines),
        sessions=tuple(_session_note(item) for item in job.planned),
        settings=job.options.settings,
        checks={},
    )


def _note(path: Path, written: store.Candidate) -> FileNote:
    return FileNote(path.name, written.size_bytes, written.sha256)


def _session_note(item: Planned) -> SessionNote:
    transcript, measured = item.sized.transcript, item.sized.measured
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
        ),
        decisions=receipt.decisions(item.plan),
        failures=tuple(failure.error for failure in item.plan.failures),
    )


def _checked(job: Job, made: Receipt, session_file: store.Candidate, originals_file: store.Candidate) -> Checks:
    """Return the checks on what lies on disk. Raises VerifyError where one of them fails."""
    failed = {(failure.exchange, failure.call_id) for plan in job.plans for failure in plan.failures}
    with store.reading(str(session_file.written)) as source, store.reading(str(originals_file.written)) as kept:
        document, result = reread(source, job.session.path, job.session.read.format)
        _, splices = originals.read(kept, str(originals_file.written))
        restored = verify.digest(document.edited(splices))
        named = {
            "restorable": [] if restored == made.source.sha256 else ["putting the originals back gives another file"],
            "context_kept": verify.context_changes(job.session.read.transcripts, result.transcripts, job.plans),
            "no_new_problem": verify.new_problems(job.session.read.findings, result.findings),
            "spills_present": verify.missing_spills(
                job.plans, lambda name, sha: store.spill_is_whole(job.paths.spills, name, sha)
            ),
            "settled": verify.unsettled(replan(document, result, made, job.paths, failed)),
        }
    checks = verify.combine(named)
    if not checks.all_held:
        raise VerifyError(f"{job.paths.session}: not written, it failed its checks: {'; '.join(checks.problems)}")
    return checks


def _commit(job: Job, made: Receipt, session_file: store.Candidate, originals_file: store.Candidate) -> bool:
    """Put the files in place, the receipt last; return False where the very same files are there already."""
    encoded = receipt.encode(made)
    if _is_in_place(job.paths, made, encoded):
        return False
    originals_file.commit()
    session_file.commit()
    store.write_whole(job.paths.report, [encoded])
    return True


def _is_in_place(paths: store.Paths, made: Receipt, encoded: bytes) -> bool:
    return (
        paths.session.exists()
        and paths.originals.exists()
        and store.read_beside(paths.report) == encoded
        and store.file_sha256(paths.session) == made.output.sha256
        and made.originals is not None
        and store.file_sha256(paths.originals) == made.originals.sha256
    )


def replan(
    document: Document, read: Read, made: Receipt, paths: store.Paths, failed: Collection[DecisionKey] = ()
) -> list[Plan]:
    """Return what a second run over a compacted session would plan, under the settings of its receipt."""
    layer1 = made.settings.layer1
    texts = _texts(document, paths, read.format, layer1)
    return [
        make_plan(t.messages, layer1, receipt.ledger((made,), t, layer1), texts, SpillNames({}), failed)
        for t in read.transcripts
    ]


def _texts(document: Document, paths: store.Paths, format_: Format, layer1: Layer1) -> Texts:
    style = layer1.preview_style
    return Texts(
        text=lambda result: result_text(document, result),
        path=paths.spill_path,
        style=format_.preview_style if style == "auto" else style,
    )


# saying ------------------------------------------------------------------------------------------


def _described(job: Job, item: Planned, status: Status) -> Outcome:
    made = views.outcome(job.session, item.sized, item.tokens_after)
    made.status = status
    made.layer1 = views.layer1_note(item.plan, job.paths.spill_path)
    if item.plan.spills:
        made.output = Output(str(job.paths.session), str(job.paths.report), str(job.paths.spills))
    return made


def _written(job: Job, size_after: int, checks: Checks, failures: Sequence[Failure], status: Status) -> list[Outcome]:
    beside = store.disk_bytes(job.paths.folder) + job.paths.report.stat().st_size
    outcomes = []
    for item in job.planned:
        made = _described(job, item, status)
        made.checks = checks.held
        made.resume = views.resume_note(job.session.read.format, str(job.paths.session))
        made.output = Output(str(job.paths.session), str(job.paths.report), str(job.paths.spills))
        outcomes.append(made)
    outcomes[0].bytes = Bytes(job.session.document.size_bytes, size_after, beside)
    return [_with_failures(made, failures) for made in outcomes]


def _nothing_worked(job: Job, failures: Sequence[Failure]) -> list[Outcome]:
    return [_with_failures(_described(job, item, "failed"), failures) for item in job.planned]


def _with_failures(made: Outcome, failures: Sequence[Failure]) -> Outcome:
    if failures:
        first = failures[0].error
        made.error = Problem("spill_failed", f"{len(failures)} of the spills failed; the first: {first}")
        made.exit_code = SpillFailed.exit_code
    return made
