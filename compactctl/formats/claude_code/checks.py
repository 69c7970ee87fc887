"""What `audit` looks for in Claude Code's sessions beyond what reading them finds: facts of the lines themselves.

- A `compact_boundary` without `compactMetadata` is none that the client writes (peers: omnigent#1957), and of one that
  names a message to preserve which is not in the file no message is preserved at all.
- Thinking is sent with its signature, which is checked against the text: no signature or another text than the
  signature's is refused (anthropics/claude-code#63147). From 2.1.78 to 2.1.205 the text is empty and only the
  signature is there, which is right.
- A message or a text block without text is refused by the API.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document, Record
from compactctl.findings import Finding
from compactctl.formats.interface import OwnCheck
from compactctl.formats.signed import Block, Signed
from compactctl.json_text import read_json
from compactctl.model import Transcript

ROLES = ("user", "assistant")


class _Message(Struct):
    role: Any = None
    content: list[Block] | str | None = None


class _Line(Struct):
    type: Any = None
    subtype: Any = None
    isSidechain: Any = None
    uuid: Any = None
    compactMetadata: Raw = Raw()
    message: _Message | None = None


_LINE = msgspec.json.Decoder(_Line)


def check(document: Document, transcript: Transcript) -> Iterator[Finding]:
    """Yield what is wrong with boundaries and signed thinking, and which messages since the last boundary are empty."""
    is_side = transcript.parent_session_id is not None
    since = max((compaction.line for compaction in transcript.compactions), default=0)
    boundaries: list[Record[_Line]] = []
    uuids: set[Any] = set()
    signed = Signed()
    found: list[Finding] = []
    for record in document.records(_LINE):
        line = record.value
        if line is None:
            continue
        uuids.add(line.uuid if isinstance(line.uuid, str) else None)
        if line.subtype == "compact_boundary" and line.type == "system":
            boundaries.append(record)
        if line.message is None or line.type not in ROLES or (line.isSidechain is True) is not is_side:
            continue
        signed.note(record.line, line.message.content)
        if record.line > since:
            found += _said(line.message, record.line)
    for boundary in boundaries:
        found += _honoured(boundary, uuids)
    yield from found
    yield from signed.findings()


def _said(message: _Message, line: int) -> Iterator[Finding]:
    if isinstance(message.role, str) and message.role not in ROLES:
        yield Finding(line, "refused-role", f"role {message.role[:40]}, and only user and assistant are taken")
    if not message.content:
        yield Finding(line, "empty-content", "the message has no content")
    elif isinstance(message.content, list) and any(block.is_empty_text for block in message.content):
        yield Finding(line, "empty-content", "a block of text is empty")


def _honoured(boundary: Record[_Line], uuids: set[Any]) -> Iterator[Finding]:
    raw = boundary.value.compactMetadata if boundary.value is not None else Raw()
    metadata = read_json(bytes(raw)) if len(raw) else None
    if not isinstance(metadata, dict):
        yield Finding(boundary.line, "ignored-compaction", "the boundary has no compactMetadata")
        return
    kept = metadata.get("preservedMessages")
    listed = kept.get("uuids") if isinstance(kept, dict) else None
    named = listed if isinstance(listed, list) else []
    gone = sum(uuid not in uuids for uuid in named if isinstance(uuid, str))
    if gone:
        text = f"{gone} of the {len(named)} messages to preserve are not in the file, so none is preserved"
        yield Finding(boundary.line, "ignored-compaction", text)


CHECK = OwnCheck(("ignored-compaction", "edited-reasoning", "hollow-reasoning", "empty-content", "refused-role"), check)
