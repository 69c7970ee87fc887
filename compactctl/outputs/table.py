"""`-o table`: a page for one session, a line a session for many, totals last."""

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from msgspec import UNSET

from compactctl.outcome import Batch, Outcome
from compactctl.outputs import View, words
from compactctl.outputs.pages import NAME_WIDTH, labelled, name, page, paint, table
from compactctl.outputs.safe import clipped, visible

ENCODING: str | None = None

CHILD = "`-- "
"""Stands before a subagent's session, under its parent."""


def outcome(outcome: Outcome) -> str:
    return ""


def batch(batch: Batch, view: View) -> str:
    match batch.outcomes:
        case []:
            lines = [words.summary(batch)]
        case [only]:
            lines = page(batch, only, view)
        case _:
            lines = listing(batch, view)
    return "".join(f"{line}\n" for line in lines)


def listing(batch: Batch, view: View) -> list[str]:
    """Return a line a session, then the totals."""
    rows = [_row(batch, item, child, view) for item, child in families(batch.outcomes)]
    headers = [*_who_headers(view), *_HEADERS.get(batch.command, _LOOK)]
    aligned = ["right" if header in _FIGURES else "left" for header in headers]
    lines = [*table(headers, rows, aligned), "", words.summary(batch)]
    lines += labelled("problems", [words.troubled(batch)])
    if any(item.status == "planned" for item in batch.outcomes) and view.command_line:
        lines += ["dry run: nothing was written", f"to write it: {visible(view.command_line)}"]
    return lines


def families(outcomes: Sequence[Outcome]) -> Iterable[tuple[Outcome, bool]]:
    """Yield the sessions in the order given, each with its subagents' sessions right behind it (True)."""
    parents = {item.session_id for item in outcomes if _parent_id(item) is None and item.session_id}
    children: dict[str, list[Outcome]] = {}
    for item in outcomes:
        parent = _parent_id(item)
        if parent in parents:
            children.setdefault(str(parent), []).append(item)
    for item in outcomes:
        if _parent_id(item) in parents:
            continue
        yield item, False
        for child in children.pop(item.session_id or "", ()):
            yield child, True


def _parent_id(outcome: Outcome) -> str | None:
    return None if outcome.details is UNSET else outcome.details.parent_session_id


_LOOK = ("format", "size", "context", "full", "could spill", "problems")
_HEADERS = {
    "estimate": ("format", "estimates", "window", "full", "problems"),
    "spill": ("status", "spills", "context", "file", "problems"),
    "restore": ("status", "wrote", "problems"),
    "verify": ("format", "verdict", "problems"),
}
_FIGURES = frozenset({"size", "context", "full", "spills", "window", "file"})


def _who_headers(view: View) -> tuple[str, ...]:
    return ("modified", "project", "session") if view.terminal else ("session",)


def _row(batch: Batch, outcome: Outcome, child: bool, view: View) -> list[str]:
    who = [*_who(outcome, view)]
    who[-1] = (CHILD if child else "") + who[-1]
    if outcome.status in ("failed", "skipped"):
        headers = _HEADERS.get(batch.command, _LOOK)
        said = f"{outcome.status}: {outcome.error.code}" if outcome.error is not None else outcome.status
        return [*who, *([""] * (len(headers) - 1)), paint(said, outcome.status, view)]
    cells = _CELLS.get(batch.command, _look)
    said = words.problems(outcome.findings)
    worst = "error" if any(found.severity == "error" for found in outcome.findings) else "warning"
    return [*who, *cells(outcome), paint(said, worst, view) if said else "-"]


def _who(outcome: Outcome, view: View) -> tuple[str, ...]:
    if not view.terminal:
        return (name(outcome),)
    details = outcome.details
    day, project = "-", "-"
    if details is not UNSET:
        day = (details.modified or "-")[:10]
        project = clipped(PurePath(details.project).name, NAME_WIDTH) if details.project else "-"
    return day, project, clipped(_short_id(outcome), NAME_WIDTH)


def _short_id(outcome: Outcome) -> str:
    stem = PurePath(outcome.path).name
    ours = outcome.session_id and outcome.session_id in stem
    short = str(outcome.session_id)[:8] if ours else stem
    return short if outcome.index is UNSET else f"{short} [{outcome.index}]"


def _look(outcome: Outcome) -> list[str]:
    size = "-" if outcome.bytes is UNSET else words.size(outcome.bytes.before)
    return [visible(outcome.format or "-"), size, *_fill(outcome), _could_spill(outcome)]


def _fill(outcome: Outcome) -> tuple[str, str]:
    if outcome.tokens is UNSET:
        return "-", "-"
    tokens = outcome.tokens
    return f"{tokens.before:,}", words.percent(tokens.before, tokens.window)


def _could_spill(outcome: Outcome) -> str:
    if outcome.details is UNSET:
        return "-"
    for choice in outcome.details.would_spill:
        if choice.results:
            return f"at {choice.limit_bytes:,}: {choice.results:,}, -{choice.tokens_saved:,}"
    return "-"


def _estimates(outcome: Outcome) -> list[str]:
    estimates = {} if outcome.estimates is UNSET else outcome.estimates
    said = [f"{visible(key)} {value:,}" for key, value in estimates.items() if value is not None]
    window = "-" if outcome.tokens is UNSET else f"{outcome.tokens.window:,}"
    return [visible(outcome.format or "-"), " · ".join(said), window, _fill(outcome)[1]]


def _spills(outcome: Outcome) -> list[str]:
    spills = 0 if outcome.layer1 is UNSET else len(outcome.layer1.spills)
    context = "-" if outcome.tokens is UNSET else words.change(outcome.tokens.before, outcome.tokens.after)
    file = "-"
    if outcome.bytes is not UNSET:
        before, after = words.size(outcome.bytes.before), words.size(outcome.bytes.after)
        file = before if not spills else f"{before} -> {after}"
    return [outcome.status, f"{spills:,}" if spills else "-", context, file]


def _restored(outcome: Outcome) -> list[str]:
    return [outcome.status, visible(outcome.output.session) if outcome.output else "-"]


def _verdict(outcome: Outcome) -> list[str]:
    return [visible(outcome.format or "-"), "whole" if outcome.exit_code == 0 else "not whole"]


_CELLS = {"estimate": _estimates, "spill": _spills, "restore": _restored, "verify": _verdict}
