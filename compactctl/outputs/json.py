"""`-o json`: one object with everything."""

import json

import msgspec
import orjson

from compactctl import __version__
from compactctl.outcome import Outcome
from compactctl.outputs import View
from compactctl.outputs.safe import escaped_json, visible
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"


def printer(command: str, view: View) -> "Document":
    return Document(command)


class Document:
    """The object, printed piece by piece: a session is in it as soon as it is done, and nothing is kept."""

    def __init__(self, command: str) -> None:
        self._head = f'{{\n  "schema": "compactctl.{command}/1",\n  "version": "{__version__}",\n  "sessions": ['
        self._is_open = False

    def outcome(self, outcome: Outcome) -> str:
        before = "," if self._is_open else self._head
        self._is_open = True
        return f"{before}\n    {_inside(msgspec.to_builtins(outcome), 4)}"

    def end(self, batch: Batch) -> str:
        before = "\n  ]" if self._is_open else f"{self._head}]"
        return f'{before},\n  "totals": {_inside(msgspec.to_builtins(batch.totals()), 2)}\n}}\n'


def _inside(value: object, depth: int) -> str:
    """Return a value as it stands in a larger one. A line break in it is layout: in strings they are escaped."""
    return dumps(value, orjson.OPT_INDENT_2).rstrip("\n").replace("\n", "\n" + " " * depth)


def dumps(value: object, option: int = 0) -> str:
    """Return a value as JSON and a newline, safe to print. Text that is no Unicode, as in a file's name, is spelled."""
    try:
        text = orjson.dumps(value, option=option).decode()
    except TypeError:  # such text, or an integer beyond 64 bits
        indent = 2 if option & orjson.OPT_INDENT_2 else None
        text = json.dumps(_spelled(value), ensure_ascii=False, indent=indent, separators=(",", ": " if indent else ":"))
    return escaped_json(text) + "\n"


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
