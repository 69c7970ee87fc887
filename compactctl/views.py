"""What is said about one session: transcripts and plans made into the values that outputs print."""

import heapq
import os
import shlex
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cached_property

import msgspec
from msgspec import UNSET, Struct, UnsetType

from compactctl import estimators, profiles, windows
from compactctl.errors import NoEstimator
from compactctl.estimators import Estimator, Subject, Weighed
from compactctl.findings import Finding
from compactctl.formats.interface import Format
from compactctl.measure import Measure, after_layer1, measure, overhead
from compactctl.model import OutsideResult, ToolResult, Transcript, Window, context_bytes
from compactctl.options import Options
from compactctl.outcome import (
    BigResult,
    Bytes,
    CompactionNote,
    Details,
    FailureNote,
    FindingNote,
    KeepCounts,
    Layer1Note,
    Outcome,
    ResumeNote,
    SideRunNote,
    SpillNote,
    Tokens,
    WouldSpill,
    notes,
)
from compactctl.plan import Plan, Spill
from compactctl.policy import Forecast, forecasts
from compactctl.profiles import Interval, Spread
from compactctl.rewrite import previews
from compactctl.session import Session, project
from compactctl.settings import Layer1, Settings
from compactctl.turns import Paired, Pairs, pairs

FORECAST_LIMITS_BYTES = (20_000, 10_000)
"""The lower limits that `inspect` tells the effect of, besides the one that is set."""

BIGGEST_RESULTS = 10
PREVIEW_START_CHARACTERS = 60


class Sized(Struct, frozen=True, dict=True):
    """One session measured: by which estimator, and how much its context holds."""

    transcript: Transcript
    estimator: Estimator
    measured: Measure
    paired: Pairs

    @cached_property
    def weighed(self) -> Weighed:
        """All messages counted by the estimator, whatever was recorded."""
        return self.estimator.weighed(self.transcript.messages)

    def tokens_after(self, spills: Iterable[Spill]) -> int:
        """Return the tokens once these spills are made, by the contract's rule for Layer 1."""
        planned = previews(self.transcript.messages, self.paired, spills)
        return after_layer1(self.measured.tokens, self.weighed.saved(planned))


def size(session: Session, transcript: Transcript, options: Options) -> Sized:
    """Return a session measured by the chosen estimator."""
    chosen = estimator(options.estimator, session, transcript, options)
    window = _window(session, transcript, options)
    measured = measure(
        transcript,
        chosen,
        window,
        options.settings,
        anchored=options.anchored,
        stale_until_line=session.stale_until_line,
    )
    return Sized(transcript, chosen, measured, pairs(transcript.messages))


def _window(session: Session, transcript: Transcript, options: Options) -> Window:
    """Return the window of a session: of one that we wrote, the window that it was compacted for.

    The figures that proved a larger one are from before the cut, so the session itself can't tell any more.
    """
    found = windows.choose(transcript, options.settings, options.window_tokens, options.model)
    receipt = session.own_receipt
    if receipt is None or found.source in ("option", "recorded") or options.model:
        return found
    told = next((note for note in receipt.sessions if note.index == transcript.index), None)
    if told is None or transcript.model not in (None, told.model):
        return found
    larger = found.source == "proved" and found.tokens >= told.tokens.window
    return found if larger or found.tokens == told.tokens.window else Window(told.tokens.window, "receipt")


def estimator(name: str, session: Session, transcript: Transcript, options: Options) -> Estimator:
    """Return the estimator of this name for a session."""
    subject = Subject(session.document, options.model or transcript.model, transcript.format)
    return estimators.get(name, options.settings, subject)


WHAT_NO_FILE_SHOWS = (
    "that figure counts the system prompt and the tools, which recorded usage had in it; this one counts messages alone"
)


def interval(sized: Sized, options: Options) -> Interval | None:
    """Return between which figures the context is, by the errors that are known of the estimator on its model."""
    spread = _spread(sized, options)
    if spread is None:
        return None
    anchor = sized.measured.anchor
    known = 0 if anchor is None else anchor.total_tokens if anchor.is_output_known else anchor.input_tokens
    return profiles.interval(known, sized.measured.tokens - known, spread)


def interval_after(sized: Sized, options: Options, tokens_after: int, hidden_tokens: int | None) -> Interval | None:
    """Return the same once a plan is carried out.

    `hidden_tokens` is what no message shows, where the context was cut and is estimated anew; None where spills came
    off the figure before. Then there are two ways to it, what is taken off and what stays, and both hold; the figure
    itself is never left out.
    """
    spread, before = _spread(sized, options), interval(sized, options)
    if spread is None or before is None:
        return None
    if hidden_tokens is not None:
        return profiles.interval(hidden_tokens, tokens_after - hidden_tokens, spread)
    gone = sized.measured.tokens - tokens_after
    if not gone:
        return before
    without = profiles.interval(0, gone, spread)
    spilled = Interval(max(0, before.low - without.high), max(0, before.high - without.low))
    if sized.measured.anchor is None:
        return spilled
    known = overhead(sized.transcript, sized.estimator)
    anew = profiles.interval(known, sized.weighed.tokens - gone, spread)
    both = Interval(max(spilled.low, anew.low), min(spilled.high, anew.high))
    if not known or both.low > both.high:
        return spilled
    return Interval(min(both.low, tokens_after), max(both.high, tokens_after))


def _spread(sized: Sized, options: Options) -> Spread | None:
    profile = profiles.of(options.settings.estimator.profile)
    family = profiles.known(profile, options.model or sized.transcript.model)
    return None if family is None else family.spreads.get(sized.estimator.name.partition(":")[0])


def outcome(
    session: Session,
    sized: Sized,
    options: Options,
    tokens_after: int | None = None,
    after: Interval | None = None,
) -> Outcome:
    """Return what every command says of a session it has read; `after` is the interval of the tokens after it."""
    transcript, measured = sized.transcript, sized.measured
    anchor = measured.anchor
    before = interval(sized, options)
    if tokens_after is None or tokens_after == measured.tokens:
        after = before
    made = Outcome(
        path=session.path,
        format=transcript.format,
        agent=transcript.agent,
        session_id=transcript.session_id,
        parent_session_id=transcript.parent_session_id,
        project=project(transcript, session.path),
        modified=_iso(session.snapshot.modified_ns) if session.snapshot else None,
        model=transcript.model,
        messages=len(transcript.messages),
        rounds=len(sized.paired.rounds),
        tool_results=len(sized.paired.results),
        bytes=Bytes(session.document.size_bytes, session.document.size_bytes),
        tokens=Tokens(
            estimator=sized.estimator.name,
            anchored=measured.anchored,
            before=measured.tokens,
            after=measured.tokens if tokens_after is None else tokens_after,
            window=measured.window.tokens,
            window_source=measured.window.source,
            threshold=measured.threshold,
            anchor_line=anchor.line if anchor else None,
            anchor_tokens=anchor.total_tokens if anchor else None,
            before_low=before.low if before else None,
            before_high=before.high if before else None,
            after_low=after.low if after else None,
            after_high=after.high if after else None,
        ),
        findings=notes((*session.read.findings_of(transcript), *measured.findings)),
    )
    receipt = session.own_receipt
    if receipt is not None and not measured.anchored:
        told = next((note.tokens.after for note in receipt.sessions if note.index == transcript.index), None)
        made.notes = (f"when it was compacted about {told:,} tokens were left: {WHAT_NO_FILE_SHOWS}",) if told else ()
    made.notes = (*made.notes, *sized.estimator.remarks)
    if transcript.index is not None:
        made.index = transcript.index
    return made


def add_estimates(made: Outcome, session: Session, sized: Sized, options: Options) -> None:
    """Add the tokens of the context by each estimator, anchored, and as the provider recorded them; for each figure
    that can't be had, a finding says why."""
    messages, anchor = sized.transcript.messages, sized.measured.anchor
    figures: dict[str, int | None] = {}
    for name in (options.estimator, *options.others):
        try:
            is_chosen = name == options.estimator
            each = sized.estimator if is_chosen else estimator(name, session, sized.transcript, options)
        except NoEstimator as error:
            figures[name] = None
            made.findings = (*made.findings, *notes([Finding(None, "no-estimate", str(error))]))
            continue
        tokens = each.tokens(messages)
        figures[each.name] = tokens
        made.notes = (*made.notes, *(remark for remark in each.remarks if remark not in made.notes))
    figures["anchored"] = sized.measured.tokens if anchor else None
    figures["usage"] = anchor.total_tokens if anchor else None
    made.estimates = figures


def with_reason_for_no_usage(
    findings: tuple[FindingNote, ...], sized: Sized, anchored: bool
) -> tuple[FindingNote, ...]:
    """Return the findings with one that says why there is no recorded usage, where none says so yet."""
    is_said = any(finding.rule in ("no-usage", "stale-usage") for finding in findings)
    if sized.measured.anchor is not None or is_said:
        return findings
    reason = "no request has a recorded usage to start from" if anchored else "recorded usage was not to be used"
    return (*findings, *notes([Finding(None, "no-usage", reason)]))


def details(session: Session, sized: Sized, options: Options) -> Details:
    """Return what `inspect` adds: where the bytes are, what is biggest, what a lower limit would give."""
    transcript, measured = sized.transcript, sized.measured
    limit = options.settings.layer1.single_limit_bytes
    in_file = [item for item in sized.paired.results if item.result.made is None]
    return Details(
        lines=session.document.line_count,
        window_used_percent=round(100 * measured.tokens / measured.window.tokens) if measured.window.tokens else 0,
        bytes_by_kind=dict(transcript.bytes_by_kind),
        context_bytes_by_kind=context_bytes(transcript.messages),
        results_in_file=len(in_file) + len(transcript.outside),
        biggest_results=_biggest(
            in_file,
            transcript.outside,
            lambda result: f"{'over' if result.size_bytes > limit else 'under the limit of'} {limit:,}",
        ),
        would_spill=() if session.read.format.printed_by else _would_spill(sized.paired, options.settings),
        compactions=tuple(CompactionNote(c.line, c.tokens_before, c.trigger) for c in transcript.compactions),
        side_runs=tuple(
            SideRunNote(run.agent, run.messages, run.usage.total_tokens if run.usage else None)
            for run in transcript.side_runs
        ),
        requests=len(transcript.requests),
        peak_tokens=transcript.peak_tokens,
    )


def _iso(modified_ns: int) -> str:
    return datetime.fromtimestamp(modified_ns // 1_000_000_000, UTC).isoformat()


def _biggest(
    inside: Iterable[Paired], outside: Iterable[OutsideResult], why: Callable[[ToolResult], str]
) -> tuple[BigResult, ...]:
    """Return the biggest of some results in context, of which `why` tells what becomes of them, and of some outside."""
    kept = heapq.nsmallest(BIGGEST_RESULTS, inside, key=lambda item: (-item.result.size_bytes, item.line))
    gone = heapq.nsmallest(BIGGEST_RESULTS, outside, key=lambda item: (-item.size_bytes, item.line))
    found = [
        *(BigResult(item.line, item.result.size_bytes, item.result.name, True, why(item.result)) for item in kept),
        *(BigResult(item.line, item.size_bytes, item.name, False, item.why) for item in gone),
    ]
    return tuple(sorted(found, key=lambda big: (-big.bytes, big.line))[:BIGGEST_RESULTS])


def nothing_spilled(note: Layer1Note, sized: Sized, plan: Plan, settings: Settings) -> Layer1Note:
    """Return a note that also says why nothing is spilled: the biggest results of the file and what keeps each of
    them, and what lower limits would do."""
    usual = f"under the limit of {settings.layer1.single_limit_bytes:,}"
    biggest = _biggest(plan.keeps, sized.transcript.outside, lambda result: plan.reasons.get(result.place, usual))
    return msgspec.structs.replace(note, biggest=biggest, would_spill=_would_spill(sized.paired, settings))


def _would_spill(paired: Pairs, settings: Settings) -> tuple[WouldSpill, ...]:
    layer1 = settings.layer1
    limits = list(dict.fromkeys([layer1.single_limit_bytes, *FORECAST_LIMITS_BYTES]))
    return tuple(
        WouldSpill(limit, found.results, found.size_bytes, _tokens_saved(found, settings))
        for limit, found in zip(limits, forecasts(paired, layer1, limits), strict=True)
    )


def _tokens_saved(found: Forecast, settings: Settings) -> int:
    """Return about how many tokens go: a preview's head stays for each result."""
    stays = found.results * settings.layer1.preview_head_bytes
    return int(max(0, found.size_bytes - stays) / settings.estimator.bytes_per_token)


def resume_note(format_: Format, path: str, session_id: str | None) -> ResumeNote | UnsetType:
    """Return how the agent resumes the session at this path; nothing for a format without an agent.

    `session_id` is given where the file stands where the agent looks for its sessions.
    """
    way = format_.resume(os.path.abspath(path), session_id)
    if not way.words and not way.remark:
        return UNSET
    return ResumeNote(shlex.join(way.words) if way.words else None, way.remark)


def layer1_note(plan: Plan, path: Callable[[str], str], limits: Layer1) -> Layer1Note:
    """Return a plan as it is printed: spills with the `path` of their files, failures, the rest counted by reason."""
    return Layer1Note(
        spills=tuple(
            SpillNote(
                call_id=spill.result.call_id,
                tool=spill.result.name,
                line=spill.line,
                bytes=spill.result.size_bytes,
                sha256=spill.sha256,
                reason=spill.reason,
                file=path(spill.file),
                exchange=spill.exchange,
                preview_start=spill.starts[:PREVIEW_START_CHARACTERS],
                why=_why(spill, limits),
            )
            for spill in plan.spills
        ),
        failures=tuple(FailureNote(failure.call_id, failure.error, failure.line) for failure in plan.failures),
        kept=tuple(KeepCounts(reason, count) for reason, count in sorted(plan.keeps_by_reason().items())),
    )


def _why(spill: Spill, limits: Layer1) -> str:
    match spill.reason:
        case "single" if spill.result.size_bytes > limits.single_limit_bytes:
            return f"over {limits.single_limit_bytes:,}"
        case "round" if spill.round_bytes:
            return f"round {spill.round_bytes:,} over {limits.round_limit_bytes:,}, largest first"
        case "target":
            return "towards the target"
        case _:
            return "spilled by an earlier run"
