"""Chat sessions long enough to be summarised in windows small enough for a test."""

import json

from tests.builders.big_chat import call, text

REQUEST = "Find out why the importer writes readings twice, and fix it in importer.py."


def long_chat(rounds=16, size=600, mark="round"):
    """Return a session of so many rounds, each with words of its own and a result of that many bytes."""
    records = [{"role": "system", "content": "You help."}, {"role": "user", "content": REQUEST}]
    for number in range(rounds):
        asked = call(f"{mark}_{number}")
        asked["content"] = f"I look at {mark}_{number}_file.py."
        told = {"role": "tool", "tool_call_id": f"{mark}_{number}", "content": f"{mark}_{number}: {text(size)}"}
        records += [asked, told]
    return [*records, {"role": "assistant", "content": "The lock is taken twice."}]


def small_window(**more):
    """Return the settings of a window of 4,000 tokens (threshold 2,500) that keeps about 300 of them."""
    changes = {"layer2.recent_keep_tokens": 300, "layer2.recent_keep_messages": 3, **more}
    return [f"{key}={value}" for key, value in changes.items()]


def records_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]
