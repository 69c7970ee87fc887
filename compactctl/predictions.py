"""Predictions and their scores, as values: what files, workers and outputs hand to each other."""

from typing import Literal

from msgspec import Struct

Way = Literal["whole", "next", "ahead-5", "ahead-20", "new", "compacted"]

WAYS: tuple[Way, ...] = ("new", "next", "ahead-5", "ahead-20", "whole", "compacted")
"""Every way, in the order in which they are told. `compacted` is what a report of ours said would be left."""

NEW_BYTES = 4_000
"""Below this what is new is a small part of what is counted, and the provider's frames are most of it."""

BINS = (-0.5, -0.2, -0.1, -0.05, -0.02, 0.02, 0.05, 0.1, 0.2, 0.5)
"""The bounds of the bins of errors; beyond the outer ones there is one more on each side."""

ALL = "all"
"""Stands for every kind of content, or every model."""


class Row(Struct, frozen=True):
    """One prediction as it may be published: no path, no text."""

    session: str
    line: int
    request_id: str | None
    model: str
    agent: str
    estimator: str
    way: str
    kind: str
    new_bytes: int
    context_tokens: int
    predicted: float
    actual: int

    @property
    def error(self) -> float:
        return (self.predicted - self.actual) / self.actual


class Observed(Struct, frozen=True):
    """One step: the tokens of its texts by group, its frames by name, and what the provider counted for it."""

    session: str
    request_id: str | None
    family: str
    model: str
    new_bytes: int
    actual: int
    beside: float
    parts: dict[str, float]

    @property
    def is_big(self) -> bool:
        return self.new_bytes >= NEW_BYTES


class Worst(Struct, frozen=True):
    """Where an estimator was furthest off."""

    error: float
    path: str
    line: int


class Score(Struct, frozen=True):
    """The errors of one estimator on one model, one way of predicting and one kind of content."""

    estimator: str
    model: str
    way: str
    kind: str
    n: int
    sessions: int
    bias: float
    median: float
    median_low: float
    median_high: float
    """The p5 and p95 of the median over bootstrap samples of the sessions."""
    p90: float
    p95: float
    worst: Worst
    histogram: tuple[int, ...]
    """How many errors are between these `BINS`, from far too little to far too much."""
