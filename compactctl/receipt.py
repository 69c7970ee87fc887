"""The shape of the report file, and what later runs take from it.

A receipt names files by name only, so that a session and what lies beside it can be moved together. Receipts carry
a schema number; every released one stays readable.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from compactctl.errors import NoReceipt
from compactctl.model import Transcript
from compactctl.outcome import Layer2Note
from compactctl.plan import KEPT_UNDER_LIMITS, Plan, Spill, SpillReason
from compactctl.policy import KEPT_FOR_ITS_PREVIEW, Decided, DecisionKey
from compactctl.profiles import Interval
from compactctl.rows import Rows
from compactctl.settings import Layer1, Settings
from compactctl.turns import Paired

SCHEMA = "compactctl.receipt/1"


class FileNote(Struct, frozen=True):
    """A file as it was: its name, size and digest; lines where it is a session."""

    name: str
    bytes: int
    sha256: str
    lines: int | None = None


class Decision(Struct, frozen=True, gc=False):
    """One result of the context and its fate: kept, or replaced by a preview, and why."""

    exchange: str
    call_id: str
    tool: str
    line: int
    bytes: int
    fate: str
    """`spilled` or `kept`."""
    reason: str
    file: str | None = None
    """Under the spill folder."""
    sha256: str | None = None
    preview_sha256: str | None = None


class TokensNote(Struct, frozen=True):
    estimator: str
    anchored: bool
    before: int
    after: int
    window: int
    threshold: int
    after_low: int | None = None
    after_high: int | None = None
    """The p5 and p95 of `after`, where the errors of the estimator are known for the model."""

    @property
    def interval(self) -> Interval | None:
        """Return the two as one."""
        if self.after_low is None or self.after_high is None:
            return None
        return Interval(self.after_low, self.after_high)


class Fate(Struct, frozen=True):
    """What became of one message of the context: `kept`, `spilled` or `summarised`."""

    line: int
    role: str
    fate: str


class SessionNote(Struct, frozen=True):
    """One session of the file, and every decision about it."""

    format: str
    session_id: str | None
    index: int | None
    messages: int
    tokens: TokensNote
    decisions: Collection[Decision]
    """Hundreds of thousands where the session is huge: those that are made or read here are `Rows`."""
    failures: tuple[str, ...] = ()
    layer2: Layer2Note | None = None
    fates: tuple[Fate, ...] = ()
    """Of every message, in order, where some were summarised."""
    model: str | None = None
    """The model that the window in `tokens` is of."""


class Receipt(Struct, frozen=True):
    """One compaction, whole: what went in, what came out, every decision and the settings it was made under."""

    schema: str
    version: str
    command: str
    source: FileNote
    output: FileNote
    sessions: tuple[SessionNote, ...]
    settings: Settings
    checks: dict[str, bool] = {}
    place: str = "beside"
    """`beside` the source, `in place` of it, or as a `new session`."""
    new_session_id: str | None = None
    originals: FileNote | None = None
    """The values that were replaced, where they were kept one by one."""
    copies: FileNote | None = None
    """The same for what `--slim` took out."""
    history: FileNote | None = None
    """The lines that a summary stands for, verbatim."""
    summary: FileNote | None = None
    """The summary as a text of its own."""
    spills: bool = True
    """Whether Layer 1 was asked for."""
    request: str = ""
    """A digest of all that was asked for: a second run that asks for the same has nothing to do."""
    backup: FileNote | None = None
    """The whole original, where it was kept whole: by name, or by full path where it is not beside the session."""
    generation: int | None = None
    """Which compaction in place this is, from 1."""


def chunks(receipt: Receipt) -> Iterator[bytes]:
    """Yield a receipt as its file has it, in pieces: a huge session has hundreds of thousands of decisions."""
    bare = tuple(msgspec.structs.replace(session, decisions=()) for session in receipt.sessions)
    around = _indented(msgspec.structs.replace(receipt, sessions=bare)).split(_NO_DECISIONS)
    for piece, session in zip(around, receipt.sessions, strict=False):
        yield piece
        yield from _decisions(session.decisions) if session.decisions else [_NO_DECISIONS]
    yield around[-1] + b"\n"


def _decisions(decisions: Iterable[Decision]) -> Iterator[bytes]:
    lead, left = b'"decisions": [', iter(decisions)
    while some := list(itertools.islice(left, _DECISIONS_AT_ONCE)):
        yield lead + _indented(some)[len(b"[") : -len(b"\n]")].replace(b"\n", _DECISION_LEAD)
        lead = b","
    yield _DECISIONS_END


_DECISIONS_AT_ONCE = 256
_NO_DECISIONS = b'"decisions": []'
_DECISION_LEAD = b"\n      "
_DECISIONS_END = b"\n      ]"


def _indented(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def decode(raw: bytes, name: str) -> Receipt:
    """Return the receipt in these bytes. Raises NoReceipt, naming the file, where they are none we can read."""
    try:
        read = msgspec.json.decode(raw, type=_Read)
        sessions = tuple(SessionNote(**asdict(session) | {"decisions": _packed(session)}) for session in read.sessions)
        receipt = Receipt(**asdict(read) | {"sessions": sessions})
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NoReceipt(f"{name}: not a receipt of compactctl: {error}") from None
    if receipt.schema != SCHEMA:
        raise NoReceipt(f"{name}: a receipt of schema {receipt.schema}; this version reads {SCHEMA}")
    return receipt


class _SessionRead(SessionNote, frozen=True):
    """A session's note with its decisions as they stand in the bytes: never all at once as values."""

    decisions: list[msgspec.Raw]  # type: ignore[assignment]


class _Read(Receipt, frozen=True):
    """A receipt with such notes."""

    sessions: tuple[_SessionRead, ...]


def _packed(session: _SessionRead) -> Rows[Decision]:
    decoder, made = msgspec.json.Decoder(Decision), Rows(Decision)
    for raw in session.decisions:
        made.append(decoder.decode(raw))
    made.close()
    return made


def decisions(plan: Plan) -> Rows[Decision]:
    """Return a plan's decisions in order of lines. A result whose spill failed is not among them: it is undecided."""
    failed = {(failure.exchange, failure.call_id) for failure in plan.failures}
    keeps = (keep for keep in plan.keeps if (keep.exchange, keep.result.call_id) not in failed)
    decided: list[Spill | Paired] = [*plan.spills, *keeps]
    made = Rows(Decision)
    for each in sorted(decided, key=lambda decided: decided.line):
        made.append(_spilled(each) if isinstance(each, Spill) else _kept(each, plan))
    made.close()
    return made


def _spilled(spill: Spill) -> Decision:
    return Decision(
        exchange=spill.exchange,
        call_id=spill.result.call_id,
        tool=spill.result.name,
        line=spill.line,
        bytes=spill.result.size_bytes,
        fate="spilled",
        reason=spill.reason,
        file=spill.file,
        sha256=spill.sha256,
        preview_sha256=spill.preview_sha256,
    )


def _kept(keep: Paired, plan: Plan) -> Decision:
    result = keep.result
    return Decision(keep.exchange, result.call_id, result.name, keep.line, result.size_bytes, "kept", plan.reason(keep))


def ledger(
    receipts: tuple[Receipt, ...], transcript: Transcript, limits: Layer1
) -> dict[DecisionKey, tuple[Decided, ...]]:
    """Return what earlier runs decided about this session: every replace, and keeps under the same limits.

    After a cut exchanges without a key have other numbers, so no keep of such a run binds: the limits say the same.
    """
    found: dict[DecisionKey, tuple[Decided, ...]] = {}
    for receipt in receipts:
        binding = {reason: (Decided(False, kept=reason),) for reason in _binding_keeps(receipt.settings.layer1, limits)}
        for session in receipt.sessions:
            ids = (session.session_id, receipt.new_session_id or session.session_id)
            if transcript.session_id not in ids or session.index != transcript.index:
                continue
            for decision in session.decisions:
                key = decision.exchange, decision.call_id
                if decision.fate == "spilled":
                    digests = decision.sha256 or "", decision.preview_sha256 or ""
                    found[key] = (*found.get(key, ()), Decided(True, *digests, _spill_reason(decision)))
                elif session.layer2 is None and decision.reason in binding:
                    kept, earlier = binding[decision.reason], found.get(key)
                    found[key] = (*earlier, *kept) if earlier else kept
    return found


def _spill_reason(decision: Decision) -> SpillReason:
    match decision.reason:
        case "round" | "target" as reason:
            return reason
        case _:
            return "single"


def _binding_keeps(then: Layer1, now: Layer1) -> tuple[str, ...]:
    """Return which reasons for a keep still hold under the settings of now."""
    limits_then, limits_now = ((it.single_limit_bytes, it.round_limit_bytes) for it in (then, now))
    if limits_then != limits_now:
        return ()
    return (KEPT_UNDER_LIMITS, KEPT_FOR_ITS_PREVIEW) if then == now else (KEPT_UNDER_LIMITS,)
