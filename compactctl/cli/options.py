"""The options, each in one place, and what their values mean."""

import difflib
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar

import typer

from compactctl.errors import UsageError
from compactctl.outputs import AUDIT_OUTPUTS

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Session files, folders, globs, or - for standard input."),
]
From = Annotated[
    str,
    typer.Option("--from", metavar="NAME", help="Input format; auto recognises it from the content. See: formats."),
]
Output = Annotated[
    str,
    typer.Option("-o", "--output", metavar="NAME", help="table, json, jsonl, csv or markdown."),
]
AuditOutput = Annotated[
    str,
    typer.Option("-o", "--output", metavar="KIND", help=f"{', '.join(AUDIT_OUTPUTS)}."),
]
Save = Annotated[
    list[str] | None,
    typer.Option("--save", metavar="KIND=PATH", help="Also write the result to a file, as -o KIND. Repeatable."),
]
FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on", metavar="SEVERITY", help="Exit with 1 from this severity up: error, warning, note or never."
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="RULE|GROUP", help="Look for these rules or groups alone. Repeatable."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="RULE|GROUP", help="Do not look for these rules or groups. Repeatable."),
]
NoSecrets = Annotated[bool, typer.Option("--no-secrets", help="Do not look for credentials.")]
MaxTokens = Annotated[
    str | None,
    typer.Option("--max-tokens", metavar="TOKENS", help="Fail where the largest context of a session is over this."),
]
MaxContext = Annotated[
    str | None,
    typer.Option("--max-context", metavar="PERCENT", help="The same in percent of the window."),
]
MaxCompactions = Annotated[
    str | None,
    typer.Option("--max-compactions", metavar="N", help="Fail where a session was compacted more often."),
]
MaxResultBytes = Annotated[
    str | None,
    typer.Option("--max-result-bytes", metavar="BYTES", help="Fail where one tool result is larger."),
]
MaxEstimatorError = Annotated[
    str | None,
    typer.Option(
        "--max-estimator-error", metavar="PERCENT", help="Fail where estimates are further from recorded usage."
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="FILE", help="Fail only for what this file of an earlier run does not have."),
]
WriteBaseline = Annotated[
    str | None,
    typer.Option("--write-baseline", metavar="FILE", help="Write what was found, for --baseline of a later run."),
]
ChangedSince = Annotated[
    str | None,
    typer.Option("--changed-since", metavar="REV", help="Only files that differ from this revision of git."),
]
Ci = Annotated[
    str,
    typer.Option(
        "--ci",
        metavar="NAME",
        help="github: also annotations (standard error) and the job summary; gitlab or none: neither; auto.",
    ),
]
Fix = Annotated[
    bool,
    typer.Option("--fix", help="Mend what can be mended without guessing; --apply writes STEM.fixed.jsonl."),
]
ListOutput = Annotated[str, typer.Option("-o", "--output", metavar="NAME", help="table or json.")]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", help="Write under DIR, keeping relative paths; default: beside the input."),
]
InPlace = Annotated[
    bool,
    typer.Option("--in-place", help="Put the result where the source is; the original is kept first."),
]
NewSession = Annotated[
    bool,
    typer.Option("--new-session", help="Write a copy under a new session id that its agent resumes beside the old."),
]
Backup = Annotated[
    str,
    typer.Option("--backup", metavar="KIND", help="What --in-place keeps of the original: zst, copy or none."),
]
BackupDir = Annotated[
    str | None,
    typer.Option("--backup-dir", metavar="DIR", help="Where --in-place keeps it; default: beside the session."),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", metavar="TOKENS|PERCENT%", help="Spill on past the limits, largest first, until not above it."
    ),
]
Slim = Annotated[
    bool,
    typer.Option("--slim", help="Also take out the copies of results that the model never sees; restorable."),
]
Provider = Annotated[
    str | None,
    typer.Option("--provider", metavar="NAME", help="Who writes summaries: a configured provider, or extract."),
]
SpillFirst = Annotated[
    bool, typer.Option("--spill-first", help="Move big tool results to files before, as spill does.")
]
KeepHistory = Annotated[
    bool,
    typer.Option("--keep-history", help="Leave the summarised lines in the session too, where the format allows it."),
]
Redact = Annotated[
    bool,
    typer.Option("--redact", help="Take known kinds of keys out of what is kept, too."),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before sessions are sent to a provider.")]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", metavar="USD", help="Send nothing more that would bring the batch above this price."),
]
MaxInputTokens = Annotated[
    str | None,
    typer.Option("--max-input-tokens", metavar="TOKENS", help="The same for tokens sent."),
]
ApplyAtOnce = Annotated[
    bool,
    typer.Option("--apply/--dry-run", help="Write the result (the default), or only show what would be written."),
]
Check = Annotated[
    bool,
    typer.Option("--check", help="Change nothing; exit with 1 where there would be something to do."),
]
DiscardNew = Annotated[
    bool,
    typer.Option("--discard-new", help="With --in-place: take out what was appended since (it goes to a file)."),
]
Apply = Annotated[
    bool,
    typer.Option("--apply/--dry-run", help="Write the result, or only show what would be written."),
]
Estimator = Annotated[
    list[str] | None,
    typer.Option(
        "--estimator",
        metavar="NAME",
        help="What counts tokens that no provider has counted: heuristic (default), tiktoken, tiktoken:ENCODING, "
        "calibrated, ctok. estimate and accuracy take several, and all.",
    ),
]
EncodingFile = Annotated[
    str | None,
    typer.Option("--encoding-file", metavar="FILE", help="A .tiktoken file that --estimator tiktoken counts with."),
]
Profile = Annotated[
    str | None,
    typer.Option("--profile", metavar="FILE", help="A profile that --estimator calibrated counts with."),
]
Rows = Annotated[
    str | None,
    typer.Option("--rows", metavar="FILE", help="Write a row a prediction: .csv, or .jsonl. No path, no text in it."),
]
Fit = Annotated[
    str | None,
    typer.Option("--fit", metavar="FILE", help="Fit a profile to these sessions and write it, for --profile."),
]
Compare = Annotated[
    str | None,
    typer.Option("--compare", metavar="FILE", help="Exit with 1 where errors are worse than in this -o json result."),
]
MaxP90 = Annotated[
    str | None,
    typer.Option("--max-p90", metavar="PERCENT", help="Exit with 1 where the p90 error on what is new is above this."),
]
Plot = Annotated[
    str | None,
    typer.Option("--plot", metavar="FILE", help="Write a picture of the errors: .svg or .png."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the bootstrap.")]
Anchor = Annotated[
    bool,
    typer.Option("--anchor/--no-anchor", help="Start from recorded usage where there is any, or estimate everything."),
]
Window = Annotated[
    str | None,
    typer.Option("--window", metavar="TOKENS", help="Context window, e.g. 200000 or 200k; beats all other sources."),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="Model whose window counts, instead of the recorded one."),
]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="Settings (TOML), over those of the user and of the project."),
]
TrustProject = Annotated[
    bool,
    typer.Option(
        "--trust-project", help="Let a compactctl.toml found in or above this folder set all, not limits only."
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="One setting, e.g. layer1.single_limit_bytes=20000. Repeatable."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="GLOB",
        help="Leave out files and folders of this name or path, e.g. subagents. Repeatable.",
    ),
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="DATE", help="Only sessions changed on that day or later (UTC).")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="DATE", help="Only sessions changed on that day or before (UTC).")
]
Jobs = Annotated[
    str | None,
    typer.Option("-j", "--jobs", metavar="N", help="Sessions worked on at once; default: one a CPU, at most 8."),
]
AllowEmpty = Annotated[
    bool,
    typer.Option("--allow-empty", help="Exit with 0, not 3, where no session is found."),
]
Sort = Annotated[
    str | None,
    typer.Option(
        "--sort",
        metavar="BY",
        help="size, context, saved, modified or problems, from the most; a terminal has one by default.",
    ),
]
Limit = Annotated[
    str | None,
    typer.Option("--limit", metavar="N", help="Show the first N sessions; at a terminal 20. The totals are of all."),
]
All = Annotated[bool, typer.Option("--all", help="Show all sessions at a terminal, too.")]
Color = Annotated[
    str,
    typer.Option("--color", metavar="WHEN", help="auto, always or never. auto: on a terminal, unless NO_COLOR is set."),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, notes or warnings; errors only.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more: files that are no sessions, all findings.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a bug.")]

COLORS = ("auto", "always", "never")
MOST_JOBS = 8
MOST_JOBS_ASKED = 61
"""More processes than that can't be waited for on every system."""
MOST_TOKENS = 1_000_000_000_000
"""More than any window; a larger number is a slip of the finger."""

_TOKENS = re.compile(r"([0-9][0-9,_]{0,30})([kKmM]?)")
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def tokens(text: str | None, option: str) -> int | None:
    """Return a number of tokens: `200000`, `200,000`, `200k` or `1m`. Raises UsageError for all else, and for 0."""
    if text is None:
        return None
    match = _TOKENS.fullmatch(text.strip())
    number = int(re.sub("[,_]", "", match[1])) * _UNITS[match[2].lower()] if match else 0
    if not 1 <= number <= MOST_TOKENS:
        raise UsageError(f"{option} {text}: write a number of tokens, e.g. 200000 or 200k")
    return number


_PERCENT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?%?")


def percent(text: str | None, option: str) -> float | None:
    """Return a percentage: `60`, `62.5` or `60%`. Raises UsageError for all else."""
    if text is None:
        return None
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text}: write a percentage, e.g. 60 or 62.5%")
    return float(match[1])


def whole(text: str | None, option: str) -> int | None:
    """Return a number from 0: `0`, `100000`, `100,000` or `100k`. Raises UsageError for all else."""
    if text is None:
        return None
    match = _TOKENS.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text}: write a number, e.g. 0, 100000 or 100k")
    return int(re.sub("[,_]", "", match[1])) * _UNITS[match[2].lower()]


def cost(usd: float | None) -> float | None:
    """Return a price in dollars. Raises UsageError where it is below zero or no number."""
    if usd is not None and not usd >= 0:
        raise UsageError(f"--max-cost {usd}: write a price in dollars, e.g. 0.50")
    return usd


def folder(text: str | None, option: str) -> str | None:
    """Return the name of a folder. Raises UsageError where it is empty, as an unset variable of a shell is."""
    if text == "":
        raise UsageError(f"{option}: name a folder; . is the one you are in")
    return text


def jobs(text: str | None) -> int:
    """Return how many sessions are worked on at once. Raises UsageError where it is no number from 1."""
    return _default_jobs() if text is None else min(_from_1(text, "--jobs"), MOST_JOBS_ASKED)


def limit(text: str | None) -> int | None:
    """Return how many sessions are shown. Raises UsageError where it is no number from 1."""
    return None if text is None else _from_1(text, "--limit")


def _from_1(text: str, option: str) -> int:
    if not re.fullmatch("[0-9]{1,15}", text) or int(text) < 1:
        raise UsageError(f"{option} {text}: write a number from 1")
    return int(text)


_ONE_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def since_ns(text: str | None) -> int | None:
    """Return when a time starts, in nanoseconds since 1970. Raises UsageError where it is no ISO date."""
    return None if text is None else _ns(_moment(text, "--since"))


def until_ns(text: str | None) -> int | None:
    """Return when a time ends: a day with its last nanosecond. Raises UsageError where it is no ISO date."""
    if text is None:
        return None
    moment = _moment(text, "--until")
    return _ns(moment + _ONE_DAY) - 1 if _is_day(text) else _ns(moment)


def _moment(text: str, option: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=moment.tzinfo or UTC) - timedelta(0)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} {text}: write a date, e.g. 2026-06-01 or 2026-06-01T18:00+02:00") from None


def _is_day(text: str) -> bool:
    return re.fullmatch(r"[\dW-]+", text.strip()) is not None


def _ns(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


Name = TypeVar("Name", bound=str)


def one_of(value: str, names: Iterable[Name], thing: str) -> Name:
    """Return the name that the value is. Raises UsageError with the nearest one."""
    known = list(names)
    if value in known:
        return value
    near = difflib.get_close_matches(value.lower(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"it is one of {', '.join(known)}"
    raise UsageError(f"unknown {thing} {value!r}; {hint}")


def _default_jobs() -> int:
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:
        usable = os.cpu_count() or 1
    return min(usable, MOST_JOBS)
