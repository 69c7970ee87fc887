"""`-o json`: one object with everything."""

import orjson

from compactctl.outcome import Batch, Outcome
from compactctl.outputs import View
from compactctl.outputs.safe import escaped_json, visible

ENCODING: str | None = "utf-8"


def outcome(outcome: Outcome) -> str:
    return ""


def batch(batch: Batch, view: View) -> str:
    return dumps(batch.document(), orjson.OPT_INDENT_2)


def dumps(value: object, option: int = 0) -> str:
    """Return a value as JSON and a newline, safe to print. Text that is no Unicode, as in a file's name, is spelled."""
    try:
        raw = orjson.dumps(value, option=option)
    except TypeError:
        raw = orjson.dumps(_spelled(value), option=option)
    return escaped_json(raw.decode()) + "\n"


def _spelled(value: object) -> object:
    match value:
        case str():
            return value if value.isascii() or _is_unicode(value) else visible(value)
        case dict():
            return {_spelled(key): _spelled(item) for key, item in value.items()}
        case list() | tuple():
            return [_spelled(item) for item in value]
    return value


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
