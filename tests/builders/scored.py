"""Sessions whose provider counted tokens as the heuristic does, and what scores of them come to."""

import math

import msgspec

from compactctl.outcome import ScoresNote
from compactctl.predictions import ALL, Score, Worst
from tests.builders.claude import Session, usage

TEXT = "The quick brown fox jumps over the lazy dog. " * 120


def grown(*steps, overhead=20_000, factor=1.0, **fields):
    """Return a session whose provider counts `overhead`, and `factor` times what the heuristic says of what is new."""
    s = Session()
    total = overhead
    for index, size in enumerate(steps):
        s.user(TEXT[:size])
        total += math.ceil(factor * (size + 4) / 3.5)
        s.assistant("Done.", usage=usage(total, out=4), id=f"msg_{index}", requestId=f"req_{index}", **fields)
        total += 4
    return s


def score(**changes):
    """Return a score of small errors, with these changes to it."""
    base = Score("e", "m", "new", ALL, 20, 3, 0.01, 0.02, 0.01, 0.03, 0.06, 0.07, Worst(0.2, "/x", 1), ())
    return msgspec.structs.replace(base, **changes)


def note(*found):
    """Return the totals of a batch that came to these scores."""
    return ScoresNote("t", "p", 0, 20, 20, {}, found)
