"""The commands. Each says what it is called, which options it takes, and hands over."""

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from compactctl import __version__
from compactctl.cli import options as opt
from compactctl.cli.batch import execute, load_config, print_result
from compactctl.cli.groups import (
    Asking,
    Finding,
    Gating,
    Listing,
    Placing,
    Reading,
    Reporting,
    Scoring,
    Setting,
    Showing,
    Shrinking,
    Undoing,
    Writing,
    WritingAtOnce,
    spread,
)
from compactctl.cli.help import ALSO, AT_ONCE, LOOK, SMALLER, UNDO, CommandHelp, GroupedHelp

Command = TypeVar("Command", bound=Callable[..., None])

app = typer.Typer(
    cls=GroupedHelp,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _command(group: str, short: str) -> Callable[[Command], Command]:
    """Return what makes a function a command of a group; `short` is what the first screen says of it."""

    def add(command: Command) -> Command:
        app.command(cls=CommandHelp, rich_help_panel=group, short_help=short)(spread(command))
        return command

    return add


def _version(wanted: bool) -> None:
    if wanted:
        print_result(f"compactctl {__version__}\n", None)
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("-V", "--version", callback=_version, is_eager=True)] = False,
) -> None:
    """Look into saved LLM-agent sessions and make them smaller without losing anything."""
    if context.invoked_subcommand is None:
        print_result(context.get_help(), None)


@_command(LOOK, "what is in a session, how full its context is, what could be saved")
def inspect(
    paths: opt.Paths, reading: Reading, setting: Setting, finding: Finding, listing: Listing, showing: Showing
) -> None:
    """Show what is in each session: format, model and messages, how full its context is and how that is known,
    where the bytes are, the biggest tool results, what spill would move to files, and what is damaged. Reads only.

    PATH is a session file, a folder (searched for *.jsonl, *.json and *.jsonl.zst), a glob, or - for standard input.
    """
    execute("inspect", paths, finding, listing, showing, reading=reading, setting=setting)


@_command(LOOK, "tokens by estimator, beside what the provider recorded")
def estimate(
    paths: opt.Paths,
    writing: Writing,
    reading: Reading,
    setting: Setting,
    finding: Finding,
    listing: Listing,
    showing: Showing,
) -> None:
    """Count the tokens that the model would see if the session were resumed, by each estimator, beside the usage
    that the provider recorded. With --apply the figures are also written to STEM.estimate.json.

    PATH is a session file, a folder (searched for *.jsonl, *.json and *.jsonl.zst), a glob, or - for standard input.
    """
    execute("estimate", paths, finding, listing, showing, reading=reading, setting=setting, writing=writing)


@_command(LOOK, "how far an estimator is from recorded usage")
def accuracy(
    paths: opt.Paths,
    scoring: Scoring,
    reading: Reading,
    setting: Setting,
    finding: Finding,
    listing: Listing,
    showing: Showing,
) -> None:
    """Hold an estimator's predictions against what the provider counted, request by request: for what is new since the
    last count, for the next request, five and twenty requests ahead, and for the whole context. Requests that can't be
    judged are counted by reason. Reads only; --fit writes a calibration profile.

    PATH is a session file, a folder (searched for *.jsonl, *.json and *.jsonl.zst), a glob, or - for standard input.
    """
    execute("accuracy", paths, finding, listing, showing, reading=reading, setting=setting, scoring=scoring)


@_command(LOOK, "findings and gates for CI")
def audit(
    paths: opt.Paths,
    gating: Gating,
    writing: Writing,
    reading: Reading,
    setting: Setting,
    finding: Finding,
    listing: Listing,
    reporting: Reporting,
) -> None:
    """Check each session against the rules that `compactctl rules` lists: damage, what an agent stumbles over when it
    resumes, what is too large, usage that can't be right, credentials. Reads only, unless --fix --apply says to write
    a mended copy; exits with 1 where a finding is at least as bad as --fail-on, or a gate (--max-...) is not passed.

    PATH is a session file, a folder (searched for *.jsonl, *.json and *.jsonl.zst), a glob, or - for standard input.
    """
    execute(
        "audit",
        paths,
        finding,
        listing,
        reporting.showing,
        reading=reading,
        setting=setting,
        writing=writing,
        gating=gating,
        saves=reporting.save or (),
    )


@_command(LOOK, "is a compacted session whole")
def verify(paths: opt.Paths, finding: Finding, listing: Listing, showing: Showing) -> None:
    """Check that a compacted session is whole: no problem that its source lacked, every spilled file there with
    its hash, nothing lost, and a second run finds nothing to do. Reads only; exits with 1 where something is wrong.

    PATH is a compacted session (STEM.compacted.jsonl), or a folder that is searched for them.
    """
    execute("verify", paths, finding, listing, showing)


@_command(SMALLER, "move big tool results to files and leave previews")
def spill(
    paths: opt.Paths,
    writing: Writing,
    shrinking: Shrinking,
    reading: Reading,
    setting: Setting,
    finding: Finding,
    listing: Listing,
    showing: Showing,
) -> None:
    """Layer 1: move tool results over a limit to files of their own and leave a preview with the path. Shows the
    plan; --apply writes STEM.compacted.jsonl, the files and a report beside the session. The session itself is
    never touched, unless --in-place says so.

    PATH is a session file, a folder (searched for *.jsonl, *.json and *.jsonl.zst), a glob, or - for standard input
    (--apply then needs --out).
    """
    execute(
        "spill",
        paths,
        finding,
        listing,
        showing,
        reading=reading,
        setting=setting,
        writing=writing,
        shrinking=shrinking,
    )


@_command(SMALLER, "spill, and summarise what is still too full")
def compact(
    paths: opt.Paths,
    writing: Writing,
    shrinking: Shrinking,
    asking: Asking,
    reading: Reading,
    setting: Setting,
    finding: Finding,
    listing: Listing,
    showing: Showing,
) -> None:
    """Both layers: big tool results move to files, and where the context is still at its threshold a summary takes the
    place of its older part. Shows the plan; --apply writes, and asks the provider.

    PATH is a session file, a folder (searched for *.jsonl, *.json and *.jsonl.zst), a glob, or - for standard input
    (--apply then needs --out).
    """
    execute(
        "compact",
        paths,
        finding,
        listing,
        showing,
        reading=reading,
        setting=setting,
        writing=writing,
        shrinking=shrinking,
        asking=asking,
    )


@_command(AT_ONCE, "put a summary in place of a session's older part")
def summarize(
    paths: opt.Paths,
    writing: WritingAtOnce,
    placing: Placing,
    asking: Asking,
    reading: Reading,
    setting: Setting,
    finding: Finding,
    listing: Listing,
    showing: Showing,
) -> None:
    """Layer 2 by hand, however full the session is: a summary takes the place of its older part, in the agent's own
    way of recording a compaction; the newest part stays word for word. Writes STEM.compacted.jsonl, a report, the
    summary and the lines it stands for beside the session; --dry-run shows the plan and asks nobody.

    Without a provider in the settings the summary is put together from the session itself: extract (no model).

    PATH is a session file, a folder (searched for *.jsonl, *.json and *.jsonl.zst), a glob, or - for standard input
    (which needs --out).
    """
    shrinking = Shrinking(
        slim=placing.slim,
        in_place=placing.in_place,
        new_session=placing.new_session,
        backup=placing.backup,
        backup_dir=placing.backup_dir,
        check=placing.check,
    )
    execute(
        "summarize",
        paths,
        finding,
        listing,
        showing,
        reading=reading,
        setting=setting,
        writing=Writing(writing.apply and not placing.check, writing.out),
        shrinking=shrinking,
        asking=asking,
        spill_first=placing.spill_first,
    )


@_command(UNDO, "the original, byte for byte")
def restore(paths: opt.Paths, undoing: Undoing, finding: Finding, listing: Listing, showing: Showing) -> None:
    """Give the original session back from what compaction wrote, without the source file: STEM.restored.jsonl, equal to
    the last byte. Writes; --dry-run only checks that it would succeed. With --in-place the newest compaction in place
    is undone.

    PATH is a compacted session (STEM.compacted.jsonl, or one compacted in place or under a new id), or a folder that
    is searched for them.
    """
    writing, shrinking = Writing(undoing.apply, undoing.out), Shrinking(in_place=undoing.in_place)
    execute(
        "restore",
        paths,
        finding,
        listing,
        showing,
        writing=writing,
        shrinking=shrinking,
        discard_new=undoing.discard_new,
    )


@_command(ALSO, "the session formats that are recognised and read")
def formats(output: opt.ListOutput = "table") -> None:
    """List the session formats that are recognised by their content; --from names one."""
    from compactctl.cli.lists import formats_list

    print_result(*formats_list(output))


@_command(ALSO, "who can write summaries, and what is missing for it")
def providers(setting: Setting, output: opt.ListOutput = "table") -> None:
    """List the providers of the settings, and extract, which needs no model: kind, model, address, window, and what is
    missing before it can be asked. A key is never shown.
    """
    from compactctl.cli.lists import providers_list

    print_result(*providers_list(load_config(setting), output))


@_command(ALSO, "the rules that findings name")
def rules(
    rule: Annotated[str | None, typer.Argument(metavar="[RULE]", help="Show the page of this rule.")] = None,
    output: opt.Output = "table",
) -> None:
    """List the rules that findings name, with their severity; or show one of them: what it finds, why that matters,
    an example, and how to mend it. Settings change a severity: --set audit.severity.RULE=error|warning|note|off.
    """
    from compactctl.cli.rules import rule_page, rules_list

    print_result(*(rules_list(output) if rule is None else rule_page(rule, output)))


@_command(ALSO, "every setting, its value and where that comes from")
def settings(setting: Setting, output: opt.ListOutput = "table") -> None:
    """Show every setting: its value, its default, and where the value comes from. What counts, from low to high:
    the defaults, your own file, a compactctl.toml found in the working folder or above it (limits only, unless
    --trust-project), --config FILE, the environment (COMPACTCTL_LAYER1__SINGLE_LIMIT_BYTES=20000), --set.
    """
    from compactctl.cli.lists import settings_list

    print_result(*settings_list(load_config(setting), output))
