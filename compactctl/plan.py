"""What a run will do to one session, as data: which results move to files and why, and what stays."""

from hashlib import sha256
from typing import Literal

from msgspec import Struct

from compactctl.model import ToolResult

SpillReason = Literal["single", "round", "target"]


class Spill(Struct, frozen=True):
    """One result that moves to a file: its text is written to `file` and `preview` takes its place."""

    result: ToolResult
    exchange: str
    line: int
    reason: SpillReason
    round_bytes: int
    """What the results of the round came to when this one was chosen; 0 for the other reasons."""
    sha256: str
    """Of the text in UTF-8."""
    file: str
    """The file's name in the spill folder."""
    preview: str
    starts: str = ""
    """How the text starts, for people."""

    @property
    def preview_sha256(self) -> str:
        return sha256(self.preview.encode()).hexdigest()


class Keep(Struct, frozen=True, gc=False):
    """One result that stays, with the reason in words (`under the limits`, `already spilled`, …)."""

    result: ToolResult
    exchange: str
    line: int
    reason: str


class Failure(Struct, frozen=True):
    """A result that should have moved and could not; it stays where it was, undecided."""

    call_id: str
    exchange: str
    line: int
    error: str
    session_index: int | None
    """Which conversation of the file it belongs to, where there are several."""


class Cut(Struct, frozen=True):
    """Where a summary takes over, as indexes into the messages of a context.

    `messages[:leading]` (system and developer) stay in front. `messages[leading:first_kept]` are summarised, save
    `pinned`: the newest request of a person among them, which stays word for word right behind the summary.
    `messages[first_kept:]` stay word for word.
    """

    leading: int
    first_kept: int
    pinned: int | None = None


class Plan(Struct, frozen=True):
    """Every decision about the results of one context, in order of messages."""

    spills: tuple[Spill, ...] = ()
    keeps: tuple[Keep, ...] = ()
    failures: tuple[Failure, ...] = ()
