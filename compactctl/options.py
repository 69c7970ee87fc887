"""What a command was asked for, apart from the paths: one frozen value that every step gets."""

import re
from typing import Final, Literal, get_args

from msgspec import Struct

from compactctl.errors import UsageError
from compactctl.findings import Severity
from compactctl.settings import Settings

Destination = Literal["beside", "in place", "new session"]
"""Where a result goes: beside its source, in the place of it, or as a session of its own."""
BESIDE: Final = "beside"
IN_PLACE: Final = "in place"
NEW_SESSION: Final = "new session"

Backup = Literal["zst", "copy", "none"]
"""What is kept of the original where a result takes its place: all of it, packed or not, or only what was replaced."""
BACKUPS: tuple[Backup, ...] = get_args(Backup)

FailOn = Literal[Severity, "never"]
FAIL_ON: tuple[FailOn, ...] = ("error", "warning", "note", "never")


class Selection(Struct, frozen=True):
    """Which of the files found are worked on. Times are of the last change, in nanoseconds since 1970."""

    excluded: tuple[str, ...] = ()
    """Globs: of a name, or of a path below the folder that was given."""
    since_ns: int | None = None
    until_ns: int | None = None


class Audit(Struct, frozen=True, kw_only=True):
    """What `audit` looks for, and what makes it fail."""

    fail_on: FailOn = "error"
    selected: tuple[str, ...] = ()
    """Rules and groups; where there are any, no other rule is looked at. Gates count all the same."""
    ignored: tuple[str, ...] = ()
    secrets: bool = True
    max_tokens: int | None = None
    max_context_percent: float | None = None
    max_compactions: int | None = None
    max_result_bytes: int | None = None
    max_estimator_error_percent: float | None = None
    baseline: str | None = None
    """A file that `write_baseline` named in an earlier run: what it has does not fail again."""
    write_baseline: str | None = None
    changed_since: str | None = None
    """A revision of git: only files that differ from it are looked at."""
    fix: bool = False
    """Mend what can be; with `apply`, write the mended session."""
    written: tuple[str, ...] = ()
    """The files that this run writes; none of them may be a session."""


class Scoring(Struct, frozen=True, kw_only=True):
    """What `accuracy` does besides printing its scores."""

    rows: str | None = None
    """A file for one row a prediction: JSON lines where its name says so, else CSV."""
    fit: str | None = None
    """A file for a profile that is fitted to what was judged."""
    compare: str | None = None
    """A JSON result of an earlier run, to be worse than which is to fail."""
    max_p90_percent: float | None = None
    plot: str | None = None
    seed: int = 0


class Options(Struct, frozen=True, kw_only=True):
    """The options of a run. Defaults belong to the command line; these are for tests and steps that need none."""

    selection: Selection = Selection()

    format: str | None = None
    """Input format; None: recognised from content."""
    estimator: str = "heuristic"
    """What every figure is made with."""
    others: tuple[str, ...] = ()
    """Further estimators, whose figures `estimate` prints beside."""
    anchored: bool = True
    window_tokens: int | None = None
    model: str | None = None
    """The model that the window is looked up for, whatever the session says."""
    settings: Settings = Settings()
    apply: bool = False
    out: str | None = None
    target: str | None = None
    """`--target`: a number of tokens or a percentage of the window, as it was written."""
    slim: bool = False
    place: Destination = BESIDE
    backup: Backup = "zst"
    """What `in place` keeps of the original."""
    backup_dir: str | None = None
    check: bool = False
    discard_new: bool = False
    spill_first: bool = False
    """Whether Layer 1 runs before a summary that was asked for by hand."""
    provider: str | None = None
    """The named provider that writes summaries, whatever the settings say."""
    keep_history: bool = False
    """Leave the summarised lines in the file, where the format allows it."""
    redact: bool = False
    """Take known kinds of keys out of what is kept, too."""
    yes: bool = False
    """Ask nobody before requests go out."""
    max_cost_usd: float | None = None
    max_input_tokens: int | None = None
    """No further request starts that would bring the batch above one of these."""
    audit: Audit = Audit()
    scoring: Scoring = Scoring()
    allow_empty: bool = False
    debug: bool = False


_TARGET = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(%|[kKmM]?)")
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def target_tokens(text: str, window_tokens: int) -> int:
    """Return the tokens that `--target` asks for: a number, `120k`, or a percentage of the window.

    Raises UsageError where it is none of these.
    """
    match = _TARGET.fullmatch(text.strip().replace(",", "").replace("_", ""))
    if match is None:
        raise UsageError(f"--target {text}: write tokens (100000, 100k) or a percentage of the window (50%)")
    number, unit = float(match[1]), match[2].lower()
    return int(window_tokens * number / 100) if unit == "%" else int(number * _UNITS[unit])
