"""One call of `run`, from options to exit code: progress while it works, then the result, then what else is to say."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from compactctl.cli import ci, streams
from compactctl.cli import options as opt
from compactctl.cli.groups import (
    Asking,
    Finding,
    Gating,
    Listing,
    Reading,
    Scoring,
    Setting,
    Showing,
    Shrinking,
    Writing,
)
from compactctl.errors import OutputCollision, UsageError, WriteError

if TYPE_CHECKING:
    from compactctl.cli.shelf import Shelf
    from compactctl.config import Config
    from compactctl.options import Audit, Destination, Options, Selection
    from compactctl.options import Scoring as ScoringOptions
    from compactctl.outcome import Outcome
    from compactctl.outputs import Printer, View
    from compactctl.settings import Settings
    from compactctl.totals import Batch


def execute(
    command: str,
    paths: list[str],
    finding: Finding,
    listing: Listing,
    shown: Showing,
    *,
    reading: Reading | None = None,
    setting: Setting | None = None,
    writing: Writing | None = None,
    shrinking: Shrinking | None = None,
    asking: Asking | None = None,
    gating: Gating | None = None,
    scoring: Scoring | None = None,
    saves: Sequence[str] = (),
    spill_first: bool = False,
    discard_new: bool = False,
) -> NoReturn:
    """Run a command over its paths, print the result, and leave with its exit code.

    A group of options that the command lacks stands for their defaults.
    """
    from compactctl import outputs, run

    known_outputs = outputs.OUTPUTS if gating is None else outputs.AUDIT_OUTPUTS
    opt.one_of(shown.output, known_outputs, "output")
    opt.one_of(shown.color, opt.COLORS, "--color")
    sessions_at_once = opt.jobs(finding.jobs)
    config = load_config(setting) if setting else None
    saved = [Saved.of(text, known_outputs) for text in saves]
    opt.one_of(gating.ci if gating else "auto", ci.CHOICES, "--ci")
    reading = reading or Reading()
    settings = _settings(config, reading)
    options = _options(
        finding,
        reading,
        settings,
        _estimators(command, reading, settings),
        writing or Writing(),
        shrinking or Shrinking(),
        shown,
        asking or Asking(),
        _audit(gating or Gating(), writing or Writing(), saved),
        _scoring(scoring or Scoring()),
        spill_first=spill_first,
        discard_new=discard_new,
    )
    view = _view(command, listing, shown, gating)
    sinks = [*saved, *(ci.sinks(gating.ci, os.environ, shown.output) if gating else ())]
    output = outputs.load(shown.output)
    printer = output.printer(command, view)
    goes_on = bool(sinks) or _writes(options)
    printed = _Printed(printer, output.ENCODING, _shelf(view, listing, shown), shown, sinks, goes_on=goes_on)
    for each in sinks:
        each.start(command, view)
    work: Callable[..., Batch] = getattr(run, command)
    try:
        printed.progress.begin()
        how = run.How(sessions_at_once, printed.progress, printed.outcome, **_approver(asking))
        batch = work(paths, options, how)
    finally:
        printed.progress.clear()
    printed.say(batch, config)
    try:
        printed.end(batch)
    except streams.ClosedPipe:
        streams.abandon()
    raise typer.Exit(batch.exit_code)


def _writes(options: "Options") -> bool:
    """Return whether a run is to leave files behind."""
    scoring = options.scoring
    named = (options.audit.write_baseline, scoring.rows, scoring.fit, scoring.plot)
    return options.apply or any(path is not None for path in named)


def _approver(asking: Asking | None) -> dict[str, Any]:
    """Return what a command that asks a provider is told besides."""
    from compactctl.cli.asking import approver

    return {} if asking is None else {"approve": approver(yes=asking.yes)}


def _view(command: str, listing: Listing, shown: Showing, gating: Gating | None) -> "View":
    from compactctl.cli.shelf import SORTS, USUAL_SORTS
    from compactctl.outputs import View

    is_terminal = streams.is_terminal(sys.stdout)
    usual = USUAL_SORTS.get(command, "") if is_terminal and shown.output == "table" else ""
    return View(
        color=streams.has_color(shown.color, os.environ),
        terminal=is_terminal,
        verbose=shown.verbose,
        command_line=_applying(sys.argv[1:]),
        root=_repository_root() if gating else "",
        fail_on=gating.fail_on if gating else "error",
        sort=usual if listing.sort is None else opt.one_of(listing.sort, SORTS, "--sort"),
    )


def _repository_root() -> str:
    """Return the nearest folder upward that is a git repository; the working folder where there is none."""
    here = folder = os.getcwd()
    while not os.path.exists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return here
        folder = above
    return folder


def _shelf(view: "View", listing: Listing, shown: Showing) -> "Shelf | None":
    """Return what keeps the outcomes until the end; None where all are shown as they come."""
    from compactctl.cli.shelf import USUAL_LIMIT, Shelf

    if listing.show_all and listing.limit is not None:
        raise UsageError("--all and --limit: choose one")
    limit = opt.limit(listing.limit)
    if limit is None and view.terminal and shown.output == "table" and not listing.show_all:
        limit = USUAL_LIMIT
    return Shelf(view.sort or None, limit) if view.sort or limit else None


ERRORS_SAID = 20
"""How many failed sessions are told one by one, so that what matters does not scroll away."""


class _Printed:
    """One batch on its way to the two streams: each outcome as it comes, the rest at the end."""

    def __init__(
        self,
        printer: "Printer",
        encoding: str | None,
        shelf: "Shelf | None",
        shown: Showing,
        sinks: "Sequence[ci.Sink]",
        *,
        goes_on: bool,
    ) -> None:
        self.progress = streams.Progress(streams.is_terminal(sys.stderr) and not shown.quiet)
        self._printer = printer
        self._encoding = encoding
        self._shelf = shelf
        self._shown = shown
        self._sinks = sinks
        self._goes_on = goes_on
        """Whether the work goes on when nobody reads what is printed: it is not done for that alone."""
        self._failed = 0

    def outcome(self, outcome: "Outcome") -> None:
        """Take an outcome: an error is said at once, and it is printed unless it has to wait."""
        if outcome.status == "failed":
            self._say_error(outcome)
        for sink in self._sinks:
            sink.outcome(outcome)
        if self._shelf is None:
            self._print(self._printer.outcome(outcome))
        else:
            self._shelf.add(outcome)

    def end(self, batch: "Batch") -> None:
        """Print what had to wait, and the totals; write the files that were asked for."""
        for sink in self._sinks:
            sink.end(batch)
        for outcome in self._shelf or ():
            self._print(self._printer.outcome(outcome))
        self._print(self._printer.end(batch))

    def _print(self, text: str) -> None:
        if text:
            self.progress.clear()
            try:
                print_result(text, self._encoding)
            except streams.ClosedPipe:
                if not self._goes_on:
                    raise
                streams.abandon()

    def _say_error(self, outcome: "Outcome") -> None:
        from compactctl.outputs.safe import visible

        self._failed += 1
        if self._failed > ERRORS_SAID and not self._shown.verbose:
            return
        self.progress.clear()
        streams.say(f"error: {visible(said(outcome))}")
        if self._shown.debug and outcome.traceback:
            streams.say("\n".join(visible(line) for line in outcome.traceback.splitlines()))

    def say(self, batch: "Batch", config: "Config | None") -> None:
        """Say on standard error, unless quiet, what deserves a look besides what failed."""
        from compactctl.outputs.safe import visible

        if self._failed > ERRORS_SAID and not self._shown.verbose:
            streams.say(f"and {self._failed - ERRORS_SAID:,} more errors (-v says them all, -o json has them)")
        stopped = batch.exit_code != 0 and not self._failed
        for problem in batch.problems if stopped or not self._shown.quiet else ():
            streams.say(f"{'error' if stopped else 'warning'}: {visible(problem)}")
        if self._shown.quiet:
            return
        for note in batch.notes:
            streams.say(f"note: {visible(note)}")
        if not self._shown.verbose:
            return
        for file in config.files if config else ():
            streams.say(f"settings from the {file.source}: {visible(file.path)}")
        for path in batch.not_sessions:
            streams.say(f"not a session: {visible(path)}")


class Saved:
    """A report on its way to a file: what it will hold is kept, and written whole at the end."""

    def __init__(self, kind: str, path: str) -> None:
        self.kind = kind
        self.path = path
        self._pieces: list[bytes] = []

    @classmethod
    def of(cls, text: str, kinds: Mapping[str, str]) -> "Saved":
        """Return what `--save KIND=PATH` asks for. Raises UsageError where it is no such thing."""
        kind, equals, path = text.partition("=")
        if not equals or not path:
            raise UsageError(f"--save {text}: write KIND=PATH, e.g. json=audit.json")
        return cls(opt.one_of(kind, kinds, "output"), path)

    def start(self, command: str, view: "View") -> None:
        """Begin the report of one run: no terminal reads it, so it has no colour and all the names whole."""
        from dataclasses import replace

        from compactctl import outputs

        output = outputs.load(self.kind)
        self._encoding = output.ENCODING or "utf-8"
        self._printer = output.printer(command, replace(view, color=False, terminal=False))

    def outcome(self, outcome: "Outcome") -> None:
        self._add(self._printer.outcome(outcome))

    def end(self, batch: "Batch") -> None:
        """Write the file. Raises WriteError."""
        from compactctl import store

        self._add(self._printer.end(batch))
        store.write_named(self.path, self._pieces)

    def _add(self, text: str) -> None:
        if text:
            self._pieces.append(text.encode(self._encoding, "backslashreplace"))


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


def _settings(config: "Config | None", reading: Reading) -> "Settings":
    """Return the settings of the run, with what has an option of its own."""
    import msgspec

    from compactctl.settings import Settings

    settings = config.resolved.settings if config else Settings()
    given = {"encoding_file": reading.encoding_file, "profile": reading.profile}
    own = {key: value for key, value in given.items() if value is not None}
    return msgspec.structs.replace(settings, estimator=msgspec.structs.replace(settings.estimator, **own))


SEVERAL_ESTIMATORS = ("estimate", "accuracy")
"""The commands that print the figures of several estimators beside each other."""


def _estimators(command: str, reading: Reading, settings: "Settings") -> tuple[str, ...]:
    """Return the estimators of a run. Raises UsageError where there is no such one, or too many."""
    from compactctl import estimators

    names = estimators.every(reading.estimator or ["heuristic"], settings)
    estimators.require(names, settings)
    if len(names) > 1 and command not in SEVERAL_ESTIMATORS:
        raise UsageError(f"{command} counts with one estimator; compactctl estimate compares them")
    if reading.encoding_file is not None and "tiktoken" not in names:
        raise UsageError("--encoding-file goes with --estimator tiktoken")
    if reading.profile is not None and not any(name.partition(":")[0] == "calibrated" for name in names):
        raise UsageError("--profile goes with --estimator calibrated")
    return names


def _options(
    finding: Finding,
    reading: Reading,
    settings: "Settings",
    estimators: Sequence[str],
    writing: Writing,
    shrinking: Shrinking,
    shown: Showing,
    asking: Asking,
    audit: "Audit",
    scoring: "ScoringOptions",
    *,
    spill_first: bool,
    discard_new: bool,
) -> "Options":
    from compactctl.formats import FORMATS
    from compactctl.options import BACKUPS, Options

    opt.one_of(reading.from_format, ["auto", *FORMATS], "format")
    return Options(
        selection=_selection(finding),
        format=None if reading.from_format == "auto" else reading.from_format,
        estimator=estimators[0],
        others=tuple(estimators[1:]),
        anchored=reading.anchored,
        window_tokens=opt.tokens(reading.window, "--window"),
        model=reading.model,
        settings=settings,
        apply=writing.apply,
        out=opt.folder(writing.out, "--out"),
        target=shrinking.target,
        slim=shrinking.slim,
        place=_place(shrinking),
        backup=opt.one_of(shrinking.backup, BACKUPS, "backup"),
        backup_dir=shrinking.backup_dir,
        check=_check(shrinking, writing),
        discard_new=discard_new,
        spill_first=spill_first,
        provider=asking.provider,
        keep_history=asking.keep_history,
        redact=asking.redact,
        yes=asking.yes,
        max_cost_usd=opt.cost(asking.max_cost),
        max_input_tokens=opt.tokens(asking.max_input_tokens, "--max-input-tokens"),
        audit=audit,
        scoring=scoring,
        allow_empty=finding.allow_empty,
        debug=shown.debug,
    )


def _scoring(scoring: Scoring) -> "ScoringOptions":
    from compactctl.options import Scoring as ScoringOptions

    if scoring.plot is not None:
        from compactctl import plot

        plot.require(scoring.plot)
    _require_apart({"--rows": scoring.rows, "--fit": scoring.fit, "--plot": scoring.plot})
    return ScoringOptions(
        rows=scoring.rows,
        fit=scoring.fit,
        compare=scoring.compare,
        max_p90_percent=opt.percent(scoring.max_p90, "--max-p90"),
        plot=scoring.plot,
        seed=scoring.seed,
    )


def _audit(gating: Gating, writing: Writing, saved: "Sequence[Saved]") -> "Audit":
    from compactctl.options import FAIL_ON, Audit

    reports = {f"--save {each.kind}={each.path}": each.path for each in saved}
    written = _require_apart({**reports, "--write-baseline": gating.write_baseline})
    if gating.baseline is not None:
        _require_apart({**reports, "--baseline": gating.baseline})
    return Audit(
        fail_on=opt.one_of(gating.fail_on, FAIL_ON, "--fail-on"),
        selected=_listed(gating.select),
        ignored=_listed(gating.ignore),
        secrets=not gating.no_secrets,
        max_tokens=opt.tokens(gating.max_tokens, "--max-tokens"),
        max_context_percent=opt.percent(gating.max_context, "--max-context"),
        max_compactions=opt.whole(gating.max_compactions, "--max-compactions"),
        max_result_bytes=opt.whole(gating.max_result_bytes, "--max-result-bytes"),
        max_estimator_error_percent=opt.percent(gating.max_estimator_error, "--max-estimator-error"),
        baseline=gating.baseline,
        write_baseline=gating.write_baseline,
        changed_since=gating.changed_since,
        fix=gating.fix,
        written=tuple(written),
    )


def _require_apart(named: Mapping[str, str | None]) -> list[str]:
    """Return the files that options name. Raises UsageError for an empty name, OutputCollision for one file twice."""
    from compactctl.places import Places

    places = Places()
    taken: dict[object, str] = {}
    for option, path in named.items():
        if path == "":
            raise UsageError(f"{option}: name a file")
        if path is not None and not _is_stream(path):
            other = taken.setdefault(places.place(os.path.realpath(path)), option)
            if other != option:
                raise OutputCollision(f"{other} and {option}: both name {path}")
    return [path for path in named.values() if path is not None]


def _is_stream(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _listed(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return names that were given one at a time, or several with commas between them."""
    return tuple(name.strip() for text in given or () for name in text.split(",") if name.strip())


def _selection(finding: Finding) -> "Selection":
    from compactctl.options import Selection

    since, until = opt.since_ns(finding.since), opt.until_ns(finding.until)
    if since is not None and until is not None and since > until:
        raise UsageError(f"--since {finding.since} is after --until {finding.until}: no time is both")
    return Selection(tuple(pattern.rstrip("/") for pattern in finding.exclude or ()), since, until)


def _place(shrinking: Shrinking) -> "Destination":
    if shrinking.in_place and shrinking.new_session:
        raise UsageError("--in-place and --new-session: choose one")
    if not shrinking.in_place and (shrinking.backup != "zst" or shrinking.backup_dir is not None):
        raise UsageError("--backup and --backup-dir say what --in-place keeps; without it the source stays as it is")
    return "in place" if shrinking.in_place else "new session" if shrinking.new_session else "beside"


def _check(shrinking: Shrinking, writing: Writing) -> bool:
    if shrinking.check and writing.apply:
        raise UsageError("--check changes nothing, --apply writes: choose one")
    return shrinking.check


def said(outcome: "Outcome") -> str:
    """Return why a session failed, with its path in front."""
    message = outcome.error.message if outcome.error is not None else f"exit code {outcome.exit_code}"
    return message if message.startswith(outcome.path) else f"{outcome.path}: {message}"


def _applying(arguments: Sequence[str]) -> str:
    """Return the command line that does for good what this one showed."""
    import shlex

    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [argument for argument in arguments[:end] if argument not in ("--dry-run", "--apply", "--check")]
    has_place = "-" not in arguments or any(argument.split("=")[0] == "--out" for argument in kept)
    return shlex.join(["compactctl", *kept, *([] if has_place else ["--out", "DIR"]), "--apply", *arguments[end:]])
