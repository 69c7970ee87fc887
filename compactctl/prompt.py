"""What the summariser is asked: the record of a session as quoted text, and what to make of it.

The promise: no text of a session can pose as a role, a tag or an instruction of the prompt. Every line of it stands
behind a mark of its own, what looks like one of our tags or a model's control token is spelt differently, and heads
of messages are made of our own words only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources

from msgspec import Struct

from compactctl.model import utf8_size
from compactctl.preview import head, tail
from compactctl.story import Answered, Called, Said

SECTIONS = (
    "Request and intent",
    "Key facts and concepts",
    "Files and code",
    "Errors and fixes",
    "Decisions and problem solving",
    "What the user said",
    "Open tasks",
    "Present work",
    "Next step",
)
"""The headings of a summary, in order."""

QUOTE = "| "
"""What every line of a session's text starts with."""


class Limits(Struct, frozen=True):
    """How much of one text is quoted; of a longer one its head and its tail are."""

    said_bytes: int = 16_000
    call_bytes: int = 3_000
    result_bytes: int = 3_000

    def within(self, most_bytes: int) -> "Limits":
        """Return limits of which none is over so many bytes."""
        return Limits(
            min(self.said_bytes, most_bytes), min(self.call_bytes, most_bytes), min(self.result_bytes, most_bytes)
        )


class Unit(Struct, frozen=True):
    """What is never parted in a request: one message, or a round (calls with all their results)."""

    text: str
    said: tuple[Said, ...] = ()

    @property
    def size_bytes(self) -> int:
        return utf8_size(self.text)


# rounds ------------------------------------------------------------------------------------------


def units(said: Sequence[Said], limits: Limits) -> list[Unit]:
    """Return the units of a story, oldest first, each as quoted text."""
    return [Unit(_rendered(group, limits), group) for group in _groups(said)]


def _groups(said: Sequence[Said]) -> Iterator[tuple[Said, ...]]:
    start = 0
    while start < len(said):
        end = _round_end(said, start)
        yield tuple(said[start:end])
        start = end


def _round_end(said: Sequence[Said], start: int) -> int:
    """Return where the unit that starts here ends: after the last answer to its calls, and results that stray."""
    wanted = {call.call_id for call in said[start].calls}
    end = start + 1
    for index in range(start + 1, len(said)):
        each = said[index]
        if each.role == "assistant" and each.result is None:
            break
        if each.result is not None and (each.result.call_id in wanted or index == end):
            end = index + 1
        elif not wanted:
            break
    return end


SMALLEST_LIMIT_BYTES = 64


def fitted(unit: Unit, most_bytes: int, limits: Limits) -> Unit:
    """Return the unit in at most so many bytes: its longest texts shortened first, at last lines out of its middle."""
    most = max(limits.said_bytes, limits.call_bytes, limits.result_bytes)
    while unit.size_bytes > most_bytes and unit.said and most > SMALLEST_LIMIT_BYTES:
        most = max(SMALLEST_LIMIT_BYTES, most * 2 // 3)
        unit = Unit(_rendered(unit.said, limits.within(most)), unit.said)
    return unit if unit.size_bytes <= most_bytes else Unit(_fewer_lines(unit.text, most_bytes), unit.said)


def _fewer_lines(text: str, most_bytes: int) -> str:
    """Return whole lines of the head and of the tail, so many bytes together with the note between them."""
    lines = text.split("\n")
    room = most_bytes - utf8_size(_LEFT_OUT_LINES)
    first = _count_within(lines, room * 2 // 3)
    last = _count_within(list(reversed(lines[first:])), room - sum(utf8_size(line) + 1 for line in lines[:first]))
    return "\n".join([*lines[:first], _LEFT_OUT_LINES, *lines[len(lines) - last :]])


_LEFT_OUT_LINES = "(lines left out)"


def _count_within(lines: Sequence[str], room: int) -> int:
    for count, line in enumerate(lines):
        room -= utf8_size(line) + 1
        if room < 0:
            return count
    return len(lines)


def pieces(previous: str, most_bytes: int) -> list[Unit]:
    """Return an earlier summary that is too long to be updated as units that are summarised like the rest."""
    texts: list[str] = []
    rest = previous
    while rest:
        start = head(rest, _ANY_LINES, most_bytes) or rest[:1]
        line_end = start.rfind("\n") + 1
        if len(start) < len(rest) and line_end > len(start) // 2:
            start = start[:line_end]
        texts.append(start)
        rest = rest[len(start) :]
    return [
        Unit(f"[an earlier note, part {number} of {len(texts)}]\n{quoted(text)}")
        for number, text in enumerate(texts, 1)
    ]


# quoting -----------------------------------------------------------------------------------------


def _rendered(group: Iterable[Said], limits: Limits) -> str:
    return "\n".join(part for said in group for part in _parts(said, limits))


def _parts(said: Said, limits: Limits) -> Iterator[str]:
    number = f"[{said.index + 1}]"
    if said.result is not None:
        yield f"{number} {_result_head(said.result)}\n{_body(said.result.text, limits.result_bytes)}"
    elif said.text or not said.calls:
        yield f"{number} {_role(said)}\n{_body(said.text, limits.said_bytes)}"
    for call in said.calls:
        yield f"{number} {_call_head(call)}\n{_body(call.arguments, limits.call_bytes)}"


_ROLES = frozenset(("user", "assistant", "system", "developer"))


def _role(said: Said) -> str:
    if said.is_summary:
        return "an earlier note"
    return said.role if said.role in _ROLES else "tool"


def _call_head(call: Called) -> str:
    return f"assistant calls {_word(call.name)}"


def _result_head(result: Answered) -> str:
    failed = ", an error" if result.is_error else ""
    saved = f" (whole text in {_one_line(result.spilled_to)})" if result.spilled_to else ""
    return f"result of {_word(result.name)}{failed}{saved}"


def _word(name: str) -> str:
    """Return a tool's name as one word that can be nothing else."""
    return re.sub(r"[^\w.:/-]+", "_", name)[:80] or "a tool"


def _one_line(text: str) -> str:
    return _harmless(" ".join(text.split()))[:1000]


def _body(text: str, most_bytes: int) -> str:
    return quoted(shortened(text, most_bytes)) if text.strip() else f"{QUOTE}(nothing)"


def quoted(text: str) -> str:
    """Return a text as quoted lines: none of them can be read as anything but a quotation."""
    return "\n".join(QUOTE + _harmless(line) for line in text.splitlines())


_NAMES = (
    r"summary|analysis|think|thinking|reasoning|scratchpad|history|record|transcript|system|user|assistant|human|"
    r"instructions?|tool_calls?|tool_use|tool_results?|function_calls?|invoke|start_of_turn|end_of_turn|system-reminder"
)
_TAG = re.compile(rf"<(?=\s*/?\s*(?:antml:)?(?:{_NAMES})\b)|<(?=[|｜]|/?s>|</?SYS)", re.IGNORECASE)
_MARK = re.compile(r"\[(?=/?INST\])")


def _harmless(line: str) -> str:
    """Return a line in which nothing is one of our tags, a control token of a model, or a control character."""
    line = _MARK.sub("⟦", _TAG.sub("‹", line))
    if line.isprintable():
        return line
    return "".join(_shown(character) for character in line)


def _shown(character: str) -> str:
    if character.isprintable() or character == "\t" or character.isspace():
        return character
    return "\ufffd" if character < " " or "\ud800" <= character <= "\udfff" or character == "\x7f" else character


_ANY_LINES = 1 << 30


def shortened(text: str, most_bytes: int) -> str:
    """Return a text of at most about so many bytes: two thirds of them its head, the rest its tail."""
    size = utf8_size(text)
    if size <= most_bytes:
        return text
    start = head(text, _ANY_LINES, most_bytes * 2 // 3)
    end = tail(text[len(start) :], _ANY_LINES, most_bytes // 3)
    left_out = size - utf8_size(start) - utf8_size(end)
    return f"{start}\n[… {left_out:,} bytes left out …]\n{end}"


# the whole ---------------------------------------------------------------------------------------

_BEFORE = """\
The record goes on from an earlier note, quoted first. Bring it up to date: what still holds stays, in full; what \
has changed is corrected; what is new is added.

"""


@cache
def default_template() -> str:
    """Return the template that the package ships."""
    return resources.files("compactctl").joinpath("prompts", "summary.txt").read_text(encoding="utf-8")


def compose(chosen: Iterable[Unit], previous: str | None, template: str | None = None, words: int = 1_000) -> str:
    """Return the one message of a request. A template without `{history}` has the record put after it."""
    template = default_template() if template is None else template
    history = "\n\n".join(unit.text for unit in chosen)
    before = f"{_BEFORE}{quoted(previous)}\n\n" if previous else ""
    if "{history}" not in template:
        template = f"{template.rstrip()}\n\n{{previous}}{{history}}\n"
    elif "{previous}" not in template:
        template = template.replace("{history}", "{previous}{history}", 1)
    values = {"previous": before, "history": history, "words": str(words)}
    return re.sub(r"\{(previous|history|words)\}", lambda match: values[match.group(1)], template)
