"""The order of steps for a batch: find the files, work on each, and let no failure of one stop the rest.

One session's failure is an outcome. Only wrong usage is raised, and only before anything starts.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from compactctl import agents, generations, inputs, layout, signals, store, views, workers
from compactctl.errors import (
    Bug,
    CompactctlError,
    EmptySession,
    Interrupted,
    NoNewId,
    NoReceipt,
    NoSession,
    NotCompactable,
    NotFound,
    UnknownFormat,
    Unreadable,
    UsageError,
    WriteError,
)
from compactctl.inputs import Input, Inputs
from compactctl.options import IN_PLACE, NEW_SESSION, Options, target_tokens
from compactctl.outcome import Outcome, Problem, failed
from compactctl.places import Places
from compactctl.session import STANDARD_INPUT, opened, opened_to_compact
from compactctl.totals import Batch, Tally

if TYPE_CHECKING:
    from compactctl import desk
    from compactctl.errand import Approve, Errand

Progress = Callable[[int, int, str], None]
"""Told after each file: how many are done, of how many, and which."""

OnOutcome = Callable[[Outcome], None]
"""Given each outcome as it is known, in the order of the inputs; the batch then keeps none."""

Work = Callable[[Input, Options], list[Outcome]]

ESTIMATE_ENDING = ".estimate.json"


def _quiet(done: int, total: int, path: str) -> None:
    pass


def _go(told: "Errand") -> bool:
    return True


class How(Struct, frozen=True):
    """How a batch is worked on: so many files at once, and who is told of it, or asked before anything is sent."""

    jobs: int = 1
    progress: Progress = _quiet
    on_outcome: OnOutcome | None = None
    approve: "Approve" = _go


ALONE = How()
"""A file after the other, with nobody to tell."""


# the commands ------------------------------------------------------------------------------------


def inspect(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Return what is in each session, how full it is, and what Layer 1 would save."""
    return _batch("inspect", _found(paths, options), _inspect_one, options, how)


def estimate(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Return each session's tokens by estimator; with `apply`, also write them beside the session."""
    found = _found(paths, options)
    if options.apply:
        _require_places(paths, found, options, lambda item: [_estimate_path(item, options)])
    return _batch("estimate", found, _estimate_one, options, how)


def spill(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Plan Layer 1 for each session; with `apply`, write the compacted sessions."""
    found = _found_to_shrink(paths, options)
    return _batch("spill", found, _spill_one, options, how)


def summarize(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Have each session's older part summarised, whatever its water level; without `apply`, say what would be done."""
    return _layer2("summarize", paths, options, how)


def compact(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Spill, and have a session summarised where it is still at its threshold; without `apply`, say what would be."""
    return _layer2("compact", paths, options, how)


def audit(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Return what is found in each session, and whether that is bad enough to fail."""
    from compactctl import audit as auditing  # the other commands do without its cost
    from compactctl import baseline, changed

    asked = options.audit
    if (options.apply or options.out is not None) and not asked.fix:
        raise UsageError("--apply and --out are for --fix: without it, audit reads only")
    auditing.wanted_rules(asked, options.settings)
    known = baseline.read(asked.baseline) if asked.baseline is not None else None
    found = _found(paths, options)
    _require_no_session_written(found, asked.written)
    if options.apply:
        _require_places(paths, found, options, lambda item: [_output(item, options).fixed])
    if asked.changed_since is not None:
        found = changed.only(found, asked.changed_since)
        options = msgspec.structs.replace(options, allow_empty=options.allow_empty or not found.files)
    if known is None and asked.write_baseline is None:
        return _batch("audit", found, _audit_one, options, how)
    held: list[Outcome] = []
    batch = _batch("audit", found, _audit_one, options, msgspec.structs.replace(how, on_outcome=held.append))
    if asked.write_baseline is not None and batch.exit_code != signals.exit_code():
        store.write_named(asked.write_baseline, [baseline.dumped(held)])
        batch.notes.append(f"wrote {asked.write_baseline}")
    if known is not None:
        baseline.compare(held, known, asked)
        _tally_again(batch, held, auditing.FAILING_EXIT_CODE)
    for made in held:
        (how.on_outcome or batch.outcomes.append)(made)
    return batch


def accuracy(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Return how far estimators are off against recorded usage; with a gate that is not passed, exit code 1."""
    from compactctl import scoring  # the other commands do without its cost

    if options.scoring.compare is not None:
        scoring.require_earlier(options.scoring.compare)
    found = _found(paths, options)
    asked = options.scoring
    _require_no_session_written(found, [path for path in (asked.rows, asked.fit, asked.plot) if path is not None])
    kept: list[Outcome] = []
    taken = scoring.Scoring(options)

    def take(made: Outcome) -> None:
        taken.take(made)
        (how.on_outcome or kept.append)(made)

    batch = _batch("accuracy", found, _accuracy_one, options, msgspec.structs.replace(how, on_outcome=take))
    batch.outcomes += kept
    batch.accuracy = taken.end(is_whole=batch.exit_code != signals.exit_code())
    broken = list(scoring.broken(batch.accuracy, options))
    batch.problems += broken
    batch.notes += scoring.unheld(batch.accuracy, options)
    batch.exit_code = max(batch.exit_code, 1 if broken else 0)
    return batch


def _tally_again(batch: Batch, outcomes: Sequence[Outcome], failing: int) -> None:
    """Count outcomes anew that have changed since; the exit code of findings is theirs, any other one stays."""
    batch.tally = Tally()
    for made in outcomes:
        batch.tally.add(made)
    before = 0 if batch.exit_code == failing else batch.exit_code
    batch.exit_code = max([before, *batch.tally.exit_codes])


def _require_no_session_written(found: Inputs, written: Sequence[str]) -> None:
    """Raise UsageError where a file that is to be written is one of those that are read."""
    sessions = {os.path.realpath(item.path): item.path for item in found.files}
    for path in written:
        if os.path.realpath(path) in sessions:
            raise UsageError(f"{path}: it is one of the sessions to be read; write the report elsewhere")


def restore(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Give back the original of each compacted session; without `apply`, say only what would be written."""
    found = _found(paths, options, own_outputs=True)
    _require_places(paths, found, options, lambda item: [_restored(item, options)])
    return _batch("restore", found, _restore_one, options, how)


def verify(paths: Sequence[str], options: Options, how: How = ALONE) -> Batch:
    """Return whether each compacted session is whole."""
    found = _found(paths, options, own_outputs=True)
    return _batch("verify", found, _verify_one, options, how)


def _found(paths: Sequence[str], options: Options, *, own_outputs: bool = False) -> Inputs:
    folders = agents.folders(os.environ, os.path.expanduser("~"))
    return inputs.find(paths, options.selection, own_outputs=own_outputs, agent_folders=folders)


# one file ----------------------------------------------------------------------------------------


def _found_to_shrink(paths: Sequence[str], options: Options) -> Inputs:
    """Return the files to work on. Raises UsageError where the options do not go together or an output has no place."""
    if options.target is not None:
        target_tokens(options.target, window_tokens=0)
    if options.place == IN_PLACE and (options.out is not None or STANDARD_INPUT in paths):
        raise UsageError("--in-place puts the result where the source is: it goes with neither --out nor -")
    found = _found(paths, options)
    if options.place == NEW_SESSION:
        from compactctl import new_sessions

        found = new_sessions.without_made(found, options)
        new_sessions.require_different(found, options)
    _require_places(paths if options.apply else (), found, options, lambda item: _spilled(item, options))
    return found


def _inspect_one(item: Input, options: Options) -> list[Outcome]:
    with opened(item.path, options.format) as session:
        outcomes = []
        for transcript in session.read.transcripts:
            sized = views.size(session, transcript, options)
            made = views.outcome(session, sized, options)
            made.details = views.details(session, sized, options)
            outcomes.append(made)
        return outcomes


def _audit_one(item: Input, options: Options) -> list[Outcome]:
    from compactctl import audit as auditing

    try:
        with opened(item.path, options.format) as session:
            if options.audit.fix:
                from compactctl import fix

                return fix.fix(session, options, _output(item, options))
            return auditing.audit(session, options)
    except EmptySession as error:
        made = failed(item.path, error) if item.is_explicit else _skipped(item.path, error)
        return [auditing.with_empty_file(made, options)]


def _accuracy_one(item: Input, options: Options) -> list[Outcome]:
    from compactctl import accuracy as measuring

    with opened(item.path, options.format) as session:
        return measuring.accuracy(session, options)


def _estimate_one(item: Input, options: Options) -> list[Outcome]:
    with opened(item.path, options.format) as session:
        outcomes = []
        for transcript in session.read.transcripts:
            sized = views.size(session, transcript, options)
            made = views.outcome(session, sized, options)
            views.add_estimates(made, session, sized, options)
            made.findings = views.with_reason_for_no_usage(made.findings, sized, options.anchored)
            outcomes.append(made)
    if options.apply:
        _write_estimate(_estimate_path(item, options), outcomes)
    return outcomes


def _estimate_path(item: Input, options: Options) -> Path:
    return inputs.output_folder(item, options.out) / (layout.stem(Path(item.relative).name) + ESTIMATE_ENDING)


def _write_estimate(path: Path, outcomes: list[Outcome]) -> None:
    store.require_ours(path)
    batch = Batch.of("estimate", outcomes)
    store.write_whole(path, [msgspec.json.format(msgspec.json.encode(batch.document()), indent=2), b"\n"])
    for made in outcomes:
        made.status = "applied"
        made.notes = (*made.notes, f"wrote {path}")


def _spill_one(item: Input, options: Options) -> list[Outcome]:
    from compactctl import apply  # the commands that only read do without its cost

    with opened_to_compact(item.path, options.format) as session:
        return apply.spill(session, options, _output(item, options))


def _layer2(command: str, paths: Sequence[str], options: Options, how: How) -> Batch:
    """Run one of the commands that have summaries written; its sessions share a desk, so they share a process."""
    from compactctl import desk, errand, layer2  # the commands that have no summary written do without their cost

    found = _found_to_shrink(paths, options)
    shared = desk.make(options)
    if options.apply and not shared.asks_nobody:
        told = errand.make([_due_tokens(item, options, command, shared) for item in found.files], shared)
        if told.sessions and not how.approve(told):
            raise Interrupted("nothing was sent and nothing was written")

    def one(item: Input, options: Options) -> list[Outcome]:
        with opened_to_compact(item.path, options.format) as session:
            return layer2.work(session, options, _output(item, options), command, shared)

    def with_spending(done: int, total: int, path: str) -> None:
        how.progress(done, total, f"{shared.spending.words()}{path}")

    return _batch(command, found, one, options, msgspec.structs.replace(how, progress=with_spending), threads=True)


def _due_tokens(item: Input, options: Options, command: str, shared: "desk.Desk") -> int:
    """Return about how many tokens a file will send; 0 for one that can't be read, or read twice."""
    from compactctl import layer2

    if item.path == STANDARD_INPUT:
        return 0
    with contextlib.suppress(CompactctlError), opened_to_compact(item.path, options.format) as session:
        return layer2.due_tokens(session, options, _output(item, options), command, shared)
    return 0


def _output(item: Input, options: Options) -> layout.Paths:
    if options.place == IN_PLACE:
        return layout.own_paths(Path(os.path.realpath(item.path)))
    return layout.output_paths(Path(item.relative).name, inputs.output_folder(item, options.out))


def _spilled(item: Input, options: Options) -> list[Path]:
    made = _output(item, options)
    return [made.session, made.folder]


def _restored(item: Input, options: Options) -> Path:
    if options.place == IN_PLACE:
        return Path(item.path)
    return inputs.output_folder(item, options.out) / generations.paths_of(item.path).restored.name


def _restore_one(item: Input, options: Options) -> list[Outcome]:
    from compactctl import undo  # with all that checks and writes, which a dry run does without

    with _saying_if_log(item, options):
        return undo.restore(item.path, options, inputs.output_folder(item, options.out))


def _verify_one(item: Input, options: Options) -> list[Outcome]:
    from compactctl import undo

    with _saying_if_log(item, options):
        return undo.check(item.path, options)


@contextlib.contextmanager
def _saying_if_log(item: Input, options: Options) -> Iterator[None]:
    """Raise NotCompactable in place of NoReceipt where the file is a log, of which there never can be a receipt."""
    try:
        yield
    except NoReceipt as error:
        try:
            with opened_to_compact(item.path, options.format):
                pass
        except NotCompactable:
            raise
        except CompactctlError:
            raise error from None
        raise


# the batch ---------------------------------------------------------------------------------------


def _require_places(
    paths: Sequence[str], found: Inputs, options: Options, written: Callable[[Input], Sequence[Path]]
) -> None:
    """Raise UsageError where an output has no place, OutputCollision where it is another one's."""
    if STANDARD_INPUT in paths and options.out is None:
        raise UsageError("standard input has no place of its own: say where the output goes with --out DIR")
    places = Places()
    for item in found.files:
        places.take(item.path, [str(path) for path in written(item)])


def _batch(command: str, found: Inputs, work: Work, options: Options, how: How, *, threads: bool = False) -> Batch:
    batch = Batch(command=command, problems=list(found.problems), notes=list(found.notes))
    taker = _Taker(batch, len(found.files), how.progress, how.on_outcome or batch.outcomes.append)
    for path, error in found.errors:
        taker.take([failed(path, error)])
    with contextlib.closing(workers.worked(found.files, partial(_one, work, options), how.jobs, threads)) as worked:
        try:
            for item, outcomes in worked:
                taker.done(item, outcomes)
        except KeyboardInterrupt:
            for item, outcomes in workers.finished(worked):
                taker.done(item, outcomes)
            taker.interrupted()
            return batch
    if batch.tally.sessions == batch.tally.unread:
        _nothing_found(batch, found.left_out, options)
    batch.exit_code = max([batch.exit_code, *batch.tally.exit_codes])
    return batch


class _Taker:
    """Takes what comes of each file: counts it, hands it on, and tells how far the batch is."""

    def __init__(self, batch: Batch, total: int, progress: Progress, on_outcome: OnOutcome) -> None:
        self._batch = batch
        self._done = 0
        self._total = total
        self._progress = progress
        self._on_outcome = on_outcome

    def done(self, item: Input, outcomes: list[Outcome] | None) -> None:
        self._done += 1  # before its outcomes are printed: an interrupt there finds the file counted on both sides
        if outcomes is None:
            self._batch.not_sessions.append(item.path)
        else:
            self.take(outcomes)
        self._progress(self._done, self._total, item.path)

    def take(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            self._batch.tally.add(outcome)
            self._on_outcome(outcome)

    def interrupted(self) -> None:
        """Say how far it came; what was written is right, and found to be so by the next run."""
        far = f"stopped after {self._done:,} of {self._total:,} files"
        self._batch.problems.append(f"{far}; the same command again goes on from there")
        self._batch.exit_code = signals.exit_code()


def _nothing_found(batch: Batch, left_out: int, options: Options) -> None:
    if options.allow_empty:
        return
    batch.exit_code = NoSession.exit_code
    others = len(batch.not_sessions)
    looked = [f"{others} files are not sessions"] if others else []
    looked += [f"left out by --exclude, --since or --until: {left_out}"] if left_out else []
    batch.problems.append("no session found" + (f" ({', '.join(looked)})" if looked else ""))


def _one(work: Work, options: Options, item: Input) -> list[Outcome] | None:
    """Work on one file. The one place where a bug is caught: it becomes a failed outcome with code 70."""
    try:
        return work(item, options)
    except UnknownFormat as error:
        return [failed(item.path, error)] if item.is_explicit else None
    except (EmptySession, NoNewId, NotCompactable, Unreadable, NotFound) as error:
        return [failed(item.path, error) if item.is_explicit else _skipped(item.path, error)]
    except CompactctlError as error:
        return [failed(item.path, error)]
    except Exception as error:
        if isinstance(error, UnicodeEncodeError) and not _has_unicode_places(item, options):
            return [failed(item.path, WriteError(f"{item.path}: {NO_UNICODE}"))]
        made = failed(item.path, Bug(f"{item.path}: a bug in compactctl: {type(error).__name__}: {error}"))
        if options.debug:
            import traceback

            made.traceback = traceback.format_exc()
        return [made]


NO_UNICODE = (
    "its full path is not UTF-8, so nothing that is written could name it; rename it, or go elsewhere with --out"
)


def _has_unicode_places(item: Input, options: Options) -> bool:
    """Return whether all names of a file's results can stand in JSON, as previews and receipts have to have them."""
    try:
        f"{item.path}{inputs.output_folder(item, options.out).absolute()}".encode()
    except UnicodeEncodeError:
        return False
    return True


def _skipped(path: str, error: CompactctlError) -> Outcome:
    return Outcome(path=path, status="skipped", error=Problem(error.code, str(error)))
