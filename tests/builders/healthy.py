"""One healthy session in each format, as records: a question, a call and its result, answers with usage.

`audit` finds nothing in them, so that each fault which is planted in a copy is all that it can find there.
"""

import copy
import json
from collections.abc import Callable
from typing import Any

from tests.builders import anthropic, chat, claude, codex, pi

Json = dict[str, Any]
Records = list[Any]
"""The lines of a file: objects, or bytes that go in as they are."""

INPUT = 21_000
"""What the first request took in."""


def _claude_code() -> Records:
    made = claude.Session()
    made.user("Look at the logs.")
    made.assistant(claude.call("c1"), usage=claude.usage(10, 500, INPUT, 60))
    made.results(claude.result("c1", "all fine"))
    made.assistant("They are fine.", usage=claude.usage(10, 100, INPUT + 500, 40))
    made.user("And the tests?")
    made.assistant(claude.thinking("They passed."), claude.text("Green."), usage=claude.usage(9, 90, INPUT + 700, 45))
    return [json.loads(line) for line in made.raw_lines]


def _codex() -> Records:
    return [
        codex.meta(),
        codex.turn(),
        codex.said(codex.user("Look at the logs.")),
        codex.said(codex.call("c1")),
        codex.said(codex.output("c1", "all fine")),
        codex.tokens(INPUT, 60, total=INPUT + 60),
        codex.said(codex.assistant("They are fine.")),
        codex.tokens(INPUT + 500, 40, total=42_600),
        codex.said(codex.user("And the tests?")),
        codex.said(codex.assistant("Green.")),
        codex.tokens(INPUT + 700, 45, total=64_345),
    ]


def _pi() -> Records:
    made = pi.Session()
    made.say("e1", pi.user("Look at the logs."))
    made.say("e2", pi.assistant(pi.call("c1"), usage=pi.usage(500, 60, INPUT)))
    made.say("e3", pi.result("c1", "all fine"))
    made.say("e4", pi.assistant("They are fine.", usage=pi.usage(100, 40, INPUT + 500)))
    made.say("e5", pi.user("And the tests?"))
    made.say("e6", pi.assistant("Green.", usage=pi.usage(90, 45, INPUT + 700)))
    return made.records


def _anthropic() -> Records:
    def usage(read: int, given: int) -> Json:
        return claude.usage(10, 100, read, given)

    return [
        anthropic.user("Look at the logs."),
        anthropic.assistant(anthropic.use("c1"), anthropic.text(), usage=usage(INPUT, 60)),
        anthropic.user(anthropic.result("c1", "all fine")),
        anthropic.assistant("They are fine.", usage=usage(INPUT + 500, 40)),
        anthropic.user("And the tests?"),
        anthropic.assistant(anthropic.thinking(), anthropic.text("Green."), usage=usage(INPUT + 700, 45)),
    ]


def _chat() -> Records:
    def usage(taken: int, given: int) -> Json:
        return {"prompt_tokens": taken, "completion_tokens": given}

    return [
        chat.user("Look at the logs."),
        chat.assistant(None, [("c1", "Read", "{}")], usage=usage(INPUT, 60)),
        chat.tool("c1", "all fine"),
        chat.assistant("They are fine.", usage=usage(INPUT + 500, 40)),
        chat.user("And the tests?"),
        chat.assistant("Green.", usage=usage(INPUT + 700, 45)),
    ]


HEALTHY: dict[str, Callable[[], Records]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "pi": _pi,
    "anthropic": _anthropic,
    "chat": _chat,
}

ASKED, CALL, RESULT, ANSWER, QUESTION, LAST = "asked", "call", "result", "answer", "question", "last"

LINES: dict[str, dict[str, int]] = {
    "codex": {ASKED: 3, CALL: 4, RESULT: 5, ANSWER: 7, QUESTION: 9, LAST: 10},
    "pi": {ASKED: 2, CALL: 3, RESULT: 4, ANSWER: 5, QUESTION: 6, LAST: 7},
    **{
        name: {ASKED: 1, CALL: 2, RESULT: 3, ANSWER: 4, QUESTION: 5, LAST: 6}
        for name in ("claude-code", "anthropic", "chat")
    },
}
"""The line (from 1) on which each thing is said."""

USAGE_LINES = {"codex": (6, 8, 11), "pi": (3, 5, 7)}
"""The lines that carry usage, where it is not that of the answers."""


def healthy(name: str) -> Records:
    """Return the records of the healthy session in a format, to be changed."""
    return copy.deepcopy(HEALTHY[name]())


def jsonl(records: Records) -> bytes:
    """Return records as a file. Half of a surrogate pair in them is escaped."""
    return b"".join(
        (record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n" for record in records
    )


def at(name: str, records: Records, what: str) -> Any:
    """Return the record in which something is said."""
    return records[LINES[name][what] - 1]


def unlinked(records: Records, line: int) -> Records:
    """Return the records without the one on this line, and what hung on it hanging on what it hung on."""
    gone = records[line - 1]
    kept = records[: line - 1] + records[line:]
    for own, parent in (("uuid", "parentUuid"), ("id", "parentId")):
        if parent in gone:
            for record in kept:
                if record.get(parent) == gone[own]:
                    record[parent] = gone[parent]
    return kept


def inserted(records: Records, line: int, record: Json) -> Records:
    """Return the records with another one behind this line, the next one hanging on it where records hang together."""
    before, made = records[line - 1], dict(record)
    for own, parent in (("uuid", "parentUuid"), ("id", "parentId")):
        if parent in before:
            made |= {own: f"new-{line}", parent: before[own]}
            for after in records[line:]:
                if after.get(parent) == before[own]:
                    after[parent] = made[own]
    return [*records[:line], made, *records[line:]]


# what is said in a record, whatever the format -----------------------------------------------------


def set_result(name: str, records: Records, text: str) -> None:
    """Put another text into the result."""
    record = at(name, records, RESULT)
    match name:
        case "claude-code":
            record["message"]["content"][0]["content"] = text
        case "codex":
            record["payload"]["output"] = text
        case "pi":
            record["message"]["content"] = [{"type": "text", "text": text}]
        case "anthropic":
            record["content"][0]["content"] = text
        case _:
            record["content"] = text


def set_arguments(name: str, records: Records, arguments: Json) -> None:
    """Put other arguments into the call."""
    record = at(name, records, CALL)
    match name:
        case "claude-code":
            record["message"]["content"][0]["input"] = arguments
        case "codex":
            record["payload"]["arguments"] = json.dumps(arguments)
        case "pi":
            record["message"]["content"][0]["arguments"] = arguments
        case "anthropic":
            record["content"][0]["input"] = arguments
        case _:
            record["tool_calls"][0]["function"]["arguments"] = json.dumps(arguments)


def set_call_id(name: str, records: Records, call_id: str) -> None:
    """Put another id into the call; its result keeps the one it has."""
    record = at(name, records, CALL)
    match name:
        case "claude-code":
            record["message"]["content"][0]["id"] = call_id
        case "codex":
            record["payload"]["call_id"] = call_id
        case "pi" | "anthropic":
            (record["message"] if name == "pi" else record)["content"][0]["id"] = call_id
        case _:
            record["tool_calls"][0]["id"] = call_id


def set_question(name: str, records: Records, content: Any) -> None:
    """Put another content into the second question."""
    record = at(name, records, QUESTION)
    match name:
        case "claude-code" | "pi":
            record["message"]["content"] = content
        case "codex":
            record["payload"]["content"] = content
        case _:
            record["content"] = content


def image(name: str, data: str) -> Json:
    """Return a block with an image."""
    match name:
        case "codex":
            return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
        case "chat":
            return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        case "pi":
            return {"type": "image", "mimeType": "image/png", "data": data}
    return claude.image(data)


def set_usage(name: str, records: Records, number: int, taken: int, given: int) -> None:
    """Put other figures into the usage of the answer with this number (from 0)."""
    match name:
        case "codex":
            line = USAGE_LINES["codex"][number]
            records[line - 1] = codex.tokens(taken, given, total=1_000_000 * (number + 1))
        case "pi":
            records[USAGE_LINES["pi"][number] - 1]["message"]["usage"] = pi.usage(taken, given)
        case _:
            record = records[(2, 4, 6)[number] - 1]
            holder = record["message"] if name == "claude-code" else record
            is_chat = name == "chat"
            made = {"prompt_tokens": taken, "completion_tokens": given} if is_chat else claude.usage(taken, 0, 0, given)
            holder["usage"] = made
