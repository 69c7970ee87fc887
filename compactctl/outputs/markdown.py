"""`-o markdown`: for pull requests, issues and job summaries.

The promise: nothing from a session becomes markup. Its text stands in code spans and fences that are longer than
any run of backticks inside, so no heading, link, image, mention or HTML of it comes alive.
"""

import re
from collections.abc import Sequence

from msgspec import UNSET

from compactctl.outcome import Layer1Note, Outcome
from compactctl.outputs import Printer, View, layer2, words
from compactctl.outputs.safe import visible
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"

_BACKTICKS = re.compile("`+")


def printer(command: str, view: View) -> Printer:
    if command == "accuracy":
        from compactctl.outputs import accuracy  # of all commands only one has need of it

        return accuracy.Page()
    return Page(command, view)


class Page:
    """A table of all sessions and a section for each that has more to say, kept as text until the totals are known."""

    def __init__(self, command: str, view: View) -> None:
        self._is_audit = command == "audit"
        self._view = view
        self._rows: list[list[str]] = []
        self._sections: list[str] = []

    def outcome(self, outcome: Outcome) -> str:
        self._rows.append(_audited(outcome) if self._is_audit else _row(outcome))
        section = _section(outcome)
        if section:
            self._sections += ["", f"## {code(_name(outcome))}", "", *section]
        return ""

    def end(self, batch: Batch) -> str:
        said = words.found(batch) if self._is_audit else words.summary(batch, code)
        lines = [f"# compactctl {batch.command}", "", said, ""]
        if self._rows:
            lines += table(_AUDIT_HEADERS if self._is_audit else _HEADERS, self._rows)
        left_out = words.left_out(batch, len(self._rows), self._view.sort)
        lines += ["", left_out] if left_out else []
        lines += self._sections
        if self._view.command_line and batch.tally.statuses["planned"]:
            command = fenced(self._view.command_line, "sh")
            lines += ["", "Nothing was written (dry run). To write it:", "", *command]
        return "".join(f"{line}\n" for line in lines)


def code(text: str) -> str:
    """Return the text as a code span that it cannot end."""
    shown = visible(text)
    if not shown.strip():
        return ""
    mark = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{mark}{pad}{shown}{pad}{mark}"


def cell(text: str) -> str:
    """Return the text as a code span for a table, whose cell it cannot end either."""
    return code(text).replace("|", "\\|")


def fenced(text: str, language: str = "") -> list[str]:
    """Return lines of text as a block whose fence is longer than any run of backticks inside."""
    shown = [visible(line) for line in text.split("\n")]
    mark = "`" * max(3, _longest_run("\n".join(shown)) + 1)
    return [mark + language, *shown, mark]


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def _name(outcome: Outcome) -> str:
    return outcome.path if outcome.index is UNSET else f"{outcome.path} [{outcome.index}]"


def _row(outcome: Outcome) -> list[str]:
    context, window, full = "-", "-", "-"
    if outcome.tokens is not UNSET:
        tokens = outcome.tokens
        context = words.change(tokens.before, tokens.after)
        window, full = f"{tokens.window:,}", words.percent(tokens.after, tokens.window)
    size = "-" if outcome.bytes is UNSET else words.size(outcome.bytes.after)
    spills = "-" if outcome.layer1 is UNSET else f"{len(outcome.layer1.spills):,}"
    return [cell(_name(outcome)), cell(outcome.format or ""), outcome.status, context, window, full, size, spills]


_HEADERS = ("session", "format", "status", "context", "window", "full", "size", "spills")
_AUDIT_HEADERS = ("session", "format", "peak", "compactions", "problems")


def _audited(outcome: Outcome) -> list[str]:
    peak, compactions = "-", "-"
    if outcome.audit is not UNSET:
        figures = outcome.audit.figures
        peak, compactions = f"{figures.peak_tokens:,}", f"{figures.compactions:,}"
    said = outcome.status if outcome.error is not None else words.problems(outcome.findings) or "-"
    return [cell(_name(outcome)), cell(outcome.format or ""), peak, compactions, said]


def _section(outcome: Outcome) -> list[str]:
    lines: list[str] = []
    if outcome.error is not None:
        lines += [f"**{outcome.status}** ({code(outcome.error.code)}): {code(outcome.error.message)}", ""]
    if outcome.estimates is not UNSET:
        rows = [[cell(key), "-" if value is None else f"{value:,}"] for key, value in outcome.estimates.items()]
        lines += [*table(("estimator", "tokens"), rows), ""]
    if outcome.layer2 is not UNSET:
        note = outcome.layer2
        for told in (layer2.summary(note, outcome), layer2.asked(note), layer2.redacted(note), layer2.survival(note)):
            lines += [f"- {code(line)}" for line in told]
        lines += ["", *(fenced(note.summary) if note.summary else []), ""]
    lines += _layer1(Layer1Note() if outcome.layer1 is UNSET else outcome.layer1)
    if outcome.details is not UNSET and outcome.details.biggest_results:
        rows = [
            [f"{big.line}", f"{big.bytes:,}", cell(big.tool), cell(big.why)] for big in outcome.details.biggest_results
        ]
        lines += [*table(("line", "bytes", "tool", "in context"), rows), ""]
    if outcome.checks is not UNSET:
        lines += [*(f"- {'ok' if ok else '**FAILED**'}: {_in_words(name)}" for name, ok in outcome.checks.items()), ""]
    if outcome.fix is not UNSET:
        rows = [[said, cell(rule), f"{line}", cell(text)] for line, said, rule, text in words.mended(outcome)]
        lines += [*table(("mended", "rule", "line", "what"), rows), "", code(words.mended_file(outcome)), ""]
    if outcome.findings:
        rows = [
            [
                f"{finding.severity} (known)" if finding.known is True else finding.severity,
                cell(finding.rule),
                "" if finding.line is None else f"{finding.line}",
                cell(finding.message),
            ]
            for finding in outcome.findings
        ]
        lines += [*table(("severity", "rule", "line", "message"), rows), ""]
    if outcome.notes:
        lines += fenced("\n".join(outcome.notes))
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _in_words(check: str) -> str:
    return words.CHECK_WORDS.get(check) or code(check)


def _layer1(layer1: Layer1Note) -> list[str]:
    lines: list[str] = []
    if layer1.spills:
        rows = [
            [
                f"{spill.line}",
                f"{spill.bytes:,}",
                cell(spill.tool or spill.call_id),
                spill.reason,
                cell(spill.preview_start),
            ]
            for spill in layer1.spills
        ]
        lines += [*table(("line", "bytes", "tool", "why", "preview starts"), rows), ""]
    if layer1.biggest:
        rows = [[f"{big.line}", f"{big.bytes:,}", cell(big.tool), cell(big.why)] for big in layer1.biggest]
        lines += [*table(("line", "bytes", "tool", "why it stays"), rows), ""]
        lines += [*(f"- {said}" for said in words.would_spill(layer1.would_spill or ())), ""]
    if layer1.failures:
        rows = [[f"{failure.line}", cell(failure.call_id), cell(failure.error)] for failure in layer1.failures]
        lines += [*table(("line", "not spilled", "error"), rows), ""]
    return lines


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of a table whose cells are Markdown already."""
    lines = [" | ".join(headers), " | ".join("---" for _ in headers), *(" | ".join(row) for row in rows)]
    return [f"| {line} |" for line in lines]
