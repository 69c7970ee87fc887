"""The records of a rollout: every field that anything is read for, none of which need be there."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.formats.blocks import Content
from compactctl.json_text import read_json, write_json

ENVELOPES = frozenset(
    (
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "world_state",
        "token_usage_record",
        "retained_context",
        "security_risk_score",
        "realtime_item",
        "rollout_reference",
    )
)
"""The record types of a rollout."""


Odd = list[Raw] | str | int | float | bool | None
"""What stands in an object's place in a damaged or strange file, so that its record is read all the same."""


class Counts(Struct, gc=False):
    """What a provider counted."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0


class Info(Struct, gc=False):
    """What a `token_count` tells."""

    total_token_usage: Counts | None = None
    last_token_usage: Counts | None = None
    model_context_window: int | None = None


class Copies(Struct, gc=False):
    """What may hold an output again: an event, or the item in one."""

    id: Any = None
    stdout: Raw = Raw()
    stderr: Raw = Raw()
    aggregated_output: Raw = Raw()
    formatted_output: Raw = Raw()
    result: Raw = Raw()
    results: Raw = Raw()
    content_items: Raw = Raw()


class Payload(Copies, gc=False):
    """A payload of any record, or a bare item: every field that any of them is read for."""

    type: str = ""
    call_id: Any = None
    # items
    role: Any = None
    name: Any = None
    content: Content = None
    output: Content = None
    arguments: Raw = Raw()
    input: Raw = Raw()
    action: Raw = Raw()
    tools: Raw = Raw()
    summary: Content = None
    encrypted_content: Raw = Raw()
    # events
    info: Info | Odd = None
    num_turns: Any = None
    model_context_window: Any = None
    item: Copies | Odd = None
    # headers
    cwd: Any = None
    model: Any = None
    cli_version: Any = None
    parent_thread_id: Any = None
    source: Any = None
    instructions: Raw = Raw()
    # compactions
    message: Raw = Raw()
    replacement_history: Raw = Raw()
    replacement_history_entries: Raw = Raw()


class Line(Payload, gc=False):
    """A line: an envelope with its payload, or an item or a header by itself."""

    payload: Payload | None = None
    record_type: Any = None


class Entry(Struct):
    """An entry of `replacement_history_entries`."""

    type: str = ""
    item: Payload | None = None
    item_id: Any = None


class Piece(Struct, gc=False):
    """A block of which only the text is asked for."""

    text: str = ""


LINE = msgspec.json.Decoder(Line)
PAYLOAD = msgspec.json.Decoder(Payload)
ENTRY = msgspec.json.Decoder(Entry)
PIECE = msgspec.json.Decoder(Piece)
STRING = msgspec.json.Decoder(str)


def text(raw: Raw) -> str:
    """Return the string that a raw value is; "" for anything else."""
    try:
        return STRING.decode(raw)
    except msgspec.DecodeError:
        return ""


def is_list(raw: Raw) -> bool:
    """Return whether a raw value is an array."""
    return len(raw) > 0 and bytes(memoryview(raw)[:1]) == b"["


def lenient(raw: bytes) -> Payload:
    """Return a payload that was read before, also where it holds what the fast decoder refuses."""
    try:
        return PAYLOAD.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return PAYLOAD.decode(write_json(read_json(raw)))


def texts(content: Content) -> list[str]:
    """Return the texts of a message's content."""
    if isinstance(content, str):
        return [content]
    return pieces(content)


def pieces(content: Content) -> list[str]:
    """Return the texts of a list's blocks; other blocks have none."""
    found = []
    for raw in content if isinstance(content, list) else []:
        try:
            found.append(PIECE.decode(raw).text)
        except msgspec.DecodeError:
            continue
    return found
