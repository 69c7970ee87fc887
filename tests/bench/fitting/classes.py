"""Classes of tokens: the kind of letters, the length, whether a blank leads. Every token of an encoding has one."""

from collections import Counter
from collections.abc import Sequence


def token_class(token: bytes) -> str:
    """Return what kind of token this is, in a short name."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "bytes"
    if text.isspace():
        return _blank_class(text)
    if not text.isascii():
        return _foreign_class(text)
    lead, body = ("s", text[1:]) if text[0] == " " else ("", text)
    if body.isdigit():
        return f"digits{len(body)}{lead}"
    if body.isalpha():
        return f"word{lead}{_case(body)}{_bucket(len(body), (1, 2, 3, 4, 6, 9))}"
    if not any(character.isalnum() for character in body):
        signs = body.rstrip("\r\n")
        same = "=" if len(signs) > 1 and len(set(signs)) == 1 else ""
        return f"signs{lead}{min(len(signs), 4)}{'n' if signs != body else ''}{same}"
    letters = "".join(character for character in body if character.isalpha())
    return f"mixed{lead}{_case(letters)}{_bucket(len(body), (2, 4, 7))}"


def _blank_class(text: str) -> str:
    breaks = text.count("\n")
    if breaks:
        return f"breaks{min(breaks, 3)}{'+' if len(text) > breaks else ''}"
    if "\t" in text:
        return f"tabs{min(len(text), 3)}"
    return f"blanks{_bucket(len(text), (1, 2, 3, 4, 8, 16))}"


_SCRIPTS = (("han", "\u3400", "\u9fff"), ("kana", "\u3040", "\u30ff"), ("hangul", "\uac00", "\ud7af"),
            ("cyrillic", "\u0400", "\u052f"), ("latin", "\u0080", "\u024f"))  # fmt: skip


def _foreign_class(text: str) -> str:
    found = Counter(_script(character) for character in text if ord(character) > 127)
    has_letters = any(character.isalpha() for character in text)
    return f"beyond-{found.most_common(1)[0][0] if has_letters else 'sign'}{min(len(text.strip()), 3)}"


def _script(character: str) -> str:
    return next((name for name, first, last in _SCRIPTS if first <= character <= last), "other")


def _case(text: str) -> str:
    if text == text.lower():
        return "l"
    if len(text) > 1 and text[0].isupper() and text[1:] == text[1:].lower():
        return "t"
    return "u" if text == text.upper() else "m"


def _bucket(size: int, limits: Sequence[int]) -> int:
    return next((limit for limit in limits if size <= limit), limits[-1] + 1)
