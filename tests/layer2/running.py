"""Layer 2 run on one file, for its tests."""

from compactctl import run
from compactctl.options import Options
from compactctl.settings import Settings, with_changes
from tests.builders.long_chat import small_window
from tests.runs import only

SUMMARY = "<analysis>They looked around.</analysis>\n<summary>The importer was looked at.</summary>"


def options(*, apply=True, window=4_000, changes=(), **more):
    """Return options under which a long chat is due: a small window, little kept; `changes` are settings."""
    settings = with_changes(Settings(), [*small_window(), *changes])
    return Options(apply=apply, window_tokens=window, settings=settings, **more)


def summarize(path, given=None):
    """Return the outcome of `summarize` on a file."""
    return only(run.summarize([str(path)], given or options()))


def compact(path, given=None):
    """Return the outcome of `compact` on a file."""
    return only(run.compact([str(path)], given or options()))
