"""The steps between two requests, each with what the provider counted for it.

A request counts once, however many files it stands in; sessions that share requests are one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from compactctl import estimators, judge
from compactctl.estimators.interface import Subject
from compactctl.fit import kin
from compactctl.model import Message, Reasoning, ToolCall
from compactctl.settings import Settings
from tests.bench.fitting import corpus
from tests.bench.fitting.corpus import Row
from tests.bench.fitting.frames import counted

BIG_BYTES = judge.NEW_BYTES


@dataclass(frozen=True)
class Step:
    """What was new between two requests, and how many tokens the provider counted for it."""

    session: str
    """The session, or the first of those that share requests: copies and forks are one."""
    repository: str
    model: str
    texts: tuple[str, ...]
    frames: Counter[str]
    size_bytes: int
    has_media: bool
    actual: int
    heuristic: float
    tiktoken: float
    request_id: str | None = None
    has_answer: bool = False
    """Whether the answer before is in it, though its output was recorded: what a call costs is seen in no other way."""


def steps(rows: Sequence[Row]) -> Iterator[Step]:
    """Yield the judgeable steps of all sessions that a format of ours reads."""
    settings = Settings()
    for row, session, transcript in corpus.read(rows):
        subject = Subject(session.document, transcript.model, transcript.format)
        bytes_, tokens = (estimators.get(name, settings, subject) for name in ("heuristic", "tiktoken:o200k_base"))
        for step in judge.judgeable(transcript, settings).steps.values():
            for first in _starts(transcript.messages, step):
                new = transcript.messages[first : step.end]
                model = step.usage.model or transcript.model or ""
                texts, frames = counted(new, session.document, model)
                yield Step(
                    row.path.name,
                    row.repository,
                    model,
                    texts,
                    frames,
                    sum(map(judge.content_bytes, new)),
                    judge.kind_of(new, session.document) == "images",
                    step.actual if first == step.first else _with_answer(step, transcript.messages[first]),
                    sum(bytes_.each(new)),
                    sum(tokens.each(new)),
                    step.usage.request_id
                    or f"{transcript.session_id or row.path.name} {step.usage.line} {step.usage.input_tokens}",
                    first != step.first,
                )


def once(found: Iterable[Step]) -> list[Step]:
    """Return every request once, and sessions that share any under one name (as `compactctl.fit.once`)."""
    taken = list(found)
    names = kin((step.session, step.request_id) for step in taken)
    kept: dict[object, Step] = {}
    for index, step in enumerate(taken):
        key = (step.request_id, step.has_answer) if step.request_id else index
        kept.setdefault(key, replace(step, session=names[step.session]))
    return list(kept.values())


def _starts(messages: Sequence[Message], step: judge.Step) -> Iterator[int]:
    """Yield from which message on a step is looked at: also with the answer before it, where that hid no thought."""
    yield step.first
    before = step.first - 1
    if before < 0 or messages[before].usage is None:
        return
    parts = messages[before].parts
    if any(isinstance(part, ToolCall) for part in parts) and not any(isinstance(part, Reasoning) for part in parts):
        yield before


def _with_answer(step: judge.Step, answer: Message) -> int:
    return step.usage.input_tokens - (answer.usage.input_tokens if answer.usage else 0)


def is_judged(step: Step) -> bool:
    """Return whether a step counts for the table: big, to be learnt from, and without the answer before."""
    return step.size_bytes >= BIG_BYTES and is_usable(step) and not step.has_answer


def is_usable(step: Step) -> bool:
    """Return whether a step can be learnt from: without media, and the context grew."""
    return not step.has_media and step.actual > 0
