"""A chat session with results big enough to spill, for tests of everything after reading."""


def big_chat(sizes=(60_000, 10, 70_000), *, call_ids=None):
    """Return chat records: one round per size, each with one call and a result of that many bytes."""
    ids = call_ids or [f"call_{index}" for index in range(len(sizes))]
    records = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Look at the logs."}]
    for call_id, size in zip(ids, sizes, strict=True):
        records += [call(call_id), {"role": "tool", "tool_call_id": call_id, "content": text(size)}]
    return [*records, {"role": "assistant", "content": "Done."}]


def call(call_id):
    function = {"name": "run", "arguments": '{"command":"make"}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def text(size):
    line = "12:00:01 INFO worker 7 finished a job without trouble\n"
    return (line * (size // len(line) + 1))[:size]
