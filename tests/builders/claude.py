"""Builds small Claude Code sessions line by line, with ids that are the same on every run.

Each method appends one line and returns its uuid; `parent` is the line before unless told otherwise, and any
envelope field can be given by name (`isSidechain=True`). `DROP` as a value leaves a field out.
"""

import io
import json
from typing import Any

from compactctl.document import Document

SESSION_ID = "3d5c2f0a-7b1e-4c58-9f6d-0a1b2c3d4e5f"
LAST: Any = object()
"""Stands for the newest line with a uuid."""
DROP: Any = object()
"""As the value of a field: the field is left out."""

Json = dict[str, Any]


def text(content: str) -> Json:
    return {"type": "text", "text": content}


def thinking(content: str, signature: str = "c2lnbmVk") -> Json:
    return {"type": "thinking", "thinking": content, "signature": signature}


def call(call_id: str, name: str = "Bash", **arguments: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {"command": "ls"}}


def result(call_id: str, content: Any = "ok", **fields: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def image(data: str, media_type: str = "image/png") -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def usage(fresh: int, written: int = 0, read: int = 0, out: int = 0) -> Json:
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": out,
    }


class Session:
    """A session that grows line by line."""

    def __init__(self, session_id: str = SESSION_ID, version: str = "2.1.101") -> None:
        self.session_id = session_id
        self.version = version
        self.raw_lines: list[bytes] = []
        self.last: str | None = None
        self._count = 0

    # lines ---------------------------------------------------------------------------------------

    def user(self, content: Any = "Go on.", parent: Any = LAST, **fields: Any) -> str:
        return self._node("user", parent, {"message": {"role": "user", "content": content}, **fields})

    def results(self, *blocks: Json, parent: Any = LAST, copy: Any = DROP, **fields: Any) -> str:
        message = {"role": "user", "content": list(blocks)}
        return self._node("user", parent, {"message": message, "toolUseResult": copy, **fields})

    def assistant(
        self,
        *blocks: Json | str,
        id: str | None = None,
        usage: Any = DROP,
        model: str = "claude-sonnet-4-5",
        parent: Any = LAST,
        **fields: Any,
    ) -> str:
        """One line of an answer; lines with one `id` belong to one answer."""
        content = [text(block) if isinstance(block, str) else block for block in blocks]
        message = {
            "id": id or f"msg_{self._count + 1:04}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "stop_reason": "end_turn",
            "usage": usage,
        }
        message = {key: value for key, value in message.items() if value is not DROP}
        return self._node("assistant", parent, {"message": message, **fields})

    def progress(self, parent: Any = LAST, **fields: Any) -> str:
        return self._node("progress", parent, {"data": {"type": "hook_progress"}, "toolUseID": "t", **fields})

    def system(self, subtype: str, parent: Any = LAST, **fields: Any) -> str:
        return self._node("system", parent, {"subtype": subtype, "content": "-", "isMeta": False, **fields})

    def attachment(self, type: str, parent: Any = LAST, envelope: Json | None = None, **fields: Any) -> str:
        return self._node("attachment", parent, {"attachment": {"type": type, **fields}, **(envelope or {})})

    def boundary(self, pre_tokens: int = 168_000, trigger: str = "auto", **metadata: Any) -> str:
        """A compact_boundary: a root of its own that remembers the line before it."""
        found = {"trigger": trigger, "preTokens": pre_tokens, **metadata}
        return self.system("compact_boundary", None, logicalParentUuid=self.last, compactMetadata=found)

    def summary(self, content: str = "This session is being continued. Summary: …", **fields: Any) -> str:
        marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        return self.user(content, **{**marks, **fields})

    def other(self, type: str, **fields: Any) -> None:
        """A line without a uuid (bookkeeping)."""
        self.line({"type": type, "sessionId": self.session_id, **fields})

    def line(self, value: Any) -> None:
        self.raw(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))

    def raw(self, line: bytes) -> None:
        self.raw_lines.append(line)

    def again(self, *indexes: int) -> None:
        """Write these lines (from 0) once more, byte for byte."""
        for index in indexes:
            self.raw(self.raw_lines[index])

    def id_of(self, number: int) -> str:
        """The uuid that the line with this ordinal among lines with a uuid has or will have."""
        return f"{number:08}-aaaa-4aaa-8aaa-aaaaaaaaaaaa"

    @property
    def next_id(self) -> str:
        return self.id_of(self._count + 1)

    def _node(self, type: str, parent: Any, fields: Json) -> str:
        self._count += 1
        uuid = fields.pop("uuid", self.id_of(self._count))
        minute, second = divmod(self._count, 60)
        envelope = {
            "parentUuid": self.last if parent is LAST else parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/project",
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": "main",
            "type": type,
            "uuid": uuid,
            "timestamp": f"2026-03-02T09:{minute:02}:{second:02}.000Z",
        }
        self.line({key: value for key, value in {**envelope, **fields}.items() if value is not DROP})
        if uuid is not DROP:
            self.last = uuid
        return str(uuid)

    # the whole -----------------------------------------------------------------------------------

    def bytes(self, newline: bytes = b"\n") -> bytes:
        return b"".join(line + newline for line in self.raw_lines)

    def document(self) -> Document:
        return Document(io.BytesIO(self.bytes()))
