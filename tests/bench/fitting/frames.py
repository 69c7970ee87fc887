"""What stands around texts: counted in messages, and what each frame is worth, never below nothing."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from compactctl.document import Document
from compactctl.framing import framed, said
from compactctl.model import Message


def counted(messages: Sequence[Message], document: Document, model: str) -> tuple[tuple[str, ...], Counter[str]]:
    """Return the texts of messages that a model was sent, and their frames, counted by name."""
    texts: list[str] = []
    frames: Counter[str] = Counter()
    follows_result = False
    for message in messages:
        frames.update(framed(message, follows_result=follows_result))
        for part in message.parts:
            found = said(part, document, values_alone="claude" in model)
            texts += found.texts
            frames["argument"] += found.arguments
        follows_result = message.result is not None
    return tuple(texts), frames


LEAST_OCCURRENCES = 8
"""A frame that is met less often is not fitted."""

ROUNDS = 60


def fit(counts: np.ndarray, rest: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Return the tokens of each frame, none negative, by least absolute deviations relative to the step's size."""
    base = 1 / np.sqrt(np.maximum(actual, 100.0))
    weights = base.copy()
    free = np.ones(counts.shape[1], dtype=bool)
    solved = np.zeros(counts.shape[1])
    for _ in range(ROUNDS):
        weighted = counts[:, free] * weights[:, None]
        ridge = 1e-6 * len(rest) * np.eye(int(free.sum()))
        solved[:] = 0.0
        solved[free] = np.linalg.solve(weighted.T @ weighted + ridge, weighted.T @ (rest * weights))
        if (solved < 0).any():
            free &= solved >= 0
            solved = np.maximum(solved, 0.0)
        weights = base / np.sqrt(np.maximum(np.abs(rest - counts @ solved) * base, 0.02))
    return solved
