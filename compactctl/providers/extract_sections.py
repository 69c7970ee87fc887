"""The nine sections of `extract`: what each takes from the messages and from its like in an earlier summary."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from compactctl.facts import answers_by_call, changed_files, exit_status
from compactctl.model import utf8_size
from compactctl.providers.fitting import clip, fitting, fitting_in_order, plain, quote
from compactctl.references import arguments_of, calls_text, find_references, script_of
from compactctl.story import Answered, Called, Said, said_by_person


class Source(Struct, frozen=True):
    """What a section is written from: the messages, the same section of an earlier summary, and its room in bytes."""

    said: list[Said]
    earlier: str
    room: int


def _request(source: Source) -> str:
    """The first request, or what an earlier summary says it was; and the last one of these messages."""
    asked = [(item.index, said_by_person(item.text)) for item in source.said if item.is_request]
    lines = [clip(source.earlier, source.room // 2)] if source.earlier else []
    if asked and not lines:
        lines.append(f"First: {quote(asked[0][1], source.room * 2 // 3)}")
        asked = asked[1:]
    if asked:
        lines.append(f"Last: {quote(asked[-1][1], source.room // 3)}")
    return "\n".join(lines)


def _cue(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_FOUND = _cue(
    r"root cause|turns out|\bfound (?:that|the|it|a|an|two|three)\b|\bbecause\b|\bmeans that\b|\bnote that\b",
    r"\bthe (?:issue|problem|bug|reason|cause|culprit) (?:is|was)\b|\bimportant(?:ly)?\b|\bconfirm(?:s|ed)\b",
    r"\b(?:is|are) (?:located|defined|stored|implemented|called|used) (?:in|by|at|from)\b|\bI (?:now )?see\b",
    r"原因|问题是|发现",
)
_DECIDED = _cue(
    r"\bdecid|\binstead\b|\brather than\b|\bso that\b|\bchose\b|\bthe (?:fix|approach|solution|plan|design)\b",
    r"trade-?off|\bbetter to\b|\bI(?:'ll| will) (?:use|keep|add|make|change|remove|replace|move|split|write)\b",
    r"\bwe (?:should|need|must)\b|\bshould(?:n't| not)\b|\bgive up\b|\brevert|\bwon't\b|\bsimpl(?:er|est)\b",
    r"\bworkaround\b|决定|改用|方案",
)
_NEXT = _cue(
    r"\bnext\b|\bnow (?:let me|let's|I'll|I need)\b|\blet me\b|\bI(?:'ll| will)\b|\blet's\b|\bremaining\b|\bshall I\b",
    r"\bwould you like\b|\bshould I\b|\bdo you want\b|接下来|下一步",
)


_ANYTHING = _cue(r"[`/_]|\w\.\w")
_NOT_FACTS = _cue(_FOUND.pattern, _DECIDED.pattern, _NEXT.pattern)


def _facts(source: Source) -> str:
    lines = [clip(source.earlier, source.room // 2)] if source.earlier else []
    room = source.room - sum(map(utf8_size, lines))
    reports = fitting_in_order(_reports(source.said), room // 2)
    room -= sum(map(utf8_size, reports))
    told = _telling(source.said, _FOUND, room)
    room -= sum(map(utf8_size, told))
    other = _telling(source.said, _ANYTHING, room // 2, but=_NOT_FACTS) if len(told) < FEW else []
    return "\n".join([*lines, *told, *other, *reports])


FEW = 3
"""With fewer sentences that say what was found, others that name something stand in."""


_SUBAGENTS = frozenset({"task", "agent", "subagent", "delegate", "spawn_agent", "wait_agent"})
REPORT_BYTES = 320


def _reports(said: Sequence[Said]) -> list[tuple[int, str]]:
    """Return what subagents reported, newest first."""
    return [
        (item.index, f"- A subagent reported: {clip(plain(item.result.text), REPORT_BYTES)}")
        for item in reversed(said)
        if item.result is not None and item.result.name.lower() in _SUBAGENTS and len(item.result.text) > USER_BYTES
    ]


def _decisions(source: Source) -> str:
    """What each request came to, in the assistant's own last words on it; then what it decided."""
    lines = [clip(source.earlier, source.room // 3)] if source.earlier else []
    room = source.room - sum(map(utf8_size, lines))
    ends = fitting_in_order(_turn_ends(source.said), room // 2)
    room -= sum(map(utf8_size, ends))
    return "\n".join([*lines, *ends, *_telling(source.said, _DECIDED, room, but=_FOUND)])


ASKED_BYTES, CAME_TO_BYTES = 80, 260


def _turn_ends(said: Sequence[Said]) -> list[tuple[int, str]]:
    """Return how each turn but the last ended, newest first: what was asked, what the assistant said to it last."""
    found: list[tuple[int, str]] = []
    asked, told = "", ""
    for item in said:
        if item.is_request:
            if asked and told:
                came_to = clip(plain(told), CAME_TO_BYTES)
                found.append((item.index, f"- On {quote(_one_line(asked), ASKED_BYTES)}: {came_to}"))
            asked, told = said_by_person(item.text), ""
        elif item.role == "assistant" and item.text.strip():
            told = item.text
    return found[::-1]


def _one_line(text: str) -> str:
    return " ".join(text.split())


SENTENCE_BYTES = 260


def _telling(said: Sequence[Said], cue: re.Pattern[str], room: int, but: re.Pattern[str] | None = None) -> list[str]:
    """Return sentences of the assistant's that say so, the newest that fit, in order; literal names make one better."""
    found: list[tuple[float, int, str]] = []
    for item in said:
        if item.role != "assistant":
            continue
        for sentence in sentences(item.text):
            if cue.search(sentence) and not (but and but.search(sentence)) and _says_something(sentence):
                worth = item.index / 40 + min(len(find_references(sentence)), 3)
                found.append((worth, item.index, sentence))
    lines = [(index, f"- {clip(sentence, SENTENCE_BYTES)}") for _, index, sentence in sorted(found, reverse=True)]
    return fitting_in_order(lines, room)


_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_FENCED = re.compile(r"```.*?(?:```|$)", re.DOTALL)
_FURNITURE = re.compile(r"^(?:[#>|*\-\s\d.)]+|\*\*)")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without code, tables and marks of lists."""
    plain = _FENCED.sub("\n", text)
    pieces = (_FURNITURE.sub("", piece).strip() for piece in _SENTENCE_END.split(plain) if not piece.startswith("|"))
    return [piece for piece in pieces if len(piece) > 24 and not piece.endswith(":")]


def _says_something(sentence: str) -> bool:
    """Return whether a sentence stands on its own: it names something, or is long enough."""
    return len(sentence) > 80 or any(reference.kind != "error" for reference in find_references(sentence))


# files, errors -----------------------------------------------------------------------------------

_DEFINED = re.compile(
    r"\b(?:def|class|func(?:tion)?|fn|struct|enum|trait|interface|type|const|impl|module)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w{2,})"
)
_KEYWORDS = frozenset(
    {"var", "const", "let", "type", "func", "def", "class", "for", "with", "and", "that", "self", "async"}
)
NAMES_SHOWN = 5


def _files(source: Source) -> str:
    """The files that were changed, newest first, with what was defined or touched in them; then those only read."""
    edits: dict[str, list[Called]] = {}
    looked: dict[str, int] = {}
    for item in source.said:
        for call in item.calls:
            changed = changed_files(call)
            for path in changed:
                edits.setdefault(path, []).append(call)
                edits[path] = edits.pop(path)
            if not changed:
                looked |= {path: looked.get(path, 0) + 1 for path in _read_file(call)}
    lines = [f"- {path}: {_changes(calls, path)}" for path, calls in reversed(edits.items())]
    shown = fitting(lines, source.room * 3 // 4)
    read = [path for path, _ in sorted(looked.items(), key=lambda pair: -pair[1]) if path not in edits]
    room = source.room - sum(map(utf8_size, shown)) - 20
    fits = fitting(read[:12], room)
    more = len(lines) - len(shown)
    return "\n".join(
        [*shown, *([f"- {more} more files changed"] if more else []), *([f"Read: {', '.join(fits)}"] if fits else [])]
    )


def _read_file(call: Called) -> list[str]:
    arguments = arguments_of(call.arguments)
    path = (
        next((arguments[key] for key in ("file_path", "path") if key in arguments), None)
        if _is_map(arguments)
        else None
    )
    return [path] if isinstance(path, str) and "." in path.rpartition("/")[2] else []


def _is_map(value: Any) -> bool:
    return isinstance(value, dict)


def _changes(calls: Sequence[Called], path: str) -> str:
    """Return how often a file was changed, and the names that the changes define, newest first."""
    names: dict[str, None] = {}
    for call in reversed(calls):
        names |= dict.fromkeys(_DEFINED.findall(_part_about(calls_text(call.arguments), path)))
    count = "1 change" if len(calls) == 1 else f"{len(calls)} changes"
    shown = [name for name in names if name not in _KEYWORDS][:NAMES_SHOWN]
    return f"{count}; {', '.join(shown)}" if shown else count


def _part_about(text: str, path: str) -> str:
    """Return of a patch over several files what is about one of them."""
    if "*** Begin Patch" not in text or path not in text:
        return text
    return text[text.index(path) + len(path) :].partition("\n*** ")[0]


ERROR_BYTES = 200


def _errors(source: Source) -> str:
    """What failed, each with the error's own line and what the assistant said or did next, the newest that fit."""
    lines = [(0, clip(source.earlier, source.room // 3))] if source.earlier else []
    room = source.room - sum(utf8_size(line) for _, line in lines)
    answers = answers_by_call(source.said)
    seen: set[str] = set()
    found: list[tuple[int, str]] = []
    for position in range(len(source.said) - 1, -1, -1):
        item = source.said[position]
        for call in reversed(item.calls):
            answer = answers.get((item.index, call.call_id))
            line = _failure(call, answer) if answer else None
            if line and line not in seen:
                seen.add(line)
                found.append((item.index, f"- {line}{_afterwards(source.said, position)}"))
    return "\n".join([line for _, line in lines] + fitting_in_order(found, room))


_NO_ERROR = re.compile(
    r"user (?:doesn't want|rejected|declined)|interrupted by user|has not been read yet|File has been modified"
)


_ENVELOPE = re.compile(
    r"\s*(?:Chunk ID:|Wall time:|Process exited|Original token count:|Total output lines:|Output:"
    r"|Exit code|\(no output\)|Command exited with code)"
)
"""Lines that a tool puts around an output; a search that only found nothing has no others."""


def _failure(call: Called, answer: Answered) -> str | None:
    """Return what was tried and the line that tells why it failed; None where it did not fail."""
    status = exit_status(answer)
    if status in ("", "0") or _NO_ERROR.search(answer.text[:300]):
        return None
    told = [reference.text for reference in find_references(answer.text) if reference.kind == "error"]
    at = [line.strip() for line in answer.text.splitlines() if line.strip() in told or line.strip()[:240] in told]
    output = [line for line in answer.text.splitlines() if line.strip() and not _ENVELOPE.match(line)]
    if not output:
        return None
    why = at[0] if at else output[0]
    return f"{clip(_tried(call), 110)}: {clip(why.strip(), ERROR_BYTES)}"


_CD = re.compile(r"^cd \S+ *(?:&&|;) *")
_CD_ONLY = re.compile(r"(?:cd|set) [^;&|]*")


def _tried(call: Called) -> str:
    script = script_of(call.arguments)
    if script is not None:
        lines = [line for line in map(str.strip, script.splitlines()) if line and not line.startswith("#")]
        return _CD.sub("", next((line for line in lines if not _CD_ONLY.fullmatch(line)), call.name))
    return f"{call.name} {(changed_files(call) or _read_file(call) or [_first_text(call)])[0]}".strip()


_TELLING = ("description", "pattern", "query", "subject", "skill", "url", "name", "title")


def _first_text(call: Called) -> str:
    arguments = arguments_of(call.arguments)
    if not isinstance(arguments, dict):
        return ""
    return next((arguments[key] for key in _TELLING if isinstance(arguments.get(key), str)), "")


def _afterwards(said: Sequence[Said], position: int) -> str:
    """Return what the assistant said right after, where it said something."""
    for item in said[position + 1 : position + 8]:
        if item.role == "assistant":
            first = next(iter(sentences(item.text)), "")
            return f" Then: {clip(first, 140)}" if first else ""
    return ""


# the user, tasks, what comes next ----------------------------------------------------------------

_ASKING = frozenset({"askuserquestion", "request_user_input", "ask_followup_question", "question"})
_REFUSED = re.compile(r"the user said:\s*(.+)", re.DOTALL | re.IGNORECASE)
USER_BYTES = 320


def _user(source: Source) -> str:
    """What the user said between the first and the last request, the newest that fit, in order; answers, too."""
    asked = [said_by_person(item.text) for item in source.said if item.is_request]
    shown = {*asked[:1], *asked[-1:]}
    quotes = [(index, text) for index, text in _said_by_user(source.said) if text not in shown]
    lines = [(index, f"- {quote(text, USER_BYTES)}") for index, text in reversed(quotes)]
    earlier = clip(source.earlier, source.room // 3)
    kept = fitting_in_order(lines, source.room - utf8_size(earlier))
    return "\n".join([*([earlier] if earlier else []), *kept])


def _said_by_user(said: Iterable[Said]) -> Iterator[tuple[int, str]]:
    for item in said:
        if item.is_request:
            yield item.index, said_by_person(item.text)
        elif item.result is not None and item.result.name.lower() in _ASKING and not item.result.is_error:
            yield item.index, item.result.text
        elif item.result is not None and item.result.is_error and (found := _REFUSED.search(item.result.text)):
            yield item.index, found[1]


_DONE = frozenset({"completed", "done", "cancelled", "canceled", "deleted"})
_WORDING = ("content", "step", "subject", "title", "text", "description")


class _Task(Struct):
    words: str
    status: str


def tasks(said: Sequence[Said]) -> list[_Task]:
    """Return the newest list of tasks, as the agent's own tool keeps it."""
    kept: dict[str, _Task] = {}
    for item in said:
        for call in item.calls:
            arguments = arguments_of(call.arguments)
            if not isinstance(arguments, dict):
                continue
            listed = next((found for value in arguments.values() if (found := _listed(value))), None)
            if listed is not None:
                kept = {str(number): task for number, task in enumerate(listed, 1)}
            elif call.name == "TaskCreate" and isinstance(arguments.get("subject"), str):
                kept[str(len(kept) + 1)] = _Task(arguments["subject"], "pending")
            elif call.name == "TaskUpdate" and (task := kept.get(str(arguments.get("taskId")))) is not None:
                task.status = str(arguments.get("status") or task.status)
    return list(kept.values())


def _listed(value: Any) -> list[_Task] | None:
    if not isinstance(value, list) or not value or not all(isinstance(row, dict) and "status" in row for row in value):
        return None
    return [_Task(words, str(row["status"])) for row in value if (words := _words_of(row))]


def _words_of(row: Mapping[str, Any]) -> str:
    return next((row[key] for key in _WORDING if isinstance(row.get(key), str)), "")


def _open(source: Source) -> str:
    """The tasks that are not done, by the agent's own list; how many are; and the plan that the user agreed to."""
    every = tasks(source.said)
    lines = [f"- [{task.status}] {clip(task.words, 160)}" for task in every if task.status not in _DONE]
    if every:
        lines.append(f"- {sum(task.status in _DONE for task in every)} of {len(every)} tasks of the list are done")
    elif source.earlier:
        lines.append(clip(source.earlier, source.room // 2))
    shown = fitting(lines, source.room)
    plan = _plan(source.said)
    room = source.room - sum(map(utf8_size, shown))
    return "\n".join([*shown, *([f"- Plan: {clip(plan, room - 10)}"] if plan and room > 120 else [])])


def _plan(said: Sequence[Said]) -> str:
    for item in reversed(said):
        for call in item.calls:
            arguments = arguments_of(call.arguments)
            if call.name == "ExitPlanMode" and isinstance(arguments, dict) and isinstance(arguments.get("plan"), str):
                return str(arguments["plan"])
    return ""


LAST_CALLS = 4


def _present(source: Source) -> str:
    """What the assistant said last, and what it ran last."""
    last = next((item for item in reversed(source.said) if item.role == "assistant" and item.text.strip()), None)
    lines = [f"Said last: {clip(plain(last.text), source.room * 2 // 3)}"] if last else []
    answers = answers_by_call(source.said)
    calls = [(item.index, call) for item in source.said for call in item.calls][-LAST_CALLS:]
    for index, call in calls:
        status = exit_status(answer) if (answer := answers.get((index, call.call_id))) else "no result yet"
        lines.append(f"- {clip(_tried(call), 120)}{f' -> {status}' if status else ''}")
    return "\n".join(fitting(lines, source.room))


def _next(source: Source) -> str:
    """The task in progress, else what the assistant said it would do, else the newest request."""
    doing = next((task.words for task in tasks(source.said) if task.status == "in_progress"), "")
    if doing:
        return clip(doing, max(source.room, 120))
    is_answered = bool(source.said) and source.said[-1].role == "assistant" and not source.said[-1].calls
    for item in reversed(source.said[-1:] if is_answered else source.said[-12:]):
        if item.is_request:
            return f"Answer what was asked last: {quote(said_by_person(item.text), max(source.room - 30, 120))}"
        told = [each for each in sentences(item.text) if _NEXT.search(each)] if item.role == "assistant" else []
        if told:
            return clip(told[-1], max(source.room, 120))
    if is_answered:
        return "What was asked last is answered; go on with what follows."
    asked = next((said_by_person(item.text) for item in reversed(source.said) if item.is_request), "")
    return f"Go on from what follows; asked last before it: {quote(asked, max(source.room - 42, 120))}" if asked else ""


WRITERS = (_request, _facts, _files, _errors, _decisions, _user, _open, _present, _next)
"""What writes each section, in their order; it gives "" where there is nothing to say."""
