"""What each token of o200k_base is worth in another vocabulary: learnt from exact counts, summed up, packed."""

import gzip
import sys
from array import array
from collections.abc import Iterable

import numpy as np

from compactctl.profiles import WEIGHT_ONE
from tests.bench.fitting.vocabulary import Vocabulary

CLASS_RIDGE, ALONE_RIDGE = 3.0, 0.1


def fit(features: np.ndarray, exact_tokens: np.ndarray, column: int, vocabulary: Vocabulary) -> np.ndarray:
    """Return what each token of the vocabulary is worth, by a ridge regression towards what it comes to alone."""
    count = vocabulary.class_count
    own = np.column_stack([features[:, :count], features[:, count + column]])
    scale = 1 / np.sqrt(exact_tokens + 20)
    weighted = own * scale[:, None]
    ridge = np.r_[np.full(count, CLASS_RIDGE), ALONE_RIDGE]
    start = np.r_[np.zeros(count), 0.9]
    solved = np.linalg.solve(
        weighted.T @ weighted + np.diag(ridge), weighted.T @ (exact_tokens * scale) + ridge * start
    )
    return np.maximum(solved[vocabulary.classes] + solved[count] * vocabulary.alone[:, column], 0.0)


def tokens(vocabulary: Vocabulary, weights: np.ndarray | None, texts: Iterable[str]) -> float:
    """Return what texts come to by these weights; without any, each token counts as one."""
    ids = [vocabulary.ids(text) for text in texts]
    return float(sum(len(i) if weights is None else weights[i].sum() for i in ids))


def packed(weights: np.ndarray) -> bytes:
    """Return weights as the package keeps them: two bytes a token, least significant first, compressed."""
    fixed = array("H", np.minimum(np.round(weights * WEIGHT_ONE), 65535).astype(int).tolist())
    if sys.byteorder == "big":
        fixed.byteswap()
    return gzip.compress(fixed.tobytes(), 9, mtime=0)
