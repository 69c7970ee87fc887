"""`-o table`: a page for one session, a line a session for many, totals last."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

from msgspec import UNSET, Struct

from compactctl.agents import LEAST_CHARACTERS, session_id
from compactctl.outcome import Outcome, forecasts
from compactctl.outputs import Printer, View, words
from compactctl.outputs.pages import NAME_WIDTH, labelled, name, page, paint, table
from compactctl.outputs.safe import clipped, visible
from compactctl.totals import Batch

ENCODING: str | None = None

PROJECT_WIDTH = 20
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")

CHILD = "`-- "
"""Stands before a subagent's session, under its parent."""


def printer(command: str, view: View) -> Printer:
    if command == "accuracy":
        from compactctl.outputs import accuracy  # of all commands only one has need of it

        return accuracy.Lines(view)
    return Lines(command, view)


class Row(Struct, frozen=True, gc=False):
    """One session of a list, as text: of thousands nothing else is kept."""

    session_id: str | None
    parent_id: str | None
    window_source: str
    cells: tuple[str, ...]


class Lines:
    """A page where it turns out to be one session, else a line a session."""

    def __init__(self, command: str, view: View) -> None:
        self._command = command
        self._view = view
        self._only: Outcome | None = None
        self._rows: list[Row] = []

    def outcome(self, outcome: Outcome) -> str:
        self._only = None if self._rows else outcome
        source = "" if outcome.tokens is UNSET else outcome.tokens.window_source
        cells = tuple(_cells(self._command, outcome, self._view))
        self._rows.append(Row(outcome.session_id, outcome.parent_session_id or None, source, cells))
        return ""

    def end(self, batch: Batch) -> str:
        if not self._rows:
            lines = [words.summary(batch)]
        elif self._only is not None and batch.tally.sessions == 1:
            lines = page(batch, self._only, self._view)
        else:
            lines = self._listing(batch)
        return "".join(f"{line}\n" for line in lines)

    def _listing(self, batch: Batch) -> list[str]:
        """Return a line a session and the totals: first at a terminal, where what is read first stands on top."""
        view = self._view
        headers = [*_who_headers(view), *_headers(self._command, view)]
        aligned = ["right" if header in _FIGURES else "left" for header in headers]
        rows = [_in_family(row, is_child, len(_who_headers(view)) - 1) for row, is_child in families(self._rows)]
        body = table(headers, rows, aligned)
        left_out = words.left_out(batch, len(rows), view.sort)
        summary = [words.summary(batch)]
        lines = [*summary, "", *body] if view.terminal else [*body, *([left_out] if left_out else []), "", *summary]
        lines += [left_out] if view.terminal and left_out else []
        if self._command == "spill" and not batch.tally.spills:
            lines += labelled("spill", words.would_spill_in_all(batch))
        lines += labelled("problems", [words.troubled(batch)])
        if "limit" in headers:
            lines += labelled("limit", [words.window_marks(row.window_source for row in self._rows)])
        if batch.tally.statuses["planned"] and view.command_line:
            lines += ["dry run: nothing was written", f"to write it: {visible(view.command_line)}"]
        return lines


def families(rows: Sequence[Row]) -> Iterable[tuple[Row, bool]]:
    """Yield the sessions in the order given, each with its subagents' sessions right behind it (True)."""
    parents = {row.session_id for row in rows if row.parent_id is None and row.session_id}
    children: dict[str, list[Row]] = {}
    for row in rows:
        if row.parent_id in parents:
            children.setdefault(str(row.parent_id), []).append(row)
    for row in rows:
        if row.parent_id in parents:
            continue
        yield row, False
        for child in children.pop(row.session_id or "", ()):
            yield child, True


def _in_family(row: Row, is_child: bool, name_column: int) -> list[str]:
    cells = list(row.cells)
    if is_child:
        cells[name_column] = CHILD + cells[name_column]
    return cells


_LOOK = ("format", "size", "context", "full", "could spill", "problems")
_HEADERS = {
    "estimate": ("format", "estimates", "window", "full", "problems"),
    "spill": ("status", "spills", "context", "file", "problems"),
    "summarize": ("status", "summary", "spills", "context", "file", "problems"),
    "compact": ("status", "summary", "spills", "context", "file", "problems"),
    "restore": ("status", "wrote", "problems"),
    "verify": ("format", "verdict", "problems"),
    "audit": ("format", "peak", "compactions", "problems"),
}
_LOOK_AT_TERMINAL = ("format", "size", "context", "limit", "could spill", "problems")
_FIGURES = frozenset({"size", "context", "full", "limit", "spills", "window", "file", "peak", "compactions"})


def _headers(command: str, view: View) -> tuple[str, ...]:
    return _HEADERS.get(command, _LOOK_AT_TERMINAL if view.terminal else _LOOK)


def _who_headers(view: View) -> tuple[str, ...]:
    return ("modified", "project", "session") if view.terminal else ("session",)


def _cells(command: str, outcome: Outcome, view: View) -> list[str]:
    who = _who(outcome, view)
    if outcome.status in ("failed", "skipped"):
        return [*who, *([""] * (len(_headers(command, view)) - 1)), paint(_status(outcome), outcome.status, view)]
    cells = (view.terminal and _CELLS_AT_TERMINAL.get(command)) or _CELLS.get(command, _look)
    mended = Counter(said for _, said, _, _ in words.mended(outcome))
    said = ", ".join(filter(None, [words.problems(outcome.findings), *(f"{n:,} {done}" for done, n in mended.items())]))
    worst = "error" if any(found.severity == "error" for found in outcome.findings) else "warning"
    return [*who, *cells(outcome), paint(said, worst, view) if said else "-"]


def _who(outcome: Outcome, view: View) -> tuple[str, ...]:
    if not view.terminal:
        return (name(outcome),)
    day = (outcome.modified or "-")[:10]
    project = clipped(PurePath(outcome.project).name, PROJECT_WIDTH) if outcome.project else "-"
    return day, project, clipped(_short_id(outcome), NAME_WIDTH)


def _short_id(outcome: Outcome) -> str:
    """Return how a session is named on the command line, where its file has the name that its agent gave it."""
    file_name = PurePath(outcome.path).name
    named = session_id(file_name)
    short = named[:LEAST_CHARACTERS] if _UUID.fullmatch(named) else file_name
    return short if outcome.index is UNSET else f"{short} [{outcome.index}]"


def _look(outcome: Outcome) -> list[str]:
    size = "-" if outcome.bytes is UNSET else words.size(outcome.bytes.before)
    return [visible(outcome.format or "-"), size, *_fill(outcome), _could_spill(outcome)]


def _look_at_terminal(outcome: Outcome) -> list[str]:
    """Return the same in short figures: a line of them fits a terminal."""
    size = "-" if outcome.bytes is UNSET else words.size(outcome.bytes.before)
    context, limit = "-", "-"
    if outcome.tokens is not UNSET:
        tokens = outcome.tokens
        context = f"{words.short(tokens.before)} {words.percent(tokens.before, tokens.window):>5}"
        limit = f"{words.short(tokens.window)} {words.WINDOW_MARKS.get(tokens.window_source, ' ')}"
    return [visible(outcome.format or "-"), size, context, limit, _could_spill_in_short(outcome)]


def _could_spill_in_short(outcome: Outcome) -> str:
    choices = forecasts(outcome)
    for choice in choices:
        if choice.results:
            at = "" if choice is choices[0] else f"at {words.short(choice.limit_bytes)}: "
            return f"{at}{choice.results:,}, -{words.short(choice.tokens_saved)}"
    return "-"


def _fill(outcome: Outcome) -> tuple[str, str]:
    if outcome.tokens is UNSET:
        return "-", "-"
    tokens = outcome.tokens
    return f"{tokens.before:,}", words.percent(tokens.before, tokens.window)


def _could_spill(outcome: Outcome) -> str:
    for choice in forecasts(outcome):
        if choice.results:
            return f"at {choice.limit_bytes:,}: {choice.results:,}, -{choice.tokens_saved:,}"
    return "-"


def _estimates(outcome: Outcome) -> list[str]:
    estimates = {} if outcome.estimates is UNSET else outcome.estimates
    said = [f"{visible(key)} {value:,}" for key, value in estimates.items() if value is not None]
    window = "-" if outcome.tokens is UNSET else f"{outcome.tokens.window:,}"
    return [visible(outcome.format or "-"), " · ".join(said), window, _fill(outcome)[1]]


def _status(outcome: Outcome) -> str:
    """Return what became of a session, and what was wrong where anything was, also where it was written."""
    return outcome.status if outcome.error is None else f"{outcome.status}: {outcome.error.code}"


def _spills(outcome: Outcome) -> list[str]:
    return _spilled(outcome, "{:,}".format)


def _spills_at_terminal(outcome: Outcome) -> list[str]:
    return _spilled(outcome, words.short)


def _spilled(outcome: Outcome, number: Callable[[int], str]) -> list[str]:
    spills = 0 if outcome.layer1 is UNSET else len(outcome.layer1.spills)
    context, file = "-", "-"
    if outcome.tokens is not UNSET:
        before, after = number(outcome.tokens.before), number(outcome.tokens.after)
        context = before if outcome.tokens.before == outcome.tokens.after else f"{before} -> {after}"
    if outcome.bytes is not UNSET:
        before, after = words.size(outcome.bytes.before), words.size(outcome.bytes.after)
        file = before if before == after else f"{before} -> {after}"
    return [_status(outcome), f"{spills:,}" if spills else "-", context, file]


def _summarised(outcome: Outcome) -> list[str]:
    status, *rest = _spills(outcome)
    note = outcome.layer2
    if note is UNSET:
        said = "-"
    elif note.messages_summarized:
        said = f"{note.messages_summarized:,} of {note.messages_summarized + note.messages_kept:,} by {note.provider}"
    else:
        said = note.reason.replace("_", " ")
    return [status, visible(said), *rest]


def _restored(outcome: Outcome) -> list[str]:
    return [_status(outcome), visible(outcome.output.session) if outcome.output else "-"]


def _verdict(outcome: Outcome) -> list[str]:
    return [visible(outcome.format or "-"), "whole" if outcome.exit_code == 0 else "not whole"]


def _audited(outcome: Outcome) -> list[str]:
    if outcome.audit is UNSET:
        return [visible(outcome.format or "-"), "-", "-"]
    figures = outcome.audit.figures
    return [visible(outcome.format or "-"), f"{figures.peak_tokens:,}", f"{figures.compactions:,}"]


_CELLS_AT_TERMINAL = {"spill": _spills_at_terminal, "inspect": _look_at_terminal}
_CELLS = {
    "inspect": _look,
    "estimate": _estimates,
    "spill": _spills,
    "summarize": _summarised,
    "compact": _summarised,
    "restore": _restored,
    "verify": _verdict,
    "audit": _audited,
}
