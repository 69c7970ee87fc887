"""What a format is: it recognises its records, reads a document, and says how its agent wants edits made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from compactctl.document import Document
from compactctl.findings import Finding
from compactctl.model import ToolResult, Transcript
from compactctl.plan import Cut
from compactctl.splicing import Edit, Replace


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


class SideFile(Struct, frozen=True):
    """A file or folder beside a session that belongs to it: where it is, and where a new session's copy goes.

    Both relative to the folder of the session file; it need not be there. One that leads out of that folder (`../`)
    is the agent's own store: it goes along only where the new session is put beside the old one. `rewrite_id` says
    that lines of its `.jsonl` files name the session too (`sessionId`).
    """

    source: str
    target: str
    rewrite_id: bool = False

    @property
    def is_outside(self) -> bool:
        """Whether it lies in a store of the agent's own, outside the folder of the session file."""
        return self.source.startswith("../")


class NewSession(Struct, frozen=True):
    """A session under another id: the edits that make it so, its file name, and what it takes along."""

    session_id: str
    name: str
    """The file's name, as its agent would name it."""
    edits: Iterable[Replace]
    """In the order of records; of a huge file they are made anew whenever they are walked through."""
    side_files: tuple[SideFile, ...] = ()
    renamed: Mapping[str, str] = {}
    """New ids by old ones, for what else in the file has to point at them (a chain re-linked by slimming)."""


class Metas(Struct, frozen=True):
    """What stands in place of the summarised messages, whole as the model is to read it.

    Logs of messages take all three, as a person's, the model's and a person's; an agent's own record of a compaction
    takes `summary` alone, which says everything that matters.
    """

    summary: str
    acknowledged: str = ""
    reminder: str = ""


class RecordedCut(Struct, frozen=True):
    """A cut as it is to be recorded: what stands in place of what it summarises, and what the agent notes besides."""

    cut: Cut
    metas: Metas
    tokens_before: int
    tokens_after: int
    keep_history: bool = False
    """Leave the summarised lines in the file as well, where the format allows it."""


class CompactionEdits(Struct, frozen=True):
    """A compaction as edits, in the agent's own way of recording one.

    They put a new text into no result that stays, so they go together with the spills of those. `moved` are the
    records to be kept verbatim in the history: all of which anything was taken out.
    """

    edits: tuple[Edit, ...]
    moved: tuple[int, ...]
    dropped_reasoning: int = 0
    """How many blocks of signed or sealed reasoning went because what they were made for is no longer before them."""
    emptied: tuple[int, ...] = ()
    """The kept messages, by index, that held nothing else and went with it."""


class Mend(Struct, frozen=True):
    """One fault of a session mended: where (line from 1) and by which rule, what is done, and the edits that do it."""

    line: int
    rule: str
    text: str
    edits: tuple[Edit, ...]


class OwnCheck(Struct, frozen=True):
    """What `audit` asks of one format, beyond what reading finds: a pure function, and the rules of its findings."""

    rules: tuple[str, ...]
    find: Callable[[Document, Transcript], Iterable[Finding]]


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

    @property
    def home(self) -> str:
        """The folder under a user's own in which its agent keeps sessions, e.g. `.pi/agent/sessions`; "" for none.

        Of a log it is where the sessions are that such logs are about.
        """
        ...

    @property
    def printed_by(self) -> str:
        """The command whose output this is, where it is a log: read, but never compacted; "" for sessions."""
        ...

    @property
    def in_place_risk(self) -> str:
        """What else of its agent's may rely on the bytes of a session file, in words; "" where nothing does."""
        ...

    @property
    def check(self) -> OwnCheck | None:
        """What else is to be looked for in its sessions, imported when it is asked for; None for nothing."""
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

    def compaction(self, document: Document, transcript: Transcript, recorded: RecordedCut) -> CompactionEdits:
        """Return the edits that put the metas in place of what the cut summarises, recorded as the agent itself would.

        Read again, the session is: the leading messages, the summary (`is_summary`) with what follows it in
        the metas, the pinned request, the messages that are kept. New ids and times are derived from the source. The
        `usage_edits` are among them.
        """
        ...

    def slim_edits(self, document: Document, limit_bytes: int, path: str) -> list[Edit]:
        """Return the edits that take out what the model never sees: every copy of a result larger than the limit,
        and progress that the agent does not need, its chain re-linked.

        `path` is where the originals go, for the note that stands in their place. No edit touches the effective
        context. Empty where the format has no such copies.
        """
        ...

    def new_session(self, document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
        """Return the session under a new id that is derived from `seed` (the digest of the source), not random.

        `name` is the source's file name, or its full path, which some agents note as where a session comes from.
        None where the format knows no sessions with ids of their own, or this file is none that is resumed by its.
        """
        ...

    def resume(self, path: str, session_id: str | None) -> Resume:
        """Return how the agent resumes the session file at this full path, as tried with the agent itself.

        `session_id` is given where the file stands where the agent looks for its sessions, under its own name.
        """
        ...

    def mend_links(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what links records anew whose parents are not in the file, or lead back to them.

        Nothing that is in context leaves it. Empty where records name no parents.
        """
        ...

    def mend_pairs(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what takes out the results that answer no call, or one that was answered, and what gives each call
        without a result one that says so, as its agent would record it.

        All of them go together: read again, calls and results pair up.
        """
        ...
