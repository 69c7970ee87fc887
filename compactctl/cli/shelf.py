"""Which sessions of a batch are shown, and in which order, where that is not all of them as they come.

The promise: of a batch of any size no more outcomes are kept than will be shown.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compactctl.outcome import Outcome

Key = tuple[Any, ...]


def _none(outcome: "Outcome") -> Key:
    return ()


def _size(outcome: "Outcome") -> Key:
    return (outcome.bytes.before if outcome.bytes else 0,)


def _context(outcome: "Outcome") -> Key:
    return (outcome.tokens.before if outcome.tokens else 0,)


def _saved(outcome: "Outcome") -> Key:
    """What was or will be saved comes first, then what the set limit would save, then what lower ones would."""
    from compactctl.outcome import forecasts

    planned = outcome.tokens.before - outcome.tokens.after if outcome.tokens else 0
    return (planned, *(choice.tokens_saved for choice in forecasts(outcome)))


def _modified(outcome: "Outcome") -> Key:
    return (outcome.modified or "",)


def _problems(outcome: "Outcome") -> Key:
    severities = [finding.severity for finding in outcome.findings]
    return outcome.exit_code, severities.count("error"), severities.count("warning")


SORTS: dict[str, Callable[["Outcome"], Key]] = {
    "size": _size,
    "context": _context,
    "saved": _saved,
    "modified": _modified,
    "problems": _problems,
}
"""What `--sort` names; the largest, the newest or the worst comes first."""

USUAL_SORTS = {
    "inspect": "size",
    "estimate": "context",
    "spill": "saved",
    "summarize": "saved",
    "compact": "saved",
    "audit": "problems",
    "restore": "problems",
    "verify": "problems",
}
"""What a terminal shows first."""

USUAL_LIMIT = 20
"""How many a terminal shows; with the totals that is a screenful."""


class Shelf:
    """Keeps the outcomes that will be shown: the first by `sort` (None: as they come), at most `limit` of them."""

    def __init__(self, sort: str | None, limit: int | None) -> None:
        self._key = SORTS[sort] if sort else _none
        self._limit = limit
        self._came = 0
        self._kept: list[tuple[Key, int, Outcome]] = []
        """A heap, once it is full: what has to go first stands in front."""

    def add(self, outcome: "Outcome") -> None:
        """Keep an outcome, or let the least of all go."""
        self._came += 1
        item = (self._key(outcome), -self._came, outcome)
        if self._limit is None or len(self._kept) < self._limit:
            heapq.heappush(self._kept, item)
        else:
            heapq.heappushpop(self._kept, item)

    def __iter__(self) -> Iterator["Outcome"]:
        """Yield what was kept, in the order to be shown."""
        for _, _, outcome in sorted(self._kept, key=lambda item: item[:2], reverse=True):
            yield outcome
