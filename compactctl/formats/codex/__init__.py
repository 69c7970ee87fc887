"""OpenAI Codex rollouts: `{timestamp, ordinal?, type, payload}` a line; before 0.40 a bare header and bare items.

What is sent (openai/codex, `rollout_reconstruction.rs` and `normalize.rs`; seen again with codex 0.171, see
tests/clients): `response_item` and `inter_agent_communication` only, in order. `event_msg`, `turn_context`,
`session_meta` and `world_state` add nothing. A message of role `system` and an item of unknown type are left out.

* `compacted` with `replacement_history` replaces all before it (its `message` may be empty, openai/codex#41954);
  `replacement_history_entries` are such a list too, partly by item id. Without either it is an old one: what
  persons wrote stays, as far as 20,000 tokens reach back, and `message` follows as a user message.
* `thread_rolled_back` takes back the last N turns, and with them a compaction made in one. A turn begins with a
  user message that a person (or another agent) wrote, not with context that codex itself put in; such context
  right before a turn goes with it. What comes before the first turn always stays.
* On resume codex answers a call that has no output with `aborted`, drops an output without its call, and matches
  the two by call id wherever they stand, so order is no damage here.
* An output longer than the turn's truncation policy is cut again on resume; sizes here are the file's.

Usage: `token_count` events. `last_token_usage` is one request, its input including what was cached;
`total_token_usage` is what the session spent and no context. Events repeat (28 % of the real ones, ccusage#1288):
equal totals are no new request. After a compaction codex records its own estimate with an input of 0. An event
comes after the outputs of the calls that its response made, so it belongs to the newest answer before it, and
those outputs are not in it. Values over the window exist (openai/codex#24089) and are refused.
`model_context_window` is already 95 % of what the model takes.

Copies of outputs that no model sees are in `exec_command_end`, `mcp_tool_call_end`, `patch_apply_end` and
`item_completed` events. On resume codex compacts at once when the last `token_count` says the window is full
(research: clients, finding A), so that one record follows a spill.

Codex resumes a reference by `reference_v2` only while the item's digest holds: such a result is never spilled.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from compactctl.document import Document, Place
from compactctl.formats.codex.compact import compaction
from compactctl.formats.codex.fork import new_session
from compactctl.formats.codex.reader import Reader
from compactctl.formats.codex.records import ENVELOPES, LINE
from compactctl.formats.codex.slim import slim_edits
from compactctl.formats.edits import spill_edits
from compactctl.formats.interface import CompactionEdits, Mend, NewSession, OwnCheck, RecordedCut, Resume, Spilled
from compactctl.formats.mending import UNKNOWN_RESULT, Asked, mend_pairs
from compactctl.json_text import write_json
from compactctl.model import Transcript
from compactctl.splicing import Edit, Replace


class Codex(Struct, frozen=True):
    """The format of Codex rollouts."""

    name: str = "codex"
    is_anthropic: bool = False
    home: str = ".codex/sessions"
    printed_by: str = ""
    in_place_risk: str = (
        "a fork of this session that codex made itself names bytes of this file (history_base) and no longer resumes "
        "once it is shorter; --new-session leaves it whole"
    )
    preview_style: str = "seed"

    @property
    def check(self) -> OwnCheck:
        """What an audit asks of it."""
        from compactctl.formats.codex.checks import CHECK  # of all commands only `audit` has need of it

        return CHECK

    def claims(self, record: Mapping[str, Any]) -> bool:
        """Return whether this is an envelope of a rollout, or what only files before 0.40 hold."""
        if "payload" in record:
            return record.get("type") in ENVELOPES and isinstance(record["payload"], dict)
        return record.get("record_type") == "state" or _is_old_header(record)

    def read(self, document: Document) -> Sequence[Transcript]:
        """Return the session that codex would resume; nothing where no record is a rollout's."""
        reader = Reader()
        for record in document.records(LINE):
            reader.take(record)
        return [reader.transcript(document)] if reader.is_codex else []

    def spill_edits(self, document: Document, spilled: Sequence[Spilled]) -> list[Edit]:
        """Return the edits that put previews where outputs stand, and slim their copies in events."""
        return spill_edits(document, spilled)

    def usage_edits(self, document: Document, transcript: Transcript, tokens_after: int) -> list[Edit]:
        """Return the edits that make the newest `token_count` say what the context now is."""
        index, counts = _deciding(document)
        if index is None:
            return []
        place = Place(index, ("payload", "info", "last_token_usage"))
        names = [name for name in ("input_tokens", "total_tokens") if _is_positive(counts.get(name))]
        return [Replace(place.at(name), write_json(tokens_after)) for name in names]

    def compaction(self, document: Document, transcript: Transcript, recorded: RecordedCut) -> CompactionEdits:
        """Return the edits that put a `compacted` record in front of what is kept, and take out what it stands for."""
        deciding, _ = _deciding(document)
        made = compaction(document, transcript, recorded, deciding)
        usage = self.usage_edits(document, transcript, recorded.tokens_after)
        return msgspec.structs.replace(made, edits=(*made.edits, *usage))

    def slim_edits(self, document: Document, limit_bytes: int, path: str) -> list[Edit]:
        """Return the edits that shorten the copies of outputs in events."""
        return slim_edits(document, limit_bytes, path)

    def mend_links(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return nothing: records of a rollout name no parents."""
        return []

    def mend_pairs(self, document: Document, transcript: Transcript) -> list[Mend]:
        """Return what makes calls and outputs pair up."""
        return mend_pairs(document, transcript, _unknown_outputs)

    def new_session(self, document: Document, transcript: Transcript, name: str, seed: str) -> NewSession | None:
        """Return the session under an id derived from `seed`; None for a file without a header."""
        return new_session(document, transcript, name, seed)

    def resume(self, path: str, session_id: str | None) -> Resume:
        """Return the command that opens a session by its id; by name or path, Codex silently starts a new one."""
        if session_id is not None:
            return Resume(("codex", "resume", session_id))
        return Resume((), "not from here: codex finds sessions by id, and in its own folder alone")


FORMAT = Codex()


def _is_old_header(record: Mapping[str, Any]) -> bool:
    known = isinstance(record.get("id"), str) and isinstance(record.get("timestamp"), str)
    return known and "instructions" in record and not {"type", "role", "messages"} & record.keys()


def _unknown_outputs(asked: list[Asked]) -> list[Any]:
    """Return an output for each call: as records, as bare items before 0.40, or as elements of a history.

    A record that another one follows up takes its time over, and in a paginated rollout its ordinal (repeats are
    accepted).
    """
    return [_unknown_output(each) for each in asked]


def _unknown_output(asked: Asked) -> dict[str, Any]:
    record, route = asked.record, asked.call.place.route
    item = record
    for key in route[:-1] if route[-1:] in (("arguments",), ("input",), ("action",)) else route:
        item = item[key]
    kind = "custom_tool_call_output" if item.get("type") == "custom_tool_call" else "function_call_output"
    output = {"type": kind, "call_id": asked.call.call_id, "output": UNKNOWN_RESULT}
    if route[:1] != ("payload",) or "type" not in record:
        return output
    if route[1:2] == ("replacement_history",):
        return output
    if route[1:2] == ("replacement_history_entries",):
        return {**record["payload"]["replacement_history_entries"][route[2]], "item": output}
    kept = {name: record[name] for name in ("timestamp", "ordinal") if name in record}
    return {**kept, "type": "response_item", "payload": output}


def _deciding(document: Document) -> tuple[int | None, dict[str, Any]]:
    """Return the record of the newest `token_count`, and what it counted for the last request."""
    for index in reversed(range(len(document))):
        raw = document.raw(index)
        if b'"token_count"' in raw and (counts := _last_counts(raw)) is not None:
            return index, counts
    return None, {}


def _is_positive(count: Any) -> bool:
    return isinstance(count, int) and count > 0


def _last_counts(raw: bytes) -> dict[str, Any] | None:
    """Return `last_token_usage` of a record, if it is a token count that has one."""
    try:
        record = msgspec.json.decode(raw)
        is_count = record["type"] == "event_msg" and record["payload"]["type"] == "token_count"
        counts = record["payload"]["info"]["last_token_usage"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return None
    return counts if is_count and isinstance(counts, dict) else None
