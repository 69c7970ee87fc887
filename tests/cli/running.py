"""The command line as the tests run it: with a stand-in for `run`, and as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from compactctl.totals import Batch

SAMPLES = Path(__file__).parents[2] / "sample_sessions"
PATH_COMMANDS = ("inspect", "estimate", "spill", "summarize", "compact", "restore", "verify")
COMMANDS = (*PATH_COMMANDS, "settings", "providers", "formats", "rules")


class FakeRun:
    """Stands in for `run`: gives the batch it was made with, and keeps what it was asked."""

    def __init__(self, made: Batch | BaseException) -> None:
        self.made = made
        self.asked: list[tuple] = []

    def __call__(self, paths, options, how):
        self.asked.append((paths, options, how.jobs))
        if isinstance(self.made, BaseException):
            raise self.made
        for number, item in enumerate(self.made.outcomes, start=1):
            how.on_outcome(item)
            how.progress(number, len(self.made.outcomes), item.path)
        return self.made


def process(*arguments, stdin="", **environment):
    """Run compactctl as a process of its own and return what came of it."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("NO_COLOR", "PYTHONIO"))}
    return subprocess.run(
        [sys.executable, "-m", "compactctl", *map(str, arguments)],
        env={**plain, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
