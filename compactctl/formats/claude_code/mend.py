"""Faults of a Claude Code session, mended as the client would have written it.

- A line whose parent is not in the file, or whose parents lead back to it, hangs on the line with which reading goes
  on: the talk that stands before it. So the client, which stops there, sees what stands above it again.
- The results of calls that were never answered stand together in one line behind the answer, in the chain between what
  they stand between in context. The line takes over what its answer's line says of the session, and its time.
"""

from typing import Any

from compactctl.document import Document, Place
from compactctl.formats.claude_code.lines import Lines
from compactctl.formats.claude_code.tree import effective
from compactctl.formats.fork import derived_id
from compactctl.formats.interface import Mend
from compactctl.formats.mending import UNKNOWN_RESULT, Asked, Chain
from compactctl.json_text import write_json
from compactctl.model import Transcript
from compactctl.splicing import Edit, Replace

CHAIN = Chain("uuid", "parentUuid", lambda digits: derived_id(digits, "result"))

_ENVELOPE = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug", "agentId")
"""What a line takes over from the one that made the call."""


def mend_links(document: Document, transcript: Transcript) -> list[Mend]:
    """Return what links the lines on the path anew from which the client would find no way up."""
    lines = Lines(document)
    is_side = transcript.parent_session_id is not None
    agent = next((node.marks.agent for node in reversed(lines.nodes) if node.is_talk), "") if is_side else ""
    mends = []
    for lost in effective(lines, is_side, agent).lost:
        above = lost.above
        if above is not None and above.uuid.startswith("#"):
            continue
        parent = above.uuid if above is not None else None
        what = f"links it to the talk before it, on line {above.line}" if above is not None else "makes it a root"
        edits: tuple[Edit, ...] = (Replace(Place(lost.node.record, ("parentUuid",)), write_json(parent)),)
        mends.append(Mend(lost.node.line, lost.rule, what, edits))
    return sorted(mends, key=lambda mend: mend.line)


def unknown_results(asked: list[Asked]) -> list[Any]:
    """Return one line with a result for each call."""
    last = asked[-1].record
    envelope = {name: last[name] for name in _ENVELOPE if name in last}
    blocks = [
        {"type": "tool_result", "content": UNKNOWN_RESULT, "is_error": True, "tool_use_id": each.call.call_id}
        for each in asked
    ]
    return [
        {
            "parentUuid": None,
            **envelope,
            "type": "user",
            "message": {"role": "user", "content": blocks},
            "uuid": None,
            **({"timestamp": last["timestamp"]} if "timestamp" in last else {}),
            **({"sourceToolAssistantUUID": last["uuid"]} if isinstance(last.get("uuid"), str) else {}),
        }
    ]
