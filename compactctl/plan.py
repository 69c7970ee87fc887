"""What a run will do to one session, as data: which results move to files and why, and what stays."""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from compactctl.document import Place
from compactctl.model import ToolResult
from compactctl.turns import Paired

KEPT_UNDER_LIMITS = "under the limits"
"""The reason of a keep that was decided on size alone; it binds a later run under the same limits."""

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
    keeps: tuple[Paired, ...] = ()
    """The results that stay."""
    reasons: Mapping[Place, str] = {}
    """Why, in words (`already spilled`, …), for those that stay for another reason than their size."""
    failures: tuple[Failure, ...] = ()

    def reason(self, keep: Paired) -> str:
        """Return why a result stays."""
        return self.reasons.get(keep.result.place, KEPT_UNDER_LIMITS)

    def keeps_by_reason(self) -> Counter[str]:
        """Return how many results stay for each reason."""
        if self.keeps and not self.reasons:
            return Counter({KEPT_UNDER_LIMITS: len(self.keeps)})
        return Counter(map(self.reason, self.keeps))
