"""Whether what a provider said is a summary, and which part of it.

Only a natural stop with text that is not blank is taken. The last outermost `<summary>` group counts; what a model
thought aloud never does; without tags the whole answer does.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from msgspec import Struct

from compactctl.errors import SummaryRefused
from compactctl.prompt import QUOTE, SECTIONS
from compactctl.providers.interface import Answer

NATURAL_STOPS = frozenset(("end_turn", "stop", "stop_sequence", "STOP"))

_STOPS = {
    "max_tokens": "truncated",
    "length": "truncated",
    "MAX_TOKENS": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
    "content_filter": "refused",
    "SAFETY": "refused",
    "tool_use": "tool_call",
    "tool_calls": "tool_call",
    "toolUse": "tool_call",
    "function_call": "tool_call",
}
_WORDS = {
    "truncated": "it was cut off at its limit",
    "refused": "the model or a filter refused",
    "tool_call": "it called a tool, and there is none",
    "unfinished": "it did not end of itself",
    "blank": "nothing is left of it",
    "scratchpad": "it is nothing but thinking aloud",
    "echo": "it repeats the record instead of summing it up",
}


def accept(answer: Answer, prompt: str = "") -> str:
    """Return the summary of an answer. Raises SummaryRefused with the reason where there is none.

    With the prompt at hand, an answer that only repeats it is refused too.
    """
    reason = _stop_problem(answer)
    if reason:
        raise _refused(reason, f" (stop reason: {answer.stop_reason})")
    found = _read(answer.text)
    if found.is_blank:
        raise _refused("scratchpad" if found.had_thinking else "blank")
    if is_tool_markup(found.text):
        raise _refused("tool_call")
    if not found.had_tags and _REFUSAL.match(found.text) and len(found.text) < _REFUSAL_CHARACTERS:
        raise _refused("refused")
    if _echoes(found.text, prompt):
        raise _refused("echo")
    return found.text


def doubts(answer: Answer, sections: Sequence[str] = SECTIONS) -> tuple[str, ...]:
    """Return what is odd about an answer that was taken, for the report. `sections` are those it was asked for."""
    found = _read(answer.text)
    if not found.had_tags:
        return ("the answer had no <summary> tags; all of it was taken",)
    absent = [name for name in sections if name.lower() not in found.text.lower()]
    return (f"the summary lacks sections: {', '.join(absent)}",) if absent else ()


def _refused(reason: str, more: str = "") -> SummaryRefused:
    return SummaryRefused(reason, f"the answer is no summary: {_WORDS[reason]}{more}")


def _stop_problem(answer: Answer) -> str | None:
    if answer.stop_reason in NATURAL_STOPS:
        return "tool_call" if answer.has_tool_call else None
    return _STOPS.get(answer.stop_reason or "", "tool_call" if answer.has_tool_call else "unfinished")


# tags --------------------------------------------------------------------------------------------

_TAG = re.compile(r"<\s*(/?)\s*(summary|analysis|think|thinking|reasoning|scratchpad)\s*>", re.IGNORECASE)


class _Found(Struct, frozen=True):
    text: str
    had_tags: bool
    had_thinking: bool

    @property
    def is_blank(self) -> bool:
        return not any(unicodedata.category(character)[0] not in "CZ" for character in self.text)


class _Tag(Struct, frozen=True):
    start: int
    end: int
    is_closing: bool
    is_summary: bool


def _tags(text: str) -> list[_Tag]:
    return [
        _Tag(match.start(), match.end(), bool(match.group(1)), match.group(2).lower() == "summary")
        for match in _TAG.finditer(text)
    ]


class _Span(Struct, frozen=True):
    """A stretch of an answer: a summary group's inside, or plain text outside of every group."""

    start: int
    end: int
    is_summary: bool


def _read(text: str) -> _Found:
    """Return the part of an answer that counts."""
    tags = _tags(text)
    spans = list(_spans(text, tags))
    had_thinking = any(not tag.is_summary for tag in tags)
    groups = [span for span in spans if span.is_summary]
    if groups:
        last = groups[-1]
        return _Found(_without_thinking(text[last.start : last.end]).strip(), True, had_thinking)
    outside = "".join(text[span.start : span.end] for span in spans)
    return _Found(_TAG.sub("", outside).strip(), False, had_thinking)


def _spans(text: str, tags: list[_Tag]) -> Iterator[_Span]:
    """Yield the stretches of an answer without what was thought aloud.

    A thought ends at the first closing tag of any such kind (models mix them); one that never ends gives way to the
    next `<summary>`. A closing tag without an opening one ends a thought that began with the answer.
    """
    position, index = _after_headless_thought(tags)
    while index < len(tags):
        tag = tags[index]
        if tag.is_summary and not tag.is_closing:
            yield _Span(position, tag.start, False)
            span, index = _group(text, tags, index)
            yield span
            position = tags[index - 1].end if index > 0 and tags[index - 1].start == span.end else span.end
        elif not tag.is_summary and not tag.is_closing:
            yield _Span(position, tag.start, False)
            position, index = _after_thought(text, tags, index)
        else:
            index += 1
    yield _Span(position, len(text), False)


def _after_headless_thought(tags: list[_Tag]) -> tuple[int, int]:
    first = next((tag for tag in tags if not tag.is_summary or not tag.is_closing), None)
    if first is None or first.is_summary or not first.is_closing:
        return 0, 0
    return first.end, tags.index(first) + 1


def _after_thought(text: str, tags: list[_Tag], index: int) -> tuple[int, int]:
    for number in range(index + 1, len(tags)):
        if not tags[number].is_summary and tags[number].is_closing:
            return tags[number].end, number + 1
    for number in range(index + 1, len(tags)):
        if tags[number].is_summary and not tags[number].is_closing:
            return tags[number].start, number
    return len(text), len(tags)


def _group(text: str, tags: list[_Tag], index: int) -> tuple[_Span, int]:
    """Return the inside of the group that opens here, and the tag after it; tags of its own kind inside are text."""
    depth = 0
    last_closing = None
    for number in range(index, len(tags)):
        if not tags[number].is_summary:
            continue
        depth += -1 if tags[number].is_closing else 1
        if tags[number].is_closing:
            last_closing = number
        if depth == 0:
            return _Span(tags[index].end, tags[number].start, True), number + 1
    if last_closing is not None and not text[tags[last_closing].end :].strip():
        return _Span(tags[index].end, tags[last_closing].start, True), last_closing + 1
    return _Span(tags[index].end, len(text), True), len(tags)


_THOUGHT_AT_START = re.compile(
    r"\A\s*<\s*(analysis|think|thinking|reasoning|scratchpad)\s*>.*?"
    r"<\s*/\s*(?:analysis|think|thinking|reasoning|scratchpad)\s*>",
    re.IGNORECASE | re.DOTALL,
)


def _without_thinking(inside: str) -> str:
    """Return a group's inside without a thought that it starts with."""
    return _THOUGHT_AT_START.sub("", inside)


# what is no summary ------------------------------------------------------------------------------

_MARKUP = re.compile(
    r"<\s*(?:antml:)?(tool_calls?|function_calls?|invoke|tool_use|parameter)\b[^>]*>.*?(?:<\s*/\s*(?:antml:)?\1\s*>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_JSON_CALL = re.compile(
    r'\A\s*(?:```\w*\s*)?\[?\s*\{\s*"(?:name|tool|function|type)"\s*:.*"(?:arguments|parameters|input)"', re.DOTALL
)
_MARKUP_SHARE = 3


def is_tool_markup(text: str) -> bool:
    """Return whether a text is a tool call written out, or hardly more than that."""
    if _JSON_CALL.match(text):
        return True
    rest = _MARKUP.sub("", text)
    return len(rest) < len(text) and len(rest.strip()) * _MARKUP_SHARE < len(text)


_REFUSAL = re.compile(
    r"(?:I['’]m sorry|I am sorry|Sorry|I can(?:['’]t|not)|I['’]m unable|I am unable)\b", re.IGNORECASE
)
_REFUSAL_CHARACTERS = 300


def _echoes(text: str, prompt: str) -> bool:
    """Return whether most lines of a text are quoted lines of the prompt."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not prompt or not lines:
        return False
    quotes = {line.strip() for line in prompt.splitlines() if line.startswith(QUOTE)}
    return sum(line in quotes for line in lines) * 2 > len(lines)
