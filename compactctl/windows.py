"""How much a model can take: from an option, the session, what it has proved, a table, or a fallback.

The table is made from the data of genai-prices by `tests/scripts/make_windows.py`; importing that package at run
time would cost 0.3 s. A model that runs in Claude Code gets what Claude Code itself would assume, even where the
model could take more (formats: 1.2), unless its name says `[1m]`.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

from compactctl.estimators.heuristic import message_bytes, tokens_beside
from compactctl.model import Message, Transcript, Window
from compactctl.settings import Settings

FALLBACK_TOKENS = 128_000
ANTHROPIC_FALLBACK_TOKENS = 200_000
ANTHROPIC_FORMATS = frozenset(("anthropic", "claude-code"))

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


# what can't have been one request ----------------------------------------------------------------

GROWTH_FACTOR = 3
"""By how much the bytes of messages may underrate the tokens they became."""

UNSEEN_TOKENS = 100_000
"""How much may have come between two requests that no file shows: attachments, tools that were added."""


def aggregated(messages: Sequence[Message], window_tokens: int) -> frozenset[int]:
    """Return the indexes of messages whose usage is the sum of several requests and so no size of a context.

    Told by two things together: it is over the window, and it has grown since the request before by far more
    than what was said in between could fill (openclaw/openclaw#99863: a turn's cache reads added up to 931k).
    """
    found: set[int] = set()
    before: int | None = None
    for index, message in enumerate(messages):
        if message.usage is None:
            continue
        if before is not None and message.usage.total_tokens > window_tokens:
            earlier = messages[before].usage
            grown = message.usage.total_tokens - (earlier.total_tokens if earlier else 0)
            if grown > GROWTH_FACTOR * _rough_tokens(messages[before + 1 : index + 1]) + UNSEEN_TOKENS:
                found.add(index)
                continue
        before = index
    return frozenset(found)


def _rough_tokens(messages: Sequence[Message]) -> int:
    return sum(message_bytes(message) * 2 // 7 + tokens_beside(message) for message in messages)


def _peak_tokens(transcript: Transcript, window_tokens: int) -> int:
    """Return the largest context that a single request had."""
    if transcript.peak_tokens <= window_tokens:
        return transcript.peak_tokens
    sums = aggregated(transcript.messages, window_tokens)
    if not sums:
        return transcript.peak_tokens
    lines = {usage.line for index in sums if (usage := transcript.messages[index].usage)}
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
    raw = resources.files("compactctl").joinpath("data", "windows.json").read_bytes()
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
