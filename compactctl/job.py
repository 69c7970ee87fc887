"""One session file on its way through Layer 1: what is planned for it, and the edits that this comes to."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct

from compactctl import generations, receipt, store, views
from compactctl.document import Document, Drop, Edit, Insert, Place, Replace, Splice, read_json, write_json
from compactctl.errors import UsageError
from compactctl.formats.edits import result_text
from compactctl.formats.interface import Format, NewSession
from compactctl.model import Transcript
from compactctl.options import Options
from compactctl.plan import Failure, Plan, Spill
from compactctl.policy import DecisionKey, Ledger, Target, Texts, make_plan
from compactctl.receipt import Receipt
from compactctl.rewrite import planned_messages, spill_edits
from compactctl.session import Read, Session
from compactctl.settings import Layer1
from compactctl.spill_names import SpillNames

IN_PLACE, NEW_SESSION, BESIDE = "in place", "new session", "beside"


class Planned(Struct):
    """One session of the file with its plan, and its tokens before and after."""

    sized: views.Sized
    plan: Plan
    tokens_after: int
    target_tokens: int | None

    @property
    def is_over_target(self) -> bool:
        return self.target_tokens is not None and self.tokens_after > self.target_tokens


class Job(Struct):
    """One file: the session that was read, where its result goes, and what is planned for each session in it."""

    session: Session
    options: Options
    paths: store.Paths
    source_sha256: str = ""
    """Only where something is to be written."""
    new: NewSession | None = None
    slimming: list[Edit] = []
    """What takes the copies out that the model never sees, where that is asked for."""
    planned: list[Planned] = []

    @property
    def plans(self) -> list[Plan]:
        return [item.plan for item in self.planned]

    @property
    def has_work(self) -> bool:
        return bool(self.slimming) or any(plan.spills for plan in self.plans)

    @property
    def is_in_place(self) -> bool:
        return self.options.place == IN_PLACE

    @property
    def keeps_whole(self) -> bool:
        """Whether the whole original is kept, rather than the values that were replaced."""
        return self.is_in_place and self.options.backup != "none"

    @property
    def failed(self) -> set[DecisionKey]:
        return {(failure.exchange, failure.call_id) for plan in self.plans for failure in plan.failures}


def start(session: Session, options: Options, paths: store.Paths) -> Job:
    """Return a file's job, planned. For a new session `paths` change to what its agent would call it.

    Raises UsageError where its format knows no ids, or the target is no number.
    """
    job = Job(session, options, paths)
    if job.is_in_place and store.is_packed(session.path):
        raise UsageError(f"{session.path}: a packed session can't be changed in place; unpack it first")
    if options.place == NEW_SESSION:
        job.source_sha256 = session.document.sha256()
        job.new = _new_session(session, job.source_sha256)
        job.paths = store.own_paths(paths.session.with_name(job.new.name))
    if options.slim:
        job.slimming = _slimming(job)
    plan(job)
    return job


def _slimming(job: Job) -> list[Edit]:
    document, limit = job.session.document, job.options.settings.layer1.twin_limit_bytes
    where = job.paths.folder.name if job.keeps_whole else f"{job.paths.folder.name}/{store.COPIES}"
    return job.session.read.format.slim_edits(document, limit, where)


def _new_session(session: Session, seed: str) -> NewSession:
    format_ = session.read.format
    source = session.path if session.path == "-" else os.path.abspath(session.path)
    made = format_.new_session(session.document, session.read.transcripts[0], source, seed)
    if made is None:
        raise UsageError(f"{session.path}: a {format_.name} file like this has no session id to give anew")
    return made


def plan(job: Job, failures: Sequence[Failure] = ()) -> None:
    """Plan (again) every session of the file; results in `failures` stay where they are."""
    session, options = job.session, job.options
    layer1 = options.settings.layer1
    names = SpillNames(store.existing_spills(job.paths.spills))
    texts = _texts(session.document, job.paths, session.read.format, layer1)
    failed = {(failure.exchange, failure.call_id) for failure in failures}
    job.planned = []
    for transcript in session.read.transcripts:
        sized = views.size(session, transcript, options)
        target = _target(sized, options)
        ledger: Ledger = receipt.ledger(_receipts(job), transcript, layer1)
        made = make_plan(transcript.messages, layer1, ledger, texts, names, failed, target)
        own = tuple(failure for failure in failures if failure.session_index == transcript.index)
        made = msgspec.structs.replace(made, failures=own)
        after = _tokens_after(sized, made.spills)
        job.planned.append(Planned(sized, made, after, target.tokens if target else None))


def _receipts(job: Job) -> tuple[Receipt, ...]:
    """Return the receipts whose decisions bind this run: of the file itself, and of an earlier run over it."""
    found = (job.session.own_receipt, generations.receipt_at(job.paths.report))
    return tuple(item for item in found if item is not None)


def _target(sized: views.Sized, options: Options) -> Target | None:
    if options.target is None:
        return None
    tokens = target_tokens(options.target, sized.measured.window.tokens)
    return Target(tokens, partial(_tokens_after, sized), options.settings.estimator.bytes_per_token)


_TARGET = re.compile(r"(\d+(?:\.\d+)?)\s*(%|[kKmM]?)")
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def target_tokens(text: str, window_tokens: int) -> int:
    """Return the tokens that `--target` asks for: a number, `120k`, or a percentage of the window.

    Raises UsageError where it is none of these.
    """
    match = _TARGET.fullmatch(text.strip().replace(",", "").replace("_", ""))
    if match is None:
        raise UsageError(f"--target {text}: write tokens (100000, 100k) or a percentage of the window (50%)")
    number, unit = float(match[1]), match[2].lower()
    return int(window_tokens * number / 100) if unit == "%" else int(number * _UNITS[unit])


def _tokens_after(sized: views.Sized, spills: Collection[Spill]) -> int:
    if not spills:
        return sized.measured.tokens
    messages = sized.transcript.messages
    return sized.tokens_after(planned_messages(messages, Plan(spills=tuple(spills))))


def _texts(document: Document, paths: store.Paths, format_: Format, layer1: Layer1) -> Texts:
    style = layer1.preview_style
    return Texts(
        text=lambda result: result_text(document, result),
        path=paths.spill_path,
        style=format_.preview_style if style == "auto" else style,
    )


def replan(
    document: Document, read: Read, made: Receipt, paths: store.Paths, failed: Collection[DecisionKey] = ()
) -> list[Plan]:
    """Return what a second run over a compacted session would plan, under the settings of its receipt."""
    layer1 = made.settings.layer1
    texts = _texts(document, paths, read.format, layer1)
    names = SpillNames(store.existing_spills(paths.spills))
    return [
        make_plan(t.messages, layer1, receipt.ledger((made,), t, layer1), texts, names, failed)
        for t in read.transcripts
    ]


# edits -------------------------------------------------------------------------------------------


class Splices(Struct, frozen=True):
    """All edits of a file made concrete, and which of them only take out what the model never sees."""

    every: tuple[Splice, ...]
    slimming: frozenset[Splice]

    @property
    def growth_bytes(self) -> int:
        """By how much the file grows; below zero where it shrinks."""
        return sum(len(splice.new) - (splice.end - splice.start) for splice in self.every)

    @property
    def replaced_bytes(self) -> int:
        return sum(splice.end - splice.start for splice in self.every)


def splices(job: Job) -> Splices:
    """Return all edits of the file: previews, what slimming takes out, new ids, no torn tail."""
    document = job.session.document
    plans: list[tuple[Transcript, Plan, int]] = [
        (item.sized.transcript, item.plan, item.tokens_after) for item in job.planned
    ]
    edits = spill_edits(job.session.read.format, document, plans, job.paths.spill_path)
    slimming = _beside(job.slimming, edits)
    renaming = _renaming(job.new, [*edits, *slimming]) if job.new else []
    renamed = {edit.place for edit in renaming if isinstance(edit, Replace)}
    slimming = [edit for edit in slimming if not (isinstance(edit, Replace) and edit.place in renamed)]
    every = document.splices([*edits, *slimming, *renaming])
    slim = frozenset(document.splices(slimming)) if slimming else frozenset()
    return Splices(every, slim & frozenset(every))


def _beside(edits: Iterable[Edit], others: Iterable[Edit]) -> list[Edit]:
    """Return the edits that touch nothing that another one replaces already."""
    taken = {edit.place for edit in others if isinstance(edit, Replace)}
    return [edit for edit in edits if not isinstance(edit, Replace) or not _is_within(edit.place, taken)]


def _is_within(place: Place, taken: Collection[Place]) -> bool:
    return any(Place(place.record, place.route[:length]) in taken for length in range(len(place.route) + 1))


def _renaming(new: NewSession, others: Sequence[Edit]) -> list[Edit]:
    """Return the edits that give new ids, fitted to the others: what is dropped needs none, and an id that
    another edit put in a chain is renamed there."""
    dropped = {edit.record for edit in others if isinstance(edit, Drop)}
    placed = {edit.place: edit for edit in others if isinstance(edit, Replace)}
    fitted: list[Edit] = []
    for edit in new.edits:
        match edit:
            case Replace(place) if place.record in dropped:
                continue
            case Replace(place) if place in placed:
                fitted.append(_renamed(placed[place], new.renamed))
            case Replace(place) if _is_within(place, placed):
                continue
            case Insert() | Replace() | Drop():
                fitted.append(edit)
    return fitted


def _renamed(edit: Replace, renamed: Mapping[str, str]) -> Replace:
    value = read_json(edit.json)
    return Replace(edit.place, write_json(renamed.get(value, value))) if isinstance(value, str) else edit
