"""What every format tells of a session as a whole: where the bytes of its file are, and what it lacks."""

from collections.abc import Mapping, Sequence, Sized

from compactctl.findings import Finding
from compactctl.model import Message


def file_bytes(by_kind: Mapping[str, int], size_bytes: int) -> dict[str, int]:
    """Return the bytes of a file by `Kind`: `other` is what the other kinds leave of it, and never below nothing."""
    known = sum(size for kind, size in by_kind.items() if kind != "other")
    return {**by_kind, "other": max(0, size_bytes - known)}


def lacks(
    messages: Sequence[Message], requests: Sized, no_usage: str, empty: str = "no message in it"
) -> list[Finding]:
    """Return that a session has no message (`empty` says it), or answers but no usage of any (`no_usage` says it)."""
    if not messages:
        return [Finding(None, "empty-session", empty)]
    if not requests and any(message.role == "assistant" for message in messages):
        return [Finding(None, "no-usage", no_usage)]
    return []
