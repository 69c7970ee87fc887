"""A text as tokens of o200k_base, and as the features that a fit learns from. Each text is encoded once."""

import numpy as np

from compactctl.estimators import encodings
from tests.bench.fitting import counts
from tests.bench.fitting.classes import token_class


class Vocabulary:
    """o200k_base: the class of each token, and what each comes to alone in Claude's vocabularies."""

    def __init__(self) -> None:
        own = list(encodings.tokens("o200k_base"))
        names: dict[str, int] = {}
        self.classes = np.array([names.setdefault(token_class(token), len(names)) for token in own])
        self.class_count = len(names)
        self.alone = counts.alone(own)
        self._tokenizer = encodings.bundled("o200k_base")
        self._seen: dict[str, np.ndarray] = {}

    def ids(self, text: str) -> np.ndarray:
        """Return the tokens of a text, as indexes into `classes` and `alone`."""
        if text not in self._seen:
            found = [i for ids in self._tokenizer.encoded(text) for i in ids or ()]
            self._seen[text] = np.array(found, dtype=np.int32)
        return self._seen[text]

    def features(self, text: str) -> np.ndarray:
        """Return the tokens of each class, and the sums of what they come to alone."""
        ids = self.ids(text)
        if not len(ids):
            return np.zeros(self.class_count + self.alone.shape[1])
        classes = np.bincount(self.classes[ids], minlength=self.class_count)
        return np.concatenate([classes, self.alone[ids].sum(axis=0)])
