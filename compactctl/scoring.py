"""What a batch of `accuracy` comes to: scores over all files, rows fit to publish, a fitted profile, and gates.

The rows hold no path and no text: a session is a hash, a request its id and line.
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from compactctl import fit, profiles, store
from compactctl.errors import UsageError, reason_of
from compactctl.options import Options
from compactctl.outcome import Outcome, ScoresNote
from compactctl.outputs.csv import cell
from compactctl.predictions import ALL, Observed, Row, Score
from compactctl.scores import Collected, scores

TRUTH = "the input side of each request as its provider recorded it: all that it took in, cached or not"

DRIFT_FACTOR, DRIFT_LEAST = 1.25, 0.005
"""A median or a bias is worse than before where it is larger by this factor, and by so much at least."""

LARGEST_RESULT_BYTES = 1 << 28

LEAST_ROWS = 10
"""With fewer requests neither a gate nor a comparison says anything."""


class Scoring:
    """Takes the outcomes of a batch as they come, counts their predictions and takes those out of them."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._collected = Collected()
        self._steps: list[Observed] = []
        self._seen_steps: set[tuple[str, int, int]] = set()

    def take(self, outcome: Outcome) -> None:
        """Count what an outcome predicted; nothing of it is kept there."""
        note = outcome.accuracy
        if note is UNSET:
            return
        self._collected.add(outcome.path, note.rows or (), note.excluded, note.requests)
        self._steps += note.steps or ()
        outcome.accuracy = msgspec.structs.replace(note, rows=UNSET, steps=UNSET)

    def end(self, *, is_whole: bool = True) -> ScoresNote:
        """Return the scores; write the rows, the profile and the plot that were asked for, if all can be made.

        `is_whole` is False where the batch was interrupted: nothing is written then. Raises WriteError.
        """
        asked, collected = self._options.scoring, self._collected
        found = scores(collected, asked.seed)
        base = profiles.of(self._options.settings.estimator.profile)
        written: dict[str, Iterable[bytes]] = {}
        if asked.fit is not None and is_whole:
            name = os.path.basename(asked.fit).removesuffix(".json")
            made = msgspec.json.encode(fit.fit(self._steps, base, name))
            written[asked.fit] = [msgspec.json.format(made, indent=2), b"\n"]
        if asked.rows is not None and is_whole:
            written[asked.rows] = rows(collected.rows, asked.rows)
        if asked.plot is not None and is_whole:
            from compactctl.plot import plotted

            written[asked.plot] = [plotted(collected.rows, asked.plot)]
        for path, chunks in written.items():
            store.write_named(path, chunks)
        return ScoresNote(
            TRUTH,
            base.name,
            asked.seed,
            collected.requests,
            collected.judged,
            dict(sorted(collected.excluded.items())),
            tuple(found),
            asked.fit if is_whole else None,
        )


# rows ----------------------------------------------------------------------------------------------

COLUMNS = (*Row.__struct_fields__, "error")


def rows(found: Sequence[Row], path: str) -> Iterator[bytes]:
    """Yield a file of predictions: JSON lines for a name that ends so, else CSV, in which no text is a formula."""
    if path.endswith((".jsonl", ".ndjson")):
        for row in found:
            yield msgspec.json.encode(_row(row)) + b"\n"
        return
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in found:
        writer.writerow(map(cell, _row(row).values()))
    yield held.getvalue().encode("utf-8", "backslashreplace")


def _row(row: Row) -> dict[str, Any]:
    return {**msgspec.structs.asdict(row), "error": round(row.error, 6)}


# gates ---------------------------------------------------------------------------------------------


def broken(note: ScoresNote, options: Options) -> Iterator[str]:
    """Yield in words what is not as good as was asked for: `--max-p90`, `--compare`."""
    asked = options.scoring
    if asked.max_p90_percent is not None:
        for score in _whole(note.scores, "new"):
            if score.p90 * 100 > asked.max_p90_percent:
                yield (
                    f"{score.estimator} on {score.model}: p90 of what is new is {score.p90 * 100:.1f} % of "
                    f"{score.n:,} requests, and {asked.max_p90_percent:g} % is allowed"
                )
    if asked.compare is not None:
        yield from _drifted(note.scores, _earlier(asked.compare))


def unheld(note: ScoresNote, options: Options) -> Iterator[str]:
    """Yield in words which gate had nothing to judge, so that nobody takes its silence for a pass."""
    asked = options.scoring
    held = {(score.estimator, score.model) for score in _whole(note.scores, "new")}
    if asked.max_p90_percent is not None and not held:
        yield f"--max-p90 judged nothing: no model has {LEAST_ROWS} requests with so much that is new"
    if asked.compare is not None:
        earlier = {(score.estimator, score.model) for score in _whole(_earlier(asked.compare), "new")}
        if not held & earlier:
            yield (
                f"--compare judged nothing: no estimator and model has {LEAST_ROWS} requests with so much that is new "
                f"both here and in {asked.compare}"
            )


def _whole(found: Sequence[Score], way: str) -> Iterator[Score]:
    return (score for score in found if score.way == way and score.kind == ALL and score.n >= LEAST_ROWS)


def _drifted(found: Sequence[Score], earlier: Sequence[Score]) -> Iterator[str]:
    before = {(score.estimator, score.model): score for score in _whole(earlier, "new")}
    for score in _whole(found, "new"):
        old = before.get((score.estimator, score.model))
        if old is None:
            continue
        for name, was, now in (("bias", abs(old.bias), abs(score.bias)), ("median", old.median, score.median)):
            if now > was * DRIFT_FACTOR and now - was > DRIFT_LEAST:
                yield (
                    f"{score.estimator} on {score.model}: the {name} of its error went from {was * 100:.1f} % "
                    f"to {now * 100:.1f} %"
                )


class _Totals(Struct):
    accuracy: ScoresNote


class _Result(Struct):
    totals: _Totals


def require_earlier(path: str) -> None:
    """Raise UsageError where there is no result of an earlier run in a file."""
    _earlier(path)


def _earlier(path: str) -> tuple[Score, ...]:
    try:
        with open(path, "rb") as source:
            raw = source.read(LARGEST_RESULT_BYTES + 1)
        if len(raw) > LARGEST_RESULT_BYTES:
            raise UsageError(f"--compare {path}: too large to be what accuracy -o json printed")
        return msgspec.json.decode(raw, type=_Result).totals.accuracy.scores
    except OSError as error:
        raise UsageError(f"--compare {path}: {reason_of(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"--compare {path}: not what accuracy -o json printed: {error}") from None
