"""pi sessions: a header line, then entries that form a tree by `id` and `parentId`.

Versions: 1 is a line without ids (a compaction says `firstKeptEntryIndex`, counting the header); 2 is the tree;
3 calls the role `hookMessage` `custom`. pi rewrites old files on load.

What is sent (earendil-works/pi, `session-manager` and `transform-messages`; seen again with pi 1.6.0 and 0.73.1,
see tests/clients): the path from the last entry in the file up by parent.

* A parent that is missing ends the path there: what stands above it is not sent.
* Of the newest `compaction` on the path its summary (as a user message), then the entries from `firstKeptEntryId`
  on, then what follows it. An older compaction among the kept ones is skipped (earendil-works/pi#8667). An unknown
  `firstKeptEntryId` keeps nothing.
* `branch_summary` and `custom_message` are user messages; so is `bashExecution`, unless it is excluded. `custom`,
  `label`, `session_info`, `model_change` and `thinking_level_change` say nothing to the model.
* `context_edit` (1.6) puts other content in an earlier entry's place, or takes it out; the last one counts.
* An answer whose `stopReason` is `error` or `aborted` is left out; results of its calls are not. Thinking of
  another model than the session's last is left out (0.73 sends it as text).
* `system` messages (1.6) are replayed into one in front: contents are appended, `sections` patched by name, tools
  added and removed. A compaction carries the replay of those before it.
* A call without result gets one of 18 characters; a result without call is sent as it is; messages stay in their
  order, also between a call and its result.

Usage is per answer: `input` beside `cacheRead` and `cacheWrite`; `totalTokens`, where there is one, is their sum
with `output`. Nothing before the newest compaction or context edit says what the context is. The window is not
recorded. pi 1.6 does not decide by recorded usage on resume; 0.73 compacts when the last answer's says so
(research: clients, finding A). `details` of a result is never sent (see `slim`).

OpenClaw writes the same entries with pi's own code; its sessions are read the same way.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from compactctl.document import Document, Place
from compactctl.formats.edits import spill_edits
from compactctl.formats.interface import CompactionEdits, Mend, NewSession, OwnCheck, RecordedCut, Resume, Spilled
from compactctl.formats.mending import mend_pairs
from compactctl.formats.pi.compact import compaction
from compactctl.formats.pi.fork import new_session
from compactctl.formats.pi.mend import CHAIN, mend_links, unknown_results
from compactctl.formats.pi.reader import Reader
from compactctl.formats.pi.shapes import ENTRIES, LINE, NAME, OLD_MARKS, ROLES, count_of
from compactctl.formats.pi.slim import slim_edits
from compactctl.json_text import read_json, write_json
from compactctl.model import Transcript
from compactctl.splicing import Edit, Replace


class PiSession(Struct, frozen=True):
    """The format of pi's sessions."""

    name: str = NAME
    is_anthropic: bool = False
    home: str = ".pi/agent/sessions"
    printed_by: str = ""
    in_place_risk: str = ""
    preview_style: str = "seed"

    @property
    def check(self) -> OwnCheck:
        """What an audit asks of it."""
        from compactctl.formats.pi.checks import CHECK  # of all commands only `audit` has need of it

        return CHECK

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether this is a header or an entry of a pi session."""
        kind = record.get("type")
        if "timestamp" not in record or not isinstance(kind, str):
            return False
        if kind == "session":
            return isinstance(record.get("id"), str) and isinstance(record.get("cwd"), str)
        if kind == "message":
            message = record.get("message")
            return isinstance(message, dict) and message.get("role") in ROLES
        return kind in ENTRIES and ("parentId" in record or OLD_MARKS.get(kind) in record)

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the session that pi would resume; nothing where no record is a pi session's."""
        reader = Reader()
        for record in document.records(LINE):
            reader.take(record)
        return [reader.transcript(document)] if reader.is_pi else []

    def spill_edits(self, document: Document, spilled: Sequence[Spilled]) -> list[Edit]:
        """Return the edits that put previews where results stand, and slim their details."""
        return spill_edits(document, spilled)

    def usage_edits(self, document: Document, transcript: Transcript, tokens_after: int) -> list[Edit]:
        """Return the edits that make the usage of the last answer on the path say what the context now is."""
        record = _deciding_record(document)
        if record is None:
            return []
        place = Place(record, ("message", "usage"))
        counts = document.value(place)
        given = min(count_of(counts.get("output")), tokens_after)
        fresh = tokens_after - given
        wanted = {"input": fresh, "output": given, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens_after}
        return [
            Replace(place.at(name), write_json(value))
            for name, value in wanted.items()
            if name in counts and counts[name] != value
        ]

    def compaction(self, document: Document, transcript: Transcript, recorded: RecordedCut) -> CompactionEdits:
        """Return the edits that add a compaction entry, and take out what it stands for."""
        deciding = _deciding_record(document)
        made = compaction(document, transcript, recorded, deciding)
        usage = self.usage_edits(document, transcript, recorded.tokens_after)
        return msgspec.structs.replace(made, edits=(*made.edits, *usage))

    def slim_edits(self, document: Document, limit_bytes: int, path: str) -> list[Edit]:
        """Return the edits that shorten the details of results, as far as only the display reads them."""
        return slim_edits(document, limit_bytes, path)

    def mend_links(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what links entries anew to the ones before them in the file."""
        return mend_links(document)

    def mend_pairs(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what makes calls and results pair up."""
        return mend_pairs(document, transcript, unknown_results, CHAIN)

    def new_session(self, document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
        """Return the session under an id derived from `seed`; None for a file without a header."""
        return new_session(document, transcript, name, seed)

    def resume(self, path: str, session_id: str | None) -> Resume:
        """Return the command that opens a session by its path."""
        return Resume(("pi", "--session", path))


FORMAT = PiSession()


def _deciding_record(document: Document) -> int | None:
    """Return the record of the last answer on the path that tells a usage; None behind a compaction."""
    wanted: Any = None
    for index in reversed(range(len(document))):
        entry = _entry(document.raw(index))
        if entry.get("type") == "session" or (wanted is not None and entry.get("id") != wanted):
            continue
        if entry.get("type") == "compaction":
            return None
        if _tells_usage(entry.get("message")):
            return index
        wanted = entry.get("parentId")
        if wanted is None and "parentId" in entry:
            return None
    return None


def _entry(raw: bytes) -> dict[str, Any]:
    try:
        value = read_json(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _tells_usage(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") != "assistant" or message.get("stopReason") == "error":
        return False
    counts = message.get("usage")
    return isinstance(counts, dict) and any(count_of(count) for count in counts.values())
