"""The texts, steps and answers of a corpus, read once: fits choose from these and read nothing more."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.bench.fitting import corpus, counts
from tests.bench.fitting.corpus import LEAST_CHARACTERS
from tests.bench.fitting.sealed import Thought, thoughts
from tests.bench.fitting.steps import Step, once, steps
from tests.bench.fitting.targets import Target, target_of
from tests.bench.fitting.vocabulary import Vocabulary


@dataclass(frozen=True)
class Texts:
    """The texts to learn from, and the repository that each comes from."""

    texts: list[str]
    repository: list[str]


@dataclass(frozen=True)
class Data:
    """All that is learnt from: `features` and `exact` have a row for each of the texts."""

    vocabulary: Vocabulary
    texts: Texts
    features: np.ndarray
    exact: np.ndarray
    steps: list[Step]
    thoughts: list[Thought]


def load(folder: Path) -> Data:
    """Return what there is to learn from in a corpus."""
    vocabulary = Vocabulary()
    rows = corpus.listed(folder)
    found = once(steps(rows))
    from_steps = [(text, step.repository) for step in found for text in step.texts if len(text) > LEAST_CHARACTERS]
    foreign = [(text, row.repository) for text, row in corpus.texts(rows)]
    origins = dict(reversed([*from_steps, *foreign]))
    counts.exact(text for step in found for text in step.texts)  # all at once, so that none has to be counted alone
    exact_tokens = np.array(counts.exact(origins), dtype=float)
    texts = Texts(list(origins), list(origins.values()))
    features = np.array([vocabulary.features(text) for text in texts.texts])
    return Data(vocabulary, texts, features, exact_tokens, found, list(thoughts(rows)))


def own_steps(data: Data, target: Target) -> list[Step]:
    """Return the steps of a family's models."""
    return [step for step in data.steps if target_of(step.model) is target]
