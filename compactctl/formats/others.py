"""What files of other programs look like, so that an error can say what was seen instead of only what was not.

Each entry is a name and a test of one decoded object. Nothing here is read any further; some of these become formats.
Sources: research, formats 4-15.
"""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from compactctl.json_text import string

Object = Mapping[str, Any]


class Other(Struct, frozen=True):
    """A kind of file that is no session we read: its name in words, and how one of its objects is told."""

    name: str
    claims: Callable[[Object], bool]


def _has(record: Object, *keys: str) -> bool:
    return record.keys() >= set(keys)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _first(value: Any) -> Object:
    """Return the first object of a list; an empty one where there is none."""
    return value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else {}


def _copilot(record: Object) -> bool:
    starts = ("session.", "user.message", "assistant.", "tool.execution_", "system.message", "hook.")
    return string(record.get("type")).startswith(starts) and isinstance(record.get("data"), dict)


def _gemini(record: Object) -> bool:
    if record.keys() & {"$set", "$rewindTo"} or _has(record, "sessionId", "projectHash"):
        return True
    return record.get("type") in ("user", "gemini", "info", "error") and _has(record, "id", "timestamp", "content")


def _qwen(record: Object) -> bool:
    message = record.get("message")
    if _has(record, "uuid", "parentUuid", "sessionId"):
        return (isinstance(message, dict) and "parts" in message) or "systemPayload" in record
    return False


KIMI_CONTEXT = "a Kimi CLI context"
"""Chat messages between records of its own: one of those is enough to tell."""


def _kimi_cli(record: Object) -> bool:
    return record.get("role") in ("_system_prompt", "_checkpoint", "_usage")


def _kimi_wire(record: Object) -> bool:
    if record.get("type") == "metadata":
        return "protocol_version" in record
    return string(record.get("type")).startswith(("context.", "turn.", "profile.", "runtime.")) and "agentId" in record


def _openhands(record: Object) -> bool:
    if not _has(record, "id", "timestamp", "source") or record.get("source") not in ("agent", "user", "environment"):
        return False
    return bool(record.keys() & {"kind", "action", "observation", "llm_message", "system_prompt", "tool_name"})


def _atif(record: Object) -> bool:
    return string(record.get("schema_version")).startswith("ATIF") and "steps" in record


def _opencode(record: Object) -> bool:
    return _has(record, "info", "messages") and _has(_first(record["messages"]), "info", "parts")


def _swe_agent(record: Object) -> bool:
    return isinstance(record.get("trajectory"), list) or record.get("trajectory_format") is not None


def _sharegpt(record: Object) -> bool:
    return _has(_first(record.get("conversations")), "from", "value")


_ITEMS = ("function_call", "function_call_output", "reasoning", "custom_tool_call", "custom_tool_call_output")


def _responses(record: Object) -> bool:
    kind = record.get("type")
    if kind == "message":
        return string(_first(record.get("content")).get("type")) in ("input_text", "output_text")
    return kind in _ITEMS and "payload" not in record


def _goose(record: Object) -> bool:
    if _has(record, "working_dir", "message_count"):
        return True
    types = {string(block.get("type")) for block in _list(record.get("content")) if isinstance(block, dict)}
    return _has(record, "role", "created") and bool(types & {"toolRequest", "toolResponse"} or "metadata" in record)


def _cursor(record: Object) -> bool:
    message = record.get("message")
    return _has(record, "role") and isinstance(message, dict) and "content" in message and "type" not in record


def _batch_requests(record: Object) -> bool:
    return "custom_id" in record and bool(record.keys() & {"body", "params"})


def _gemini_tuning(record: Object) -> bool:
    return _has(_first(record.get("messages")) or _first(record.get("contents")), "role", "parts")


def _ours(record: Object) -> bool:
    return string(record.get("schema")).startswith("compactctl.")


OTHERS = (
    Other("what compactctl itself wrote", _ours),
    Other("a Copilot CLI session", _copilot),
    Other("a Qwen Code session", _qwen),
    Other("a Gemini CLI session", _gemini),
    Other(KIMI_CONTEXT, _kimi_cli),
    Other("a Kimi wire log", _kimi_wire),
    Other("OpenHands events", _openhands),
    Other("an ATIF trajectory", _atif),
    Other("an opencode export", _opencode),
    Other("a SWE-agent trajectory", _swe_agent),
    Other("tau2-bench results", lambda record: isinstance(record.get("simulations"), list)),
    Other("ShareGPT conversations", _sharegpt),
    Other("a Goose session", _goose),
    Other("a Cursor transcript", _cursor),
    Other("OpenAI Responses items", _responses),
    Other("requests of a batch", _batch_requests),
    Other("conversations in Gemini's shape (role and parts)", _gemini_tuning),
)
"""In order of precedence: the first that claims an object names it."""


def name_of(record: Object) -> str | None:
    """Return in words what kind of file this object belongs to; None where nobody knows it."""
    for other in OTHERS:
        if other.claims(record):
            return other.name
    return None
