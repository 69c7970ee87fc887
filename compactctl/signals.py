"""What stops a run from outside: Ctrl-C, and the signals by which a system or a closing terminal ends a program.

The promise: all of them stop it in the same way, a KeyboardInterrupt in the main process; the exit code says which.
"""

import signal
from types import FrameType
from typing import NoReturn

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that stop a run (Windows has no SIGHUP)."""

_stopped_by = int(signal.SIGINT)


def prepare() -> None:
    """Let each of these signals stop the run, unless the program was started to ignore it, as by nohup."""
    for number in STOPPING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _stop)


def exit_code() -> int:
    """Return the exit code of a run that was stopped: 128 and the number of the signal, 130 for Ctrl-C."""
    return 128 + _stopped_by


def heeded() -> tuple[int, ...]:
    """Return the signals that stop this process, as far as it does not ignore them."""
    return tuple(number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN)


def ignore() -> None:
    """Take no notice of any of these signals."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def heed(numbers: tuple[int, ...]) -> None:
    """Let these signals raise KeyboardInterrupt."""
    for number in numbers:
        signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    global _stopped_by
    _stopped_by = number
    raise KeyboardInterrupt
