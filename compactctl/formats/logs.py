"""What the logs that agents print have in common: they are read, and no edit of them is any use to an agent."""

from collections.abc import Sequence
from typing import NoReturn

from msgspec import Struct

from compactctl.document import Document
from compactctl.errors import NotCompactable
from compactctl.formats.interface import CompactionEdits, Mend, NewSession, RecordedCut, Resume, Spilled
from compactctl.model import Transcript
from compactctl.splicing import Edit


class Log(Struct, frozen=True):
    """The half of a format that edits, for one that has no edits."""

    name: str
    printed_by: str
    home: str
    is_anthropic: bool = False
    in_place_risk: str = ""
    preview_style: str = "seed"
    check: None = None

    def spill_edits(self, document: Document, spilled: Sequence[Spilled]) -> list[Edit]:
        """Return nothing where nothing is to be spilled. Raises NotCompactable."""
        return self._refuse() if spilled else []

    def usage_edits(self, document: Document, transcript: Transcript, tokens_after: int) -> list[Edit]:
        """Return nothing: no agent reads such a file."""
        return []

    def compaction(self, document: Document, transcript: Transcript, recorded: RecordedCut) -> CompactionEdits:
        """Raises NotCompactable."""
        self._refuse()

    def slim_edits(self, document: Document, limit_bytes: int, path: str) -> list[Edit]:
        """Return nothing: a log stays as it was printed."""
        return []

    def mend_links(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return nothing: no agent goes on in a log."""
        return []

    def mend_pairs(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return nothing: no agent goes on in a log."""
        return []

    def new_session(self, document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
        """Return None: a log is no session."""
        return None

    def resume(self, path: str, session_id: str | None) -> Resume:
        """Return why no agent goes on in a log."""
        return Resume((), f"the output of {self.printed_by} is a log: resume the session that it is about")

    def _refuse(self) -> NoReturn:
        raise NotCompactable(f"the output of {self.printed_by} is a log, and no log is compacted")
