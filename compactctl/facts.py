"""The facts that code adds to a summary: what was changed, read, run and named, literally, within a bound.

What a session uses again is mostly what it worked with itself: files it edited, commands it ran more than once, names
in its own calls; what merely stood in an output is seldom asked for again. The weights below say so; they were set on
real sessions (`make survival`). Nothing is listed that stands in the new context anyway.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from compactctl.references import (
    Kind,
    Reference,
    arguments_of,
    calls_text,
    commands_in,
    find_references,
    script_of,
    whole_command,
)
from compactctl.story import Answered, Called, Said

HEADING = "# Facts (added by code, newest first)"

Group = Literal["changed", "read", "spilled", "commands", "errors", "ids", "urls", "names", "paths"]

TITLES: Mapping[Group, str] = {
    "changed": "Files changed",
    "read": "Files read or named in calls",
    "spilled": "Outputs saved to files",
    "commands": "Commands, with exit status",
    "errors": "Error lines",
    "ids": "Ids",
    "urls": "URLs",
    "names": "Identifiers",
    "paths": "Other paths",
}
"""The groups, in the order in which they stand."""

ONE_A_LINE: frozenset[Group] = frozenset({"commands", "errors", "spilled"})

LIST_MARK = "- "
JOINED = ", "

Source = Literal["edit", "call", "said", "result"]

WEIGHTS: Mapping[Kind, Mapping[Source, float]] = {
    "path": {"edit": 26, "call": 18, "said": 3.5, "result": 3},
    "hex": {"edit": 14, "call": 10, "said": 8, "result": 1.2},
    "identifier": {"edit": 2.5, "call": 1.5, "said": 0.9, "result": 0.25},
    "command": {"edit": 9, "call": 9, "said": 0, "result": 0},
    "url": {"edit": 15, "call": 25, "said": 12, "result": 3},
    "error": {"edit": 0, "call": 0, "said": 0, "result": 6},
}
"""What a reference is worth, by the nearest it ever came to the session's own work. In proportion to how often such
are used again, with identifiers worth less (they are many and soon found in the code), paths and URLs more."""

OFTEN = 4
"""More mentions than this count no more."""

RECENT_MESSAGES, MIDDLE_MESSAGES = 32, 96
RECENT, MIDDLE, OLD = 1.3, 0.9, 0.7

NEIGHBOUR, FAR = 2.5, 0.3

_BUILT = re.compile(r"(?:^|/)(?:dist|build|node_modules|target|coverage|__pycache__|\.git|\.venv|site-packages)/")
"""Folders of what programs made."""

LEAST_WORTH = 0.8
"""What is worth less is left out even where there is room."""

EDITORS = frozenset(
    {"edit", "write", "multiedit", "notebookedit", "apply_patch", "str_replace_editor", "create_file", "write_file"}
    | {"replace", "str_replace", "edit_file", "insert", "write_to_file", "apply_diff", "search_and_replace"}
)
"""Tools that change files, in lower case."""

TARGETS = ("file_path", "path", "notebook_path", "filename", "target_file", "absolute_path")
"""Arguments that name the file which a tool works on."""

_PATCHED = re.compile(r"^\*\*\* (?:Update|Add|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)


class Fact(Struct):
    """A reference and how it came up. `last` counts messages from the start."""

    reference: Reference
    source: Source
    group: Group
    count: int = 0
    last: int = 0
    note: str = ""

    @property
    def text(self) -> str:
        return f"{self.reference.text}{self.note}"


def facts_section(said: Sequence[Said], max_tokens: int, bytes_per_token: float, present: str = "") -> str:
    """Return the facts of these messages as text of at most so many tokens; "" where there are none or no room.

    What stands in `present` (the summary, the messages that are kept) is not repeated.
    """
    room = int(max_tokens * bytes_per_token) - len(HEADING) - 1
    chosen = _chosen(collect(said).values(), said[-1].index if said else 0, room, present)
    return _written(chosen) if chosen else ""


def _chosen(facts: Iterable[Fact], end: int, room_bytes: int, present: str) -> list[Fact]:
    """Return the facts that are worth most for their size, until the room is full."""
    every = list(facts)
    folders = {posixpath.dirname(fact.reference.text) for fact in every if fact.group in ("changed", "read")} - {""}
    worth = {fact.reference: _worth(fact, end, folders) for fact in every}
    ranked = sorted(every, key=lambda fact: (-worth[fact.reference], -fact.last, fact.reference))
    chosen: list[Fact] = []
    groups: set[Group] = set()
    seen = present
    for fact in ranked:
        if not worth[fact.reference] or fact.reference.text in seen:
            continue
        size = len(fact.text.encode()) + len(JOINED) + (0 if fact.group in groups else len(TITLES[fact.group]) + 4)
        if size > room_bytes:
            continue
        room_bytes -= size
        groups.add(fact.group)
        chosen.append(fact)
        seen += "\n" + fact.reference.text
    return chosen


def _worth(fact: Fact, end: int, folders: Collection[str]) -> float:
    """Return how much a fact is worth for each byte it takes; 0 where it is unlikely to be used again."""
    if fact.group == "spilled":
        return float("inf")
    worth = weight(fact, end) * (_place_factor(fact.reference.text, folders) if fact.group == "paths" else 1)
    return worth / (len(fact.text) + len(JOINED)) if worth >= LEAST_WORTH else 0


def _place_factor(path: str, folders: Collection[str]) -> float:
    """Return how a path that only stood in texts fares by where it lies: beside what was worked on, or far away."""
    if posixpath.dirname(path) in folders and not _BUILT.search(path):
        return NEIGHBOUR
    return FAR if path.startswith(("/", "~", "github.com")) or _BUILT.search(path) else 1


def weight(fact: Fact, end: int) -> float:
    """Return what a reference is worth, whatever room it takes: more where it came often, and lately."""
    age = end - fact.last
    recency = RECENT if age < RECENT_MESSAGES else MIDDLE if age < MIDDLE_MESSAGES else OLD
    return WEIGHTS[fact.reference.kind][fact.source] * min(fact.count, OFTEN) * recency


def _written(facts: Iterable[Fact]) -> str:
    by_group: dict[Group, list[Fact]] = {}
    for fact in sorted(facts, key=lambda fact: -fact.last):
        by_group.setdefault(fact.group, []).append(fact)
    lines = [HEADING]
    for group, title in TITLES.items():
        texts = [fact.text for fact in by_group.get(group, ())]
        if texts and group in ONE_A_LINE:
            lines += [f"{title}:", *(f"{LIST_MARK}{text}" for text in texts)]
        elif texts:
            lines.append(f"{title}: {JOINED.join(texts)}")
    return "\n".join(lines)


# collecting --------------------------------------------------------------------------------------


def collect(said: Sequence[Said]) -> dict[Reference, Fact]:
    """Return everything that these messages refer to, by reference, with how it came up."""
    facts: dict[Reference, Fact] = {}
    answers = answers_by_call(said)
    scripts: set[str] = set()
    for item in said:
        if item.is_summary:
            _carry_over(facts, item)
            continue
        for reference in find_references(item.text):
            if reference.kind != "error":
                _note(facts, item.index, reference, "said")
        for call in item.calls:
            _note_call(facts, item.index, call, answers.get((item.index, call.call_id)))
            scripts |= set() if script_of(call.arguments) is None else {call.call_id}
        if item.result is not None:
            tells_errors = item.result.is_error or item.result.call_id in scripts
            _note_result(facts, item.index, item.result, tells_errors)
    return _without_pieces(facts)


def _without_pieces(facts: dict[Reference, Fact]) -> dict[Reference, Fact]:
    """Return the facts without commands that stand only in a longer one that was run again, or the longer one that
    was run once."""
    commands = [fact for fact in facts.values() if fact.reference.kind == "command"]
    gone: set[Reference] = set()
    for whole in commands:
        pieces = [piece for piece in commands_in(whole.reference.text) if piece != whole.reference.text]
        known = [facts[ref] for ref in (Reference("command", piece) for piece in pieces) if ref in facts]
        if known and whole.count > 1:
            gone |= {piece.reference for piece in known if piece.count == whole.count}
        elif known:
            gone.add(whole.reference)
    return {reference: fact for reference, fact in facts.items() if reference not in gone}


def answers_by_call(said: Sequence[Said]) -> dict[tuple[int, str], Answered]:
    """Return the result of each call, by the index of the message that made it and the call's id."""
    found: dict[tuple[int, str], Answered] = {}
    caller: dict[str, int] = {}
    for item in said:
        caller |= {call.call_id: item.index for call in item.calls}
        if item.result is not None and item.result.call_id in caller:
            found[caller[item.result.call_id], item.result.call_id] = item.result
    return found


_RANK: Mapping[Source, int] = {"edit": 3, "call": 2, "said": 1, "result": 0}


def _note(
    facts: dict[Reference, Fact], index: int, reference: Reference, source: Source, note: str | None = None
) -> None:
    fact = facts.get(reference)
    if fact is None:
        fact = facts[reference] = Fact(reference, source, _group(reference.kind, source))
    if _RANK[source] > _RANK[fact.source]:
        fact.source, fact.count = source, 0
        fact.group = fact.group if fact.group == "changed" else _group(reference.kind, source)
    if _RANK[source] == _RANK[fact.source]:
        fact.count += 1
        fact.last = index
    fact.note = fact.note if note is None else note


def _group(kind: Kind, source: Source) -> Group:
    if kind == "path":
        return "read" if source in ("edit", "call") else "paths"
    groups: dict[Kind, Group] = {"hex": "ids", "identifier": "names", "command": "commands", "url": "urls"}
    return groups.get(kind, "errors")


def _note_call(facts: dict[Reference, Fact], index: int, call: Called, answer: Answered | None) -> None:
    source: Source = "edit" if call.name.lower() in EDITORS else "call"
    for reference in find_references(calls_text(call.arguments)):
        if reference.kind != "error":
            _note(facts, index, reference, source)
    for path in changed_files(call):
        target = Reference("path", path)
        _note(facts, index, target, "edit")
        facts[target].group = "changed"
    script = script_of(call.arguments)
    status = "" if script is None or answer is None else exit_status(answer)
    whole = whole_command(call.arguments)
    for command in {*commands_in(script or ""), *([whole] if whole else ())}:
        _note(facts, index, Reference("command", command), "call", f" -> {status}" if status else "")


def changed_files(call: Called) -> list[str]:
    """Return the files that a call changes, as it names them."""
    if "*** " in call.arguments and "*** Begin Patch" in (text := calls_text(call.arguments) or call.arguments):
        return [(found[1] or found[2]).strip() for found in _PATCHED.finditer(text)]
    arguments = arguments_of(call.arguments)
    if call.name.lower() not in EDITORS or not isinstance(arguments, dict) or arguments.get("command") == "view":
        return []
    target = next((arguments[key] for key in TARGETS if isinstance(arguments.get(key), str)), None)
    return [target] if target else []


_EXIT = re.compile(r"(?:[Ee]xit(?:ed with)? (?:code|status)[: ]+|\"exit_code\": ?|exit=)(-?\d{1,3})\b")
STATUS_CHARACTERS = 400


def exit_status(answer: Answered) -> str:
    """Return the exit status that a result tells, `failed` where it tells only that; "" where nothing is told."""
    found = _EXIT.search(answer.text[:STATUS_CHARACTERS]) or _EXIT.search(answer.text[-STATUS_CHARACTERS:])
    if found:
        return found[1]
    return "failed" if answer.is_error else ""


def _note_result(facts: dict[Reference, Fact], index: int, result: Answered, tells_errors: bool) -> None:
    for reference in find_references(result.text):
        if tells_errors or reference.kind != "error":
            _note(facts, index, reference, "result")
    if result.spilled_to:
        spilled = Reference("path", result.spilled_to)
        facts[spilled] = Fact(
            spilled, "call", "spilled", 1, index, f" ({result.name}, {len(result.text):,} characters)"
        )


# an earlier summary ------------------------------------------------------------------------------


def _carry_over(facts: dict[Reference, Fact], item: Said) -> None:
    """Note what an earlier summary names: its facts as what they were, the rest as said."""
    head, heading, section = item.text.partition(HEADING)
    for reference in find_references(head):
        _note(facts, item.index, reference, "said")
    if heading:
        for fact in _read_section(section, item.index):
            facts.setdefault(fact.reference, fact)


def _read_section(section: str, index: int) -> Iterator[Fact]:
    """Yield the facts of a section as we write it."""
    group: Group | None = None
    for line in section.strip().splitlines():
        title = next((name for name, words in TITLES.items() if line.startswith(f"{words}:")), None)
        if title is not None:
            group = title
            texts = line.partition(": ")[2].split(JOINED) if title not in ONE_A_LINE else []
        elif group is not None and line.startswith(LIST_MARK):
            texts = [line.removeprefix(LIST_MARK)]
        else:
            return
        for text in filter(None, texts):
            yield _old_fact(group, text, index)


_KINDS: Mapping[Group, tuple[Kind, Source]] = {
    "changed": ("path", "edit"),
    "read": ("path", "call"),
    "spilled": ("path", "call"),
    "commands": ("command", "call"),
    "errors": ("error", "result"),
    "ids": ("hex", "call"),
    "urls": ("url", "call"),
    "names": ("identifier", "edit"),
    "paths": ("path", "said"),
}
_NOTE = re.compile(r" (?:-> (?:-?\d{1,3}|failed)|\([^()]*, [\d,]+ characters\))$")


def _old_fact(group: Group, text: str, index: int) -> Fact:
    kind, source = _KINDS[group]
    note = found.group() if (found := _NOTE.search(text)) else ""
    return Fact(Reference(kind, text.removesuffix(note)), source, group, 1, index, note)
