"""What a compaction that stands in a session kept of what was used again afterwards, and which files were read again.

The session itself is the truth: what later tool calls name and what stood, literally, in the context before is what
was needed. Whether it stands in the context that the model saw right after the compaction is counted, and whether it
can be reached: in a file beside the session that this context names. Presence is not recall: what stands in a context
may still be overlooked.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from compactctl.document import Document
from compactctl.facts import TARGETS
from compactctl.formats.interface import Format
from compactctl.json_text import write_json
from compactctl.model import Reasoning, Transcript
from compactctl.references import (
    Holds,
    Kind,
    Reference,
    Survival,
    arguments_of,
    calls_text,
    commands_in,
    find_references,
    relative,
    script_of,
    shell_commands,
    stands,
    survival,
)
from compactctl.story import Called, Said, read_story, said_by_person

NEXT_ROUNDS = 3
"""What is used in so many rounds after a compaction, and never again, does not count: it is the work that was going
on, and mostly stands in what was kept."""


NO_FILES = frozenset({"/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"})


class Text(Struct, frozen=True):
    """Texts to look in: some as they are read, some as they stand in files of JSON lines."""

    plain: str
    raw: tuple[str, ...] = ()

    def __contains__(self, text: str, /) -> bool:
        if text in self.plain:
            return True
        escaped = write_json(text).decode()[1:-1] if self.raw else ""
        return any(text in raw or escaped in raw for raw in self.raw)


class Moment(Struct, frozen=True):
    """A compaction in a session: what the model could see before it and right after it, and what came then."""

    line: int
    document: Document
    """The session as it was before."""
    transcript: Transcript
    before: tuple[Said, ...]
    after: tuple[Said, ...]
    later: tuple[Said, ...]
    """What was said afterwards, in context then or at the end: the summary and what was kept are not among it."""
    next_line: int | None
    """The line of the next compaction."""
    is_sealed: bool = False
    """What it left is partly encrypted, so nobody but the provider can say what stands there."""


class Missed(Struct, frozen=True, order=True):
    """Something that was used again and stood no longer in the context: the line of the call that first names it."""

    line: int
    reference: Reference
    is_reachable: bool


class Instruction(Struct, frozen=True, order=True):
    """What a person had asked for, word for word, and stood no longer in the context; the line that called for it."""

    line: int
    text: str


class Rereads(Struct, frozen=True):
    """The files that were read between a compaction and the next: how many reads, and how many of them again.

    Bytes are those of the results. `paths` are the files that were read before the compaction as well.
    """

    reads: int
    again: int
    read_bytes: int
    again_bytes: int
    paths: tuple[str, ...]


class Loss(Struct, frozen=True):
    """What is said of one compaction. Of a sealed one nobody can say what it kept: only what was read again."""

    line: int
    is_sealed: bool
    survival: dict[Kind, Survival]
    missed: tuple[Missed, ...]
    instructions: tuple[Instruction, ...]
    rereads: Rereads


# the moments -------------------------------------------------------------------------------------


class Moments(Struct, frozen=True):
    """The compactions of a session after which an answer came, in order, and how many earlier ones were left out."""

    found: tuple[Moment, ...]
    left_out: int = 0


def moments(
    document: Document, format_: Format, transcript: Transcript, written_lines: int = 0, read_bytes: int | None = None
) -> Moments:
    """Return the compactions of a session. Nothing where a file holds several sessions.

    `document` was walked and `transcript` read from it. Its first `written_lines` were written at once by a compaction
    of ours, the newest among them: what that kept stands behind its record. The file is read anew for each
    compaction, twice: as it was before, and as it was before the first answer afterwards. Earlier ones are left out
    where that would come to more than `read_bytes` in all; the newest never is.
    """
    lines = sorted({compaction.line for compaction in transcript.compactions})
    if not lines or transcript.index is not None:
        return Moments(())
    ours = max((line for line in lines if line <= written_lines), default=None)
    stories = [read_story(document, transcript, {})]
    found: list[Moment] = []
    following: int | None = None
    left_bytes = read_bytes
    for number, line in reversed([*enumerate(lines)]):
        later = _later(stories, written_lines if line == ours else line)
        answer = next((said.line for said in later if said.role == "assistant"), line)
        if left_bytes is not None:
            left_bytes -= _offset(document, line) + _offset(document, answer)
            if left_bytes < 0 and following is not None:
                return Moments(tuple(reversed(found)), number + 1)
        state = _state(document, line, format_)
        story = read_story(*state, {}) if state else ()
        seen = _state(document, answer, format_) if answer != line else None
        if seen is not None:
            before = state or (document.until(0), Transcript(transcript.format, (), cwd=transcript.cwd))
            after = read_story(*seen, {})
            found.append(Moment(line, *before, story, after, later, following, _is_sealed(seen[1], line)))
        stories.insert(0, story)
        following = line
    return Moments(tuple(reversed(found)))


def _offset(document: Document, line: int) -> int:
    record = document.record_at(line)
    return document.offset(record) if record is not None else 0


def _state(document: Document, line: int, format_: Format) -> tuple[Document, Transcript] | None:
    """Return the session as it was before a line was written; None where nothing was there."""
    record = document.record_at(line)
    before = document.until(record) if record is not None else None
    found = format_.read(before) if before is not None else ()
    return (before, found[0]) if before is not None and found else None


def _is_sealed(transcript: Transcript, line: int) -> bool:
    return any(
        isinstance(part, Reasoning) and part.sealed_bytes > 0 and not part.size_bytes
        for message in transcript.messages
        if message.line == line
        for part in message.parts
    )


def _later(stories: Iterable[Sequence[Said]], line: int) -> tuple[Said, ...]:
    """Return what was said behind a line, each message once, in the order of lines."""
    found = {
        (said.line, said.role, said.result.call_id if said.result else ""): said
        for story in stories
        for said in story
        if said.line > line and not said.is_summary
    }
    return tuple(sorted(found.values(), key=lambda said: said.line))


# what became of it -------------------------------------------------------------------------------


Files = Callable[[str], Sequence[str]]
"""Gives the texts of the files beside a session that a text names."""


def no_files(text: str) -> Sequence[str]:
    """Return no text: nothing lies beside the session."""
    return ()


def loss(
    moment: Moment, own_names: Collection[str] = (), files: Files = no_files, skipped_rounds: int = NEXT_ROUNDS
) -> Loss:
    """Return what the compaction lost.

    `own_names` are names of the session's own file: where the context names it, all that stood in it can be reached.
    What the files hold that the context names counts as having stood before the compaction, too: what a compaction
    of ours takes out lies there.
    """
    before, after = text_of_all(moment.before), text_of_all(moment.after)
    named = tuple(files(after))
    names_itself = any(name in after for name in own_names)
    folder = moment.transcript.cwd
    kept, reachable = Text(after), Text(f"{after}\n{before}" if names_itself else after, named)
    later = () if moment.is_sealed else after_rounds(moment.later, skipped_rounds)
    wanted = used_again(Text(before, named), later, folder)
    missed = (
        Missed(line, reference, stands(reference, reachable, folder))
        for reference, line in wanted.items()
        if not stands(reference, kept, folder)
    )
    return Loss(
        moment.line,
        moment.is_sealed,
        survival(wanted, kept, reachable, folder),
        tuple(sorted(missed)),
        () if moment.is_sealed else tuple(sorted(_lost_instructions(moment, kept))),
        rereads(moment),
    )


def after_rounds(later: Sequence[Said], rounds: int) -> Sequence[Said]:
    """Return what was said after so many answers that call tools."""
    calling = [index for index, said in enumerate(later) if said.calls]
    return later if not rounds else later[calling[rounds - 1] + 1 :] if len(calling) >= rounds else ()


def used_again(before: Holds, later: Iterable[Said], folder: str | None = None) -> dict[Reference, int]:
    """Return what later tool calls name and what had stood before, each with the line of the first such call."""
    lines: dict[Reference, int] = {}
    for said in later:
        for call in said.calls:
            for reference in find_references(calls_text(call.arguments)) | shell_commands(call.arguments):
                lines.setdefault(reference, said.line)
    return {
        reference: line
        for reference, line in lines.items()
        if reference.kind != "error" and reference.text not in NO_FILES and stands(reference, before, folder)
    }


def text_of(said: Said) -> str:
    """Return all of a message as one text."""
    return "\n".join(texts_of(said))


def texts_of(said: Said) -> Iterator[str]:
    """Yield what a message says, what it calls tools with, and what a tool answered."""
    yield said.text
    for call in said.calls:
        yield calls_text(call.arguments)
    if said.result is not None:
        yield said.result.text


def text_of_all(story: Iterable[Said]) -> str:
    """Return messages as one text."""
    return "\n".join(map(text_of, story))


# files that are read again -----------------------------------------------------------------------

READERS = frozenset(
    {"read", "view", "read_file", "readfile", "open_file", "cat", "view_file", "notebookread", "read_many_files"}
)
"""Tools that read files, in lower case."""

_PRINTERS = re.compile(r"(?:cat|bat|head|tail|nl|less|more|sed -n)\b")


def read_paths(call: Called) -> list[str]:
    """Return the files that a call reads, as it names them."""
    arguments = arguments_of(call.arguments)
    if isinstance(arguments, dict) and (call.name.lower() in READERS or arguments.get("command") == "view"):
        target = next((arguments[key] for key in TARGETS if isinstance(arguments.get(key), str)), None)
        return [target] if target else []
    script = script_of(call.arguments)
    return [path for command in commands_in(script or "") if _PRINTERS.match(command) for path in _paths(command)]


def _paths(command: str) -> list[str]:
    return sorted(reference.text for reference in find_references(command) if reference.kind == "path")


def rereads(moment: Moment) -> Rereads:
    """Return how much of what was read between this compaction and the next had been read before it."""
    folder = moment.transcript.cwd

    def read_by(call: Called) -> list[str]:
        return [relative(path, folder) for path in read_paths(call) if path not in NO_FILES]

    known = {path for said in moment.before for call in said.calls for path in read_by(call)}
    here = [said for said in moment.later if moment.next_line is None or said.line < moment.next_line]
    sizes = {said.result.call_id: len(said.result.text.encode()) for said in here if said.result is not None}
    made = [(call.call_id, paths) for said in here for call in said.calls if (paths := read_by(call))]
    again = [(call_id, paths) for call_id, paths in made if known.intersection(paths)]
    return Rereads(
        reads=len(made),
        again=len(again),
        read_bytes=sum(sizes.get(call_id, 0) for call_id, _ in made),
        again_bytes=sum(sizes.get(call_id, 0) for call_id, _ in again),
        paths=tuple(dict.fromkeys(path for _, paths in again for path in paths if path in known)),
    )


# what a person asked for -------------------------------------------------------------------------

_RULE = re.compile(
    r"\b(?:never|always|must(?:n't)?|do not|don't|only|without|make sure|avoid|instead of|no longer|keep|use)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_WORDS = re.compile(r"[\w./-]{3,}")
LEAST_WORDS, MOST_WORDS = 3, 40
SAID_AGAIN = 0.7
"""A later sentence with this share of an instruction's words says it again; one in the context keeps it."""


def instructions(story: Iterable[Said]) -> list[str]:
    """Return the sentences of persons that tell what to do or not to do at all times, as far as words can show."""
    found: dict[str, None] = {}
    for said in story:
        if said.is_request:
            for sentence in _sentences(said_by_person(said.text)):
                if _RULE.search(sentence):
                    found[sentence] = None
    return list(found)


def _sentences(text: str) -> list[str]:
    found = (" ".join(part.split()) for part in _SENTENCES.split(text))
    return [sentence for sentence in found if LEAST_WORDS <= len(_WORDS.findall(sentence)) <= MOST_WORDS]


def _words(sentence: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(sentence))


def _lost_instructions(moment: Moment, kept: Text) -> Iterator[Instruction]:
    """Yield what a person had told before, is not in the context after, and had to tell again."""
    told = instructions(moment.before)
    again = [(said.line, _words(each)) for said in moment.later if said.is_request for each in _sentences(said.text)]
    there: list[frozenset[str]] | None = None
    for sentence in told:
        words = _words(sentence)
        line = next((at for at, other in again if _covers(other, words)), None)
        if line is None:
            continue
        there = there if there is not None else [_words(each) for each in _SENTENCES.split(kept.plain)]
        if not any(_covers(each, words) for each in there):
            yield Instruction(line, sentence)


def _covers(other: Collection[str], words: frozenset[str]) -> bool:
    return len(words.intersection(other)) >= SAID_AGAIN * len(words)
