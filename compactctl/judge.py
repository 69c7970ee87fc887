"""Predictions of an estimator held against what the provider counted, request by request.

The promise: every request that the session records is either judged or excluded with a reason, and a figure that
compactctl wrote itself is never truth.

Truth is the input side of a request: all that it took in, cached or not. It is held against a prediction in several
ways. `whole`: all messages before it by the estimator, with the fixed overhead of the first request that counts (what
no file shows: system prompt, tools). `next`: what the request before it took in and gave out, and the estimator on
what is new since. `ahead-5`, `ahead-20`: the same from five and twenty requests before, answers estimated as well,
which shows drift. `new`: the new part alone, where that is at least `NEW_BYTES`; nothing hides there.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from compactctl.content import Content, content
from compactctl.document import Document
from compactctl.estimators.interface import Estimator
from compactctl.model import Media, Message, Reasoning, ToolResult, Transcript, Usage
from compactctl.predictions import NEW_BYTES, Way
from compactctl.settings import Settings
from compactctl.texts import counted
from compactctl.windows import contradicted, natural

AHEAD: tuple[tuple[int, Way], ...] = ((1, "next"), (5, "ahead-5"), (20, "ahead-20"))

Reason = Literal[
    "first request",
    "outside the context",
    "no anchor",
    "another model",
    "the context fell",
    "no output recorded",
    "counted elsewhere",
    "rewritten by compactctl",
    "not read again",
    "too many models",
]


class Judged(Struct, frozen=True):
    """One prediction and the truth, in tokens. `kind` is what most of the new bytes are."""

    way: Way
    line: int
    request_id: str | None
    model: str | None
    kind: Content
    new_bytes: int
    context_tokens: int
    """The whole context of the request, by the provider."""
    predicted: float
    actual: int


Key = tuple[int, str | None, int]


def key_of(usage: Usage) -> Key:
    """Return what tells one request from another in a file; a damaged line may hold several."""
    return usage.line, usage.request_id, usage.input_tokens


class Step(Struct, frozen=True):
    """Two requests after each other: the messages that are new, and how many tokens the provider counted for them.

    `first` and `end` are indexes into the messages. The answer is among them where its output was not recorded.
    """

    first: int
    end: int
    actual: int
    usage: Usage
    """Of the request that is judged."""
    new_bytes: int


def judged(
    found: "Judgeable", transcript: Transcript, estimator: Estimator, kinds: Mapping[int, Content], model: str | None
) -> Iterator[Judged]:
    """Yield an estimator's predictions for the judgeable requests that `model` answered, in file order.

    `kinds` says by index of the answer what is new before it.
    """
    totals = list(itertools.accumulate(estimator.each(transcript.messages), initial=0.0))
    for position, index in enumerate(found.indexes):
        step = found.steps.get(index)
        if step is None or step.usage.model != model:
            continue
        usage, size, context = step.usage, step.new_bytes, step.usage.input_tokens
        for way, predicted, actual in _predicted(found, position, step, transcript, totals):
            yield Judged(way, usage.line, usage.request_id, usage.model, kinds[index], size, context, predicted, actual)


def _predicted(
    found: "Judgeable", position: int, step: Step, transcript: Transcript, totals: Sequence[float]
) -> Iterator[tuple[Way, float, int]]:
    """Yield each way of predicting a request, with what it predicts and what was counted, in tokens.

    `totals` are the estimated tokens of the messages before each index.
    """
    context = step.usage.input_tokens
    base = found.base(position, transcript)
    if base is not None:
        first = transcript.messages[base].usage
        taken_in = end_of_input(base, transcript.messages)
        fixed = max(0.0, (first.input_tokens if first else 0) - totals[taken_in])
        yield "whole", fixed + totals[step.end], context
    for count, way in AHEAD:
        start = found.start(position, count, transcript)
        if start is not None:
            yield way, start.tokens + totals[step.end] - totals[start.first], context
    if step.new_bytes >= NEW_BYTES and step.actual > 0:
        yield "new", totals[step.end] - totals[step.first], step.actual


class Start(Struct, frozen=True):
    """From which message on to estimate, and the tokens that are known before it."""

    first: int
    tokens: int


class Judgeable(Struct, frozen=True):
    """The requests of a session that have a truth: by index of the message that answers, in order."""

    indexes: list[int]
    steps: dict[int, Step]
    excluded: dict[Key, Reason]
    """The other requests of the context, each with the reason."""

    def start(self, position: int, count: int, transcript: Transcript) -> Start | None:
        """Return where a prediction starts from `count` requests before this one.

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


def after(index: int, usage: Usage) -> Start:
    """Return where to start behind an answer: with it, where its output was not recorded."""
    return Start(index + 1, usage.total_tokens) if usage.is_output_known else Start(index, usage.input_tokens)


def judgeable(transcript: Transcript, settings: Settings, stale_until_line: int = 0) -> Judgeable:
    """Return the requests of the context that can be judged, and the others with the reason.

    What was counted on or before `stale_until_line` is of a context that our own spills have changed since.
    """
    messages = transcript.messages
    refused = contradicted(transcript, natural(transcript, settings).tokens)
    found = Judgeable([], {}, {})
    for index, message in enumerate(messages):
        usage = message.usage
        if usage is None:
            continue
        if usage.line <= stale_until_line:
            found.excluded[key_of(usage)] = "rewritten by compactctl"
        elif index < transcript.anchor_floor or index in refused or usage.input_tokens <= 0:
            found.excluded[key_of(usage)] = "no anchor"
        else:
            step = _step(found.indexes, index, messages)
            if isinstance(step, Step):
                found.steps[index] = step
            else:
                found.excluded[key_of(usage)] = step
            found.indexes.append(index)
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
    start = after(before[-1], anchor)
    if start.first == before[-1] and _hides_reasoning(messages[start.first]):
        return "no output recorded"
    end = end_of_input(index, messages)
    size = sum(map(content_bytes, messages[start.first : end]))
    return Step(start.first, end, usage.input_tokens - start.tokens, usage, size)


def end_of_input(index: int, messages: Sequence[Message]) -> int:
    """Return the index behind the last message that a request took in.

    Its usage stands on its answer, or, where the output is not known, on the last message that it took in.
    """
    return index if messages[index].role == "assistant" else index + 1


def _hides_reasoning(message: Message) -> bool:
    return any(isinstance(part, Reasoning) and not part.size_bytes for part in message.parts)


# what is new -------------------------------------------------------------------------------------


def content_bytes(message: Message) -> int:
    """Return the bytes of text in a message."""
    return sum(getattr(part, "size_bytes", 0) or getattr(part, "arguments_bytes", 0) for part in message.parts)


def kind_of(messages: Sequence[Message], document: Document) -> Content:
    """Return what most of the bytes of these messages are; `mixed` where nothing makes up half of them."""
    if any(has_media(message) for message in messages):
        return "images"
    sizes: Counter[Content] = Counter()
    for text in itertools.chain.from_iterable(_texts(message, document) for message in messages):
        sizes[content(text)] += len(text)
    if not sizes:
        return "prose"
    [(kind, size)] = sizes.most_common(1)
    return kind if 2 * size >= sizes.total() else "mixed"


def has_media(message: Message) -> bool:
    """Return whether an image or a document is in a message."""
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
