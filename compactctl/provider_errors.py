"""What a provider's reply means where it is no answer: one reading of status, headers and body for all of them.

The order: code, then type, then status, then text. What says rate limit is read before what says too long: "too many
tokens" under a 429 must never shrink a history. A success status can carry an error, and a proxy can wrap one in
another status. Wordings as the providers have them (research: tokens 6).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from compactctl import errors

ProblemKind = Literal[
    "too_long", "too_large", "rate_limit", "auth", "content_filter", "rejected", "bad_response", "unavailable"
]


class ProviderProblem(Struct, frozen=True):
    """One reply that is no answer. Numbers are there where the reply names them."""

    kind: ProblemKind
    message: str
    """One short line, without keys."""
    limit_tokens: int | None = None
    size_tokens: int | None = None
    excess_tokens: int | None = None
    output_limit_tokens: int | None = None
    """The longest answer that the model gives, where we asked for a longer one."""
    retry_after_s: float | None = None
    category: str | None = None
    """Of a content filter: what it says it found."""

    def error(self, where: str) -> errors.ProviderError:
        """Return this as an error that names the provider."""
        text = f"{where}: {_WORDS[self.kind]}: {self.message}" if self.message else f"{where}: {_WORDS[self.kind]}"
        match self.kind:
            case "too_long":
                return errors.TooLong(
                    text,
                    limit_tokens=self.limit_tokens,
                    size_tokens=self.size_tokens,
                    excess_tokens=self.excess_tokens,
                )
            case "rate_limit":
                return errors.RateLimited(text, retry_after_s=self.retry_after_s)
            case "rejected":
                return errors.RequestRejected(text, output_limit_tokens=self.output_limit_tokens)
            case _:
                return _ERRORS[self.kind](text)


_WORDS: dict[ProblemKind, str] = {
    "too_long": "the request is too long",
    "too_large": "the request is too large",
    "rate_limit": "rate limit",
    "auth": "the key is missing, wrong or not allowed to",
    "content_filter": "a content filter refused the text",
    "rejected": "the request was rejected",
    "bad_response": "no usable response",
    "unavailable": "unavailable",
}

_ERRORS: dict[ProblemKind, type[errors.ProviderError]] = {
    "too_large": errors.TooLarge,
    "auth": errors.AuthFailed,
    "content_filter": errors.ContentFiltered,
    "bad_response": errors.BadResponse,
    "unavailable": errors.ProviderUnavailable,
}

# what the words mean -----------------------------------------------------------------------------

_BY_NAME: dict[str, ProblemKind] = {
    "context_length_exceeded": "too_long",
    "exceed_context_size_error": "too_long",
    "context_window_exceeded": "too_long",
    "model_context_window_exceeded": "too_long",
    "string_above_max_length": "too_long",
    "request_too_large": "too_large",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "throttlingexception": "rate_limit",
    "resource_exhausted": "rate_limit",
    "insufficient_quota": "rate_limit",
    "too_many_requests": "rate_limit",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "permission_denied": "auth",
    "unauthenticated": "auth",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "responsibleaipolicyviolation": "content_filter",
    "overloaded_error": "unavailable",
    "server_error": "unavailable",
    "api_error": "unavailable",
    "timeout_error": "unavailable",
}
"""Codes and types that say one thing only."""

_BY_STATUS: dict[int, ProblemKind] = {
    401: "auth",
    403: "auth",
    408: "unavailable",
    413: "too_large",
    429: "rate_limit",
}

_RATE_LIMIT = re.compile(r"throttl|rate.?limit|too many requests|please wait before|quota", re.IGNORECASE)

_TOO_LONG = re.compile(
    r"maximum context length|context (?:length|window|limit|size)\b.{0,40}?(?:exceed|only|limit|is \d)|"
    r"exceed\w*.{0,60}?context (?:length|window|limit|size)|(?:prompt|input) (?:is|was)? ?too long|"
    r"input token count.{0,40}?exceeds|token count exceeds|tokens? .{0,40}?exceeds? .{0,40}?(?:limit|maximum)|"
    r"too many (?:input )?tokens|input length.{0,60}?exceed|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LARGE = re.compile(r"request (?:entity |body )?(?:is )?too large|payload too large|maximum size", re.IGNORECASE)
_UNAVAILABLE = re.compile(r"overloaded|unavailable|timed? ?out|try again later|bad gateway", re.IGNORECASE)

_N = r"([\d][\d,]*)"
_NUMBERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("limit", rf"maximum context length (?:is |of )?\(?{_N}"),
        ("limit", rf"context length is only {_N}"),
        ("limit", rf"tokens > {_N} maximum"),
        ("limit", rf"context limit: {_N} \+ [\d,]+ > {_N}"),
        ("limit", rf"available context size \({_N}"),
        ("limit", rf"maximum number of tokens allowed \({_N}"),
        ("size", rf"\({_N} in the (?:messages|prompt|input)"),
        ("size", rf"messages resulted in {_N}"),
        ("size", rf"prompt contains (?:at least )?{_N}"),
        ("size", rf"passed {_N} input tokens"),
        ("size", rf"prompt is too long: {_N} tokens"),
        ("size", rf"context limit: {_N} \+"),
        ("size", rf"request \({_N} tokens\)"),
        ("size", rf"(?:token count|input length) \({_N}\)"),
        ("size", rf"requested (?:about )?{_N} tokens"),
        ("excess", rf"exceeded max context length by {_N}"),
    )
)
"""Where the numbers stand; the last group is the number. The first that fits counts."""


def classify(status: int, headers: Mapping[str, str], body: object) -> ProviderProblem | None:
    """Return what is wrong with a reply, or None where it may be an answer.

    `body` is text, bytes, or what was decoded from it.
    """
    value = _decoded(body)
    named = list(_error_fields(value))
    text = " ".join(dict.fromkeys(field.text for field in named if field.text))
    if status < 400 and not named:
        return _no_object(value)
    kind = _kind(status, named, text)
    if kind == "too_long":
        return _too_long(value, text)
    message = short(text) or (f"HTTP {status}" if status >= 400 else "")
    if kind == "rate_limit":
        return ProviderProblem(kind, message, retry_after_s=_retry_after(headers, value))
    if kind == "content_filter":
        return ProviderProblem(kind, message, category=_category(value))
    if kind == "rejected":
        return ProviderProblem(kind, message, output_limit_tokens=_output_limit(text))
    return ProviderProblem(kind, message)


def classify_text(text: str) -> ProviderProblem | None:
    """Return what a text without status means (a program's error output), or None where it says nothing known."""
    kind = _kind_of_text(text)
    if kind is None:
        return None
    return _too_long(None, text) if kind == "too_long" else ProviderProblem(kind, short(text))


# the parts of a reply ----------------------------------------------------------------------------


class _Field(Struct, frozen=True):
    """One error in a reply: the names it goes by, most telling first, and its text."""

    names: tuple[str, ...]
    text: str


def _decoded(body: object) -> object:
    """Return a body as JSON where it is JSON, the data of an event stream where it is one, else its text."""
    if not isinstance(body, str | bytes):
        return body
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    if text.startswith(("event:", "data:")):
        events = [_json(line[5:].strip()) for line in text.splitlines() if line.startswith("data:")]
        return [event for event in events if not isinstance(event, str)]
    return _json(text)


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return text


_MAX_DEPTH = 8
_CODES = ("code", "status", "type", "__type")
_TEXTS = ("message", "detail", "error_description")


def _error_fields(value: object, depth: int = 0, inside: bool = False) -> Iterator[_Field]:
    """Yield what a reply says of errors: objects under `error`, and objects that are an error themselves."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value[:20]:
            yield from _error_fields(item, depth + 1, inside)
    elif isinstance(value, dict):
        yield from _object_fields(value, depth, inside)
    elif isinstance(value, str) and inside:
        nested = _json(value) if value.lstrip().startswith(("{", "[")) else value
        if isinstance(nested, str):
            yield _Field((), nested)
        else:
            yield from _error_fields(nested, depth + 1, True)


def _object_fields(value: dict[str, Any], depth: int, inside: bool) -> Iterator[_Field]:
    is_error = inside or value.get("object") == "error" or value.get("type") == "error" or "__type" in value
    for key in ("error", "errors", "innererror", "response"):
        inner = value.get(key)
        if inner and (key != "response" or is_error):
            yield from _error_fields(inner, depth + 1, True)
    if not is_error:
        return
    names = tuple(str(value[key]).lower() for key in _CODES if value.get(key) is not None)
    yield _Field(tuple(name for name in names if name not in ("error", "none")), "")
    for key in _TEXTS:
        if isinstance(value.get(key), str | list | dict):
            yield from _error_fields(value[key], depth + 1, True)


def _no_object(value: object) -> ProviderProblem | None:
    """Return what is wrong with a success that names no error: nothing, or a body that is no JSON object."""
    if isinstance(value, dict):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return ProviderProblem("bad_response", "an empty body")
        if text.startswith("<"):
            return ProviderProblem("bad_response", f"a web page came back; is base_url right? {short(text, 80)}")
        return ProviderProblem("bad_response", f"not JSON: {short(text, 80)}")
    return ProviderProblem("bad_response", "not a JSON object")


# what kind it is ---------------------------------------------------------------------------------


def _kind(status: int, named: list[_Field], text: str) -> ProblemKind:
    names = [name for field in named for name in field.names]
    by_name = [_BY_NAME[name] for name in names if name in _BY_NAME]
    if "rate_limit" in by_name or status == 429 or (status < 500 and 429 in _numbers(names)):
        return "rate_limit"
    specific = next((kind for kind in by_name if kind != "unavailable"), None)
    if specific:
        return specific
    said = _kind_of_text(text)
    if status in _BY_STATUS and said != "too_long":
        return _BY_STATUS[status]
    if said:
        return said
    if by_name or status >= 500 or any(number >= 500 for number in _numbers(names)):
        return "unavailable"
    return "rejected" if status >= 400 else "bad_response"


def _numbers(names: list[str]) -> list[int]:
    return [int(name) for name in names if name.isdecimal() and len(name) == 3]


def _kind_of_text(text: str) -> ProblemKind | None:
    if _RATE_LIMIT.search(text):
        return "rate_limit"
    if _TOO_LONG.search(text):
        return "too_long"
    if _TOO_LARGE.search(text):
        return "too_large"
    return "unavailable" if _UNAVAILABLE.search(text) else None


def _too_long(value: object, text: str) -> ProviderProblem:
    found: dict[str, int] = {}
    for name, pattern in _NUMBERS:
        match = pattern.search(text)
        if match and name not in found:
            found[name] = int(match.groups()[-1].replace(",", ""))
    found |= _counted(value)
    return ProviderProblem("too_long", short(text), found.get("limit"), found.get("size"), found.get("excess"))


def _counted(value: object) -> dict[str, int]:
    """Return the numbers that stand in fields of their own (llama.cpp)."""
    error = value.get("error") if isinstance(value, dict) else None
    nested = _json(error) if isinstance(error, str) else error
    if isinstance(nested, dict) and isinstance(nested.get("error"), dict):
        nested = nested["error"]
    if not isinstance(nested, dict):
        return {}
    fields = (("limit", nested.get("n_ctx")), ("size", nested.get("n_prompt_tokens")))
    return {name: number for name, number in fields if isinstance(number, int)}


_OUTPUT_LIMITS = (
    re.compile(r"at most ([\d,]+) (?:completion|output) tokens", re.IGNORECASE),
    re.compile(r"max_tokens: [\d,]+ > ([\d,]+)"),
)


def _output_limit(text: str) -> int | None:
    """Return how long an answer may be, where that is what was wrong."""
    match = next(filter(None, (pattern.search(text) for pattern in _OUTPUT_LIMITS)), None)
    return int(match.group(1).replace(",", "")) if match else None


_DELAY = re.compile(r"([\d.]+)s")


def _retry_after(headers: Mapping[str, str], value: object) -> float | None:
    """Return the seconds that a reply asks to wait, from its headers or from Google's RetryInfo."""
    given = next((text for name, text in headers.items() if name.lower() == "retry-after"), "")
    if re.fullmatch(r"\d+(?:\.\d+)?", given.strip()):
        return float(given)
    for item in _walk(value):
        delay = item.get("retryDelay")
        match = _DELAY.fullmatch(delay) if isinstance(delay, str) else None
        if match:
            return float(match.group(1))
    return None


def _category(value: object) -> str | None:
    for item in _walk(value):
        result = item.get("content_filter_result")
        if isinstance(result, dict):
            hits = [name for name, hit in result.items() if isinstance(hit, dict) and hit.get("filtered")]
            return ", ".join(sorted(hits)) or None
    return None


def _walk(value: object, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield every object in a decoded body."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _walk(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value[:20]:
            yield from _walk(inner, depth + 1)


# what is shown of it -----------------------------------------------------------------------------

SHOWN_CHARACTERS = 300

_KEYS = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf)[-_][\w*.-]{4,}|\bAIza[\w-]{10,}|\bBearer\s+\S+|\S*\*{3,}\S*", re.IGNORECASE
)


def short(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """Return a text as one short line without control characters and without anything that looks like a key."""
    line = " ".join(_KEYS.sub("[key]", text).split())
    line = "".join(character for character in line if character.isprintable())
    return line if len(line) <= most else line[: most - 1] + "…"
