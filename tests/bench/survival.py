"""What `make survival` prints: how much of what a session uses again is still there after a summary by `extract`.

    python -m tests.bench.survival [FOLDER]

Each real session is cut where its agent compacted, or at two thirds where it never did; what came before is summarised,
and what comes after tells what would have been needed: the paths, hex ids, identifiers, commands and URLs in later tool
calls that had occurred before the cut. Of these, how many stand literally in the new context (in the summary, else in
the facts, else in the kept part), and how many in a file that the summary names. Beside it: how many stood in the
context after the agents' own compactions. A path stands there, too, where it does from the session's folder.

Survival is literal presence, not recall. Nothing that comes after the cut is shown to what makes the summary.
"""

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
from compactctl.estimators.encodings import bundled
from compactctl.facts import facts_section
from compactctl.model import Transcript
from compactctl.providers import DEFAULT, SummaryRequest, make
from compactctl.references import Reference, stands, whole_command
from compactctl.session import Session
from compactctl.settings import Settings
from compactctl.story import Said, read_story, request_test
from compactctl.summary import accept
from compactctl.survival import Loss, Text, loss, moments, text_of_all, used_again

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
    document: Document
    transcript: Transcript
    future: tuple[Said, ...]
    own: Loss | None = None
    """What its agent's own compaction lost here."""


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
                yield from _samples_of(path.name, opened)
        except CompactctlError:
            continue


def _samples_of(name: str, opened: Session) -> Iterator[Sample]:
    transcript = opened.read.transcripts[0]
    if not transcript.compactions:
        yield from _at_two_thirds(name, opened, transcript)
    for moment in moments(opened.document, opened.read.format, transcript).found:
        own = loss(moment, skipped_rounds=0)
        yield Sample(f"{name}:{moment.line}", moment.document, moment.transcript, moment.later, own)


def _at_two_thirds(name: str, opened: Session, transcript: Transcript) -> Iterator[Sample]:
    document, messages = opened.document, transcript.messages
    index = max((i for i in boundaries(messages) if i <= len(messages) * 2 // 3), default=0)
    future = read_story(document, transcript, {})[index:]
    if not future or document.line_count < len(messages) or future[0].line < 2:
        return
    before = document.until(messages[index].records[0])
    yield Sample(name, before, opened.read.format.read(before)[0], future)


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
    kept = text_of_all(item for item in story if item.index not in indexes)
    before, folder = Text(text_of_all(story)), sample.transcript.cwd
    wanted = [(reference.kind, reference) for reference in used_again(before, sample.future, folder)]
    wanted += [(LINE, reference) for reference in lines_again(before, sample.future)]
    if not wanted:
        return None
    summary = accept(make(DEFAULT).answer(SummaryRequest("", settings.layer2.summary_reserve_tokens, gone)))
    facts = facts_section(gone, FACTS_TOKENS, settings.estimator.bytes_per_token, f"{summary}\n{kept}")
    source = Text(
        text_of_all(story), (sample.document.slice(0, sample.document.size_bytes).decode("utf-8", "replace"),)
    )
    found: Counter[tuple[str, str]] = Counter()
    for kind, reference in wanted:
        texts = zip(PLACES, (summary, facts, kept), strict=True)
        place = next((place for place, text in texts if stands(reference, text, folder)), None)
        found[kind, place or "-"] += 1
        found[kind, REACHABLE] += place is not None or stands(reference, source, folder)
    tokens = (bundled("o200k_base").count(text) or 0 for text in (summary, facts))
    return Measured(sample, sum(tokens), Counter(kind for kind, _ in wanted), found)


def lines_again(before: Text, future: Sequence[Said]) -> set[Reference]:
    """Return the whole lines that later calls run in a shell, as they were typed before."""
    lines = {whole_command(call.arguments) for said in future for call in said.calls}
    return {Reference("command", line) for line in lines if line and line in before}


# printing ----------------------------------------------------------------------------------------


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CORPUS
    every = [measured for sample in samples(folder) if (measured := measure(sample)) is not None]
    for title, chosen in (
        ("all", every),
        ("where their agent compacted", [item for item in every if item.sample.own]),
        ("at two thirds", [item for item in every if not item.sample.own]),
    ):
        if chosen:
            print(f"\n{title}: {len(chosen)} cuts")
            _print(chosen)


def _print(chosen: Sequence[Measured]) -> None:
    sizes = sorted(item.tokens for item in chosen)
    p90 = sizes[min(len(sizes) - 1, len(sizes) * 9 // 10)]
    print(
        f"summary and facts: median {statistics.median(sizes):,.0f}, p90 {p90:,} tokens (o200k);"
        f" aims {TOKEN_AIMS[0]:,} and {TOKEN_AIMS[1]:,} "
    )
    places = f"{'summary':>9}{'facts':>7}{'kept':>6}{REACHABLE:>11}"
    print(f"{'kind':<13}{'n':>6}{'present':>9}{'aim':>6}{places}{'the agents':>12}  72 by Claude Code")
    own = [item.sample.own for item in chosen if item.sample.own]
    for kind in KINDS:
        total = sum(item.wanted[kind] for item in chosen)
        if not total:
            continue
        shares = [sum(item.found[kind, place] for item in chosen) / total for place in (*PLACES, REACHABLE)]
        split = f"{shares[0]:>9.0%}{shares[1]:>7.0%}{shares[2]:>6.0%}{shares[3]:>11.0%}"
        aim, other = (f"{figures[kind]:.0%}" if kind in figures else "-" for figures in (AIMS, BASELINE))
        kept = [each.survival[kind] for each in own if kind in each.survival]
        agents = f"{sum(s.present for s in kept) / sum(s.total for s in kept):.0%}" if kept else "-"
        print(f"{kind:<13}{total:>6,}{sum(shares[:3]):>9.0%}{aim:>6}{split}{agents:>12}  {other}")
    reads = sum(each.rereads.reads for each in own)
    if reads:
        again = sum(each.rereads.again for each in own)
        size = sum(each.rereads.again_bytes for each in own)
        print(f"files read until the next compaction: {reads:,}, {again / reads:.0%} of them again ({size:,} bytes)")


if __name__ == "__main__":
    main()
