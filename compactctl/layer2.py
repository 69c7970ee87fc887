"""Layer 2 on one session file: whether it is due, where the session is cut, the summary, and then one apply of all.

The promise: nothing is written unless the summary was made and accepted, and what is written is Layer 1 and the cut
together, in one session, verified before it is put in place.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct

from compactctl import __version__, apply, disk, generations, hooks, layout, metas, prices, views
from compactctl.commit import require_place, write_spills
from compactctl.cut import choose_cut, summarised
from compactctl.desk import Desk
from compactctl.errors import BreakerOpen, CompactctlError, HookFailed, OverBudget, ProviderError
from compactctl.facts import HEADING, facts_section
from compactctl.formats.interface import Metas
from compactctl.job import Job, Planned, Summarised, plan, start
from compactctl.json_text import write_json
from compactctl.kept import history_path, summary_path
from compactctl.model import Text
from compactctl.options import Options
from compactctl.outcome import Layer2Note, Outcome, Output, Problem, Status, SurvivalNote, UsageNote
from compactctl.plan import Cut
from compactctl.providers.interface import ProviderUsage
from compactctl.receipt import Receipt, SessionNote
from compactctl.redact import add, redact
from compactctl.references import named, script_of, survival
from compactctl.rewrite import planned_messages
from compactctl.session import Session
from compactctl.settings import public
from compactctl.story import Said, read_story, request_test
from compactctl.summary import Asked, Summary, Trigger, make_budget, summarize
from compactctl.survival import text_of, texts_of

COMPACT, SUMMARIZE = "compact", "summarize"


def work(session: Session, options: Options, paths: layout.Paths, command: str, desk: Desk) -> list[Outcome]:
    """Return what `compact` or `summarize` does (or, without `apply`, would do) to a session file.

    Raises WriteError or VerifyError where the session could not be written; the source is as it was then.
    """
    job = start(session, options, paths, command, spills=command == COMPACT or options.spill_first)
    job.request = _request(job, desk)
    earlier = _earlier(job)
    if earlier is not None:
        if options.apply:
            generations.mend(generations.paths_of(session.path), session.own_receipt)
        return [_already(job, item, note) for item, note in zip(job.planned, earlier.sessions, strict=True)]
    cuts = _decide(job, desk)
    if not cuts and not job.has_work:
        return apply.carry_out(job)
    if not options.apply:
        _rehearse(job, cuts, desk)
        return apply.carry_out(job)
    return _with_hooks(job, desk, lambda: _carried_out(job, cuts, desk))


def _carried_out(job: Job, cuts: Mapping[int, Cut], desk: Desk) -> list[Outcome]:
    require_place(job)
    try:
        _ask_all(job, cuts, desk)
        write_spills(job)
        late = _decide(job, desk)
        if late:
            _ask_all(job, late, desk)
    except ProviderError as error:
        return [_not_made(job, position, error) for position in range(len(job.planned))]
    return apply.carry_out(job)


def due_tokens(session: Session, options: Options, paths: layout.Paths, command: str, desk: Desk) -> int:
    """Return about how many tokens a session would send to a provider; 0 where it needs no summary."""
    job = start(session, options, paths, command, spills=command == COMPACT or options.spill_first)
    job.request = _request(job, desk)
    if _earlier(job) is not None:
        return 0
    return sum(_tokens_of(job.planned[position], cut) for position, cut in _decide(job, desk).items())


# whether, and where --------------------------------------------------------------------------------


def _trigger(job: Job) -> Trigger:
    return "manual" if job.command == SUMMARIZE else "auto"


def _decide(job: Job, desk: Desk) -> dict[int, Cut]:
    """Return where each session of the file that is due is cut, by its position; note why the others are not."""
    cuts: dict[int, Cut] = {}
    by_hand = _trigger(job) == "manual"
    is_request = request_test(job.session.document)
    for position, item in enumerate(job.planned):
        if position in job.summaries:
            continue
        is_due = item.tokens_after >= item.sized.measured.threshold
        note = _note(desk, item, is_due, "manual" if by_hand else "due" if is_due else "below_threshold")
        if is_due or by_hand:
            messages = planned_messages(item.sized.transcript.messages, item.plan)
            window = item.sized.measured.window.tokens
            cut = choose_cut(messages, item.sized.estimator, job.options.settings.layer2, window, is_request)
            if cut is not None and _says_something(job, item, cut):
                cuts[position] = cut
            else:
                note = msgspec.structs.replace(note, reason="nothing_older")
                job.roomy |= set() if by_hand else {position}
        job.layer2[position] = note
    plan(job, [failure for item in job.planned for failure in item.plan.failures])
    return cuts


def _says_something(job: Job, item: Planned, cut: Cut) -> bool:
    """Return whether a cut takes more away than an earlier summary of ours, with what stands behind it."""
    document, messages = job.session.document, item.sized.transcript.messages
    return any(
        not all(isinstance(part, Text) and metas.is_ours(str(document.value(part.place))) for part in message.parts)
        for message in (messages[index] for index in summarised(cut))
        if not message.is_summary
    )


def _note(desk: Desk, item: Planned, is_due: bool, reason: str) -> Layer2Note:
    return Layer2Note(
        due=is_due,
        ran=False,
        reason=reason,
        provider=desk.label,
        model=desk.provider.model,
        address=None if desk.asks_nobody else redact(desk.provider.address).text,
        messages_kept=len(item.sized.transcript.messages),
    )


def _tokens_of(item: Planned, cut: Cut) -> int:
    """Return about how many tokens the messages are that a cut summarises."""
    messages = item.sized.transcript.messages
    return item.sized.estimator.tokens(tuple(messages[index] for index in summarised(cut)))


# the summary ---------------------------------------------------------------------------------------


class _Material(Struct, frozen=True):
    """What a session says, without secrets: the part to be summarised, and the texts of what stays."""

    said: tuple[Said, ...]
    kept: str
    redacted: Mapping[str, int]


def _rehearse(job: Job, cuts: Mapping[int, Cut], desk: Desk) -> None:
    """Prepare what would be done: with the summary itself where nobody has to be asked, else without its text."""
    if desk.asks_nobody:
        _ask_all(job, cuts, desk)
        for position, done in job.summaries.items():
            job.summaries[position] = msgspec.structs.replace(done, note=msgspec.structs.replace(done.note, ran=False))
        plan(job)
        return
    for position, cut in cuts.items():
        item = job.planned[position]
        count = len(summarised(cut))
        note = msgspec.structs.replace(
            job.layer2[position],
            messages_summarized=count,
            messages_kept=len(item.sized.transcript.messages) - count,
            input_tokens=_tokens_of(item, cut),
            cut_line=_cut_line(item, cut),
        )
        made = metas.compose(
            "", desk.writer, count, str(history_path(job).absolute()), 0, has_own_record=_has_home(job)
        )
        job.summaries[position] = Summarised(cut, made, "", note)
    plan(job)


def _has_home(job: Job) -> bool:
    """Return whether the session's agent has a record of its own for a compaction."""
    return bool(job.session.read.format.home)


def _ask_all(job: Job, cuts: Mapping[int, Cut], desk: Desk) -> None:
    """Have every summary written and plan with them. Raises ProviderError; nothing is changed then."""
    made = {position: _ask(job, position, cut, desk) for position, cut in cuts.items()}
    job.summaries |= made
    plan(job, [failure for item in job.planned for failure in item.plan.failures])


def _ask(job: Job, position: int, cut: Cut, desk: Desk) -> Summarised:
    item, settings = job.planned[position], job.options.settings
    material = _material(job, item, cut)
    asked: list[Asked] = []
    guarded = desk.breaker.asking() if _trigger(job) == "auto" else contextlib.nullcontext()
    try:
        with guarded:
            made = summarize(
                desk.provider,
                material.said,
                _previous(material.said, settings.layer2.facts_max_tokens),
                make_budget(desk.provider, settings, _trigger(job)),
                settings.layer2.too_long,
                template=desk.template,
                on_request=lambda request: _count(desk, request, asked),
            )
    except ProviderError:
        job.layer2[position] = msgspec.structs.replace(job.layer2[position], attempts=len(asked))
        raise
    return _summarised(job, position, cut, desk, material, made, asked)


def _count(desk: Desk, request: Asked, asked: list[Asked]) -> None:
    """Count a request that is about to be sent. Raises OverBudget where it would go over a ceiling."""
    if not desk.asks_nobody:
        cost = prices.price(desk.provider.model, ProviderUsage(request.tokens, request.output_tokens))
        desk.spending.take(request.tokens, cost.usd if cost else None)
    asked.append(request)


def _summarised(
    job: Job, position: int, cut: Cut, desk: Desk, material: _Material, made: Summary, asked: Sequence[Asked]
) -> Summarised:
    """Return the cut with all that stands for what it takes away, and what the report tells of it."""
    item, settings = job.planned[position], job.options.settings
    clean = redact(made.text)
    present = f"{clean.text}\n{material.kept}"
    facts = facts_section(material.said, settings.layer2.facts_max_tokens, settings.estimator.bytes_per_token, present)
    text = f"{clean.text.strip()}\n\n{facts}".strip()
    history, count = str(history_path(job).absolute()), len(summarised(cut))
    texts = metas.compose(text, desk.writer, count, history, len(made.dropped), has_own_record=_has_home(job))
    note = msgspec.structs.replace(
        job.layer2[position],
        ran=True,
        attempts=made.attempts,
        messages_summarized=count,
        messages_kept=len(item.sized.transcript.messages) - count,
        usage=_usage(made.usage),
        price=prices.price(desk.provider.model, made.usage),
        input_tokens=sum(request.tokens for request in asked) or None,
        cut_line=_cut_line(item, cut),
        dropped=tuple(_dropped(item, index) for index in made.dropped),
        doubts=made.doubts,
        redacted=add(material.redacted, clean.counts),
        survival=_survival(material, texts),
        history_file=str(history_path(job)),
        summary_file=str(summary_path(job)),
        summary=text,
    )
    return Summarised(cut, texts, text, note)


def _material(job: Job, item: Planned, cut: Cut) -> _Material:
    story = read_story(job.session.document, item.sized.transcript, {})
    gone = set(summarised(cut))
    previews = dict(_previews(item))
    counts: list[Mapping[str, int]] = []
    said = tuple(_clean(each, counts) for each in metas.split([each for each in story if each.index in gone]))
    kept = "\n".join(previews.get(each.index) or text_of(each) for each in story if each.index not in gone)
    return _Material(said, kept, add(*counts))


def _previews(item: Planned) -> Iterator[tuple[int, str]]:
    """Yield the message indexes of the results that are spilled, with what stays there."""
    spills = {spill.result.place: spill for spill in item.plan.spills}
    for index, message in enumerate(item.sized.transcript.messages):
        if message.result is not None and message.result.place in spills:
            yield index, spills[message.result.place].preview


def _clean(said: Said, counts: list[Mapping[str, int]]) -> Said:
    """Return a message without secrets; note how many there were."""

    def cleaned(text: str) -> str:
        made = redact(text)
        counts.append(made.counts)
        return made.text

    calls = tuple(msgspec.structs.replace(call, arguments=cleaned(call.arguments)) for call in said.calls)
    result = said.result and msgspec.structs.replace(said.result, text=cleaned(said.result.text))
    return msgspec.structs.replace(said, text=cleaned(said.text), calls=calls, result=result)


def _previous(said: Sequence[Said], facts_max_tokens: int) -> str | None:
    """Return the newest earlier summary; without its facts where code adds those anew."""
    text = next((each.text for each in reversed(said) if each.is_summary and each.text.strip()), None)
    return text.partition(HEADING)[0].strip() if text and facts_max_tokens else text


def _survival(material: _Material, texts: Metas) -> dict[str, SurvivalNote]:
    """Return what becomes of all that the summarised part names: nobody knows yet what will be used again."""
    before = [text for each in material.said if not each.is_summary for text in texts_of(each)]
    scripts = [script for each in material.said for call in each.calls if (script := script_of(call.arguments))]
    wanted = named(before, scripts)
    present = "\n".join((texts.summary, texts.acknowledged, texts.reminder, material.kept))
    commands = (reference.text for reference in wanted if reference.kind == "command")
    found = survival(wanted, present, "\n".join((*before, *commands)))
    return {kind: SurvivalNote(each.total, each.present, each.reachable) for kind, each in found.items()}


def _usage(usage: ProviderUsage | None) -> UsageNote | None:
    if usage is None:
        return None
    cached = usage.cache_read_tokens, usage.cache_write_tokens
    return UsageNote(usage.input_tokens, usage.output_tokens, *cached)


def _dropped(item: Planned, index: int) -> str:
    message = item.sized.transcript.messages[index]
    return f"line {message.line}: {message.role}"


def _cut_line(item: Planned, cut: Cut) -> int | None:
    """Return the line of the first message that is kept behind the summary; None where none is."""
    kept = item.sized.transcript.messages[cut.first_kept :]
    return kept[0].line if kept else None


# what was done before ------------------------------------------------------------------------------


def _request(job: Job, desk: Desk) -> str:
    """Return a digest of all that was asked for and that the result depends on, besides the source."""
    options, provider = job.options, desk.provider
    asked = {
        "command": job.command,
        "settings": public(options.settings),
        "provider": [provider.name, provider.kind, provider.model, provider.window_tokens, provider.address],
        "template": desk.template,
        "estimator": [options.estimator, options.anchored, options.window_tokens, options.model],
        "spills": [job.spills, options.target, options.slim],
        "place": [options.place, options.keep_history, options.redact],
    }
    return sha256(write_json(asked)).hexdigest()


def _earlier(job: Job) -> Receipt | None:
    """Return the receipt of a run that did all this already, where its result is still there as it was written."""
    document, paths = job.session.document, job.paths
    found = job.session.own_receipt if job.is_in_place else generations.receipt_at(paths.report)
    if found is None or (found.request, found.version) != (job.request, __version__):
        return None
    if not any(session.layer2 and session.layer2.ran for session in found.sessions):
        return None
    if job.is_in_place:
        is_there = found.output.bytes == document.size_bytes and document.sha256() == found.output.sha256
    else:
        is_source = found.source.bytes == document.size_bytes and document.sha256() == found.source.sha256
        is_there = is_source and paths.session.exists() and disk.file_sha256(paths.session) == found.output.sha256
    return found if is_there and len(found.sessions) == len(job.planned) else None


def _already(job: Job, item: Planned, noted: SessionNote) -> Outcome:
    made = views.outcome(
        job.session,
        item.sized,
        job.options,
        None if job.is_in_place else noted.tokens.after,
        noted.tokens.interval,
    )
    made.status = "unchanged"
    if noted.layer2 is not None:
        made.layer2 = msgspec.structs.replace(noted.layer2, ran=False, reason="already_done", usage=None, price=None)
    made.output = Output(str(job.paths.session), str(job.paths.report), str(job.paths.spills))
    return made


# hooks, and what went wrong ------------------------------------------------------------------------


def _with_hooks(job: Job, desk: Desk, work: Callable[[], list[Outcome]]) -> list[Outcome]:
    """Do the work between the two hooks; the second runs after a failure too."""
    settings = job.options.settings.hooks
    try:
        hooks.run(settings.pre_compact, _payload(job, "pre_compact"), settings.timeout_s)
    except HookFailed as error:
        return [_not_made(job, position, error) for position in range(len(job.planned))]
    try:
        outcomes = work()
    except CompactctlError as error:
        problem = {"code": error.code, "message": redact(str(error)).text}
        _post_hook(job, msgspec.structs.replace(_payload(job, "post_compact"), status="failed", error=problem))
        raise
    first = outcomes[0]
    told = msgspec.structs.replace(
        _payload(job, "post_compact"),
        after_tokens=sum(item.tokens_after for item in job.planned) if first.status == "applied" else None,
        output=str(job.paths.session) if first.status == "applied" else None,
        report=str(job.paths.report) if first.status == "applied" else None,
        history=str(history_path(job)) if first.status == "applied" and job.is_cut else None,
        status=first.status,
        error=msgspec.structs.asdict(first.error) if first.error else None,
    )
    said = _post_hook(job, told)
    first.notes = (*first.notes, *said)
    return outcomes


def _post_hook(job: Job, payload: hooks.Payload) -> tuple[str, ...]:
    """Run the second hook; what fails there is said and changes nothing."""
    settings = job.options.settings.hooks
    try:
        hooks.run(settings.post_compact, payload, settings.timeout_s)
    except HookFailed as error:
        return (str(error),)
    return ()


def _payload(job: Job, event: hooks.Event) -> hooks.Payload:
    before = sum(item.sized.measured.tokens for item in job.planned)
    session_id = job.session.read.transcripts[0].session_id
    return hooks.Payload(event, _trigger(job), job.session.path, session_id, before)


_REASONS: dict[type[CompactctlError], tuple[Status, str]] = {
    BreakerOpen: ("skipped", "breaker_open"),
    OverBudget: ("skipped", "over_budget"),
    HookFailed: ("skipped", "hook"),
}


def _not_made(job: Job, position: int, error: CompactctlError) -> Outcome:
    """Return what is said of a session for which nothing was written, and why."""
    made = views.outcome(job.session, job.planned[position].sized, job.options)
    made.status, reason = _REASONS.get(type(error), ("failed", "provider_failed"))
    made.error = Problem(error.code, redact(str(error)).text)
    made.exit_code = error.exit_code
    if position in job.layer2:
        made.layer2 = msgspec.structs.replace(job.layer2[position], ran=False, reason=reason)
    return made
