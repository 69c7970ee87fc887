"""Make `sample_sessions/`: small sessions in each format, a long one, and a damaged one.

    python -m tests.scripts.make_samples [FOLDER]

The same bytes come out wherever it runs; a test compares them with what is committed. Everything in them is
invented for this project; the shapes are those that the agents write.
"""

import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.scripts import sample_texts as texts

Line = dict[str, Any]

START = datetime(2026, 3, 2, 9, 14, 5, tzinfo=UTC)
FOLDER = "/home/dev/tidewatch"


def new_id(name: str) -> str:
    """Return a UUID that is always the same for this name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"https://compactctl.example/{name}"))


def token_guess(size_bytes: int) -> int:
    """Return about what a provider would count for so many bytes of text."""
    return size_bytes * 10 // 34


class Clock:
    """Time stamps a few seconds apart."""

    def __init__(self) -> None:
        self._now = START

    def next(self, seconds: int = 4) -> datetime:
        self._now += timedelta(seconds=seconds, milliseconds=137)
        return self._now

    def stamp(self, seconds: int = 4) -> str:
        return f"{self.next(seconds):%Y-%m-%dT%H:%M:%S}.{self._now.microsecond // 1000:03d}Z"


# Claude Code -------------------------------------------------------------------------------------

Call = tuple[str, Line, str, Line]
"""A tool call for the builder: tool, input, the result's text, and the copy that only the display reads."""


def bash(command: str, output: str) -> Call:
    copy = {"stdout": output[:30_000], "stderr": "", "interrupted": False, "isImage": False}
    return "Bash", {"command": command, "description": "Run a command"}, output, copy


def read(path: str, content: str) -> Call:
    total = content.count("\n") + 1
    file = {"filePath": f"{FOLDER}/{path}", "content": content, "numLines": total, "startLine": 1, "totalLines": total}
    return "Read", {"file_path": f"{FOLDER}/{path}"}, texts.numbered(content), {"type": "text", "file": file}


def write(path: str, content: str) -> Call:
    said = f"File created successfully at: {FOLDER}/{path}"
    inputs = {"file_path": f"{FOLDER}/{path}", "content": content}
    return "Write", inputs, said, {"type": "create", "filePath": f"{FOLDER}/{path}", "content": content}


def edit(path: str, old: str, new: str) -> Call:
    said = f"The file {FOLDER}/{path} has been updated."
    inputs = {"file_path": f"{FOLDER}/{path}", "old_string": old, "new_string": new}
    return "Edit", inputs, said, {"filePath": f"{FOLDER}/{path}", "oldString": old, "newString": new}


class ClaudeCode:
    """Writes a Claude Code session: a chain of lines, one content block of an answer on each."""

    def __init__(self, session: str, model: str, agent: str | None = None) -> None:
        self.lines: list[Line] = []
        self._name = session + (agent or "")
        self._session_id = new_id(session)
        self._agent = agent
        self._model = model
        self._clock = Clock()
        self._parent: str | None = None
        self._context_bytes = 0
        self._cached = 0
        self._answers = 0

    def prompt(self, text: str) -> None:
        self._line("user", {"message": {"role": "user", "content": text}})
        self._context_bytes += len(text.encode())

    def hook(self, name: str) -> None:
        """A progress line: in the chain, never sent."""
        data = {"type": "hook_progress", "hookEvent": "PostToolUse", "hookName": name, "command": "tools/check_format"}
        self._line("progress", {"data": data, "toolUseID": f"hook_{len(self.lines)}"})

    def snapshot(self) -> None:
        message_id = new_id(f"{self._name}/snapshot/{len(self.lines)}")
        snapshot = {"messageId": message_id, "trackedFileBackups": {}, "timestamp": self._clock.stamp(0)}
        self.lines.append(
            {"type": "file-history-snapshot", "messageId": message_id, "snapshot": snapshot, "isSnapshotUpdate": False}
        )

    def answer(self, text: str, *calls: Call, thinking: str = "", hook: str = "") -> None:
        """One answer of the provider with its tool calls, a line a block, and then a line a result."""
        self._answers += 1
        blocks: list[Line] = []
        if thinking:
            signature = new_id(f"{self._name}/signature/{self._answers}").replace("-", "") * 6
            blocks.append({"type": "thinking", "thinking": thinking, "signature": signature})
        if text:
            blocks.append({"type": "text", "text": text})
        call_ids = [self._call_id(number) for number in range(len(calls))]
        for call_id, (tool, inputs, _, _) in zip(call_ids, calls, strict=True):
            blocks.append({"type": "tool_use", "id": call_id, "name": tool, "input": inputs})
        said_bytes = len(json.dumps(blocks).encode())
        usage = self._usage(said_bytes)
        stops = "tool_use" if calls else "end_turn"
        callers = [self._block(block, usage, stops) for block in blocks][len(blocks) - len(calls) :]
        self._context_bytes += said_bytes
        for caller, call_id, (_, _, output, copy) in zip(callers, call_ids, calls, strict=True):
            if hook:
                self.hook(hook)
            block = {"tool_use_id": call_id, "type": "tool_result", "content": output, "is_error": False}
            self._parent = caller
            content = {"message": {"role": "user", "content": [block]}, "toolUseResult": copy}
            self._line("user", {**content, "sourceToolAssistantUUID": caller})
            self._context_bytes += len(output.encode())

    def _call_id(self, number: int) -> str:
        return "toolu_01" + new_id(f"{self._name}/call/{self._answers}/{number}").replace("-", "")[:22]

    def _usage(self, said_bytes: int) -> Line:
        context = 21_480 + token_guess(self._context_bytes)
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": context - self._cached - 4,
            "cache_read_input_tokens": self._cached,
            "output_tokens": token_guess(said_bytes),
            "service_tier": "standard",
        }
        self._cached = context - 4
        return usage

    def _block(self, block: Line, usage: Line, stops: str) -> str:
        message = {
            "model": self._model,
            "id": "msg_01" + new_id(f"{self._name}/answer/{self._answers}").replace("-", "")[:22],
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": stops,
            "stop_sequence": None,
            "usage": usage,
        }
        request = "req_01" + new_id(f"{self._name}/request/{self._answers}").replace("-", "")[:22]
        return self._line("assistant", {"message": message, "requestId": request})

    def _line(self, kind: str, content: Line) -> str:
        own_id = new_id(f"{self._name}/line/{len(self.lines)}")
        envelope = {
            "parentUuid": self._parent,
            "isSidechain": self._agent is not None,
            "userType": "external",
            "cwd": FOLDER,
            "sessionId": self._session_id,
            "version": "2.1.29",
            "gitBranch": "main",
            **({"agentId": self._agent} if self._agent else {}),
        }
        self.lines.append({**envelope, "type": kind, **content, "uuid": own_id, "timestamp": self._clock.stamp()})
        self._parent = own_id
        return own_id


def long_session() -> list[Line]:
    """A day's work: two huge results and one just over the limit, and many small ones."""
    session = ClaudeCode("long", "claude-opus-4-5-20251101")
    log = texts.import_log(54_000)
    session.snapshot()
    session.prompt(
        "The nightly import writes some readings twice. Find out why and fix it. Last night's log is "
        "logs/import.log; the code is in tidewatch/importer.py and tidewatch/store.py."
    )
    session.answer(
        "I start with the size of the log and what kinds of lines are in it.",
        bash("wc -lc logs/import.log; cut -c 21-40 logs/import.log | sort | uniq -c", texts.log_counts(log)),
        thinking="Readings that are written twice after a retry would fit the symptom. The log should show it.",
        hook="PostToolUse:Bash",
    )
    session.answer("Small enough to read whole.", read("logs/import.log", log))
    session.answer(
        "After every retry the same batch id is logged again. Now the code, both files at once.",
        read("tidewatch/importer.py", texts.IMPORTER),
        read("tidewatch/store.py", texts.STORE),
        hook="PostToolUse:Read",
    )
    session.answer(
        "The store commits each reading on its own, and a retry starts the batch from the front. So what was "
        "written before the lock is written again. A test first.",
        write("tests/test_import.py", texts.TEST_IMPORT),
        thinking="insert() commits, so there is no transaction around the batch. The count is wrong as well.",
    )
    session.answer("", bash("python -m pytest -q", texts.FAILING), hook="PostToolUse:Bash")
    session.answer(
        "The test shows it: 7 instead of 5. How much would tonight's import write twice?",
        bash("python -m tidewatch.import --dry-run -v drop/", texts.dry_run(56_000)),
        hook="PostToolUse:Bash",
    )
    session.answer(
        "About one reading in eleven. The fix is one transaction a batch: commit at the end, roll back on a lock.",
        edit("tidewatch/store.py", "self.connection.commit()", "return"),
        edit("tidewatch/importer.py", "return written", "store.commit()\n            return written"),
        edit("tidewatch/importer.py", "except Locked:", "except Locked:\n            store.rollback()"),
        hook="PostToolUse:Edit",
    )
    session.answer("", bash("python -m pytest -q", texts.PASSING))
    session.answer(
        "Fixed: a batch is one transaction now, so a retry starts from a clean slate. The new test covers it; all "
        "42 tests pass. Readings that are already doubled stay in the database; that needs a migration."
    )
    session.snapshot()
    session.prompt("Good. Write that migration too, but show me first which rows it would take out.")
    session.answer("Which gauges are there?", read("data/gauges.csv", texts.stations_csv(19_500)))
    session.answer(
        "I list the doubled rows.",
        bash("psql tidewatch -f tools/doubled.sql", texts.query_plan(51_500)),
        thinking="Rows with the same station, time and batch are copies; the first of each stays.",
        hook="PostToolUse:Bash",
    )
    session.answer(
        "Each of them has one or two copies too many. The migration keeps the first and adds a unique index, so that "
        "it can't come back.",
        write("migrations/0017_once.py", texts.MIGRATION),
        bash("git status --short", texts.CHANGED_FILES),
    )
    session.answer("", bash("python -m pytest -q", texts.PASSING), hook="PostToolUse:Bash")
    session.answer(
        "Done. The migration takes out the copies and adds the index `readings_once`; it has not been run. "
        "Run it with `python -m tidewatch.migrate` when the import is idle."
    )
    return session.lines


def short_session(name: str = "short") -> tuple[list[Line], list[Line]]:
    """A small session that started a subagent, and the subagent's own file."""
    session = ClaudeCode(name, "claude-sonnet-4-5-20250929")
    session.prompt("Which stations have had gaps longer than an hour this week? Let a subagent look.")
    found = "Two stations: Seegat (TW006), 84 minutes on Tuesday, and Hohe Balje (TW008), 71 minutes on Friday."
    task = {"description": "Look for gaps", "prompt": "List gaps over 60 minutes in logs/.", "subagent_type": "Explore"}
    copy = {"status": "completed", "content": [{"type": "text", "text": found}], "totalTokens": 24_310}
    session.answer("A subagent can go through the logs.", ("Task", task, found, copy))
    session.answer("Two stations had gaps longer than an hour: Seegat (84 minutes) and Hohe Balje (71 minutes).")
    helper = ClaudeCode(name, "claude-haiku-4-5-20251001", agent="a7f03c1")
    helper.prompt(task["prompt"])
    copy = {"mode": "content", "content": texts.GAPS, "numLines": 2}
    helper.answer("", ("Grep", {"pattern": "import.gap", "path": "logs"}, texts.GAPS, copy))
    helper.answer(found)
    return session.lines, helper.lines


# Codex -------------------------------------------------------------------------------------------


def codex_session() -> list[Line]:
    clock = Clock()
    session_id = new_id("codex")
    lines: list[Line] = []
    spent = 0

    def put(kind: str, payload: Line) -> None:
        lines.append({"timestamp": clock.stamp(), "type": kind, "payload": payload})

    def say(role: str, text: str) -> None:
        block = "output_text" if role == "assistant" else "input_text"
        put("response_item", {"type": "message", "role": role, "content": [{"type": block, "text": text}]})

    def run(number: int, command: str, output: str) -> None:
        call_id = f"call_{new_id(f'codex/call/{number}').replace('-', '')[:24]}"
        arguments = json.dumps({"cmd": command})
        call = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call_id}
        put("response_item", call)
        ended = {"type": "exec_command_end", "call_id": call_id, "command": ["bash", "-lc", command], "exit_code": 0}
        put("event_msg", {**ended, "aggregated_output": output, "formatted_output": output})
        text = f"Chunk ID: {number:06x}\nWall time: 0.{number}0 seconds\nProcess exited with code 0\nOutput:\n{output}"
        put("response_item", {"type": "function_call_output", "call_id": call_id, "output": text})

    def count(context: int, output: int) -> None:
        nonlocal spent
        spent += context + output
        last = {"input_tokens": context, "cached_input_tokens": context // 2, "output_tokens": output,
                "reasoning_output_tokens": 0, "total_tokens": context + output}  # fmt: skip
        total = {**last, "input_tokens": spent - output, "total_tokens": spent}
        info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": 258_400}
        put("event_msg", {"type": "token_count", "info": info, "rate_limits": None})

    instructions = {"text": "You work in the folder of one project. Say what you do; ask before you delete anything."}
    put("session_meta", {"id": session_id, "timestamp": "2026-03-02T09:14:05.000Z", "cwd": FOLDER,
                         "originator": "codex_exec", "cli_version": "0.142.0", "source": "exec",
                         "model_provider": "openai", "base_instructions": instructions})  # fmt: skip
    put("event_msg", {"type": "task_started", "model_context_window": 258_400})
    say("user", f"<environment_context>\n  <cwd>{FOLDER}</cwd>\n  <shell>bash</shell>\n</environment_context>")
    put("turn_context", {"cwd": FOLDER, "model": "gpt-5.1-codex", "approval_policy": "never", "summary": "auto"})
    question = "How many readings does each station have in the drop folder?"
    say("user", question)
    put("event_msg", {"type": "user_message", "message": question})
    summary = [{"type": "summary_text", "text": "Counting lines by station is enough."}]
    sealed = new_id("codex/reasoning").replace("-", "") * 5
    put("response_item", {"type": "reasoning", "summary": summary, "content": None, "encrypted_content": sealed})
    run(1, "ls drop | head -4", "TW000.csv\nTW001.csv\nTW002.csv\nTW003.csv")
    count(9_840, 61)
    run(2, "wc -l drop/*.csv", "\n".join(f"{1200 + 37 * i:>7} drop/TW{i:03d}.csv" for i in range(16)))
    count(10_122, 48)
    say("assistant", "Between 1,200 (TW000) and 1,755 (TW015); each station has 37 more than the one before.")
    count(10_590, 33)
    put("event_msg", {"type": "task_complete", "last_agent_message": "Between 1,200 and 1,755."})
    return lines


# pi ----------------------------------------------------------------------------------------------


def pi_session() -> list[Line]:
    clock = Clock()
    header = {
        "type": "session",
        "version": 3,
        "id": new_id("pi"),
        "timestamp": "2026-03-02T09:14:05.000Z",
        "cwd": FOLDER,
    }
    lines: list[Line] = [header]
    parent: str | None = None

    def put(kind: str, content: Line) -> None:
        nonlocal parent
        own_id = new_id(f"pi/{len(lines)}")[:8]
        lines.append({"type": kind, "id": own_id, "parentId": parent, "timestamp": clock.stamp(), **content})
        parent = own_id

    def answer(content: Sequence[Line], context: int, stops: str) -> None:
        usage = {"input": context, "output": 64, "cacheRead": 0, "cacheWrite": 0, "totalTokens": context + 64,
                 "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0}}  # fmt: skip
        put("message", {"message": {"role": "assistant", "content": list(content), "api": "anthropic-messages",
                                    "provider": "anthropic", "model": "claude-sonnet-4-5", "usage": usage,
                                    "stopReason": stops, "timestamp": 1772442860000 + len(lines)}})  # fmt: skip

    put("model_change", {"provider": "anthropic", "modelId": "claude-sonnet-4-5"})
    put("thinking_level_change", {"thinkingLevel": "off"})
    text = "Show me the tide table of Alte Mole for today."
    put(
        "message",
        {"message": {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1772442845000}},
    )
    call = {"type": "toolCall", "id": "toolu_pi_1", "name": "bash", "arguments": {"command": "tidewatch table TW004"}}
    answer([{"type": "text", "text": "The tool prints it."}, call], 2_310, "toolUse")
    output = "time   level\n" + "\n".join(f"{h:02d}:00  {300 + (h * 53) % 190} cm" for h in range(24))
    result = {"role": "toolResult", "toolCallId": "toolu_pi_1", "toolName": "bash", "isError": False,
              "content": [{"type": "text", "text": output}], "timestamp": 1772442850000}  # fmt: skip
    put("message", {"message": result})
    answer([{"type": "text", "text": "High water at 07:00 with 481 cm; the whole table is above."}], 2_640, "stop")
    return lines


# messages of providers ---------------------------------------------------------------------------


def chat_session() -> list[Line]:
    question = "Is the import slower since the migration? Use the timing tool."
    call = {"id": "call_timing_1", "type": "function", "function": {"name": "timing", "arguments": '{"days":14}'}}
    table = "\n".join(f"2026-03-{day:02d}  {41 + (day * 7) % 5}.{day % 10} s" for day in range(1, 15))
    return [
        {"role": "system", "content": "You answer questions about one service. Numbers come from tools only."},
        {"role": "user", "content": question},
        {"role": "assistant", "content": None, "tool_calls": [call], "model": "gpt-4.1",
         "usage": {"prompt_tokens": 412, "completion_tokens": 19, "total_tokens": 431}},
        {"role": "tool", "tool_call_id": "call_timing_1", "content": table},
        {"role": "assistant", "content": "No: it takes 41 to 45 seconds, before and after.", "model": "gpt-4.1",
         "usage": {"prompt_tokens": 652, "completion_tokens": 16, "total_tokens": 668}},
    ]  # fmt: skip


def anthropic_session() -> list[Line]:
    call = {"type": "tool_use", "id": "toolu_levels_1", "name": "levels", "input": {"station": "TW011", "hours": 6}}
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_levels_1",
        "content": [{"type": "text", "text": "402 431 455 468 470 461"}],
    }
    return [
        {"role": "user", "content": "When does the water at Wattenberg turn?"},
        {"role": "assistant", "content": [{"type": "text", "text": "I look at the last six hours."}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": "It has just turned: 470 cm, and now 461 cm."}]},
    ]


# files -------------------------------------------------------------------------------------------


def encoded(lines: Sequence[Line]) -> bytes:
    """Return the lines as agents write them: compact JSON in UTF-8."""
    return b"".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for line in lines)


def damaged(whole: bytes) -> bytes:
    """Return a session as two crashes leave it: two records glued together, and the last line torn off."""
    lines = whole.splitlines(keepends=True)
    lines[1] = lines[1].rstrip(b"\n")
    return b"".join(lines)[: -len(lines[-1]) // 2]


def samples() -> Iterator[tuple[str, bytes]]:
    """Yield every sample: where it goes under the folder, and its bytes."""
    session, helper = short_session()
    short = new_id("short")
    yield "long.jsonl", encoded(long_session())
    yield f"claude-code/{short}.jsonl", encoded(session)
    yield f"claude-code/{short}/subagents/agent-a7f03c1.jsonl", encoded(helper)
    yield f"codex/rollout-2026-03-02T09-14-05-{new_id('codex')}.jsonl", encoded(codex_session())
    yield f"pi/2026-03-02T09-14-05-000Z_{new_id('pi')}.jsonl", encoded(pi_session())
    yield "chat.jsonl", encoded(chat_session())
    yield "anthropic.jsonl", encoded(anthropic_session())
    yield "damaged.jsonl", damaged(encoded(short_session("damaged")[0]))


def main(folder: Path) -> None:
    for name, content in samples():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2] / "sample_sessions")
