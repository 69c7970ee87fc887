"""What a format is: it recognises its records, reads a document, and says how its agent wants edits made."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from compactctl.document import Document, Edit
from compactctl.model import ToolResult, Transcript


class Spilled(Struct, frozen=True):
    """A result to be replaced: which, by what text, and what its copies say instead."""

    result: ToolResult
    preview: str
    note: str
    """The short text that stands in the copies which the model never sees."""


class Resume(Struct, frozen=True):
    """How an agent goes on in a session file that stands anywhere: the words of a command, and a remark.

    Without words the agent can't resume from there, and the remark says why.
    """

    words: tuple[str, ...] = ()
    remark: str = ""


class Format(Protocol):
    """One session format. Implementations are modules-as-values: stateless, one instance in the table."""

    @property
    def name(self) -> str: ...

    @property
    def is_anthropic(self) -> bool:
        """Whether its models are Anthropic's, so that an unknown one is given Anthropic's fallback window."""
        ...

    @property
    def preview_style(self) -> str:
        """What `layer1.preview_style = auto` means here: `seed` or `native`."""
        ...

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether a decoded record is certainly one of this format's."""
        ...

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the sessions in the document: one, save where a line holds a whole conversation.

        Walks `document.records` to the end. `Transcript.findings` hold what this format found, pairing
        included; the document's own findings are not among them.
        """
        ...

    def spill_edits(self, document: Document, spilled: Sequence[Spilled]) -> list[Edit]:
        """Return the edits that put previews where results stand, and slim the copies of those results."""
        ...

    def usage_edits(self, document: Document, transcript: Transcript, tokens_after: int) -> list[Edit]:
        """Return the edits that set the one usage record by which this agent decides to compact on resume.

        Empty for agents that ignore what was recorded (research: clients, finding A).
        """
        ...

    def resume(self, path: str) -> Resume:
        """Return how the agent resumes the session file at this full path, as tried with the agent itself."""
        ...
