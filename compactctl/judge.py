"""Predictions of an estimator held against what the provider counted, request by request.

The promise: every request that the session records is either judged or excluded with a reason, and a figure that
compactctl wrote itself is never truth.

Truth is the input side of a request: all that it took in, cached or not. It is held against a prediction in several
ways. `whole`: all messages before it by the estimator, with the fixed overhead of the first request that counts (what
no file shows: system prompt, tools). `next`: what the request before it took in and gave out, and the estimator on
what is new since. `ahead-5`, `ahead-20`: the same from five and twenty requests before, answers estimated as well,
which shows drift. `new`: the new part alone, where that is at least `NEW_BYTES`; an estimator has nowhere to hide there.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from compactctl.content import Content, content
from compactctl.document import Document
from compactctl.estimators.interface import Estimator
from compactctl.model import Media, Message, Reasoning, ToolResult, Transcript, Usage
from compactctl.settings import Settings
from compactctl.texts import counted
from compactctl.windows import contradicted, natural

Way = Literal["whole", "next", "ahead-5", "ahead-20", "new"]

WAYS: tuple[Way, ...] = ("whole", "next", "ahead-5", "ahead-20", "new")

AHEAD: tuple[tuple[int, Way], ...] = ((1, "next"), (5, "ahead-5"), (20, "ahead-20"))

NEW_BYTES = 4_000
"""Below this what is new is a small part of what is counted, and the provider's frames are most of it."""

Reason = Literal[
    "first request",
    "outside the context",
    "no anchor",
    "another model",
    "the context fell",
    "no output recorded",
    "counted elsewhere",
    "rewritten by compactctl",
]


class Judged(Struct, frozen=True):
    """One prediction and the truth, in tokens. `kind` is what most of the new bytes are."""

    way: Way
    line: int
    request_id: str | None
    model: str | None
    kind: Content
    new_bytes: int
    predicted: float
    actual: int

    @property
    def error(self) -> float:
        """The relative error: positive where too much was predicted."""
        return (self.predicted - self.actual) / self.actual


class Judgement(Struct, frozen=True):
    """What came of one session: predictions in file order, and the requests that could not be judged, by reason."""

    judged: tuple[Judged, ...]
    excluded: dict[str, int]
    requests: int


class Step(Struct, frozen=True):
    """Two requests after each other: the messages that are new, and how many tokens the provider counted for them.

    `first` and `end` are indexes into the messages. The answer is among them where its output was not recorded.
    """

    first: int
    end: int
    actual: int
    usage: Usage
    """Of the request that is judged."""
    start: int
    """The tokens that were known before what is new."""


def judge(
    transcript: Transcript, document: Document, estimator: Estimator, settings: Settings, stale_until_line: int = 0
) -> Judgement:
    """Return the estimator's predictions for the requests of a session.

    What was counted on or before `stale_until_line` is of a context that our own spills have changed since.
    """
    found = judgeable(transcript, settings, stale_until_line)
    totals = list(itertools.accumulate(estimator.each(transcript.messages), initial=0.0))
    judged: list[Judged] = []
    for position, index in enumerate(found.indexes):
        if index not in found.steps:
            continue
        step = found.steps[index]
        new = transcript.messages[step.first : step.end]
        size = sum(map(content_bytes, new))
        kind = kind_of(new, document)
        actual = step.usage.input_tokens

        def made(
            way: Way, predicted: float, truth: int, step: Step = step, kind: Content = kind, size: int = size
        ) -> None:
            usage = step.usage
            judged.append(Judged(way, usage.line, usage.request_id, usage.model, kind, size, predicted, truth))

        base = found.base(position, transcript)
        if base is not None:
            first = transcript.messages[base].usage
            fixed = max(0.0, (first.input_tokens if first else 0) - totals[base])
            made("whole", fixed + totals[step.end], actual)
        for count, way in AHEAD:
            start = found.start(position, count, transcript)
            if start is not None:
                made(way, start[1] + totals[step.end] - totals[start[0]], actual)
        if size >= NEW_BYTES and step.actual > 0:
            made("new", totals[step.end] - totals[step.first], step.actual)
    return Judgement(tuple(judged), dict(found.excluded), len(transcript.requests))


class Judgeable(Struct):
    """The requests of a session that have a truth: by index of the message that answers, in order."""

    indexes: list[int]
    steps: dict[int, Step]
    excluded: Counter[str]

    def start(self, position: int, count: int, transcript: Transcript) -> tuple[int, int] | None:
        """Return from which message on to estimate, and the tokens known before it, `count` requests before this one.

        None where there are fewer, or one between was not judgeable.
        """
        if position < count or any(index not in self.steps for index in self.indexes[position - count + 1 : position]):
            return None
        index = self.indexes[position - count]
        usage = transcript.messages[index].usage
        return None if usage is None else after(index, usage)

    def base(self, position: int, transcript: Transcript) -> int | None:
        """Return the index of the first request of the same model, if it is before this one."""
        model = self.steps[self.indexes[position]].usage.model
        for index in self.indexes[:position]:
            usage = transcript.messages[index].usage
            if usage is not None and usage.model == model:
                return index
        return None


def after(index: int, usage: Usage) -> tuple[int, int]:
    """Return the index of the first message that is new after an answer, and the tokens known before it."""
    return (index + 1, usage.total_tokens) if usage.is_output_known else (index, usage.input_tokens)


def judgeable(transcript: Transcript, settings: Settings, stale_until_line: int = 0) -> Judgeable:
    """Return the requests that can be judged, and the others counted by reason."""
    messages = transcript.messages
    refused = contradicted(transcript, natural(transcript, settings).tokens)
    excluded: Counter[str] = Counter()
    in_context = {message.usage.line for message in messages if message.usage is not None}
    excluded["outside the context"] = sum(usage.line not in in_context for usage in transcript.requests)
    found = Judgeable([], {}, excluded)
    for index, message in enumerate(messages):
        usage = message.usage
        if usage is None:
            continue
        if usage.line <= stale_until_line:
            excluded["rewritten by compactctl"] += 1
        elif index < transcript.anchor_floor or index in refused or usage.input_tokens <= 0:
            excluded["no anchor"] += 1
        else:
            step = _step(found.indexes, index, messages)
            if isinstance(step, Step):
                found.steps[index] = step
            else:
                excluded[step] += 1
            found.indexes.append(index)
    found.excluded = +excluded
    return found


def _step(before: Sequence[int], index: int, messages: Sequence[Message]) -> Step | Reason:
    usage = messages[index].usage
    anchor = messages[before[-1]].usage if before else None
    if usage is None or anchor is None:
        return "first request"
    if anchor.model != usage.model:
        return "another model"
    if usage.input_tokens < anchor.input_tokens:
        return "the context fell"
    first, start = after(before[-1], anchor)
    if first == before[-1] and any(
        isinstance(part, Reasoning) and not part.size_bytes for part in messages[first].parts
    ):
        return "no output recorded"
    return Step(first, index, usage.input_tokens - start, usage, start)


# what is new -------------------------------------------------------------------------------------


def content_bytes(message: Message) -> int:
    """Return the bytes of text in a message."""
    return sum(getattr(part, "size_bytes", 0) or getattr(part, "arguments_bytes", 0) for part in message.parts)


def kind_of(messages: Sequence[Message], document: Document) -> Content:
    """Return what most of the bytes of these messages are; `mixed` where nothing makes up half of them."""
    if any(_media(message) for message in messages):
        return "images"
    sizes: Counter[Content] = Counter()
    for text in itertools.chain.from_iterable(_texts(message, document) for message in messages):
        sizes[content(text)] += len(text)
    if not sizes:
        return "prose"
    [(kind, size)] = sizes.most_common(1)
    return kind if 2 * size >= sizes.total() else "mixed"


def _media(message: Message) -> bool:
    return any(isinstance(part, Media) or (isinstance(part, ToolResult) and part.media) for part in message.parts)


def _texts(message: Message, document: Document) -> Iterator[str]:
    return (
        text
        for kind, text in counted(message, document)
        if kind in ("text", "reasoning", "arguments", "result", "opaque")
    )


def session_hash(*names: str | None) -> str:
    """Return what stands for a session in figures that are fit to publish: twelve hex digits."""
    return hashlib.sha256("\0".join(name or "" for name in names).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def requests_once(usages: Iterable[Usage]) -> Iterator[str]:
    """Yield the ids of requests, for those that have one."""
    return (usage.request_id for usage in usages if usage.request_id)
