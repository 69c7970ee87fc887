"""Makes text from transcripts safe to print.

The promise: whatever stands in a session, a terminal that shows our output is not steered by it, a reader sees
what is there, and a CI runner that reads our output as a log finds no command in it.
"""

import re

_UNSEEN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters, escape sequences of seven and of eight bits
    "\u00ad\u061c\u180e\u200b\u200e\u200f"  # soft hyphen, marks of direction, spaces without width
    "\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # line separators, bidi overrides and isolates
    "\U000e0000-\U000e007f"  # tags, which spell text that nobody sees
    "\ud800-\udfff"  # halves of surrogate pairs, and bytes of file names that are not UTF-8
    "]"
)
_NAMED = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}

_RUNNER_TAG = re.compile(r"##(\w*)\[")
_RUNNER_COMMAND = re.compile(r"\A(\s*)::")
"""`##[…]` (GitHub), `##vso[…]` (Azure) and `##teamcity[…]` count anywhere in a line, `::…::` (GitHub) at its start."""


def visible(text: str) -> str:
    r"""Return the text on one line, what is unseen spelled out (`\n`, `\x1b`, `\u202e`), nothing a CI runner obeys."""
    shown = _UNSEEN.sub(_spelled, text)
    shown = _RUNNER_TAG.sub(r"##\1\[", shown)
    return _RUNNER_COMMAND.sub(r"\1\::", shown)


def clipped(text: str, width: int) -> str:
    """Return the visible text, at most `width` characters of it, with `...` where some was left out."""
    shown = visible(text)
    return shown if len(shown) <= width else shown[: max(width - 3, 0)].rstrip() + "..."


def _spelled(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def escaped_json(text: str) -> str:
    r"""Return JSON text that says the same, with what is unseen as `\uXXXX` and no `##[` for a CI runner to find.

    Such characters stand only inside strings, where an escape means the same as the character.
    """
    shown = _UNSEEN_IN_JSON.sub(_json_escape, text)
    return _RUNNER_TAG.sub(r"##\1\\u005b", shown)


_UNSEEN_IN_JSON = re.compile(_UNSEEN.pattern.replace("\x00-\x1f", ""))
"""JSON libraries escape the characters below U+0020 themselves; what is left of those is layout."""


def _json_escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
