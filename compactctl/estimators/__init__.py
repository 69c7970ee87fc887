"""The table of estimators: what turns messages into a number of tokens."""

import difflib
from collections.abc import Callable, Iterable
from typing import Protocol

from compactctl.errors import UsageError
from compactctl.estimators import heuristic
from compactctl.model import Message
from compactctl.settings import Settings


class Estimator(Protocol):
    """Says how many tokens messages take up. Adding messages never makes it less."""

    @property
    def name(self) -> str: ...

    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of these messages together."""
        ...


ESTIMATORS: dict[str, Callable[[Settings], Estimator]] = {
    "heuristic": heuristic.make,
}
"""Every estimator by name."""


def get(name: str, settings: Settings) -> Estimator:
    """Return the estimator of this name. Raises UsageError, with the nearest name, where there is none."""
    if name not in ESTIMATORS:
        near = difflib.get_close_matches(name, ESTIMATORS, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(ESTIMATORS)}"
        raise UsageError(f"unknown estimator {name}{hint}")
    return ESTIMATORS[name](settings)
