"""A planned compaction of one session file: write it where that is asked for, and say what was done or would be.

Layer 1 comes whole from here; Layer 2 brings a job that has its cuts.
"""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from compactctl import disk, generations, layout, views
from compactctl.errors import OverTarget, SpillFailed
from compactctl.job import Job, Planned, start
from compactctl.job_edits import bytes_saved, make_edits
from compactctl.options import BESIDE, NEW_SESSION, Options
from compactctl.outcome import Bytes, Disk, Outcome, Output, Problem, Status
from compactctl.session import Session

if TYPE_CHECKING:
    from compactctl.commit import Written

SOMETHING_TO_DO = 1
"""The exit code of `--check` where there is."""

LARGER = "on disk it is more than before: what is kept to give the original back takes more than what was taken out"

NOT_RESUMED = "in this folder the agent resumes the original; --in-place and --new-session write a session it resumes"


def spill(session: Session, options: Options, paths: layout.Paths) -> list[Outcome]:
    """Return what Layer 1 does (or, without `apply`, would do) to a session file whose results go to `paths`.

    Raises WriteError or VerifyError where the session could not be written; the source is as it was then.
    """
    return carry_out(start(session, options, paths))


def carry_out(job: Job) -> list[Outcome]:
    """Return what was done by a job, or would be without `apply`. Raises WriteError or VerifyError."""
    if not job.has_work:
        if job.options.apply:
            generations.mend(generations.paths_of(job.session.path), job.session.own_receipt)
        outcomes = [_described(job, item, "unchanged") for item in job.planned]
        _say_slimmed(outcomes[0], job)
        return outcomes
    if not job.options.apply:
        return _dry_run(job)
    return _applied(job)


def _dry_run(job: Job) -> list[Outcome]:
    planned = make_edits(job)
    made = planned.splices(job.session.document)
    size_before = job.session.document.size_bytes
    size_after = size_before + made.growth_bytes
    spilled = sum(spill.result.size_bytes for plan in job.plans for spill in plan.spills)
    outcomes = [
        _described(job, item, "planned" if item.plan.spills or item.cut or planned.slimming else "unchanged")
        for item in job.planned
    ]
    outcomes[0].bytes = Bytes(size_before, size_after, spilled + made.replaced_bytes)
    _say_slimmed(outcomes[0], job, bytes_saved(planned.slimmed(job.session.document, made)), "would take")
    if job.options.check:
        outcomes[0].exit_code = SOMETHING_TO_DO
    return outcomes


def _applied(job: Job) -> list[Outcome]:
    from compactctl.commit import commit, require_place, write_spills  # a dry run does without their cost

    disk_before = _disk(job)
    require_place(job)
    write_spills(job)
    if not job.has_work:
        return [_with_failures(_described(job, item, "failed"), item) for item in job.planned]
    told = [] if job.is_cut else [_told(job, item) for item in job.planned]
    written = commit(job)
    told = told or [_told(job, item) for item in job.planned]  # only what was written says what is left of a cut one
    outcomes = [_written(made, job, item, written) for made, item in zip(told, job.planned, strict=True)]
    beside = disk.size_bytes(job.paths.folder) + job.paths.report.stat().st_size
    outcomes[0].bytes = Bytes(job.session.document.size_bytes, written.size_bytes, beside)
    outcomes[0].disk = used = Disk(disk_before, _disk(job))
    _say_slimmed(outcomes[0], job, written.slimmed_bytes)
    if job.is_in_place and used.after > used.before:
        outcomes[0].notes = (*outcomes[0].notes, LARGER)
    return outcomes


def _say_slimmed(made: Outcome, job: Job, size_bytes: int = 0, took: str = "took") -> None:
    if not job.options.slim or job.options.redact:
        return
    limit = job.options.settings.layer1.twin_limit_bytes
    nothing = f"--slim found nothing to take out: no copy over {limit:,} bytes, no progress line that may go"
    text = f"--slim {took} out {size_bytes:,} bytes that the model never sees" if size_bytes > 0 else nothing
    made.notes = (*made.notes, text)


def _disk(job: Job) -> int:
    """Return the bytes of the source, the result and all that lies beside it, as they are on disk now."""
    files = {path.resolve() for path in (Path(job.session.path), job.paths.session, job.paths.report)}
    return disk.size_bytes(job.paths.folder) + sum(path.stat().st_size for path in files if path.is_file())


# saying ------------------------------------------------------------------------------------------


def _described(job: Job, item: Planned, status: Status) -> Outcome:
    return _with_status(_told(job, item), job, item, status)


def _told(job: Job, item: Planned) -> Outcome:
    """Return what is told of a session whatever becomes of it."""
    made = views.outcome(job.session, item.sized, job.options, item.tokens_after, item.interval)
    made.layer1 = views.layer1_note(item.plan, job.paths.spill_path, job.options.settings.layer1)
    if not item.plan.spills and not item.plan.failures:
        made.layer1 = views.nothing_spilled(made.layer1, item.sized, item.plan, job.options.settings)
    if item.layer2 is not None:
        made.layer2 = item.layer2
    return made


def _with_status(made: Outcome, job: Job, item: Planned, status: Status) -> Outcome:
    made.status = status
    if status != "unchanged":
        made.output = _output(job)
        _say_over_threshold(made, job, item)
        risk = job.session.read.format.in_place_risk
        if job.is_in_place and risk:
            made.notes = (*made.notes, risk)
    if item.is_over_target:
        text = f"{item.tokens_after:,} tokens are left, {item.target_tokens:,} were asked for; no other result helps"
        made.notes = (*made.notes, text)
    if item.is_over_target and job.options.apply:
        made.error = Problem(OverTarget(text).code, text)
        made.exit_code = OverTarget.exit_code
    return made


def _output(job: Job) -> Output:
    has_spills = any(plan.spills for plan in job.plans)
    return Output(str(job.paths.session), str(job.paths.report), str(job.paths.spills) if has_spills else "")


def _say_over_threshold(made: Outcome, job: Job, item: Planned) -> None:
    """Say it where the smallest result is still so large that the next request would be due for a summary."""
    if not item.is_over_threshold:
        return
    text = (
        f"{item.tokens_after:,} tokens are left, and a summary is due from {item.sized.measured.threshold:,}: "
        "what has to stay word for word is more than that"
    )
    made.notes = (*made.notes, text)
    if job.options.apply:
        made.error = Problem(OverTarget(text).code, text)
        made.exit_code = OverTarget.exit_code


def _written(told: Outcome, job: Job, item: Planned, written: "Written") -> Outcome:
    made = _with_status(told, job, item, "applied" if written.is_new else "unchanged")
    made.checks = written.checks.held
    made.output = _output(job)
    is_at_home = job.options.place != BESIDE and job.options.out is None and _is_at_home(job)
    new_id = job.new.session_id if job.options.place == NEW_SESSION and job.new else made.session_id
    made.resume = views.resume_note(job.session.read.format, str(job.paths.session), new_id if is_at_home else None)
    made.undo = _undo(job)
    if written.original is not None:
        made.notes = (*made.notes, f"the original is kept whole: {written.original}")
    if job.options.place == BESIDE and _is_at_home(job):
        made.notes = (*made.notes, NOT_RESUMED)
    return _with_failures(made, item)


def _is_at_home(job: Job) -> bool:
    """Return whether the session lies where its agent keeps them."""
    home = job.session.read.format.home
    return bool(home) and f"/{home}/" in Path(job.session.path).absolute().as_posix()


def _undo(job: Job) -> str:
    path = str(job.paths.session)
    words = ["compactctl", "restore", os.path.join(".", path) if path.startswith("-") else path]
    return shlex.join([*words, "--in-place"] if job.is_in_place else words)


def _with_failures(made: Outcome, item: Planned) -> Outcome:
    failures = item.plan.failures
    if failures:
        first = failures[0].error
        made.error = Problem(SpillFailed("").code, f"{len(failures)} of the spills failed; the first: {first}")
        made.exit_code = SpillFailed.exit_code
    return made
