"""What of an attachment line the model is sent, and how big that is.

An `attachment` line is a fact that the client puts into a reminder for the model, or one that only its display
shows. Which of them are sent was seen by resuming sessions with Claude Code 2.1.332, one type at a time. Newer versions
(2.1.332 is one) record the sent text itself (`rendered`), and that decides where it is there; a type that is
not known here and has no `rendered` is not sent.

The size is that of the text which the attachment carries, without the words that the client puts around it: all
strings, save those which only name or repeat something (`texts.strings_in`).
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from compactctl.document import Place
from compactctl.json_text import read_json
from compactctl.media import image_pixels, pdf_pages
from compactctl.model import Media, Opaque, Part, utf8_size
from compactctl.spans import Key
from compactctl.texts import ATTACHMENT, MEDIA_FIELDS, is_media, rendered_strings, strings_in

SENT = frozenset(
    (
        "agent_listing_delta",
        "agent_mention",
        "async_hook_response",
        "auto_mode",
        "auto_mode_exit",
        "budget_usd",
        "compact_file_reference",
        "critical_system_reminder",
        "date_change",
        "deferred_tools_delta",
        "diagnostics",
        "directory",
        "edited_text_file",
        "file",
        "hook_additional_context",
        "hook_blocking_error",
        "hook_stopped_continuation",
        "invoked_skills",
        "mcp_instructions_delta",
        "mcp_resource",
        "memory_update",
        "nested_memory",
        "opened_file_in_ide",
        "output_style",
        "output_token_usage",
        "pdf_reference",
        "plan_file_reference",
        "plan_mode",
        "plan_mode_exit",
        "plan_mode_reentry",
        "queued_command",
        "read_truncation_notice",
        "relevant_memories",
        "selected_lines_in_ide",
        "silent_turn_reminder",
        "skill_listing",
        "task_reminder",
        "task_status",
        "token_usage",
        "total_tokens_reminder",
        "ultra_effort_enter",
        "ultra_effort_exit",
        "ultrathink_effort",
    )
)
"""Types whose content the client sends, as its own words or as the text they carry."""

_HOOKS_HEARD = ("SessionStart", "UserPromptSubmit")
"""What a successful hook of these events prints is sent; that of others is not."""


def read_attachment(raw: Raw, rendered: Raw, place: Place) -> tuple[Part, ...]:
    """Return what the model is sent of the attachment at `place`: nothing, or an `Opaque` and any media in it."""
    value = read_json(bytes(raw))
    if not isinstance(value, dict):
        return ()
    kind = value.get("type") if isinstance(value.get("type"), str) else ""
    if len(rendered):
        size = _rendered_bytes(rendered)
    elif _is_sent(str(kind), value):
        size = sum(map(utf8_size, strings_in(value)))
    else:
        return ()
    return (Opaque(place, f"{ATTACHMENT}{kind}", size), *_media(value, place))


def _is_sent(kind: str, value: dict[str, Any]) -> bool:
    if kind == "hook_success":
        return value.get("hookEvent") in _HOOKS_HEARD and bool(value.get("content"))
    return kind in SENT


def _rendered_bytes(rendered: Raw) -> int:
    try:
        items = msgspec.json.decode(rendered)
    except msgspec.DecodeError:
        return 0
    return sum(map(utf8_size, rendered_strings(items)))


def _media(value: Any, place: Place) -> Iterator[Media]:
    """Yield the images and documents in an attachment; they are kept as base64 under `data` or `base64`."""
    members: Iterator[tuple[Key, Any]] | list[tuple[Key, Any]] = []
    if isinstance(value, dict):
        data = next((value[key] for key in MEDIA_FIELDS if isinstance(value.get(key), str)), None)
        if is_media(value) and data is not None:
            kind = str(value.get("media_type") or value.get("type") or "")
            if "pdf" in kind:
                yield Media(place, len(data), "pdf", pages=pdf_pages(data))
            else:
                yield Media(place, len(data), "image", *image_pixels(data))
            return
        members = [(key, item) for key, item in value.items()]
    elif isinstance(value, list):
        members = list(enumerate(value))
    for key, item in members:
        if isinstance(item, dict | list):
            yield from _media(item, place.at(key))
