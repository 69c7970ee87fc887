"""Errors of estimators made into figures: n, bias, median, p90, p95, the worst case, and how sure the median is.

All errors are relative, (predicted - actual) / actual. The bias is the median error with its sign: a mean would be
ruled by the few requests that held what no file shows. The interval of the median is a bootstrap over sessions, not
over requests, since those of one session are alike.
"""

import bisect
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from compactctl.predictions import ALL, BINS, WAYS, Row, Score, Worst

REPLICATES = 200


class Collected:
    """The rows of a batch as they come. A request that stands in several files counts once."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.paths: dict[str, str] = {}
        """By session hash."""
        self.requests = 0
        self.excluded: Counter[str] = Counter()
        self._judged: set[object] = set()

    def add(self, path: str, rows: Sequence[Row], excluded: dict[str, int], requests: int) -> None:
        """Take what one session gave."""
        self.requests += requests
        self.excluded.update(excluded)
        own = {_request(row) for row in rows}
        repeated = own & self._judged
        self._judged |= own
        for row in rows:
            if _request(row) not in repeated:
                self.paths[row.session] = path
                self.rows.append(row)
        if repeated:
            self.excluded["counted elsewhere"] += len(repeated)

    @property
    def judged(self) -> int:
        """Return how many requests were judged."""
        return len(self._judged)


def _request(row: Row) -> object:
    """Return what tells a request from all others: its id, else its place in its session and what it took in."""
    return row.request_id or (row.session, row.line, row.context_tokens)


def scores(collected: Collected, seed: int) -> list[Score]:
    """Return the scores by estimator, model and way; of what is new, by kind of content as well."""
    groups: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    for row in collected.rows:
        groups[row.estimator, row.model, row.way, ALL].append(row)
        if row.way == "new":
            groups[row.estimator, row.model, row.way, row.kind].append(row)
    ordered = sorted(groups, key=lambda key: (_order(key[2]), key[1], key[3] != ALL, key[3], key[0]))
    return [_score(key, groups[key], collected.paths, seed) for key in ordered]


def _order(way: str) -> int:
    return WAYS.index(way) if way in WAYS else len(WAYS)


def _score(key: tuple[str, str, str, str], rows: Sequence[Row], paths: dict[str, str], seed: int) -> Score:
    estimator, model, way, kind = key
    errors = sorted(row.error for row in rows)
    sizes = sorted(map(abs, errors))
    worst = max(rows, key=lambda row: abs(row.error))
    sessions: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        sessions[row.session].append(abs(row.error))
    low, high = median_interval(list(sessions.values()), seed)
    return Score(
        estimator,
        model,
        way,
        kind,
        len(rows),
        len(sessions),
        quantile(errors, 0.5),
        quantile(sizes, 0.5),
        low,
        high,
        quantile(sizes, 0.9),
        quantile(sizes, 0.95),
        Worst(worst.error, paths.get(worst.session, ""), worst.line),
        histogram(errors),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted figures, interpolated between neighbours. Raises IndexError for none."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median_interval(groups: Sequence[Sequence[float]], seed: int) -> tuple[float, float]:
    """Return the p5 and p95 of the median over samples of whole groups, drawn with replacement."""
    chance = random.Random(seed)
    medians = []
    for _ in range(REPLICATES):
        drawn = sorted(figure for _ in groups for figure in groups[chance.randrange(len(groups))])
        medians.append(quantile(drawn, 0.5))
    medians.sort()
    return quantile(medians, 0.05), quantile(medians, 0.95)


def histogram(errors: Iterable[float]) -> tuple[int, ...]:
    """Return how many errors are in each bin, from far too little to far too much."""
    counts = [0] * (len(BINS) + 1)
    for error in errors:
        counts[bisect.bisect_right(BINS, error)] += 1
    return tuple(counts)
