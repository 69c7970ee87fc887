"""What the records of a pi session hold."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.formats.blocks import Content

NAME = "pi"

ENTRIES = frozenset(
    (
        "message",
        "custom_message",
        "branch_summary",
        "compaction",
        "context_edit",
        "custom",
        "label",
        "session_info",
        "model_change",
        "thinking_level_change",
    )
)
"""The entry types of all versions."""

OLD_MARKS = {"compaction": "firstKeptEntryIndex", "model_change": "modelId", "thinking_level_change": "thinkingLevel"}
"""What tells an entry of version 1, which has no parent."""

ROLES = frozenset(
    (
        "user",
        "assistant",
        "toolResult",
        "bashExecution",
        "custom",
        "hookMessage",
        "branchSummary",
        "compactionSummary",
        "system",
    )
)

UNFINISHED = ("error", "aborted")
"""Stop reasons of answers that are never sent again."""


Odd = list[Raw] | str | int | float | bool | None
"""What stands in an object's place in a damaged or strange file, so that its record is read all the same."""


class UsageField(Struct, gc=False):
    input: Any = None
    output: Any = None
    cacheRead: Any = None
    cacheWrite: Any = None
    totalTokens: Any = None


class MessageField(Struct, gc=False):
    role: str = ""
    content: Content = None
    usage: UsageField | Odd = None
    stopReason: Any = None
    provider: Any = None
    model: Any = None
    responseId: Any = None
    toolCallId: Any = None
    toolName: Any = None
    isError: Any = None
    details: Raw = Raw()
    command: Content = None
    output: Content = None
    excludeFromContext: Any = None
    summary: Content = None
    sections: Content = None
    toolsAdded: Content = None
    toolsRemoved: Content = None


class Replacement(Struct, gc=False):
    content: Content = None


class Line(Struct, gc=False):
    type: Any = None
    id: Any = None
    parentId: Any = msgspec.UNSET
    version: Any = None
    cwd: Any = None
    message: MessageField | Odd = None
    content: Content = None
    summary: Content = None
    firstKeptEntryId: Any = None
    firstKeptEntryIndex: Any = None
    tokensBefore: Any = None
    systemMessage: MessageField | Odd = None
    targetId: Any = None
    replacement: Replacement | Odd = None
    provider: Any = None
    modelId: Any = None


class Named(Struct, gc=False):
    name: str = ""


LINE = msgspec.json.Decoder(Line)
NAMED = msgspec.json.Decoder(Named)


def count_of(value: Any) -> int:
    """Return a number of tokens; 0 for anything else."""
    return int(value) if isinstance(value, int | float) and 0 < value < 1 << 53 else 0
