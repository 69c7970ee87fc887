"""Where the records of a Claude Code session point at each other: every field outside of content that holds an id.

Content is what was said, sent or shown: an id in it is text, and stays. Which fields point elsewhere differs by version
(`parentUuid`, `logicalParentUuid`, `leafUuid`, `sourceToolAssistantUUID`, `messageId` and `snapshotMessageId` of file
histories, `preservedMessages` and `preservedSegment` of compactions, `supersedesUuids`, `retractedMessageUuids`,
`interruptedMessageId`, …), so they are known by what they hold.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw

from compactctl.formats.fork import UUID
from compactctl.json_text import read_json
from compactctl.spans import Route

Fields = dict[str, Raw]

FIELDS = msgspec.json.Decoder(Fields)

CONTENT = frozenset(("message", "toolUseResult", "rendered", "data", "shape", "params", "mcpMeta"))
"""Fields that hold what was said, sent or shown."""

_UUID_BYTES = 38
"""How long an id is as a JSON string."""

_USUAL = {name: (name,) for name in ("uuid", "parentUuid", "sessionId", "promptId", "sourceToolAssistantUUID")}
"""The routes of nearly all ids, made once."""

_ANY_UUID = re.compile(UUID.pattern.encode(), re.IGNORECASE)


def text(raw: Raw | None) -> str | None:
    """Return the string that a raw value is; None for anything else."""
    if raw is None or not is_string(raw):
        return None
    return str(read_json(bytes(raw)))


def is_string(raw: Raw) -> bool:
    """Return whether a raw value is a string."""
    return bytes(memoryview(raw)[:1]) == b'"'


def is_id(raw: Raw) -> bool:
    """Return whether a raw value is a string as long as an id."""
    return len(raw) == _UUID_BYTES and is_string(raw)


def id_in(raw: Raw) -> str:
    """Return the id that such a string holds."""
    return bytes(raw)[1:-1].decode("utf-8", "replace")


def pointers(fields: Mapping[str, Raw]) -> Iterator[tuple[Route, str]]:
    """Yield the ids that a record holds outside of content, its own among them, each with its route."""
    for name, raw in fields.items():
        size_bytes = len(raw)
        if size_bytes < _UUID_BYTES or name in CONTENT:
            continue
        if is_string(raw):
            if size_bytes == _UUID_BYTES:
                yield _USUAL.get(name) or (name,), id_in(raw)
        elif _ANY_UUID.search(raw):
            yield from _within(name, raw)


def _within(name: str, raw: Raw) -> Iterator[tuple[Route, str]]:
    """Yield the ids in an object or list. An attachment is content, but for the line it says it comes from."""
    value = read_json(bytes(raw))
    if name == "attachment":
        value = {key: value[key] for key in ("source_uuid",) if isinstance(value, dict) and key in value}
    pending: list[tuple[Route, object]] = [((name,), value)]
    while pending:
        route, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*route, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            pending += [((*route, index), item) for index, item in enumerate(value)]
        elif isinstance(value, str) and UUID.fullmatch(value):
            yield route, value
