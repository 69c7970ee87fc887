"""Every setting and its default, in one place; `--set KEY=VALUE` over them, with errors that help.

The defaults are the constants of the described system (contract: settings and their defaults).
"""

import difflib
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from compactctl.errors import UsageError


class Layer1(Struct, frozen=True):
    """When results are spilled and what stays in their place."""

    single_limit_bytes: int = 50_000
    """A result is spilled when it is larger."""
    round_limit_bytes: int = 200_000
    """The results of one round are spilled, largest first, until they are not larger together."""
    preview_head_lines: int = 20
    preview_head_bytes: int = 2048
    preview_tail_lines: int = 0
    preview_tail_bytes: int = 0
    """A tail besides the head; none by default."""
    preview_style: str = "auto"
    """`seed`, `native` (the agent's own shape for a persisted output) or `auto`: native where the agent has one."""
    preview_wording: str = "en"
    """`en`, `zh`, or a template with {size}, {path}, {head} and {tail}."""
    spill_media: bool = False
    """Reserved: media in results are left alone."""
    twin_limit_bytes: int = 2048


class Layer2(Struct, frozen=True):
    """When history gives way to a summary. Layer 1 reads only what the threshold is made of."""

    summary_reserve_tokens: int = 20_000
    auto_safety_margin_tokens: int = 13_000
    manual_safety_margin_tokens: int = 3_000
    recent_keep_tokens: int = 10_000
    recent_keep_messages: int = 5
    summary_retry_limit: int = 3
    auto_failure_limit: int = 3


class EstimatorSettings(Struct, frozen=True):
    bytes_per_token: float = 3.5


class WindowSettings(Struct, frozen=True):
    fallback_tokens: int | None = None
    """None: 128,000, or 200,000 where the model or format is Anthropic's."""


class Settings(Struct, frozen=True):
    layer1: Layer1 = Layer1()
    layer2: Layer2 = Layer2()
    estimator: EstimatorSettings = EstimatorSettings()
    window: WindowSettings = WindowSettings()


def known_keys() -> list[str]:
    """Return every key as it is written after `--set`."""
    return [
        f"{section.name}.{field.name}"
        for section in msgspec.structs.fields(Settings)
        for field in msgspec.structs.fields(section.type)
    ]


def with_changes(settings: Settings, assignments: Iterable[str]) -> Settings:
    """Return the settings with each `KEY=VALUE` applied. Raises UsageError that names the key and the nearest one."""
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set {assignment}: write KEY=VALUE, e.g. layer1.single_limit_bytes=20000")
        settings = _with_change(settings, key.strip(), text.strip())
    return settings


def _with_change(settings: Settings, key: str, text: str) -> Settings:
    if key not in known_keys():
        near = difflib.get_close_matches(key, known_keys(), n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"unknown setting {key}{hint}")
    section_name, _, name = key.partition(".")
    section = getattr(settings, section_name)
    kind = next(field.type for field in msgspec.structs.fields(section) if field.name == name)
    try:
        value: Any = msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"setting {key}: {text!r} does not fit: {_reason(error)}") from None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        raise UsageError(f"setting {key}: {text} is negative")
    if key == "estimator.bytes_per_token" and not value > 0:
        raise UsageError(f"setting {key} must be more than 0")
    if key == "layer1.preview_style" and value not in ("auto", "seed", "native"):
        raise UsageError(f"setting {key}: {text!r} is none of auto, seed, native")
    if key == "layer1.preview_wording" and value not in ("en", "zh") and "{path}" not in value:
        raise UsageError(f"setting {key}: write en, zh, or a template that has {{path}} in it")
    changed = msgspec.structs.replace(section, **{name: value})
    return msgspec.structs.replace(settings, **{section_name: changed})


def _reason(error: msgspec.ValidationError) -> str:
    message = str(error)
    return message[:1].lower() + message[1:]
