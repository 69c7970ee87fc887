"""Lines of the `chat` format, as chat-completions APIs take and give them."""

import json


def system(text="You help.", role="system"):
    return {"role": role, "content": text}


def user(content="Look at the logs."):
    return {"role": "user", "content": content}


def assistant(content="Done.", calls=(), **more):
    """An answer; `calls` are (id, name, arguments)."""
    record = {"role": "assistant", "content": content, **more}
    if calls:
        record["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call_id, name, arguments in calls
        ]
    return record


def tool(call_id, content="fine", **more):
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def lines(*records):
    """Return the records as a file: one a line."""
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)
