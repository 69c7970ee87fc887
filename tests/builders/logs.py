"""Logs as agents print them, in our own words and of the shapes that Claude Code 2.1.332 and codex 0.171.0 print."""

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

SESSION = "5e551011-0000-4000-8000-000000000001"
THREAD = "7a4ead01-0000-7000-8000-000000000001"
MODEL = "claude-sonnet-4-5"


# claude -p ---------------------------------------------------------------------------------------


class Claude:
    """Makes records of one session, each with a uuid of its own."""

    def __init__(self, session: str = SESSION) -> None:
        self.session = session
        self._uuids: Iterator[str] = (f"{session[:4]}-{number}" for number in range(1, 10_000))

    def record(self, kind: str, **more: Any) -> Json:
        return {"type": kind, "session_id": self.session, "uuid": next(self._uuids), **more}

    def init(self, **more: Any) -> Json:
        told = {"cwd": "/work/shop", "model": MODEL, "claude_code_version": "2.1.332", "tools": ["Bash"]}
        return self.record("system", subtype="init", **{**told, **more})

    def answer(self, key: str, *blocks: Json, taken: int = 1000, given: int = 1, **more: Any) -> Json:
        """One block of an answer; `given` is a placeholder unless there is a `stop`."""
        usage = {"input_tokens": taken - 300, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 100}
        message = {
            "id": key,
            "role": "assistant",
            "model": more.pop("model", MODEL),
            "content": list(blocks),
            "stop_reason": more.pop("stop", None),
            "usage": {**usage, "output_tokens": given},
        }
        return self.record("assistant", message=message, **{"parent_tool_use_id": None, **more})

    def result_of(self, call_id: str, text: str, **more: Any) -> Json:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": False}
        return self.user([block], tool_use_result={"stdout": text, "stderr": ""}, **more)

    def user(self, content: Any, **more: Any) -> Json:
        return self.record("user", message={"role": "user", "content": content}, **{"parent_tool_use_id": None, **more})

    def event(self, event: Json) -> Json:
        return self.record("stream_event", event=event, parent_tool_use_id=None)

    def boundary(self, kept: list[str], anchor: str, tokens: int = 24_000) -> Json:
        preserved = {"anchor_uuid": anchor, "uuids": kept}
        metadata = {"trigger": "auto", "pre_tokens": tokens, "preserved_messages": preserved}
        return self.record("system", subtype="compact_boundary", compact_metadata=metadata)

    def result(self, text: str = "Done.", turns: int = 3, **more: Any) -> Json:
        usage = {"input_tokens": 5000, "cache_read_input_tokens": 0, "output_tokens": 90}
        windows = {MODEL: {"inputTokens": 5000, "contextWindow": 200_000}}
        told = {"subtype": "success", "result": text, "num_turns": turns, "usage": usage, "modelUsage": windows}
        return self.record("result", **{**told, **more})


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(call_id: str, command: str = "ls") -> Json:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


def claude_run(log: Claude | None = None) -> list[Json]:
    """Two requests, of which the first calls two tools."""
    log = log or Claude()
    return [
        log.init(),
        log.answer("m1", text("I look around.")),
        log.answer("m1", use("c1")),
        log.answer("m1", use("c2", "pwd")),
        log.result_of("c1", "shop.py\ntests"),
        log.result_of("c2", "/work/shop"),
        log.answer("m2", text("Two files, it seems."), taken=1400),
        log.result(),
    ]


# codex exec --json -------------------------------------------------------------------------------


def thread(thread_id: str = THREAD) -> Json:
    return {"type": "thread.started", "thread_id": thread_id}


def started(number: int, kind: str, **more: Any) -> Json:
    return {"type": "item.started", "item": {"id": f"item_{number}", "type": kind, **more}}


def completed(number: int, kind: str, **more: Any) -> Json:
    return {"type": "item.completed", "item": {"id": f"item_{number}", "type": kind, **more}}


def command(number: int, line: str, output: str, code: int = 0) -> list[Json]:
    begun = {"command": line, "aggregated_output": "", "exit_code": None, "status": "in_progress"}
    ended = {**begun, "aggregated_output": output, "exit_code": code, "status": "failed" if code else "completed"}
    return [started(number, "command_execution", **begun), completed(number, "command_execution", **ended)]


TURN_STARTED = {"type": "turn.started"}
TURN_COMPLETED = {"type": "turn.completed", "usage": {"input_tokens": 41_000, "output_tokens": 300}}


def codex_run() -> list[Json]:
    """One turn: reasoning, words, a command, words."""
    return [
        thread(),
        TURN_STARTED,
        completed(0, "reasoning", text="I list, then I tell."),
        completed(1, "agent_message", text="I look around."),
        *command(2, "bash -lc ls", "shop.py\ntests\n"),
        completed(3, "agent_message", text="Two files, it seems."),
        TURN_COMPLETED,
    ]


def array(records: list[Json]) -> bytes:
    """The records as the GitHub action saves them: one array, spread over lines."""
    return json.dumps(records, indent=2).encode()
