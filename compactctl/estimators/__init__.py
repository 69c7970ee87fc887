"""The table of estimators: what turns messages into a number of tokens."""

import difflib
from collections.abc import Callable, Sequence

from msgspec import Struct

from compactctl.errors import UsageError
from compactctl.estimators import heuristic
from compactctl.estimators.interface import Estimator as Estimator
from compactctl.estimators.interface import Subject as Subject
from compactctl.estimators.interface import Weighed as Weighed
from compactctl.settings import Settings

Make = Callable[[Settings, Subject, str], Estimator]
"""Makes an estimator for a session. The text is what stands behind the colon of its name."""


class Entry(Struct, frozen=True):
    """An estimator of the table: how it is made, and under which names `all` has it."""

    make: Make
    every: tuple[str, ...]
    check: Callable[[Settings, str], None] | None = None
    """Raises UsageError where it can't be made so; None: nothing may stand behind its name."""


def _tiktoken(settings: Settings, subject: Subject, encoding: str) -> Estimator:
    from compactctl.estimators import tiktoken  # most runs have the heuristic, which is to start quickly

    return tiktoken.make(settings, subject, encoding)


def _check_tiktoken(settings: Settings, encoding: str) -> None:
    from compactctl.estimators import tiktoken

    tiktoken.check(settings, encoding)


def _calibrated(settings: Settings, subject: Subject, family: str) -> Estimator:
    from compactctl.estimators import calibrated

    return calibrated.make(settings, subject, family)


def _check_calibrated(settings: Settings, family: str) -> None:
    from compactctl.estimators import calibrated

    calibrated.check(settings, family)


def _ctok(settings: Settings, subject: Subject, rest: str) -> Estimator:
    from compactctl.estimators import ctok

    return ctok.make(settings, subject, rest)


ESTIMATORS: dict[str, Entry] = {
    "heuristic": Entry(heuristic.make, ("heuristic",)),
    "tiktoken": Entry(_tiktoken, ("tiktoken:o200k_base", "tiktoken:cl100k_base"), _check_tiktoken),
    "calibrated": Entry(_calibrated, ("calibrated",), _check_calibrated),
    "ctok": Entry(_ctok, ()),
}
"""Every estimator by name."""

ALL = "all"


def get(name: str, settings: Settings, subject: Subject) -> Estimator:
    """Return the estimator of this name (`tiktoken`, `tiktoken:o200k_base`) for one session.

    Raises UsageError, with the nearest name, where there is none.
    """
    return _entry(name).make(settings, subject, name.partition(":")[2])


def require(names: Sequence[str], settings: Settings) -> None:
    """Raise UsageError where one of these is the name of no estimator, or its file is not there."""
    for name in names:
        entry = _entry(name)
        if entry.check is not None:
            entry.check(settings, name.partition(":")[2])


def _entry(name: str) -> Entry:
    first, colon, _ = name.partition(":")
    if first not in ESTIMATORS:
        near = difflib.get_close_matches(first, ESTIMATORS, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(ESTIMATORS)}"
        raise UsageError(f"unknown estimator {name}{hint}")
    if colon and ESTIMATORS[first].check is None:
        raise UsageError(f"unknown estimator {name}: nothing stands behind {first}")
    return ESTIMATORS[first]


def every(names: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """Return the names without repeats, `all` as the estimators that it stands for."""
    if ALL not in names:
        return tuple(dict.fromkeys(names))
    own = ("tiktoken",) if settings.estimator.encoding_file else ()
    return tuple(dict.fromkeys((*(name for entry in ESTIMATORS.values() for name in entry.every), *own)))
