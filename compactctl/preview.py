"""What stays in place of a spilled text: its size, its path, how it starts, and a reminder not to guess.

Two shapes: `seed` is the described system's own; `native` is the one that Claude Code writes for outputs it
persists itself, which its model has learnt to read (research: formats 1.3).
"""

import re
import unicodedata

from compactctl.settings import Layer1

PREVIEW_MAX_BYTES = 8192
"""A text that is larger is no preview, whatever it claims: tool output can imitate our marks."""

_NATIVE_START = "<persisted-output>\n"
_NATIVE_END = "</persisted-output>"
_SEED_START = "[content offloaded]"
_STARTS = (_NATIVE_START, _SEED_START)
_SEED_FORM = re.compile(r"\[content offloaded\] original size: \d+ bytes\n\[saved to\] [^\n]+\n")

_REMINDER = {
    "en": (
        "The full content is saved at the path above. If you need it, read that file with your file-reading tool. "
        "Do not guess the rest from this preview."
    ),
    "zh": "完整内容已保存到上述路径；如需完整内容，请使用文件读取工具读取该路径。不要凭头部预览猜测全文。",
}


def is_preview(text: str) -> bool:
    """Return whether a result's text is already a preview, an agent's own or ours, by its whole shape."""
    if not text.startswith(_STARTS):
        return False
    if text.startswith(_NATIVE_START):
        return text.rstrip().endswith(_NATIVE_END) and len(text.encode("utf-8", "replace")) <= PREVIEW_MAX_BYTES
    return _SEED_FORM.match(text) is not None and len(text.encode("utf-8", "replace")) <= PREVIEW_MAX_BYTES


_SAVED = re.compile(r"(?:Full output saved to: |\[saved to\] )([^\n]+)\n")


def saved_path(text: str) -> str | None:
    """Return where a preview says that its whole text is; None where it names no place."""
    match = _SAVED.search(text)
    return match[1].strip() if match else None


def make_preview(text: str, size_bytes: int, path: str, style: str, settings: Layer1) -> str:
    """Return the text that stands in place of `text`, which is `size_bytes` of UTF-8 and lies at `path`.

    `style` is `seed` or `native`. A wording of one's own (a template) replaces either.
    """
    start = head(text, settings.preview_head_lines, settings.preview_head_bytes)
    end = tail(text[len(start) :], settings.preview_tail_lines, settings.preview_tail_bytes)
    wording = settings.preview_wording
    if wording not in _REMINDER:
        return _filled(wording, size_bytes, path, start, end)
    if style == "native":
        return _native(size_bytes, path, start, end, len(start) + len(end) < len(text), _REMINDER[wording])
    return _seed(size_bytes, path, start, end, _REMINDER[wording])


def _seed(size_bytes: int, path: str, start: str, end: str, reminder: str) -> str:
    parts = [
        f"[content offloaded] original size: {size_bytes} bytes\n[saved to] {path}\n[head preview]\n",
        _closed(start),
    ]
    if end:
        parts += ["[tail preview]\n", _closed(end)]
    return "".join(parts) + "\n" + reminder


def _native(size_bytes: int, path: str, start: str, end: str, is_cut: bool, reminder: str) -> str:
    shown = f"Preview (first {_human(len(start.encode()))}):\n{_closed(start)}" + ("...\n" if is_cut else "")
    if end:
        shown += f"\nPreview (last {_human(len(end.encode()))}):\n{_closed(end)}"
    return (
        f"{_NATIVE_START}Output too large ({_human(size_bytes)}, {size_bytes} bytes). "
        f"Full output saved to: {path}\n\n{shown}\n{reminder}\n{_NATIVE_END}"
    )


def _human(size_bytes: int) -> str:
    if size_bytes < 1024:
        return f"{size_bytes}B"
    if size_bytes < 1024**2:
        return f"{size_bytes / 1024:.1f}KB".replace(".0KB", "KB")
    return f"{size_bytes / 1024**2:.1f}MB".replace(".0MB", "MB")


def _filled(template: str, size_bytes: int, path: str, start: str, end: str) -> str:
    """Return the template with its names filled in one pass, so that braces in a transcript mean nothing."""
    values = {"size": str(size_bytes), "path": path, "head": start, "tail": end}
    return re.sub(r"\{(size|path|head|tail)\}", lambda match: values[match.group(1)], template)


def _closed(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def head(text: str, max_lines: int, max_bytes: int) -> str:
    """Return the start of a text: so many lines, so many bytes of UTF-8 at most, cut between whole characters."""
    start = text[:max_bytes]
    lines = start.split("\n", max_lines)
    if len(lines) > max_lines:
        start = start[: len(start) - len(lines[-1])]
    cut = len(start.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore"))
    return text[: _whole_character(text, cut)] if cut < len(start) or cut == max_bytes else start


def tail(text: str, max_lines: int, max_bytes: int) -> str:
    """Return the end of a text, by the same rules as its head."""
    if not max_lines or not max_bytes:
        return ""
    end = text[-max_bytes:]
    lines = end.rstrip("\n").rsplit("\n", max_lines)
    if len(lines) > max_lines:
        end = end[len(lines[0]) + 1 :]
    start = len(end) - len(end.encode("utf-8", "replace")[-max_bytes:].decode("utf-8", "ignore"))
    while 0 < start < len(end) and _continues(end, start):
        start += 1
    return end[start:]


_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_MAX_BACKING = 64


def _whole_character(text: str, cut: int) -> int:
    """Return the cut moved back so that no accent, emoji sequence or flag is torn (as far as can be told cheaply)."""
    for position in range(cut, max(0, cut - _MAX_BACKING), -1):
        if position == len(text) or not _continues(text, position):
            return position
    return cut


def _continues(text: str, position: int) -> bool:
    """Return whether the character at `position` belongs to the one before it."""
    character, before = text[position], text[position - 1]
    if character in _JOINERS or before == "\u200d" or "\U0001f3fb" <= character <= "\U0001f3ff":
        return True
    if _is_regional(character) and _is_regional(before):
        first = position
        while first > 0 and _is_regional(text[first - 1]):
            first -= 1
        return (position - first) % 2 == 1
    return unicodedata.category(character) in ("Mn", "Me", "Mc")


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
