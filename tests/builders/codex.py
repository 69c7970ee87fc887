"""Codex rollouts, line by line, in the project's own words."""

import io
import json
from typing import Any

from compactctl.document import Document

Json = dict[str, Any]

SESSION_ID = "0f3c1a52-6d84-7e19-b0c7-2a9e5d4f8b13"
STAMP = "2026-04-05T06:07:08.000Z"
WINDOW_TOKENS = 100_000


def line(kind: str, payload: Any, **fields: Any) -> Json:
    return {"timestamp": STAMP, **fields, "type": kind, "payload": payload}


def meta(**fields: Any) -> Json:
    known = {"id": SESSION_ID, "timestamp": STAMP, "cwd": "/srv/shop", "originator": "codex_cli_rs"}
    return line("session_meta", {**known, "cli_version": "0.120.0", "source": "cli", **fields})


def turn(model: str = "gpt-5.5") -> Json:
    return line("turn_context", {"cwd": "/srv/shop", "model": model})


def started(turn_id: str = "t1") -> Json:
    return event("task_started", turn_id=turn_id, model_context_window=WINDOW_TOKENS)


def event(kind: str, **fields: Any) -> Json:
    return line("event_msg", {"type": kind, **fields})


def rolled_back(turns: int) -> Json:
    return event("thread_rolled_back", num_turns=turns)


def said(item: Json) -> Json:
    return line("response_item", item)


def compacted(*items: Json, message: str = "", **fields: Any) -> Json:
    return line("compacted", {"message": message, "replacement_history": list(items), **fields})


def compacted_by_message(message: str) -> Json:
    return line("compacted", {"message": message})


def compacted_by_entries(*entries: Json) -> Json:
    return line("compacted", {"message": "", "replacement_history_entries": list(entries)})


# items of the Responses API ------------------------------------------------------------------------


def message(role: str, *texts: str, **fields: Any) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts], **fields}


def user(text: str, **fields: Any) -> Json:
    return message("user", text, **fields)


def developer(text: str, **fields: Any) -> Json:
    return message("developer", text, **fields)


def assistant(text: str, **fields: Any) -> Json:
    return message("assistant", text, **fields)


def reasoning(summary: str = "", sealed: str | None = None, **fields: Any) -> Json:
    texts = [{"type": "summary_text", "text": summary}] if summary else []
    return {"type": "reasoning", "summary": texts, "content": None, "encrypted_content": sealed, **fields}


def call(call_id: str, name: str = "exec_command", arguments: str = '{"cmd":"ls"}', **fields: Any) -> Json:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id, **fields}


def output(call_id: str, value: Any = "done", **fields: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": value, **fields}


def custom_call(call_id: str, text: str = "*** Begin Patch", name: str = "apply_patch") -> Json:
    return {"type": "custom_tool_call", "status": "completed", "call_id": call_id, "name": name, "input": text}


def custom_output(call_id: str, value: Any) -> Json:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": value}


# usage -------------------------------------------------------------------------------------------------


def counts(taken: int, given: int, cached: int = 0) -> Json:
    return {
        "input_tokens": taken,
        "cached_input_tokens": cached,
        "output_tokens": given,
        "reasoning_output_tokens": 0,
        "total_tokens": taken + given,
    }


def tokens(taken: int, given: int, *, total: int, cached: int = 0, window: int = WINDOW_TOKENS) -> Json:
    """A `token_count` of one request; `total` is what the session has spent so far."""
    info = {
        "total_token_usage": counts(total, 0),
        "last_token_usage": counts(taken, given, cached),
        "model_context_window": window,
    }
    return event("token_count", info=info, rate_limits=None)


# files -------------------------------------------------------------------------------------------------


def jsonl(*records: Any) -> bytes:
    """Return the records as a file; bytes go in as they are, as a line of their own."""
    lines = [r if isinstance(r, bytes) else json.dumps(r, ensure_ascii=False).encode() for r in records]
    return b"".join(raw + b"\n" for raw in lines)


def document(*records: Any) -> Document:
    return Document(io.BytesIO(jsonl(*records)))


def rollout(*records: Json) -> bytes:
    """Return a rollout: its header, then these records; bare items are wrapped as response items."""
    return jsonl(meta(), *(record if "payload" in record else said(record) for record in records))
