"""Predictions for steps by fits that saw nothing of their session, or of their repository, nor any of their texts.

Where one repository has all usage of a family, its frames are of the other half of that repository's sessions.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tests.bench.fitting import counts, weights
from tests.bench.fitting.corpus import SEED
from tests.bench.fitting.data import Data, own_steps
from tests.bench.fitting.frames import LEAST_OCCURRENCES
from tests.bench.fitting.learning import Learnt, learn, predicted
from tests.bench.fitting.steps import Step, is_judged
from tests.bench.fitting.targets import Target

FOLDS = 5


@dataclass(frozen=True)
class Prediction:
    """A step, and what is made of it without having seen it: by the fit, by one factor on o200k, and by ctok's exact
    count of its texts with the frames of the fit (what is off then is no matter of the tokenizer)."""

    step: Step
    calibrated: float
    one_factor: float
    exact: float


def held_out(data: Data, target: Target, by: str) -> list[Prediction]:
    """Return each step with what fits make of it that saw nothing of its session, or of its repository."""
    own = own_steps(data, target)
    sessions = sorted({step.session for step in own})
    random.Random(SEED).shuffle(sessions)
    fold = {session: str(index % FOLDS) for index, session in enumerate(sessions)}

    def part(step: Step) -> str:
        return fold[step.session] if by == "session" else step.repository

    found: list[Prediction] = []
    for name in sorted({part(step) for step in own}):
        out = [step for step in own if part(step) == name]
        rest = [step for step in own if part(step) != name]
        seen = {text for step in out for text in step.texts}
        use = np.array([text not in seen for text in data.texts.texts])
        if by == "repository":
            use &= np.array([where != name for where in data.texts.repository])
        found += _predictions(data, target, out, rest, use)
    return found


def _predictions(
    data: Data, target: Target, out: Sequence[Step], rest: Sequence[Step], use: np.ndarray
) -> Iterator[Prediction]:
    if len(rest) >= LEAST_OCCURRENCES:
        learnt, factor = learn(data, target, rest, use), _one_factor(rest)
        for step in out:
            guess = predicted(data, learnt, step)
            yield Prediction(step, guess, factor * step.tiktoken, _exactly(data, target, learnt, step, guess))
        return
    # No other repository has usage: its texts stay unseen, and frames come from the other half of its sessions.
    sessions = sorted({step.session for step in out})
    for half in (set(sessions[::2]), set(sessions[1::2])):
        others = [step for step in out if step.session not in half]
        if len(others) >= LEAST_OCCURRENCES:
            inside = [step for step in out if step.session in half]
            yield from _predictions(data, target, inside, others, use)


def _exactly(data: Data, target: Target, learnt: Learnt, step: Step, guess: float) -> float:
    if target.version is None:
        return guess
    column = counts.VERSIONS.index(target.version)
    exactly = sum(count[column] for count in counts.exact(step.texts))
    return guess - weights.tokens(data.vocabulary, learnt.weights, step.texts) + exactly


def _one_factor(own: Sequence[Step]) -> float:
    """Return the factor on o200k that has no bias, in the median, on the big steps of these."""
    ratios = [step.actual / step.tiktoken for step in own if is_judged(step) and step.tiktoken]
    return float(np.median(ratios)) if ratios else 1.0
