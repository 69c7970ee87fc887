"""The order of steps for a batch: find the files, work on each, and let no failure of one stop the rest.

One session's failure is an outcome. Only wrong usage is raised, and only before anything starts.
"""

import contextlib
import os
import signal
import traceback
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct

from compactctl import apply, desk, inputs, layer2, prices, store, undo, views
from compactctl.errors import (
    Bug,
    CompactctlError,
    EmptySession,
    Interrupted,
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
from compactctl.outcome import Batch, Outcome, PriceNote, Problem
from compactctl.providers.interface import ProviderUsage
from compactctl.redact import redact
from compactctl.session import STANDARD_INPUT, opened

Progress = Callable[[int, int, str], None]
"""Told after each file: how many are done, of how many, and which."""

OnOutcome = Callable[[Outcome], None]
"""Given each outcome as it is known, in the order of the inputs."""

Work = Callable[[Input, Options], list[Outcome]]


class Errand(Struct, frozen=True):
    """What is about to be sent to a provider, before the first request."""

    sessions: int
    tokens: int
    """About, by our own estimate."""
    writer: str
    address: str
    is_remote: bool
    price: PriceNote | None
    """About, with an answer of usual length for each."""


Approve = Callable[[Errand], bool]
"""Told before the first request; what it returns says whether to go on."""

ESTIMATE_ENDING = ".estimate.json"


def _quiet(done: int, total: int, path: str) -> None:
    pass


def _unheard(outcome: Outcome) -> None:
    pass


def _go(errand: Errand) -> bool:
    return True


# the commands -------------------------------------------------------------------------------


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
    found = _found_to_shrink(paths, options)
    return _batch("spill", found, _spill_one, options, jobs, progress, on_outcome)


def _found_to_shrink(paths: Sequence[str], options: Options) -> Inputs:
    """Return the files to work on. Raises UsageError where the options do not go together or an output has no place."""
    if options.target is not None:
        target_tokens(options.target, window_tokens=0)
    if options.place == IN_PLACE and (options.out is not None or STANDARD_INPUT in paths):
        raise UsageError("--in-place puts the result where the source is: it goes with neither --out nor -")
    found = inputs.find(paths)
    _require_places(paths if options.apply else (), found, options, lambda item: _output(item, options).session)
    return found


def summarize(
    paths: Sequence[str],
    options: Options,
    jobs: int = 1,
    progress: Progress = _quiet,
    on_outcome: OnOutcome = _unheard,
    *,
    approve: Approve = _go,
) -> Batch:
    """Have each session's older part summarised, whatever its water level; without `apply`, say what would be done."""
    return _layer2(layer2.SUMMARIZE, paths, options, jobs, progress, on_outcome, approve)


def compact(
    paths: Sequence[str],
    options: Options,
    jobs: int = 1,
    progress: Progress = _quiet,
    on_outcome: OnOutcome = _unheard,
    *,
    approve: Approve = _go,
) -> Batch:
    """Spill, and have a session summarised where it is still at its threshold; without `apply`, say what would be."""
    return _layer2(layer2.COMPACT, paths, options, jobs, progress, on_outcome, approve)


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


# Layer 2 -----------------------------------------------------------------------------------------


def _layer2(
    command: str,
    paths: Sequence[str],
    options: Options,
    jobs: int,
    progress: Progress,
    on_outcome: OnOutcome,
    approve: Approve,
) -> Batch:
    """Run one of the commands that ask a provider; its sessions share what is in `desk`, so they share a process."""
    found = _found_to_shrink(paths, options)
    shared = desk.make(options)
    if options.apply and not shared.asks_nobody:
        errand = _errand(command, found, options, shared)
        if errand.sessions and not approve(errand):
            raise Interrupted("nothing was sent and nothing was written")

    def one(item: Input, options: Options) -> list[Outcome]:
        with opened(item.path, options.format) as session:
            return layer2.work(session, options, _output(item, options), command, shared)

    def told(done: int, total: int, path: str) -> None:
        progress(done, total, _with_spending(path, shared))

    return _batch(command, found, one, options, jobs, told, on_outcome, threads=True)


def _with_spending(path: str, shared: desk.Desk) -> str:
    spent = shared.spending
    if not spent.input_tokens:
        return path
    cost = f", ${spent.cost_usd:.2f}" if spent.cost_usd else ""
    return f"{os.path.basename(path)[-12:]} {spent.input_tokens:,} tokens{cost}"


def _errand(command: str, found: Inputs, options: Options, shared: desk.Desk) -> Errand:
    """Return what a run will send, told from the sessions themselves; what can't be read sends nothing."""
    amounts = []
    for item in found.files:
        if item.path == STANDARD_INPUT:
            continue
        with contextlib.suppress(CompactctlError), opened(item.path, options.format) as session:
            amounts.append(layer2.due_tokens(session, options, _output(item, options), command, shared))
    tokens = [amount for amount in amounts if amount]
    provider = shared.provider
    answers = options.settings.layer2.summary_reserve_tokens // 4 * len(tokens)
    return Errand(
        sessions=len(tokens),
        tokens=sum(tokens),
        writer=shared.writer,
        address=redact(provider.address).text,
        is_remote=provider.is_remote,
        price=prices.price(provider.model, ProviderUsage(sum(tokens), answers)),
    )


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
    *,
    threads: bool = False,
) -> Batch:
    batch = Batch(command=command, outcomes=[], not_sessions=[], problems=list(found.problems))
    for path, error in found.errors:
        _take(batch, [_failed(path, error)], on_outcome)
    total = len(found.files)
    with contextlib.closing(_worked(found.files, work, options, jobs, threads)) as worked:
        for done, (item, outcomes) in enumerate(worked, start=1):
            if outcomes is None:
                batch.not_sessions.append(item.path)
            else:
                _take(batch, outcomes, on_outcome)
            progress(done, total, item.path)
    codes = [outcome.exit_code for outcome in batch.outcomes]
    if all(outcome.status == "skipped" and outcome.layer2 is UNSET for outcome in batch.outcomes):
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
    files: Sequence[Input], work: Work, options: Options, jobs: int, threads: bool
) -> Generator[tuple[Input, list[Outcome] | None]]:
    """Yield each file with its outcomes, in the order given; None for a file in a folder that is no session.

    Several at once go to processes of their own, or to `threads` where they wait for others and share what they know.
    """
    one = partial(_one, work, options)
    if jobs <= 1 or len(files) <= 1 or any(item.path == STANDARD_INPUT for item in files):
        for item in files:
            yield item, one(item)
        return
    if threads:
        yield from _threaded(files, one, jobs)
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


def _threaded(
    files: Sequence[Input], one: Callable[[Input], list[Outcome] | None], jobs: int
) -> Generator[tuple[Input, list[Outcome] | None]]:
    with ThreadPoolExecutor(min(jobs, len(files))) as pool:
        futures = [pool.submit(one, item) for item in files]
        try:
            for item, future in zip(files, futures, strict=True):
                yield item, future.result()
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
