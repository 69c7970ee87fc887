"""One session file on its way: what is planned for it, and what the plan makes of its tokens."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial

import msgspec
from msgspec import Struct

from compactctl import disk, generations, layout, receipt, spill_files, views
from compactctl.cut import summarised
from compactctl.document import Document, Place
from compactctl.errors import NoNewId, UsageError
from compactctl.formats.interface import Format, Metas, NewSession
from compactctl.measure import overhead
from compactctl.model import ToolResult, Transcript
from compactctl.options import IN_PLACE, NEW_SESSION, Options, target_tokens
from compactctl.outcome import FateCounts, Layer2Note
from compactctl.plan import Cut, Failure, Plan, Spill
from compactctl.policy import DecisionKey, Ledger, Target, Texts, make_plan
from compactctl.profiles import Interval
from compactctl.receipt import Fate, Receipt
from compactctl.rewrite import cut_messages, meta_messages
from compactctl.session import Session
from compactctl.settings import LARGEST, Layer1
from compactctl.spill_names import SpillNames
from compactctl.splicing import Edit
from compactctl.texts import result_text
from compactctl.turns import Pairs

KEPT_RESULT_BYTES = 2048
"""Where what is kept is too much on its own, results in it are spilled that are larger than this."""


class Summarised(Struct, frozen=True):
    """A cut with what stands for the messages before it, and what the report tells of how that was made."""

    cut: Cut
    metas: Metas
    text: str
    """The summary as it is kept in a file of its own."""
    note: Layer2Note


class Planned(Struct):
    """One session of the file with its plan, perhaps a cut, and its tokens before and after."""

    sized: views.Sized
    plan: Plan
    tokens_after: int
    target_tokens: int | None
    summarised: Summarised | None = None
    layer2: Layer2Note | None = None
    """What is told of Layer 2; None where nobody asked for it."""
    interval: Interval | None = None
    """Between which figures the tokens after are, where the errors of the estimator are known."""
    emptied: tuple[int, ...] = ()
    """The messages behind the cut that held only reasoning which no longer fits, and went with it."""

    @property
    def is_over_target(self) -> bool:
        return self.target_tokens is not None and self.tokens_after > self.target_tokens

    @property
    def is_over_threshold(self) -> bool:
        """Whether all that Layer 2 could do was not enough."""
        is_asked = self.layer2 is not None and (self.layer2.ran or self.layer2.due)
        return is_asked and self.tokens_after >= self.sized.measured.threshold

    @property
    def cut(self) -> Cut | None:
        return self.summarised.cut if self.summarised else None

    def fates(self) -> tuple[Fate, ...]:
        """Return what becomes of every message: summarised, else spilled, else kept."""
        gone = frozenset((*summarised(self.cut), *self.emptied)) if self.cut else frozenset()
        spilled = {spill.result.place for spill in self.plan.spills}
        return tuple(
            Fate(message.line, message.role, _fate(index in gone, message.result, spilled))
            for index, message in enumerate(self.sized.transcript.messages)
        )

    def fate_counts(self) -> FateCounts:
        """Return how many messages have which fate."""
        fates = Counter(fate.fate for fate in self.fates())
        messages = len(self.sized.transcript.messages)
        return FateCounts(messages, fates["kept"], fates["spilled"], fates["summarised"])


def _fate(is_summarised: bool, result: ToolResult | None, spilled: Collection[Place]) -> str:
    if is_summarised:
        return "summarised"
    return "spilled" if result is not None and result.place in spilled else "kept"


class Job(Struct):
    """One file: the session that was read, where its result goes, and what is planned for each session in it."""

    session: Session
    options: Options
    paths: layout.Paths
    command: str = "spill"
    spills: bool = True
    """Whether Layer 1 is asked for."""
    request: str = ""
    """A digest of all that was asked for of Layer 2, for the receipt."""
    source_sha256: str = ""
    """Only where something is to be written."""
    new: NewSession | None = None
    slimming: list[Edit] = []
    """What takes the copies out that the model never sees, where that is asked for."""
    summaries: dict[int, Summarised] = {}
    """By position among the file's sessions: those that are cut."""
    layer2: dict[int, Layer2Note] = {}
    """What is told of Layer 2 where a session is not cut."""
    roomy: set[int] = set()
    """Those that are over the threshold and can't be cut: room is made in all of their context."""
    planned: list[Planned] = []

    @property
    def is_cut(self) -> bool:
        return bool(self.summaries)

    @property
    def plans(self) -> list[Plan]:
        return [item.plan for item in self.planned]

    @property
    def has_work(self) -> bool:
        return bool(self.slimming) or self.is_cut or any(plan.spills for plan in self.plans)

    @property
    def is_in_place(self) -> bool:
        return self.options.place == IN_PLACE

    @property
    def keeps_whole(self) -> bool:
        """Whether the whole original is kept, rather than the values that were replaced."""
        return self.is_in_place and self.options.backup != "none"

    def forget_contexts(self) -> None:
        """Give up the messages of all sessions of the file, and what stays of their results: of a huge one there is no
        room for those of its result besides."""
        self.session.read = self.session.read.without_contexts()
        for item, transcript in zip(self.planned, self.session.read.transcripts, strict=True):
            item.sized = msgspec.structs.replace(item.sized, transcript=transcript, paired=Pairs([], []))
            item.plan = msgspec.structs.replace(item.plan, keeps=(), reasons={})

    def forget_edits(self) -> None:
        """Give up what the edits of a new session are made from."""
        if self.new is not None:
            self.new = msgspec.structs.replace(self.new, edits=(), renamed={})

    @property
    def failed(self) -> set[DecisionKey]:
        return {(failure.exchange, failure.call_id) for plan in self.plans for failure in plan.failures}


def start(
    session: Session, options: Options, paths: layout.Paths, command: str = "spill", *, spills: bool = True
) -> Job:
    """Return a file's job, planned; without `spills` Layer 1 is left out.

    For a new session `paths` change to what its agent would call it. Raises NoNewId where its format knows no ids,
    UsageError where the target is no number.
    """
    job = Job(session, options, paths, command, spills)
    if job.is_in_place and disk.is_packed(session.path):
        raise UsageError(f"{session.path}: a packed session can't be changed in place; unpack it first")
    if options.place == NEW_SESSION:
        job.source_sha256 = session.document.sha256()
        job.new = new_session(session, job.source_sha256)
        job.paths = layout.own_paths(paths.session.with_name(job.new.name))
    if options.slim:
        job.slimming = _slimming(job)
    plan(job)
    return job


def _slimming(job: Job) -> list[Edit]:
    document, limit = job.session.document, job.options.settings.layer1.twin_limit_bytes
    where = job.paths.folder.name if job.keeps_whole else f"{job.paths.folder.name}/{layout.COPIES}"
    return job.session.read.format.slim_edits(document, limit, where)


def new_session(session: Session, seed: str) -> NewSession:
    """Return what the new session is called. Raises NoNewId where the format knows no ids."""
    format_ = session.read.format
    source = session.path if session.path == "-" else os.path.abspath(session.path)
    made = format_.new_session(session.document, session.read.transcripts[0], source, seed)
    if made is None:
        raise NoNewId(f"{session.path}: this {format_.name} file has no session id to give anew")
    return made


def plan(job: Job, failures: Sequence[Failure] = ()) -> None:
    """Plan (again) every session of the file; results in `failures` stay where they are."""
    session, options = job.session, job.options
    layer1 = options.settings.layer1 if job.spills else _NO_LIMITS
    names = SpillNames(partial(spill_files.existing, job.paths.spills))
    texts = _texts(session.document, job.paths, session.read.format, options.settings.layer1)
    failed = {(failure.exchange, failure.call_id) for failure in failures}
    job.planned = []
    for position, transcript in enumerate(session.read.transcripts):
        sized = views.size(session, transcript, options)
        done = job.summaries.get(position)
        is_room_needed = done is not None or position in job.roomy
        target = _room(job, sized, done) if is_room_needed else _target(sized, options)
        ledger: Ledger = receipt.ledger(_receipts(job), transcript, layer1) if job.spills else {}
        made = make_plan(transcript.messages, layer1, ledger, texts, names, failed, target, sized.paired)
        made = _plan_of(sized, made, done)
        own = tuple(failure for failure in failures if failure.session_index == transcript.index)
        made = msgspec.structs.replace(made, failures=own)
        after = _tokens_after(sized, made.spills) if done is None else _tokens_after_cut(job, sized, done, made.spills)
        asked = target_tokens(options.target, sized.measured.window.tokens) if options.target else None
        item = Planned(sized, made, after, asked, done, done.note if done else job.layer2.get(position))
        item.interval = interval_after(job, item)
        job.planned.append(item)


_NO_LIMITS = Layer1(single_limit_bytes=LARGEST, round_limit_bytes=LARGEST)
"""What makes Layer 1 leave everything where it is."""


def _plan_of(sized: views.Sized, made: Plan, done: Summarised | None) -> Plan:
    """Return what of a plan is carried out: results that are summarised leave with their lines."""
    if done is None:
        return made
    kept = _kept_places(sized, done.cut)
    return Plan(
        tuple(spill for spill in made.spills if spill.result.place in kept),
        tuple(keep for keep in made.keeps if keep.result.place in kept),
        made.reasons,
    )


def _kept_places(sized: views.Sized, cut: Cut | None) -> set[Place]:
    kept = sized.transcript.messages[cut.first_kept if cut else 0 :]
    return {message.result.place for message in kept if message.result is not None}


def _room(job: Job, sized: views.Sized, done: Summarised | None) -> Target:
    """Return what is to be reached inside what is kept: below the threshold, and the target where one is asked for."""
    options = job.options
    limit, smallest = sized.measured.threshold - 1, KEPT_RESULT_BYTES
    if options.target is not None:
        asked = target_tokens(options.target, sized.measured.window.tokens)
        limit, smallest = min(limit, asked), 0 if asked <= limit else smallest
    kept = _kept_places(sized, done.cut if done else None)
    return Target(
        limit,
        partial(_tokens_after_cut, job, sized, done) if done else partial(_tokens_after, sized),
        options.settings.estimator.bytes_per_token,
        lambda result: result.place in kept and result.size_bytes > smallest,
    )


def _tokens_after_cut(job: Job, sized: views.Sized, done: Summarised, spills: Collection[Spill]) -> int:
    """Return the tokens once the context is cut, by the contract's rule for Layer 2."""
    kept = _kept_places(sized, done.cut)
    made = Plan(spills=tuple(spill for spill in spills if spill.result.place in kept))
    metas = meta_messages(job.session.read.format, done.metas)
    messages = cut_messages(sized.transcript.messages, made, done.cut, metas)
    return sized.estimator.tokens(messages) + hidden_tokens(sized)


def hidden_tokens(sized: views.Sized) -> int:
    """Return the tokens that no message shows; 0 where the figure before has none in it either."""
    return overhead(sized.transcript, sized.estimator) if sized.measured.anchored else 0


def interval_after(job: Job, item: Planned) -> Interval | None:
    """Return between which figures the tokens after are, where the errors of the estimator are known."""
    hidden = hidden_tokens(item.sized) if item.cut else None
    return views.interval_after(item.sized, job.options, item.tokens_after, hidden)


def _receipts(job: Job) -> tuple[Receipt, ...]:
    """Return the receipts whose decisions bind this run: of the file itself, and of an earlier run over it."""
    found = (job.session.own_receipt, generations.receipt_at(job.paths.report))
    return tuple(item for item in found if item is not None)


def _target(sized: views.Sized, options: Options) -> Target | None:
    if options.target is None:
        return None
    tokens = target_tokens(options.target, sized.measured.window.tokens)
    return Target(tokens, partial(_tokens_after, sized), options.settings.estimator.bytes_per_token)


def _tokens_after(sized: views.Sized, spills: Collection[Spill]) -> int:
    return sized.tokens_after(spills) if spills else sized.measured.tokens


def _texts(document: Document, paths: layout.Paths, format_: Format, layer1: Layer1) -> Texts:
    style = layer1.preview_style
    return Texts(
        text=partial(_text_to_replace, document),
        path=paths.spill_path,
        style=format_.preview_style if style == "auto" else style,
    )


def _text_to_replace(document: Document, result: ToolResult) -> str:
    document.locate(result.place)
    return result_text(document, result)


def replan(
    document: Document,
    format_: Format,
    contexts: Iterable[Transcript],
    made: Receipt,
    paths: layout.Paths,
    failed: Collection[DecisionKey] = (),
) -> list[Plan]:
    """Return what a second run over a compacted session would spill, under the settings of its receipt."""
    layer1 = made.settings.layer1 if made.spills else _NO_LIMITS
    texts = _texts(document, paths, format_, layer1)
    names = SpillNames(partial(spill_files.existing, paths.spills))
    return [make_plan(t.messages, layer1, receipt.ledger((made,), t, layer1), texts, names, failed) for t in contexts]
