"""One call of `run`, from options to exit code: progress while it works, then the result, then what else is to say."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import typer

from compactctl.cli import options as opt
from compactctl.cli import streams
from compactctl.errors import WriteError

if TYPE_CHECKING:
    from compactctl.options import Options
    from compactctl.outcome import Batch, Outcome


@dataclass(frozen=True, slots=True)
class Shown:
    """How the result is shown, by the options that every command has."""

    output: str
    color: str
    quiet: bool
    verbose: bool
    debug: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done, by the options that a command has; a default stands for one that it lacks."""

    from_format: str = "auto"
    estimator: str = "heuristic"
    anchored: bool = True
    window: str | None = None
    model: str | None = None
    assignments: Sequence[str] = ()
    apply: bool = False
    out: str | None = None
    allow_empty: bool = False


def execute(command: str, paths: list[str], wanted: Wanted, shown: Shown, jobs: str | None) -> NoReturn:
    """Run a command over its paths, print the result, and leave with its exit code."""
    from compactctl import outputs, run

    opt.one_of(shown.output, outputs.OUTPUTS, "output")
    opt.one_of(shown.color, opt.COLORS, "--color")
    sessions_at_once = opt.jobs(jobs)
    options = _options(wanted, shown.debug)
    output = outputs.load(shown.output)
    progress = streams.Progress(streams.is_terminal(sys.stderr) and not shown.quiet)

    def on_outcome(outcome: "Outcome") -> None:
        text = output.outcome(outcome)
        if text:
            progress.clear()
            print_result(text, output.ENCODING)

    work: Callable[..., Batch] = getattr(run, command)
    try:
        batch = work(paths, options, sessions_at_once, progress, on_outcome)
    finally:
        progress.clear()
    _say(batch, shown)
    view = outputs.View(
        color=streams.has_color(shown.color, os.environ),
        terminal=streams.is_terminal(sys.stdout),
        verbose=shown.verbose,
        command_line=_applying(sys.argv[1:]),
    )
    try:
        print_result(output.batch(batch, view), output.ENCODING)
    except streams.ClosedPipe:
        streams.abandon()
    raise typer.Exit(batch.exit_code)


def print_result(text: str, encoding: str | None) -> None:
    """Print on standard output. Raises WriteError where it can't be written, ClosedPipe where nobody reads."""
    try:
        streams.write(text, encoding)
    except OSError as error:
        streams.abandon()
        raise WriteError(f"standard output: {error.strerror or error}") from None


def _options(wanted: Wanted, debug: bool) -> "Options":
    from compactctl.formats import FORMATS
    from compactctl.options import Options
    from compactctl.settings import Settings, with_changes

    opt.one_of(wanted.from_format, ["auto", *FORMATS], "format")
    return Options(
        format=None if wanted.from_format == "auto" else wanted.from_format,
        estimator=wanted.estimator,
        anchored=wanted.anchored,
        window_tokens=opt.tokens(wanted.window, "--window"),
        model=wanted.model,
        settings=with_changes(Settings(), wanted.assignments),
        apply=wanted.apply,
        out=wanted.out,
        allow_empty=wanted.allow_empty,
        debug=debug,
    )


def _say(batch: "Batch", shown: Shown) -> None:
    """Say on standard error what failed and, unless quiet, what else deserves a look."""
    from compactctl.outputs.safe import visible

    failed = [outcome for outcome in batch.outcomes if outcome.status == "failed"]
    for outcome in failed:
        streams.say(f"error: {visible(said(outcome))}")
        if shown.debug and outcome.traceback:
            streams.say("\n".join(visible(line) for line in outcome.traceback.splitlines()))
    stopped = batch.exit_code != 0 and not failed
    for problem in batch.problems if stopped or not shown.quiet else ():
        streams.say(f"{'error' if stopped else 'warning'}: {visible(problem)}")
    if shown.quiet:
        return
    if shown.verbose:
        for path in batch.not_sessions:
            streams.say(f"not a session: {visible(path)}")


def said(outcome: "Outcome") -> str:
    """Return why a session failed, with its path in front."""
    message = outcome.error.message if outcome.error is not None else f"exit code {outcome.exit_code}"
    return message if message.startswith(outcome.path) else f"{outcome.path}: {message}"


def _applying(arguments: Sequence[str]) -> str:
    """Return the command line that does for good what this one showed."""
    import shlex

    kept = [argument for argument in arguments if argument not in ("--dry-run", "--apply")]
    return shlex.join(["compactctl", *kept, "--apply"])
