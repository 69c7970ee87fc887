"""What `make survival` prints: how much of what a session uses again is still there after a summary by `extract`.

    python -m tests.bench.survival [FOLDER]

Each real session is cut where its agent compacted, or at two thirds where it never did; what came before is summarised,
and what comes after tells what would have been needed: the paths, hex ids, identifiers, commands and URLs in later tool
calls that had occurred before the cut. Of these, how many stand literally in the new context (in the summary, else in
the facts, else in the kept part), and how many in a file that the summary names.

Survival is literal presence, not recall. Nothing that comes after the cut is shown to what makes the summary.
"""

import io
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactctl import estimators, session
from compactctl.cut import boundaries, choose_cut, summarised
from compactctl.document import Document
from compactctl.errors import CompactctlError
from compactctl.facts import facts_section
from compactctl.formats.interface import Format
from compactctl.model import Transcript
from compactctl.providers import DEFAULT, SummaryRequest, make
from compactctl.references import calls_text, find_references, shell_commands, whole_command
from compactctl.settings import Settings
from compactctl.story import Said, read_story, request_test
from compactctl.summary import accept

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
WINDOW_TOKENS = 200_000
FACTS_TOKENS = 1_500
LINE = "command line"
"""A whole line of a shell call, as it was typed: stricter than its commands one by one, and without an aim."""
KINDS = ("path", "hex", "identifier", "command", "url", LINE)
PLACES = ("summary", "facts", "kept")
REACHABLE = "reachable"
"""Present, or literally in the lines that move to the history file."""
AIMS = {"path": 0.9, "hex": 0.7, "identifier": 0.5, "command": 0.7, "url": 0.7}
TOKEN_AIMS = (2_700, 4_300)
"""Median and ninetieth percentile of the tokens that Claude Code's own summaries had."""
BASELINE = {"path": 0.66, "hex": 0.31, "identifier": 0.28, "command": 0.12}
"""Present after 72 compactions that Claude Code made itself."""


@dataclass(frozen=True)
class Sample:
    """One session at one moment: what had been said, and what was to come."""

    name: str
    is_own: bool
    """Whether its agent compacted here."""
    document: Document
    transcript: Transcript
    future: tuple[Said, ...]


@dataclass(frozen=True)
class Measured:
    """What became of the references of one sample: by kind, how many stand where."""

    sample: Sample
    tokens: int
    wanted: Counter[str]
    found: Counter[tuple[str, str]]


def samples(folder: Path) -> Iterator[Sample]:
    """Yield every moment of every session in a folder that can be measured."""
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".jsonl", ".json")):
        try:
            with session.opened(str(path), None) as opened:
                yield from _samples_of(path, opened.read.format, opened.read.transcripts)
        except CompactctlError:
            continue


def _samples_of(path: Path, format_: Format, transcripts: Sequence[Transcript]) -> Iterator[Sample]:
    data = path.read_bytes()
    transcript = transcripts[0]
    lines = [compaction.line for compaction in transcript.compactions]
    if not lines:
        yield from _at_two_thirds(path.name, data, format_)
        return
    rows = data.split(b"\n")
    pieces = [_read(b"\n".join(rows[: line - 1]) + b"\n", format_) for line in lines] + [_read(data, format_)]
    for number, line in enumerate(lines):
        document, before = pieces[number]
        later = [item for piece in pieces[number + 1 :] for item in read_story(*piece, {}) if item.line > line]
        seen = {item.line: item for item in later}
        yield Sample(f"{path.name}:{line}", True, document, before, tuple(seen.values()))


def _at_two_thirds(name: str, data: bytes, format_: Format) -> Iterator[Sample]:
    document, transcript = _read(data, format_)
    messages = transcript.messages
    index = max((i for i in boundaries(messages) if i <= len(messages) * 2 // 3), default=0)
    future = read_story(document, transcript, {})[index:]
    rows = data.split(b"\n")
    if not future or len(rows) < len(messages) or future[0].line < 2:
        return
    yield Sample(name, False, *_read(b"\n".join(rows[: future[0].line - 1]) + b"\n", format_), future)


def _read(data: bytes, format_: Format) -> tuple[Document, Transcript]:
    document = Document(io.BytesIO(data))
    return document, format_.read(document)[0]


# measuring ---------------------------------------------------------------------------------------


def measure(sample: Sample) -> Measured | None:
    """Return what survives in one sample; None where nothing is older than the kept part, or nothing comes again."""
    settings = Settings()
    estimator = estimators.get("heuristic", settings, estimators.Subject(sample.document))
    messages = sample.transcript.messages
    cut = choose_cut(messages, estimator, settings.layer2, WINDOW_TOKENS, request_test(sample.document))
    if cut is None:
        return None
    story = read_story(sample.document, sample.transcript, {})
    gone = tuple(story[index] for index in summarised(cut))
    indexes = frozenset(summarised(cut))
    kept = "\n".join(text_of(item) for item in story if item.index not in indexes)
    wanted = used_again(story, sample.future)
    if not wanted:
        return None
    summary = accept(make(DEFAULT).answer(SummaryRequest("", settings.layer2.summary_reserve_tokens, gone)))
    facts = facts_section(gone, FACTS_TOKENS, settings.estimator.bytes_per_token, f"{summary}\n{kept}")
    source = sample.document.slice(0, sample.document.size_bytes).decode("utf-8", "replace")
    found: Counter[tuple[str, str]] = Counter()
    for kind, text in wanted:
        place = where(text, (summary, facts, kept))
        found[kind, place or "-"] += 1
        found[kind, REACHABLE] += place is not None or text in source
    size = len(summary.encode()) + len(facts.encode())
    return Measured(sample, -(-size * 2 // 7), Counter(kind for kind, _ in wanted), found)


def text_of(said: Said) -> str:
    """Return all of a message as one text."""
    result = said.result.text if said.result else ""
    return "\n".join((said.text, *(calls_text(call.arguments) for call in said.calls), result))


def used_again(before: Sequence[Said], future: Sequence[Said]) -> set[tuple[str, str]]:
    """Return, by kind, what later tool calls refer to and what occurred, literally, before."""
    text = "\n".join(map(text_of, before))
    later: set[tuple[str, str]] = set()
    for call in (call for said in future for call in said.calls):
        references = find_references(calls_text(call.arguments)) | shell_commands(call.arguments)
        later |= {(reference.kind, reference.text) for reference in references}
        later |= {(LINE, line)} if (line := whole_command(call.arguments)) else set()
    return {(kind, literal) for kind, literal in later if kind in KINDS and literal in text}


def where(literal: str, texts: tuple[str, ...]) -> str | None:
    """Return where something stands first."""
    return next((place for place, text in zip(PLACES, texts, strict=True) if literal in text), None)


# printing ----------------------------------------------------------------------------------------


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS
    every = [measured for sample in samples(folder) if (measured := measure(sample)) is not None]
    for title, chosen in (
        ("all", every),
        ("where their agent compacted", [item for item in every if item.sample.is_own]),
        ("at two thirds", [item for item in every if not item.sample.is_own]),
    ):
        if chosen:
            print(f"\n{title}: {len(chosen)} cuts")
            _print(chosen)


def _print(chosen: Sequence[Measured]) -> None:
    sizes = sorted(item.tokens for item in chosen)
    p90 = sizes[min(len(sizes) - 1, len(sizes) * 9 // 10)]
    print(
        f"summary and facts: median {statistics.median(sizes):,.0f}, p90 {p90:,} tokens (bytes / 3.5);"
        f" aims {TOKEN_AIMS[0]:,} and {TOKEN_AIMS[1]:,} (o200k; that tokenizer is not bundled yet)"
    )
    places = f"{'summary':>9}{'facts':>7}{'kept':>6}{REACHABLE:>11}"
    print(f"{'kind':<13}{'n':>6}{'present':>9}{'aim':>6}{places}  Claude Code's own")
    for kind in KINDS:
        total = sum(item.wanted[kind] for item in chosen)
        if not total:
            continue
        shares = [sum(item.found[kind, place] for item in chosen) / total for place in (*PLACES, REACHABLE)]
        split = f"{shares[0]:>9.0%}{shares[1]:>7.0%}{shares[2]:>6.0%}{shares[3]:>11.0%}"
        aim, own = (f"{figures[kind]:.0%}" if kind in figures else "-" for figures in (AIMS, BASELINE))
        print(f"{kind:<13}{total:>6,}{sum(shares[:3]):>9.0%}{aim:>6}{split}  {own}")


if __name__ == "__main__":
    main()
