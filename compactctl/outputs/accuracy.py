"""What every output of `accuracy` prints: the scores, and above them all that one needs to know to read them."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Any

from msgspec import UNSET, structs

from compactctl import __version__
from compactctl.outcome import Outcome, ScoresNote
from compactctl.outputs import View, words
from compactctl.outputs.pages import table
from compactctl.outputs.safe import clipped, visible
from compactctl.predictions import ALL, Score
from compactctl.totals import Batch

WAYS = {
    "new": "what is new since the request before (4,000 bytes and more), in all and by what most of it is",
    "next": "the next request's whole context, from the request before",
    "ahead-5": "five requests ahead",
    "ahead-20": "twenty requests ahead",
    "whole": "the whole context, estimated, with the first request's fixed overhead",
    "compacted": "what a report of compactctl said would be left, against the first request since",
}
"""Every way of predicting, in words."""

HEADERS = ("estimator", "requests", "sessions", "bias", "median", "p90", "worst")
"""Of a table. JSON and CSV have the p95 and the interval of the median, too."""

AT_CHARACTERS = 12
"""Of the name of the file in which an estimator was furthest off; JSON and CSV have all of the path."""


def head(batch: Batch, note: ScoresNote) -> Iterator[str]:
    """Yield what stands above the figures: version, data, truth, and what was excluded."""
    yield (
        f"compactctl {__version__}, profile {visible(note.profile)}, seed {note.seed}: "
        f"{words.count(batch.tally.sessions, 'session')}, "
        f"{note.judged:,} of {words.count(note.requests, 'request')} judged"
    )
    yield f"truth: {note.truth}"
    yield "error: (predicted - actual) / actual; bias: its median; median and p90: of its size; worst: the largest"
    if note.excluded:
        yield f"not judged: {', '.join(f'{reason} {count:,}' for reason, count in note.excluded.items())}"
    if not note.judged:
        yield "nothing to judge by: no request with recorded usage stands behind another one"


def sections(note: ScoresNote) -> Iterator[tuple[str, list[Score]]]:
    """Yield the scores by way of predicting, each with its words."""
    for way, title in WAYS.items():
        found = [score for score in note.scores if score.way == way]
        if found:
            yield title, found


def cells(score: Score) -> list[str]:
    """Return a score as the cells of a table."""
    return [
        score.estimator if score.kind == ALL else f"{score.estimator}, {score.kind}",
        f"{score.n:,}",
        f"{score.sessions:,}",
        f"{score.bias * 100:+.1f} %",
        f"{score.median * 100:.1f} %",
        f"{score.p90 * 100:.1f} %",
        f"{score.worst.error * 100:+.1f} %",
    ]


def _at(score: Score) -> str:
    return f"{clipped(PurePath(score.worst.path).name, AT_CHARACTERS)}:{score.worst.line}"


_ALIGNED = ("left", *["right"] * (len(HEADERS) - 1), "left")

_BARS = "·▁▂▃▄▅▆▇█"


def bars(counts: Sequence[int]) -> str:
    """Return a histogram as one character a bin, from far too little to far too much."""
    most = max(counts, default=0)
    return "".join(_BARS[math.ceil(8 * count / most) if most else 0] for count in counts)


class Lines:
    """The scores as tables. Sessions are only counted."""

    def __init__(self, view: View) -> None:
        self._view = view

    def outcome(self, outcome: Outcome) -> str:
        return ""

    def end(self, batch: Batch) -> str:
        lines = [words.summary(batch)]
        if batch.accuracy is not UNSET:
            lines = list(head(batch, batch.accuracy))
            for title, found in sections(batch.accuracy):
                lines += ["", title, *self._table(found)]
            lines += ["", f"wrote {visible(batch.accuracy.fitted)}"] if batch.accuracy.fitted else []
        return "".join(f"{line}\n" for line in lines)

    def _table(self, found: Sequence[Score]) -> list[str]:
        """Return a block a model; a terminal has a histogram where other readers have the place of the worst error."""
        last, header = (lambda score: bars(score.histogram), "-50% 0 +50%") if self._view.terminal else (_at, "at")
        rows = [[*map(visible, cells(score)), last(score)] for score in found]
        top, *body = table([*HEADERS, header], rows, _ALIGNED)
        lines = [f"  {top}"]
        for model, block in groupby(zip(found, body, strict=True), key=lambda pair: pair[0].model):
            lines += [visible(model), *(f"  {line}" for _, line in block)]
        return lines


class Page:
    """The scores as Markdown."""

    def outcome(self, outcome: Outcome) -> str:
        return ""

    def end(self, batch: Batch) -> str:
        from compactctl.outputs import markdown

        lines = ["# compactctl accuracy", ""]
        if batch.accuracy is UNSET:
            lines.append(words.summary(batch, markdown.code))
        else:
            lines += [f"- {markdown.code(line)}" for line in head(batch, batch.accuracy)]
            for title, found in sections(batch.accuracy):
                lines += [
                    "",
                    f"## {title.capitalize()}",
                    "",
                    *markdown.table(
                        ("model", *HEADERS, "at"),
                        [[markdown.cell(s.model), *map(markdown.cell, cells(s)), markdown.cell(_at(s))] for s in found],
                    ),
                ]
        return "".join(f"{line}\n" for line in lines)


class Rows:
    """A row a score."""

    def outcome(self, outcome: Outcome) -> str:
        return ""

    def end(self, batch: Batch) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        columns = [name for name in Score.__struct_fields__ if name not in ("worst", "histogram")]
        writer.writerow([*columns, "worst_error", "worst_path", "worst_line"])
        for score in () if batch.accuracy is UNSET else batch.accuracy.scores:
            found: dict[str, Any] = structs.asdict(score)
            worst = found["worst"]
            writer.writerow([*(_cell(found[name]) for name in columns), worst.error, _cell(worst.path), worst.line])
        return text.getvalue()


def _cell(value: Any) -> Any:
    from compactctl.outputs.csv import cell

    return cell(value)
