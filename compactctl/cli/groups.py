"""Options that go together, as one value: a command names the group, and has every option in it.

The groups are in the order in which a help page should list them. Defaults are those of the command line.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from compactctl.cli import options as opt


class Writing(NamedTuple):
    """Whether to write, and where."""

    apply: opt.Apply = False
    out: opt.Out = None


class Shrinking(NamedTuple):
    """How far to go, and where the result is put."""

    target: opt.Target = None
    slim: opt.Slim = False
    in_place: opt.InPlace = False
    new_session: opt.NewSession = False
    backup: opt.Backup = "zst"
    backup_dir: opt.BackupDir = None
    check: opt.Check = False


class WritingAtOnce(NamedTuple):
    """The same for a command that writes unless it is told not to."""

    apply: opt.ApplyAtOnce = True
    out: opt.Out = None


class Placing(NamedTuple):
    """Where the result of a summary by hand is put, and what goes before it."""

    spill_first: opt.SpillFirst = False
    slim: opt.Slim = False
    in_place: opt.InPlace = False
    new_session: opt.NewSession = False
    backup: opt.Backup = "zst"
    backup_dir: opt.BackupDir = None
    check: opt.Check = False


class Asking(NamedTuple):
    """Who writes summaries, and how much may be sent."""

    provider: opt.Provider = None
    keep_history: opt.KeepHistory = False
    redact: opt.Redact = False
    yes: opt.Yes = False
    max_cost: opt.MaxCost = None
    max_input_tokens: opt.MaxInputTokens = None


class Undoing(NamedTuple):
    """Where the original is put."""

    apply: opt.Apply = True
    out: opt.Out = None
    in_place: opt.InPlace = False
    discard_new: opt.DiscardNew = False


class Reading(NamedTuple):
    """How sessions are read and measured."""

    from_format: opt.From = "auto"
    estimator: opt.Estimator = None
    encoding_file: opt.EncodingFile = None
    profile: opt.Profile = None
    anchored: opt.Anchor = True
    window: opt.Window = None
    model: opt.Model = None


class Setting(NamedTuple):
    """Where settings come from."""

    config: opt.Config = None
    trust_project: opt.TrustProject = False
    assignments: opt.Set = None


class Finding(NamedTuple):
    """Which sessions, and how many at once."""

    exclude: opt.Exclude = None
    since: opt.Since = None
    until: opt.Until = None
    jobs: opt.Jobs = None
    allow_empty: opt.AllowEmpty = False


class Listing(NamedTuple):
    """Which sessions of many are shown, and in which order."""

    sort: opt.Sort = None
    limit: opt.Limit = None
    show_all: opt.All = False


class Showing(NamedTuple):
    """How the result is shown."""

    output: opt.Output = "table"
    color: opt.Color = "auto"
    quiet: opt.Quiet = False
    verbose: opt.Verbose = False
    debug: opt.Debug = False


class Scoring(NamedTuple):
    """What is made of the errors of estimators."""

    rows: opt.Rows = None
    fit: opt.Fit = None
    compare: opt.Compare = None
    max_p90: opt.MaxP90 = None
    plot: opt.Plot = None
    seed: opt.Seed = 0


class Gating(NamedTuple):
    """What is looked for, what fails, and what was known before."""

    fail_on: opt.FailOn = "error"
    select: opt.Select = None
    ignore: opt.Ignore = None
    no_secrets: opt.NoSecrets = False
    max_tokens: opt.MaxTokens = None
    max_context: opt.MaxContext = None
    max_compactions: opt.MaxCompactions = None
    max_result_bytes: opt.MaxResultBytes = None
    max_estimator_error: opt.MaxEstimatorError = None
    baseline: opt.Baseline = None
    write_baseline: opt.WriteBaseline = None
    changed_since: opt.ChangedSince = None
    ci: opt.Ci = "auto"
    fix: opt.Fix = False


class Reporting(NamedTuple):
    """How findings are shown, and where else they are written."""

    output: opt.AuditOutput = "text"
    save: opt.Save = None
    color: opt.Color = "auto"
    quiet: opt.Quiet = False
    verbose: opt.Verbose = False
    debug: opt.Debug = False

    @property
    def showing(self) -> Showing:
        return Showing(self.output, self.color, self.quiet, self.verbose, self.debug)


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command as the parser sees it: in place of each parameter that is a group, the options in it."""
    signature = inspect.signature(command)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, tuple):
            groups[parameter.name] = parameter.annotation
            parameters += inspect.signature(parameter.annotation).parameters.values()
        else:
            parameters.append(parameter)
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]

    @functools.wraps(command)
    def gathered(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field: values.pop(field) for field in group._fields})
        command(**values)

    cast(Any, gathered).__signature__ = signature.replace(parameters=parameters)
    gathered.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return gathered
