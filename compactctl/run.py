"""The order of steps for a batch: find the files, work on each, and let no failure of one stop the rest.

One session's failure is an outcome. Only wrong usage is raised, and only before anything starts.
"""

import contextlib
import os
import signal
import traceback
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import msgspec

from compactctl import apply, inputs, store, undo, views
from compactctl.errors import (
    Bug,
    CompactctlError,
    EmptySession,
    NoSession,
    NotFound,
    OutputCollision,
    UnknownFormat,
    Unreadable,
    UsageError,
)
from compactctl.inputs import Input, Inputs
from compactctl.job import IN_PLACE, target_tokens
from compactctl.options import Options
from compactctl.outcome import Batch, Outcome, Problem
from compactctl.session import STANDARD_INPUT, opened

Progress = Callable[[int, int, str], None]
"""Told after each file: how many are done, of how many, and which."""

OnOutcome = Callable[[Outcome], None]
"""Given each outcome as it is known, in the order of the inputs."""

Work = Callable[[Input, Options], list[Outcome]]

ESTIMATE_ENDING = ".estimate.json"


def _quiet(done: int, total: int, path: str) -> None:
    pass


def _unheard(outcome: Outcome) -> None:
    pass


# the five commands -------------------------------------------------------------------------------


def inspect(
    paths: Sequence[str],
    options: Options,
    jobs: int = 1,
    progress: Progress = _quiet,
    on_outcome: OnOutcome = _unheard,
) -> Batch:
    """Return what is in each session, how full it is, and what Layer 1 would save."""
    return _batch("inspect", inputs.find(paths), _inspect_one, options, jobs, progress, on_outcome)


def estimate(
    paths: Sequence[str],
    options: Options,
    jobs: int = 1,
    progress: Progress = _quiet,
    on_outcome: OnOutcome = _unheard,
) -> Batch:
    """Return each session's tokens by estimator; with `apply`, also write them beside the session."""
    found = inputs.find(paths)
    if options.apply:
        _require_places(paths, found, options, lambda item: _estimate_path(item, options))
    return _batch("estimate", found, _estimate_one, options, jobs, progress, on_outcome)


def spill(
    paths: Sequence[str],
    options: Options,
    jobs: int = 1,
    progress: Progress = _quiet,
    on_outcome: OnOutcome = _unheard,
) -> Batch:
    """Plan Layer 1 for each session; with `apply`, write the compacted sessions."""
    if options.target is not None:
        target_tokens(options.target, window_tokens=0)
    if options.place == IN_PLACE and (options.out is not None or STANDARD_INPUT in paths):
        raise UsageError("--in-place puts the result where the source is: it goes with neither --out nor -")
    found = inputs.find(paths)
    _require_places(paths if options.apply else (), found, options, lambda item: _output(item, options).session)
    return _batch("spill", found, _spill_one, options, jobs, progress, on_outcome)


def restore(
    paths: Sequence[str],
    options: Options,
    jobs: int = 1,
    progress: Progress = _quiet,
    on_outcome: OnOutcome = _unheard,
) -> Batch:
    """Give back the original of each compacted session; without `apply`, say only what would be written."""
    found = inputs.find(paths, own_outputs=True)
    _require_places(paths, found, options, lambda item: inputs.output_folder(item, options.out) / item.path)
    return _batch("restore", found, _restore_one, options, jobs, progress, on_outcome)


def verify(
    paths: Sequence[str],
    options: Options,
    jobs: int = 1,
    progress: Progress = _quiet,
    on_outcome: OnOutcome = _unheard,
) -> Batch:
    """Return whether each compacted session is whole."""
    found = inputs.find(paths, own_outputs=True)
    return _batch("verify", found, _verify_one, options, jobs, progress, on_outcome)


# one file ----------------------------------------------------------------------------------------


def _inspect_one(item: Input, options: Options) -> list[Outcome]:
    with opened(item.path, options.format) as session:
        outcomes = []
        for transcript in session.read.transcripts:
            sized = views.size(session, transcript, options)
            made = views.outcome(session, sized)
            made.details = views.details(session, sized, options)
            outcomes.append(made)
        return outcomes


def _estimate_one(item: Input, options: Options) -> list[Outcome]:
    with opened(item.path, options.format) as session:
        outcomes = []
        for transcript in session.read.transcripts:
            sized = views.size(session, transcript, options)
            made = views.outcome(session, sized)
            made.estimates = views.estimates(sized)
            made.findings = views.with_reason_for_no_usage(made.findings, sized, options.anchored)
            outcomes.append(made)
    if options.apply:
        _write_estimate(_estimate_path(item, options), outcomes)
    return outcomes


def _estimate_path(item: Input, options: Options) -> Path:
    return inputs.output_folder(item, options.out) / (store.stem(Path(item.relative).name) + ESTIMATE_ENDING)


def _write_estimate(path: Path, outcomes: list[Outcome]) -> None:
    batch = Batch(command="estimate", outcomes=outcomes, not_sessions=[])
    store.write_whole(path, [msgspec.json.format(msgspec.json.encode(batch.document()), indent=2), b"\n"])
    for made in outcomes:
        made.status = "applied"
        made.notes = (*made.notes, f"wrote {path}")


def _spill_one(item: Input, options: Options) -> list[Outcome]:
    with opened(item.path, options.format) as session:
        return apply.spill(session, options, _output(item, options))


def _output(item: Input, options: Options) -> store.Paths:
    if options.place == IN_PLACE:
        return store.own_paths(Path(os.path.realpath(item.path)))
    return store.output_paths(Path(item.relative).name, inputs.output_folder(item, options.out))


def _restore_one(item: Input, options: Options) -> list[Outcome]:
    return undo.restore(item.path, options, inputs.output_folder(item, options.out))


def _verify_one(item: Input, options: Options) -> list[Outcome]:
    return undo.check(item.path, options)


# the batch ---------------------------------------------------------------------------------------


def _require_places(paths: Sequence[str], found: Inputs, options: Options, place: Callable[[Input], Path]) -> None:
    """Raise UsageError where an output has no place, OutputCollision where two inputs would write the same one."""
    if STANDARD_INPUT in paths and options.out is None:
        raise UsageError("standard input has no place of its own: say where the output goes with --out DIR")
    taken: dict[str, str] = {}
    for item in found.files:
        target = os.path.abspath(place(item))
        if target in taken:
            raise OutputCollision(f"{taken[target]} and {item.path} would both write {target}; nothing was written")
        taken[target] = item.path


def _batch(
    command: str,
    found: Inputs,
    work: Work,
    options: Options,
    jobs: int,
    progress: Progress,
    on_outcome: OnOutcome,
) -> Batch:
    batch = Batch(command=command, outcomes=[], not_sessions=[], problems=list(found.problems))
    for path, error in found.errors:
        _take(batch, [_failed(path, error)], on_outcome)
    total = len(found.files)
    with contextlib.closing(_worked(found.files, work, options, jobs)) as worked:
        for done, (item, outcomes) in enumerate(worked, start=1):
            if outcomes is None:
                batch.not_sessions.append(item.path)
            else:
                _take(batch, outcomes, on_outcome)
            progress(done, total, item.path)
    codes = [outcome.exit_code for outcome in batch.outcomes]
    if all(outcome.status == "skipped" for outcome in batch.outcomes):
        _nothing_found(batch, options)
    batch.exit_code = max([batch.exit_code, *codes])
    return batch


def _nothing_found(batch: Batch, options: Options) -> None:
    if options.allow_empty:
        return
    batch.exit_code = NoSession.exit_code
    looked = len(batch.not_sessions)
    batch.problems.append(f"no session found ({looked} files are not sessions)" if looked else "no session found")


def _take(batch: Batch, outcomes: list[Outcome], on_outcome: OnOutcome) -> None:
    batch.outcomes += outcomes
    for outcome in outcomes:
        on_outcome(outcome)


def _worked(
    files: Sequence[Input], work: Work, options: Options, jobs: int
) -> Generator[tuple[Input, list[Outcome] | None]]:
    """Yield each file with its outcomes, in the order given; None for a file in a folder that is no session."""
    one = partial(_one, work, options)
    if jobs <= 1 or len(files) <= 1 or any(item.path == STANDARD_INPUT for item in files):
        for item in files:
            yield item, one(item)
        return
    with ProcessPoolExecutor(min(jobs, len(files)), initializer=_ignore_interrupts) as pool:
        futures = [pool.submit(_interruptible, one, item) for item in files]
        try:
            for item, future in zip(files, futures, strict=True):
                try:
                    yield item, future.result()
                except BrokenProcessPool:
                    yield item, [_failed(item.path, Bug(f"{item.path}: its worker process was killed"))]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _ignore_interrupts() -> None:
    """Leave it to the main process to say that it was interrupted: a worker that waits has nothing to say."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _interruptible(one: Callable[[Input], list[Outcome] | None], item: Input) -> list[Outcome] | None:
    """Work on one file in a worker; an interrupt ends it at once, and is handed to the main process as its result."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return one(item)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _one(work: Work, options: Options, item: Input) -> list[Outcome] | None:
    """Work on one file. The one place where a bug is caught: it becomes a failed outcome with code 70."""
    try:
        return work(item, options)
    except UnknownFormat as error:
        return [_failed(item.path, error)] if item.is_explicit else None
    except (EmptySession, Unreadable, NotFound) as error:
        return [_failed(item.path, error) if item.is_explicit else _skipped(item.path, error)]
    except CompactctlError as error:
        return [_failed(item.path, error)]
    except Exception as error:
        made = _failed(item.path, Bug(f"{item.path}: a bug in compactctl: {type(error).__name__}: {error}"))
        if options.debug:
            made.traceback = traceback.format_exc()
        return [made]


def _failed(path: str, error: CompactctlError) -> Outcome:
    return Outcome(path=path, status="failed", error=Problem(error.code, str(error)), exit_code=error.exit_code)


def _skipped(path: str, error: CompactctlError) -> Outcome:
    return Outcome(path=path, status="skipped", error=Problem(error.code, str(error)))
