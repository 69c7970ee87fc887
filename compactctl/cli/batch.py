"""One call of `run`, from options to exit code: progress while it works, then the result, then what else is to say."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import typer

from compactctl.cli import options as opt
from compactctl.cli import streams
from compactctl.cli.groups import Finding, Reading, Setting, Showing, Shrinking, Writing
from compactctl.errors import UsageError, WriteError

if TYPE_CHECKING:
    from compactctl.config import Config
    from compactctl.options import Options
    from compactctl.outcome import Batch, Outcome


def execute(
    command: str,
    paths: list[str],
    finding: Finding,
    shown: Showing,
    *,
    reading: Reading | None = None,
    setting: Setting | None = None,
    writing: Writing | None = None,
    shrinking: Shrinking | None = None,
    discard_new: bool = False,
) -> NoReturn:
    """Run a command over its paths, print the result, and leave with its exit code.

    A group of options that the command lacks stands for their defaults.
    """
    from compactctl import outputs, run

    opt.one_of(shown.output, outputs.OUTPUTS, "output")
    opt.one_of(shown.color, opt.COLORS, "--color")
    sessions_at_once = opt.jobs(finding.jobs)
    config = load_config(setting) if setting else None
    options = _options(
        finding,
        reading or Reading(),
        config,
        writing or Writing(),
        shrinking or Shrinking(),
        shown,
        discard_new=discard_new,
    )
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
    _say(batch, config, shown)
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


def load_config(setting: Setting) -> "Config":
    """Return the settings of this run, from all the places where they may stand."""
    from compactctl import config

    return config.load(
        setting.config,
        setting.assignments or (),
        trust_project=setting.trust_project,
        surroundings=config.Surroundings.here(),
    )


def _options(
    finding: Finding,
    reading: Reading,
    config: "Config | None",
    writing: Writing,
    shrinking: Shrinking,
    shown: Showing,
    *,
    discard_new: bool,
) -> "Options":
    from compactctl.formats import FORMATS
    from compactctl.options import Options
    from compactctl.settings import Settings

    opt.one_of(reading.from_format, ["auto", *FORMATS], "format")
    return Options(
        format=None if reading.from_format == "auto" else reading.from_format,
        estimator=reading.estimator,
        anchored=reading.anchored,
        window_tokens=opt.tokens(reading.window, "--window"),
        model=reading.model,
        settings=config.resolved.settings if config else Settings(),
        apply=writing.apply,
        out=writing.out,
        target=shrinking.target,
        slim=shrinking.slim,
        place=_place(shrinking),
        backup=opt.one_of(shrinking.backup, opt.BACKUPS, "backup"),
        backup_dir=shrinking.backup_dir,
        check=_check(shrinking, writing),
        discard_new=discard_new,
        allow_empty=finding.allow_empty,
        debug=shown.debug,
    )


def _place(shrinking: Shrinking) -> str:
    if shrinking.in_place and shrinking.new_session:
        raise UsageError("--in-place and --new-session: choose one")
    if not shrinking.in_place and (shrinking.backup != "zst" or shrinking.backup_dir is not None):
        raise UsageError("--backup and --backup-dir say what --in-place keeps; without it the source stays as it is")
    return "in place" if shrinking.in_place else "new session" if shrinking.new_session else "beside"


def _check(shrinking: Shrinking, writing: Writing) -> bool:
    if shrinking.check and writing.apply:
        raise UsageError("--check changes nothing, --apply writes: choose one")
    return shrinking.check


def _say(batch: "Batch", config: "Config | None", shown: Showing) -> None:
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
        for file in config.files if config else ():
            streams.say(f"settings from the {file.source}: {visible(file.path)}")
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
