"""How much a model can take: from an option, the session, what it has proved, a table, or a fallback.

The table is made from the data of genai-prices by `tests/scripts/make_windows.py`; importing that package at run
time would cost 0.3 s. A model that runs in Claude Code gets what Claude Code itself would assume, even where the
model could take more (formats: 1.2), unless its name says `[1m]`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from compactctl import media
from compactctl.estimators.heuristic import weight
from compactctl.model import ANTHROPIC_FORMATS, Message, Transcript, Window
from compactctl.settings import Settings

FALLBACK_TOKENS = 128_000
ANTHROPIC_FALLBACK_TOKENS = 200_000

LONG_CONTEXT_MARK = "[1m]"
LONG_CONTEXT_TOKENS = 1_000_000
"""What Claude's models take where the mark stands behind their name, or where a context has outgrown the usual."""

STANDARD_TOKENS = (128_000, 200_000, 256_000, 400_000, 1_000_000, 2_000_000)
"""Sizes that windows come in: a context that has outgrown what was assumed proves the next."""


def choose(transcript: Transcript, settings: Settings, option_window: int | None, option_model: str | None) -> Window:
    """Return the window of a session, and how it is known.

    An option beats what the session recorded, that beats what it has proved, and the rest is looked up.
    """
    if option_window:
        return Window(option_window, "option")
    if option_model:
        return _assumed(transcript, settings, option_model)
    usual = natural(transcript, settings)
    peak = _peak_tokens(transcript, usual.tokens)
    if usual.source != "recorded" and peak > usual.tokens:
        return Window(_proved_tokens(peak, _is_anthropic(transcript, transcript.model)), "proved")
    return usual


def natural(transcript: Transcript, settings: Settings) -> Window:
    """Return the window without options and without proof: as recorded, else as looked up."""
    if transcript.recorded_window_tokens:
        return Window(transcript.recorded_window_tokens, "recorded")
    return _assumed(transcript, settings, transcript.model)


def _assumed(transcript: Transcript, settings: Settings, model: str | None) -> Window:
    if model and LONG_CONTEXT_MARK in model.lower():
        return Window(LONG_CONTEXT_TOKENS, "table")
    listed = listed_tokens(model or "")
    default = transcript.default_window_tokens
    if listed is not None:
        return Window(min(listed, default or listed), "table")
    if default is not None:
        return Window(default, "table")
    usual = ANTHROPIC_FALLBACK_TOKENS if _is_anthropic(transcript, model) else FALLBACK_TOKENS
    return Window(settings.window.fallback_tokens or usual, "fallback")


def _is_anthropic(transcript: Transcript, model: str | None) -> bool:
    return "claude" in (model or "").lower() or transcript.format in ANTHROPIC_FORMATS


def _proved_tokens(peak: int, is_anthropic: bool) -> int:
    sizes = (LONG_CONTEXT_TOKENS,) if is_anthropic else STANDARD_TOKENS
    return next((size for size in sizes if size >= peak), peak)


# what can't have been the context of one request -------------------------------------------------

GROWTH_FACTOR = 3
"""By how much the bytes of messages may underrate the tokens they became."""

UNSEEN_TOKENS = 100_000
"""How much may have come that no file shows: a system prompt, tools, attachments.

Of some 4,900 pairs of neighbouring requests in real sessions the most was 32,000; of the first requests after a
compaction, with all of the system prompt in it, 57,000.
"""

UNFALLEN_PERCENT = 90
"""A usage of at least this share of what was compacted did not fall with the compaction."""

SEVERAL_REQUESTS = (
    "over the window and more than was said since the request before: the sum of several requests, no size of a context"
)
NOT_FALLEN = "as large as before the compaction, and more than what is left could fill: it was counted before"


def contradicted(transcript: Transcript, window_tokens: int) -> dict[int, str]:
    """Return why the usage of a message can't be the size of its context, by message index.

    Two things come together each time: the figure is suspicious, and far more than what was said could fill.
    A turn's requests add up to more than the window (openclaw/openclaw#99863: cache reads of 931k). The first
    figure after a compaction still equals the one before (can1357/oh-my-pi#8887).
    """
    found: dict[int, str] = {}
    before: int | None = None
    compacted = next((c.tokens_before for c in reversed(transcript.compactions) if c.tokens_before), None)
    for index, message in enumerate(transcript.messages):
        usage = message.usage
        if usage is None:
            continue
        is_first = index >= transcript.anchor_floor and (before is None or before < transcript.anchor_floor)
        if is_first and compacted and usage.total_tokens * 100 >= compacted * UNFALLEN_PERCENT:
            if _overfills(usage.total_tokens, transcript.messages[: index + 1], transcript.model):
                found[index] = NOT_FALLEN
                continue
        elif before is not None and usage.total_tokens > window_tokens:
            grown = usage.total_tokens - _total(transcript.messages[before])
            if _overfills(grown, transcript.messages[before + 1 : index + 1], transcript.model):
                found[index] = SEVERAL_REQUESTS
                continue
        before = index
    return found


def _total(message: Message) -> int:
    return message.usage.total_tokens if message.usage else 0


def _overfills(tokens: int, messages: Sequence[Message], model: str | None) -> bool:
    """Return whether so many tokens are far more than these messages could be."""
    if tokens <= UNSEEN_TOKENS:
        return False
    rule = media.rule(model)
    said = sum(size * 2 // 7 + beside for size, beside in (weight((message,), rule) for message in messages))
    return tokens > GROWTH_FACTOR * said + UNSEEN_TOKENS


def _peak_tokens(transcript: Transcript, window_tokens: int) -> int:
    """Return the largest context that a single request had."""
    if transcript.peak_tokens <= window_tokens:
        return transcript.peak_tokens
    lines = {
        usage.line
        for index in contradicted(transcript, window_tokens)
        if (usage := transcript.messages[index].usage) is not None
    }
    if not lines:
        return transcript.peak_tokens
    return max((usage.total_tokens for usage in transcript.requests if usage.line not in lines), default=0)


# the table ---------------------------------------------------------------------------------------


class Table(Struct, frozen=True):
    """Windows by patterns of model names; `make_windows.py` says how patterns are written."""

    source: str
    as_of: str
    windows: tuple[tuple[int, tuple[str, ...]], ...]


@cache
def table() -> Table:
    """Return the table that the package ships."""
    raw = Path(__file__).with_name("data").joinpath("windows.json").read_bytes()
    return msgspec.json.decode(raw, type=Table)


@cache
def listed_tokens(model: str) -> int | None:
    """Return the window that the table has for a model, whatever a provider or a date adds to its name."""
    for name in filter(None, dict.fromkeys(_names(model))):
        for tokens, patterns in table().windows:
            if any(_matches(pattern, name) for pattern in patterns):
                return tokens
    return None


_CLOUD_PREFIX = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google|amazon|meta|mistral|deepseek)\.")
_SUFFIXES = (
    re.compile(r"[:@].*$"),
    re.compile(r"-v\d+$"),
    re.compile(r"-(?:20\d{6}|20\d{2}-\d{2}-\d{2}|\d{2}-\d{2})$"),
    re.compile(r"-(?:latest|preview|thinking|high|medium|low)$"),
)


def _names(model: str) -> Iterator[str]:
    """Yield the ways to read a model's name: as it stands, then without prefixes, then without suffixes."""
    name = model.strip().lower()
    yield name
    name = name.rpartition("/")[2]
    yield name
    name = _CLOUD_PREFIX.sub("", name)
    yield name
    yield name.partition(":")[2]
    for suffix in _SUFFIXES:
        name = suffix.sub("", name)
        yield name


def _matches(pattern: str, name: str) -> bool:
    first, _, rest = pattern.partition("&")
    if rest and not _matches(rest, name):
        return False
    kind, text = first[0], first[1:]
    match kind:
        case "=":
            return name == text
        case "^":
            return name.startswith(text)
        case "~":
            return text in name
        case "$":
            return name.endswith(text)
        case _:
            return re.search(text, name) is not None
