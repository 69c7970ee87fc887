"""pi sessions, entry by entry, in the project's own words."""

import io
import json
from typing import Any

from compactctl.document import Document

Json = dict[str, Any]

SESSION_ID = "7b0e4c96-51d2-4f3a-8c1d-9e6a2b5f7043"


def header(version: int | None = 3, **fields: Any) -> Json:
    known = {"type": "session", "id": SESSION_ID, "timestamp": "2026-04-05T06:07:08.000Z", "cwd": "/srv/shop"}
    return {**known, **({"version": version} if version else {}), **fields}


def usage(fresh: int, given: int, read: int = 0, written: int = 0) -> Json:
    total = fresh + given + read + written
    return {"input": fresh, "output": given, "cacheRead": read, "cacheWrite": written, "totalTokens": total}


# messages ------------------------------------------------------------------------------------------


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def call(call_id: str, name: str = "bash", **arguments: Any) -> Json:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments or {"command": "ls"}}


def thinking(value: str, signature: str | None = "c2lnbmVk") -> Json:
    return {"type": "thinking", "thinking": value, "thinkingSignature": signature}


def user(value: Any) -> Json:
    return {"role": "user", "content": [text(value)] if isinstance(value, str) else value}


def assistant(*blocks: Json | str, model: str = "claude-opus-4-5", stop: str = "stop", **fields: Any) -> Json:
    content = [text(block) if isinstance(block, str) else block for block in blocks]
    known = {"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic"}
    return {**known, "model": model, "usage": usage(0, 0), "stopReason": stop, **fields}


def result(call_id: str, value: Any = "done", **fields: Any) -> Json:
    content = [text(value)] if isinstance(value, str) else value
    known = {"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "content": content}
    return {**known, "isError": False, **fields}


def ran(command: str, output: str, **fields: Any) -> Json:
    return {"role": "bashExecution", "command": command, "output": output, "exitCode": 0, **fields}


# entries -------------------------------------------------------------------------------------------


def entry(kind: str, id: str, parent: str | None, **fields: Any) -> Json:
    return {"type": kind, "id": id, "parentId": parent, "timestamp": "2026-04-05T06:07:09.000Z", **fields}


class Session:
    """A session that grows entry by entry; each goes under the last one unless `under` names another."""

    def __init__(self, version: int | None = 3, **fields: Any) -> None:
        self.records: list[Any] = [header(version, **fields)]
        self.last: str | None = None

    def add(self, kind: str, id: str, under: Any = ..., **fields: Any) -> "Session":
        parent = self.last if under is ... else under
        self.records.append(entry(kind, id, parent, **fields))
        self.last = id
        return self

    def say(self, id: str, message: Json, under: Any = ...) -> "Session":
        return self.add("message", id, under, message=message)

    def compact(self, id: str, summary: str, first_kept: str | None, **fields: Any) -> "Session":
        return self.add("compaction", id, summary=summary, firstKeptEntryId=first_kept, tokensBefore=50_000, **fields)

    def raw(self, line: bytes) -> "Session":
        self.records.append(line)
        return self

    def jsonl(self) -> bytes:
        return jsonl(*self.records)

    def document(self) -> Document:
        return Document(io.BytesIO(self.jsonl()))


def bare(message: Json) -> Json:
    """A version 1 entry: no id, no parent."""
    return {"type": "message", "timestamp": "2026-04-05T06:07:09.000Z", "message": message}


def jsonl(*records: Any) -> bytes:
    """Return the records as a file; bytes go in as they are, as a line of their own."""
    lines = [r if isinstance(r, bytes) else json.dumps(r, ensure_ascii=False).encode() for r in records]
    return b"".join(raw + b"\n" for raw in lines)


def document(*records: Any) -> Document:
    return Document(io.BytesIO(jsonl(*records)))
