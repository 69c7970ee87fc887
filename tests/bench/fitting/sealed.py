"""Sealed reasoning: the answers from which its cost can be told, and what a byte of a seal is worth."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compactctl.model import Reasoning
from compactctl.profiles import Sealed
from tests.bench.fitting import corpus
from tests.bench.fitting.corpus import Row
from tests.bench.fitting.frames import ROUNDS, counted


@dataclass(frozen=True)
class Thought:
    """An answer whose reasoning is sealed: its output, what of it is readable, and the seal's size."""

    model: str
    output: int
    texts: tuple[str, ...]
    frames: Counter[str]
    sealed_bytes: int


def thoughts(rows: Sequence[Row]) -> Iterator[Thought]:
    """Yield the answers with sealed reasoning alone whose output was recorded."""
    for _, session, transcript in corpus.read(rows):
        for message in transcript.messages:
            found = [part for part in message.parts if isinstance(part, Reasoning)]
            sealed = sum(part.sealed_bytes for part in found)
            usage = message.usage
            if usage is None or not usage.is_output_known or not sealed or any(p.size_bytes for p in found):
                continue
            model = usage.model or transcript.model or ""
            texts, frames = counted([message], session.document, model)
            yield Thought(model, usage.output_tokens, texts, frames, sealed)


LEAST_THOUGHTS = 100
LEAST_SEAL_BYTES = 64
"""A smaller seal was taken out of the file by somebody."""


def fit(found: Iterable[Thought], readable: Callable[[Thought], float]) -> Sealed | None:
    """Return what a byte of a seal is worth, by least absolute deviations; None for too few.

    `readable` tells the tokens of what can be read of an answer.
    """
    own = [thought for thought in found if thought.sealed_bytes >= LEAST_SEAL_BYTES]
    if len(own) < LEAST_THOUGHTS:
        return None
    size = np.array([thought.sealed_bytes for thought in own], dtype=float)
    rest = np.array([thought.output - readable(thought) for thought in own])
    design = np.column_stack([size, np.ones(len(size))])
    weights = np.ones(len(size))
    for _ in range(ROUNDS):
        weighted = design * weights[:, None]
        slope, shift = np.linalg.solve(weighted.T @ weighted, weighted.T @ (rest * weights))
        weights = 1 / np.sqrt(np.maximum(np.abs(rest - design @ [slope, shift]), 1.0))
    return Sealed(round(float(slope), 4), max(0, round(float(-shift / slope))))
