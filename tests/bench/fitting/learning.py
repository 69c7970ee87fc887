"""One fit: from the steps and the texts it is given and nothing else, what makes a prediction for any step."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.bench.fitting import counts, frames, weights
from tests.bench.fitting.data import Data
from tests.bench.fitting.frames import LEAST_OCCURRENCES
from tests.bench.fitting.sealed import Thought
from tests.bench.fitting.steps import Step, is_usable
from tests.bench.fitting.targets import Target


@dataclass(frozen=True)
class Learnt:
    """What one fit found."""

    weights: np.ndarray | None
    frames: dict[str, float]


def learn(data: Data, target: Target, own: Sequence[Step], use_text: np.ndarray) -> Learnt:
    """Return a fit on these steps and the texts that `use_text` lets through."""
    worth = None
    if target.version is not None:
        column = counts.VERSIONS.index(target.version)
        worth = weights.fit(data.features[use_text], data.exact[use_text, column], column, data.vocabulary)
    usable = [step for step in own if is_usable(step)]
    if target.version is None:  # OpenAI's answers hold reasoning that no file shows
        usable = [step for step in usable if not step.has_answer]
    seen = Counter(name for step in usable for name in step.frames if step.frames[name])
    names = sorted(name for name, count in seen.items() if count >= LEAST_OCCURRENCES)
    met = np.array([[step.frames[name] for name in names] for step in usable], dtype=float)
    actual = np.array([step.actual for step in usable], dtype=float)
    rest = actual - np.array([weights.tokens(data.vocabulary, worth, step.texts) for step in usable])
    return Learnt(worth, dict(zip(names, frames.fit(met, rest, actual).tolist(), strict=True)))


def predicted(data: Data, learnt: Learnt, said: Step | Thought) -> float:
    """Return what a fit makes of the texts and frames of a step, or of an answer."""
    around = sum(count * learnt.frames.get(name, 0.0) for name, count in said.frames.items())
    return weights.tokens(data.vocabulary, learnt.weights, said.texts) + around
