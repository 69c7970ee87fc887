"""What became of each session: the values behind every output, in the contract's JSON shape.

Field names are the JSON keys. A field that does not apply is left out of JSON (`UNSET`), one that applies and has
no value is null.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from compactctl.errors import CompactctlError
from compactctl.findings import Finding, Severity
from compactctl.predictions import Observed, Row, Score

Status = Literal["read", "planned", "applied", "unchanged", "skipped", "failed"]
STATUSES: tuple[Status, ...] = ("read", "planned", "applied", "unchanged", "skipped", "failed")
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class Problem(Struct, frozen=True):
    """Why a session failed or was skipped: the error class in snake case, and one line in words."""

    code: str
    message: str


class Bytes(Struct, frozen=True):
    """Bytes of the session file before and after, and of what lies beside it afterwards."""

    before: int
    after: int
    beside: int = 0


class Disk(Struct, frozen=True):
    """Bytes on disk before and after: the source, the result, and all that lies beside it."""

    before: int
    after: int


class Tokens(Struct, frozen=True):
    """Tokens of the effective context. `after` equals `before` where nothing is due."""

    estimator: str
    anchored: bool
    before: int
    after: int
    window: int
    window_source: str
    """`recorded`, `proved`, `receipt`, `table`, `fallback` or `option`."""
    threshold: int
    anchor_line: int | None = None
    anchor_tokens: int | None = None
    before_low: int | None = None
    before_high: int | None = None
    after_low: int | None = None
    after_high: int | None = None
    """Between which figures 90 of 100 such contexts are, by the errors that the profile knows of its model's family;
    null where that is unknown."""


class SpillNote(Struct, frozen=True):
    """One spill: planned, or done. `file` is its full path."""

    call_id: str
    tool: str
    line: int
    bytes: int
    sha256: str
    reason: str
    file: str
    exchange: str = ""
    preview_start: str = ""
    why: str = ""
    """The reason in words, with its figures."""


class FailureNote(Struct, frozen=True):
    call_id: str
    error: str
    line: int = 0


class KeepCounts(Struct, frozen=True):
    """Results that stay, counted by reason in words."""

    reason: str
    count: int


class UsageNote(Struct, frozen=True):
    """What a provider counted over all attempts for one summary."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


class PriceNote(Struct, frozen=True):
    """What the usage costs at list prices, and of when they are."""

    usd: float
    as_of: str


class SurvivalNote(Struct, frozen=True):
    """Of the things of one type that the summarised part names: how many are literally present afterwards, and how
    many can be reached, being present or in a file that the context names."""

    total: int
    present: int
    reachable: int


class FateCounts(Struct, frozen=True):
    """The messages of the context by what became of them: the three add up to `messages`."""

    messages: int
    kept: int
    spilled: int
    summarised: int


class Layer2Note(Struct, frozen=True, kw_only=True):
    """What Layer 2 did, or why it did nothing."""

    due: bool
    ran: bool
    reason: str
    """`due`, `manual`, `below_threshold`, `nothing_older`, `breaker_open`, `hook`, `provider_failed`, `already_done`,
    `over_budget`."""
    provider: str | None = None
    model: str | None = None
    address: str | None = None
    attempts: int = 0
    messages_summarized: int = 0
    messages_kept: int = 0
    summary_tokens: int | None = None
    usage: UsageNote | None = None
    price: PriceNote | None = None
    input_tokens: int | None = None
    """About what goes into the request, or went, by our own estimate."""
    cut_line: int | None = None
    """The line of the first message that is kept word for word."""
    dropped: tuple[str, ...] = ()
    """What no request had room for (`layer2.too_long = drop`), in words."""
    doubts: tuple[str, ...] = ()
    """What is odd about a summary that was taken all the same, in words."""
    reasoning_dropped: int = 0
    redacted: dict[str, int] = {}
    """Secrets that were taken out before anything was sent or written, by kind."""
    survival: dict[str, SurvivalNote] = {}
    fates: FateCounts | None = None
    history_file: str | None = None
    summary_file: str | None = None
    summary: str | None = None


class BigResult(Struct, frozen=True):
    """One of the biggest tool results; `why` says why it would or would not be spilled."""

    line: int
    bytes: int
    tool: str
    in_context: bool
    why: str


class WouldSpill(Struct, frozen=True):
    """What Layer 1 would do at a single-result limit."""

    limit_bytes: int
    results: int
    bytes: int
    tokens_saved: int


class Layer1Note(Struct, frozen=True):
    spills: tuple[SpillNote, ...] = ()
    failures: tuple[FailureNote, ...] = ()
    kept: tuple[KeepCounts, ...] = ()
    biggest: tuple[BigResult, ...] | UnsetType = UNSET
    """Where nothing is spilled: the biggest results, and why each of them stays."""
    would_spill: tuple[WouldSpill, ...] | UnsetType = UNSET
    """There, too: what lower limits would do."""


class Output(Struct, frozen=True):
    """Where the result was (or would be) written."""

    session: str
    report: str
    spill_dir: str


class ResumeNote(Struct, frozen=True):
    """How the agent goes on in what was written: a command for a shell, or null and the reason."""

    command: str | None
    remark: str


class CompactionNote(Struct, frozen=True):
    line: int
    tokens_before: int | None
    trigger: str | None


class SideRunNote(Struct, frozen=True):
    """A subagent's run inside the file."""

    agent: str
    messages: int
    tokens: int | None


class Details(Struct, frozen=True):
    """What `inspect` adds: where the bytes are, what is biggest, what a lower limit would give."""

    lines: int
    window_used_percent: int
    bytes_by_kind: dict[str, int]
    context_bytes_by_kind: dict[str, int]
    results_in_file: int
    biggest_results: tuple[BigResult, ...]
    would_spill: tuple[WouldSpill, ...]
    compactions: tuple[CompactionNote, ...]
    side_runs: tuple[SideRunNote, ...]
    requests: int
    peak_tokens: int


class FindingNote(Struct, frozen=True):
    rule: str
    severity: str
    line: int | None
    message: str
    fingerprint: str | UnsetType = UNSET
    """(`audit`) what the finding is known by in a later run, whatever was appended since."""
    known: bool | UnsetType = UNSET
    """(`audit` with a baseline) whether the baseline has it, so that it does not fail again."""


class Figures(Struct, frozen=True, kw_only=True):
    """What the gates of `audit` compare."""

    peak_tokens: int
    """The largest context of any request, or the context now."""
    context_percent: float
    """The same in percent of the window."""
    compactions: int
    largest_result_bytes: int
    """Of all results in the file, in context or not."""
    estimator_error_percent: float | None = None
    """The median; null where too few requests tell."""


class MissedNote(Struct, frozen=True):
    """Something that was known before a compaction, not in the context after it, and used again on this line."""

    type: str
    text: str
    line: int
    reachable: bool


class LossNote(Struct, frozen=True):
    """What one compaction that stands in the session kept of what was used again; secrets are taken out."""

    line: int
    sealed: bool
    """It is partly encrypted, so only what was read again is known."""
    survival: dict[str, SurvivalNote]
    missed: tuple[MissedNote, ...]
    """In the order in which they were used again, so many of them as are told."""
    instructions: tuple[str, ...]
    """What a person had to say again."""
    reads: int
    """Files read until the next compaction."""
    reads_again: int
    read_bytes: int
    read_again_bytes: int


class AuditNote(Struct, frozen=True):
    """What `audit` adds. `losses` are of the compactions after which an answer came, where a rule of loss is wanted."""

    figures: Figures
    losses: tuple[LossNote, ...] = ()
    losses_left_out: int = 0
    """So many earlier compactions were not looked at: `audit.loss_read_bytes`."""


class EditNote(Struct, frozen=True):
    """One fault that is mended: on which line of the source, by which rule, and what is done."""

    line: int
    rule: str
    text: str


class FixNote(Struct, frozen=True):
    """What `audit --fix` mends, and the file that the mended session was (or would be) written to."""

    file: str
    edits: tuple[EditNote, ...]


class AccuracyNote(Struct, frozen=True):
    """What `accuracy` adds: how many requests were judged, and why the others were not."""

    requests: int
    judged: int
    excluded: dict[str, int]
    rows: tuple[Row, ...] | UnsetType = UNSET
    """The predictions; taken out as soon as they are counted."""
    steps: tuple[Observed, ...] | UnsetType = UNSET
    """What a profile is fitted on; the same."""


class ScoresNote(Struct, frozen=True):
    """The errors of a whole batch, and all that somebody needs to know to read them."""

    truth: str
    profile: str
    seed: int
    requests: int
    judged: int
    excluded: dict[str, int]
    scores: tuple[Score, ...]
    fitted: str | None = None
    """The profile that was written."""


def notes(findings: Iterable[Finding]) -> tuple[FindingNote, ...]:
    """Return findings as they stand in JSON."""
    return tuple(FindingNote(f.rule, f.severity, f.line, f.message) for f in findings)


class Outcome(Struct, kw_only=True, omit_defaults=False):
    """One session: what it is, what was done or would be done, and how that ended."""

    path: str
    index: int | UnsetType = UNSET
    format: str | None = None
    agent: str | None = None
    session_id: str | None = None
    parent_session_id: str | UnsetType | None = UNSET
    """Of a subagent's session: the one that started it."""
    project: str | UnsetType | None = UNSET
    """The short name that a person knows the session's folder by."""
    modified: str | UnsetType | None = UNSET
    """ISO 8601 with offset, UTC; null for standard input."""
    model: str | None = None
    status: Status = "read"
    error: Problem | None = None
    messages: int | UnsetType = UNSET
    rounds: int | UnsetType = UNSET
    tool_results: int | UnsetType = UNSET
    bytes: Bytes | UnsetType = UNSET
    disk: Disk | UnsetType = UNSET
    """Where something was written."""
    tokens: Tokens | UnsetType = UNSET
    layer1: Layer1Note | UnsetType = UNSET
    layer2: Layer2Note | UnsetType = UNSET
    estimates: dict[str, int | None] | UnsetType = UNSET
    details: Details | UnsetType = UNSET
    checks: dict[str, bool] | UnsetType = UNSET
    """(`verify`, `restore`) each check by name, and whether it held."""
    audit: AuditNote | UnsetType = UNSET
    fix: FixNote | UnsetType = UNSET
    """(`audit --fix`) where there is anything to mend; `findings` are then of the mended session."""
    accuracy: AccuracyNote | UnsetType = UNSET
    findings: tuple[FindingNote, ...] = ()
    output: Output | None = None
    resume: ResumeNote | UnsetType = UNSET
    """Where a session was written that an agent may resume."""
    undo: str | UnsetType = UNSET
    """The command that undoes what was written."""
    notes: tuple[str, ...] = ()
    """Sentences a person should read: the resume command, what could not be done and why."""
    exit_code: int = 0
    traceback: str | UnsetType = UNSET
    """Only with `--debug`, of a bug."""

    @property
    def error_severity(self) -> Severity:
        """What its error counts as among findings: one for which the file was only passed over is a note."""
        return "error" if self.status == "failed" else "note"


def failed(path: str, error: CompactctlError) -> Outcome:
    """Return what is said of a file that could not be worked on."""
    return Outcome(path=path, status="failed", error=Problem(error.code, str(error)), exit_code=error.exit_code)


def forecasts(outcome: Outcome) -> tuple[WouldSpill, ...]:
    """Return what Layer 1 would do to a session at several limits, where that is known."""
    if outcome.details is not UNSET:
        return outcome.details.would_spill
    return () if outcome.layer1 is UNSET else outcome.layer1.would_spill or ()
