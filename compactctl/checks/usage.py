"""Usage: what was recorded and can't be right."""

import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from compactctl.checks.interface import Check, Subject
from compactctl.findings import Finding
from compactctl.judge import judgeable
from compactctl.model import Message, Text, ToolCall, Usage

FALLEN_TOKENS = 20_000
FALLEN_SHARE = 1 / 2
"""Of an input that is said to fall: at least so much less, and no more than this share of the one before."""

PLACEHOLDER_BYTES_A_TOKEN = 40
"""An answer with more bytes for each recorded token was not counted to its end: real ones have 2 to 14."""

LEAST_ERRORS = 2
"""From so many estimates on their median says something."""

PLACEHOLDER_LEAST_BYTES = 400
PLACEHOLDER_LEAST_ANSWERS = 3


def _counted(subject: Subject) -> list[int]:
    """Return the indexes of the answers in context whose usage tells of it: from before a compaction or a spill of
    ours none does."""
    transcript, stale_until_line = subject.sized.transcript, subject.session.stale_until_line
    return [
        index
        for index in range(transcript.anchor_floor, len(transcript.messages))
        if (usage := transcript.messages[index].usage) is not None and usage.line > stale_until_line
    ]


def _usages(subject: Subject) -> list[Usage]:
    messages = subject.sized.transcript.messages
    return [usage for index in _counted(subject) if (usage := messages[index].usage) is not None]


def impossible(subject: Subject) -> Iterator[Finding]:
    """Yield whether requests are said to have held more than the window."""
    window = subject.sized.measured.window.tokens
    over = [usage for usage in _usages(subject) if usage.total_tokens > window]
    if over:
        most = max(usage.total_tokens for usage in over)
        text = f"{most:,} tokens in one request, and the window is {window:,}{_others(over)}"
        yield Finding(over[0].line, "impossible-usage", text)


def falling(subject: Subject) -> Iterator[Finding]:
    """Yield each answer in context whose request took in far less than the one before, by the same model."""
    for before, after in pairwise(_usages(subject)):
        fallen = before.input_tokens - after.input_tokens
        if before.model != after.model or fallen < FALLEN_TOKENS:
            continue
        if after.input_tokens <= before.input_tokens * FALLEN_SHARE:
            text = f"input of {after.input_tokens:,} tokens, after {before.input_tokens:,} at line {before.line}"
            yield Finding(after.line, "falling-usage", text)


def placeholders(subject: Subject) -> Iterator[Finding]:
    """Yield whether answers are recorded with far fewer output tokens than their text has."""
    large, poor = 0, list[Usage]()
    for message in subject.sized.transcript.messages:
        usage = message.usage
        size = _said_bytes(message) if usage is not None else 0
        if usage is None or size < PLACEHOLDER_LEAST_BYTES:
            continue
        large += 1
        if size > PLACEHOLDER_BYTES_A_TOKEN * max(1, usage.output_tokens):
            poor.append(usage)
    if len(poor) >= PLACEHOLDER_LEAST_ANSWERS and len(poor) * 2 > large:
        text = f"{len(poor)} of {large} longer answers have more than {PLACEHOLDER_BYTES_A_TOKEN} bytes an output token"
        yield Finding(poor[0].line, "placeholder-output", text)


def _said_bytes(message: Message) -> int:
    said = 0
    for part in message.parts:
        if isinstance(part, Text):
            said += part.size_bytes
        elif isinstance(part, ToolCall):
            said += part.arguments_bytes
    return said


def repeated(subject: Subject) -> Iterator[Finding]:
    """Yield whether requests that follow each other have the very same usage."""
    same = [
        after
        for before, after in pairwise(subject.sized.transcript.requests)
        if after.output_tokens and _counts(before) == _counts(after)
    ]
    if same:
        text = f"the usage is that of the request before, {same[0].total_tokens:,} tokens{_others(same)}"
        yield Finding(same[0].line, "repeated-usage", text)


class Error(Struct, frozen=True):
    """How far the figure that starts from one usage was from the next one that was recorded, on this line."""

    line: int
    estimated_tokens: int
    recorded_tokens: int

    @property
    def percent(self) -> float:
        """The difference in percent of what was recorded."""
        return 100 * abs(self.estimated_tokens - self.recorded_tokens) / self.recorded_tokens


def estimator_errors(subject: Subject) -> list[Error]:
    """Return for each answer in context whose request was counted how far its anchored estimate had been off.

    The estimate is what `measure` would have said right before that request: the usage before it, and an estimate of
    what came since.
    """
    sized = subject.sized
    messages = sized.transcript.messages
    found = judgeable(sized.transcript, subject.settings, subject.session.stale_until_line)
    errors = []
    for step in found.steps.values():
        recorded = step.usage.input_tokens
        estimated = recorded - step.actual + sized.estimator.tokens(messages[step.first : step.end])
        errors.append(Error(step.usage.line, estimated, recorded))
    return errors


def median_error_percent(errors: Sequence[Error]) -> float | None:
    """Return the median of the errors; None where so few can't tell."""
    if len(errors) < LEAST_ERRORS:
        return None
    return round(statistics.median(error.percent for error in errors), 1)


def estimates_off(subject: Subject) -> Iterator[Finding]:
    """Yield whether estimates are further from recorded usage than they should be; at the line of the worst."""
    errors = estimator_errors(subject)
    median = median_error_percent(errors)
    if median is not None and median > subject.settings.audit.estimator_error_percent:
        worst = max(errors, key=lambda error: error.percent)
        text = (
            f"estimates of {len(errors)} requests are off by {median:g} % (the median); here "
            f"{worst.estimated_tokens:,} tokens where {worst.recorded_tokens:,} were recorded"
        )
        yield Finding(worst.line, "estimator-error", text)


def _counts(usage: Usage) -> tuple[int, ...]:
    return usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens


def _others(found: Sequence[Usage]) -> str:
    return f"; {len(found) - 1:,} more such" if len(found) > 1 else ""


CHECKS = (
    Check(("impossible-usage",), impossible),
    Check(("falling-usage",), falling),
    Check(("placeholder-output",), placeholders),
    Check(("repeated-usage",), repeated),
    Check(("estimator-error",), estimates_off),
)
