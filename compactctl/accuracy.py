"""How far estimators are off in one session file: every request that can be judged, in every context it ever had.

A session that was compacted has had several contexts. Each is read as it was right before the compaction, by the
format's own reading of the file's first lines, so the requests of a long session are judged as well.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from compactctl import estimators, views
from compactctl.document import Document
from compactctl.errors import NoEstimator
from compactctl.estimators import Estimator, Subject
from compactctl.fit import observed
from compactctl.judge import Judgeable, Judged, Key, judgeable, judged, key_of, kind_of, session_hash
from compactctl.model import Transcript, Usage
from compactctl.options import Options
from compactctl.outcome import AccuracyNote, Outcome
from compactctl.predictions import Observed, Row, Way
from compactctl.session import Session

COMPACTED: Way = "compacted"

MOST_READ_BYTES = 1_000_000_000
"""So much of a session is read again, at most, for the contexts that it had before: the newest first."""

MOST_MODELS = 64
"""So many models of one context are judged, the first ones: the context is estimated anew for each of them."""


def accuracy(session: Session, options: Options) -> list[Outcome]:
    """Return the predictions for each session of a file, and how many of its requests could not be judged, and why."""
    outcomes = []
    for transcript in session.read.transcripts:
        made = views.outcome(session, views.size(session, transcript, options), options)
        made.accuracy = _note(session, transcript, options)
        outcomes.append(made)
    return outcomes


def _note(session: Session, transcript: Transcript, options: Options) -> AccuracyNote:
    rows: list[Row] = []
    steps: list[Observed] = []
    excluded: dict[Key, str] = {}
    done: set[Key] = set()
    reads = _Reads(MOST_READ_BYTES)
    for known, document in _contexts(session, transcript, reads):
        found = _but(judgeable(known, options.settings, session.stale_until_line), done)
        found = _of_few_models(found)
        done |= {key_of(step.usage) for step in found.steps.values()}
        excluded |= found.excluded
        rows += _rows(found, known, document, session, options)
        if options.scoring.fit is not None:
            steps += observed(found, known, document, options.settings, _hash(session, transcript))
    rows += _after_compaction(session, transcript, options)
    reasons = Counter(
        excluded.get(key_of(usage), "not read again" if usage.line < reads.from_line else "outside the context")
        for usage in _others(transcript, done)
    )
    return AccuracyNote(len(transcript.requests), len(done), dict(reasons), tuple(rows), tuple(steps))


def _hash(session: Session, transcript: Transcript) -> str:
    """Return what a session is known by in rows: made of its id, else of its path and place there."""
    if transcript.session_id:
        return session_hash(transcript.session_id)
    return session_hash(None, session.path, None if transcript.index is None else str(transcript.index))


def _others(transcript: Transcript, done: set[Key]) -> Iterator[Usage]:
    return (usage for usage in transcript.requests if key_of(usage) not in done)


class _Reads(Struct):
    """How many bytes may still be read again, and from which line on every context was."""

    left_bytes: int
    from_line: int = 0


def _contexts(session: Session, transcript: Transcript, reads: _Reads) -> Iterator[tuple[Transcript, Document]]:
    """Yield the session as it is, and as it was right before each of its compactions, newest first.

    Where that is too much to be read, the earlier ones are left out: in a session of many compactions it would take
    time by the square of their number.
    """
    document = session.document
    yield transcript, document
    if len(session.read.transcripts) > 1:
        return
    for compaction in reversed(transcript.compactions):
        record = document.record_at(compaction.line)
        before = document.until(record) if record else None
        if before is not None and before.size_bytes:
            reads.left_bytes -= before.size_bytes
            if reads.left_bytes < 0:
                reads.from_line = compaction.line
                return
            for earlier in session.read.format.read(before):
                yield earlier, before


def _but(found: Judgeable, done: set[Key]) -> Judgeable:
    """Return it without what was judged in a later context: a request that two contexts share counts once."""
    steps = {index: step for index, step in found.steps.items() if key_of(step.usage) not in done}
    return msgspec.structs.replace(found, steps=steps)


def _of_few_models(found: Judgeable) -> Judgeable:
    """Return it without the requests of models that are too many, which are excluded with the reason."""
    models = list(dict.fromkeys(step.usage.model for step in found.steps.values()))[:MOST_MODELS]
    steps = {index: step for index, step in found.steps.items() if step.usage.model in models}
    others = {key_of(step.usage): "too many models" for index, step in found.steps.items() if index not in steps}
    return msgspec.structs.replace(found, steps=steps, excluded={**found.excluded, **others})


def _rows(
    found: Judgeable, transcript: Transcript, document: Document, session: Session, options: Options
) -> Iterator[Row]:
    kinds = {
        index: kind_of(transcript.messages[step.first : step.end], document) for index, step in found.steps.items()
    }
    for model in dict.fromkeys(step.usage.model for step in found.steps.values()):
        for name, estimator in _estimators(document, transcript, model, options):
            for each in judged(found, transcript, estimator, kinds, model):
                yield _row(session, transcript, name, each)


def _row(session: Session, transcript: Transcript, estimator: str, found: Judged) -> Row:
    return Row(
        _hash(session, transcript),
        found.line,
        found.request_id,
        found.model or transcript.model or "unknown",
        transcript.agent or transcript.format,
        estimator,
        found.way,
        found.kind,
        found.new_bytes,
        found.context_tokens,
        round(found.predicted, 1),
        found.actual,
    )


def _estimators(
    document: Document, transcript: Transcript, model: str | None, options: Options
) -> Iterator[tuple[str, Estimator]]:
    """Yield the estimators that were asked for, by the name that was asked; one that can't be had is left out."""
    subject = Subject(document, options.model or model or transcript.model, transcript.format)
    for name in (options.estimator, *options.others):
        try:
            yield name, estimators.get(name, options.settings, subject)
        except NoEstimator:
            continue


def _after_compaction(session: Session, transcript: Transcript, options: Options) -> Iterator[Row]:
    """Yield what our own report said that would be left, against the first request that was counted since."""
    made = session.own_receipt
    if made is None or made.output.lines is None:
        return
    told = next((note for note in made.sessions if note.index == transcript.index), None)
    fresh = next(
        (
            (index, message.usage)
            for index, message in enumerate(transcript.messages)
            if message.usage is not None and message.usage.line > made.output.lines
        ),
        None,
    )
    if told is None or fresh is None:
        return
    index, usage = fresh
    since = [m for m in transcript.messages[:index] if m.line > made.output.lines]
    estimator = views.estimator(told.tokens.estimator.partition(":")[0], session, transcript, options)
    predicted = told.tokens.after + estimator.tokens(since)
    actual = usage.input_tokens
    found = Judged(COMPACTED, usage.line, usage.request_id, usage.model, "mixed", 0, actual, predicted, actual)
    yield _row(session, transcript, told.tokens.estimator, found)
