"""Errors made into figures, by model. A model of which too little is judged has none."""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from compactctl.profiles import Spread
from tests.bench.fitting.held_out import Prediction
from tests.bench.fitting.steps import BIG_BYTES, Step, is_judged, is_usable


def errors(pairs: Iterable[tuple[float, int]]) -> np.ndarray:
    """Return the relative error of each guess, held against what was counted."""
    return np.array([(guess - actual) / actual for guess, actual in pairs])


def described(found: np.ndarray) -> tuple[int, float, float, float]:
    """Return n, bias (the median error), and median and p90 of the error's size."""
    size = np.abs(found)
    return len(found), float(np.median(found)), float(np.median(size)), float(np.quantile(size, 0.9))


def spread(pairs: Sequence[tuple[Step, float]]) -> Spread:
    """Return p5 and p95 of an estimator's errors: relative on big steps, in tokens on small ones."""
    usable = [(step, guess) for step, guess in pairs if is_usable(step) and not step.has_answer]
    big = errors((guess, step.actual) for step, guess in usable if step.size_bytes >= BIG_BYTES)
    small = np.array([guess - step.actual for step, guess in usable if step.size_bytes < BIG_BYTES])
    low, high = np.quantile(big, [0.05, 0.95]) if len(big) else (-0.5, 0.5)
    tokens_low, tokens_high = np.quantile(small, [0.05, 0.95]) if len(small) else (0.0, 0.0)
    shares, whole = (round(float(x), 4) for x in (low, high)), (round(float(x), 1) for x in (tokens_low, tokens_high))
    return Spread(*shares, *whole, len(usable))


LEAST_JUDGED = 10


def by_model(predictions: Iterable[Prediction]) -> Iterator[tuple[str, list[Prediction]]]:
    """Yield the models, without their dates, of which enough is judged to speak of, each with what is judged."""
    found: dict[str, list[Prediction]] = {}
    for prediction in predictions:
        if is_judged(prediction.step):
            found.setdefault(re.sub(r"-20\d{6}$", "", prediction.step.model), []).append(prediction)
    for model, own in sorted(found.items()):
        if len(own) >= LEAST_JUDGED:
            yield model, own
