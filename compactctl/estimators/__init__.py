"""The table of estimators: what turns messages into a number of tokens."""

import difflib
from collections.abc import Callable

from compactctl.errors import UsageError
from compactctl.estimators import heuristic
from compactctl.estimators.interface import Estimator as Estimator
from compactctl.estimators.interface import Subject as Subject
from compactctl.settings import Settings

ESTIMATORS: dict[str, Callable[[Settings, Subject], Estimator]] = {
    "heuristic": heuristic.make,
}
"""Every estimator by name."""


def get(name: str, settings: Settings, subject: Subject) -> Estimator:
    """Return the estimator of this name for one session. Raises UsageError, with the nearest name, for none."""
    if name not in ESTIMATORS:
        near = difflib.get_close_matches(name, ESTIMATORS, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(ESTIMATORS)}"
        raise UsageError(f"unknown estimator {name}{hint}")
    return ESTIMATORS[name](settings, subject)
