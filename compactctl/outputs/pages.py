"""One session as a page for people: how full, how we know, what happened, where the bytes are, what is wrong.

Every text that comes from a session goes through `visible` or `clipped` here; nothing else is printed raw.
"""

from collections.abc import Iterable, Sequence

from msgspec import UNSET
from tabulate import tabulate

from compactctl.outcome import SEVERITIES, BigResult, Details, FindingNote, Layer1Note, Outcome
from compactctl.outputs import View, layer2, words
from compactctl.outputs.safe import clipped, visible
from compactctl.totals import Batch

LABEL_WIDTH = 10
NAME_WIDTH = 40
"""Longest tool name or call id that is printed; `-o json` has them whole."""
PREVIEW_WIDTH = 48
BIGGEST_SHOWN = 6
FINDINGS_SHOWN = 12

_COLORS = {"error": "31", "failed": "31", "warning": "33", "bold": "1"}

Page = list[str]


def page(batch: Batch, outcome: Outcome, view: View) -> Page:
    """Return the page of the one session in a batch. A failure with nothing to show is told on standard error alone."""
    if outcome.status == "failed" and not outcome.findings and outcome.checks is UNSET:
        return []
    if outcome.status in ("failed", "skipped"):
        said = labelled(outcome.status, [paint(problem(outcome), outcome.status, view)])
        return [title(outcome, view), *said, *_checks(outcome, view), *_findings(outcome, view)]
    body = _PAGES.get(batch.command, _inspect)
    return body(batch, outcome, view)


def _inspect(batch: Batch, outcome: Outcome, view: View) -> Page:
    lines = [title(outcome, view), ""]
    lines += _context(outcome)
    if outcome.details is not UNSET:
        details = outcome.details
        lines += ["", *_bytes(details), *_biggest(details), ""]
        lines += labelled("spill", words.would_spill(details.would_spill) or [words.NEVER_SPILLED])
    lines += _findings(outcome, view) or labelled("problems", ["none"])
    return lines + _notes(outcome)


def _audit(batch: Batch, outcome: Outcome, view: View) -> Page:
    edits = [
        f"{said} {visible(rule)}: line {line}: {visible(text)}" for line, said, rule, text in words.mended(outcome)
    ]
    lines = [title(outcome, view), "", *_context(outcome)]
    lines += labelled("mended", [*edits, words.mended_file(outcome)])
    lines += _findings(outcome, view) or labelled("problems", ["none"])
    return lines + _notes(outcome) + _next(outcome, view)


def _estimate(batch: Batch, outcome: Outcome, view: View) -> Page:
    lines = [title(outcome, view), "", *_context(outcome), ""]
    estimates = {} if outcome.estimates is UNSET else outcome.estimates
    rows = [
        [visible(name), "-" if tokens is None else f"{tokens:,}", words.ESTIMATE_WORDS.get(name.partition(":")[0], "")]
        for name, tokens in estimates.items()
    ]
    lines += table(["estimator", "tokens", "what it counts"], rows, ("left", "right", "left"))
    if outcome.output is not None:
        lines += [
            "",
            *labelled("wrote" if outcome.status == "applied" else "to write", [visible(outcome.output.report)]),
        ]
    return lines + _spaced(_findings(outcome, view)) + _notes(outcome)


def _spill(batch: Batch, outcome: Outcome, view: View) -> Page:
    layer1 = Layer1Note() if outcome.layer1 is UNSET else outcome.layer1
    lines = [state(outcome, view), title(outcome, view), *labelled("context", _context_change(outcome))]
    if outcome.bytes is not UNSET:
        sizes = outcome.bytes
        change = f"{words.size(sizes.before)} -> {words.size(sizes.after)}"
        beside = f" · {words.size(sizes.beside)} beside it" if sizes.beside else ""
        lines += labelled("file", [change + beside] if layer1.spills else [words.size(sizes.before)])
    lines += _spills(layer1)
    lines += labelled("kept", [words.kept(layer1.kept)] if layer1.kept else [])
    if not layer1.spills and not layer1.failures:
        lines += _why_nothing(layer1)
    lines += _written(outcome)
    return lines + _findings(outcome, view) + _notes(outcome) + _undo(outcome) + _next(outcome, view)


def _summarize(batch: Batch, outcome: Outcome, view: View) -> Page:
    layer1 = Layer1Note() if outcome.layer1 is UNSET else outcome.layer1
    lines = [state(outcome, view), title(outcome, view), *labelled("context", _context_change(outcome))]
    if outcome.bytes is not UNSET and outcome.status != "unchanged":
        sizes = outcome.bytes
        beside = f" · {words.size(sizes.beside)} beside it" if sizes.beside else ""
        lines += labelled("file", [f"{words.size(sizes.before)} -> {words.size(sizes.after)}{beside}"])
    note = outcome.layer2
    if note is not UNSET:
        lines += labelled("summary", list(layer2.summary(note, outcome)))
        lines += labelled("asked", list(layer2.asked(note)))
        lines += labelled("lost", list(layer2.lost(note)))
        lines += labelled("redacted", list(layer2.redacted(note)))
        lines += labelled("survival", list(layer2.survival(note)))
    lines += _spills(layer1)
    lines += _written(outcome) if outcome.status != "unchanged" else []
    if note is not UNSET and note.summary_file and note.history_file:
        lines += [f"{'':{LABEL_WIDTH}}{visible(path)}" for path in (note.summary_file, note.history_file)]
    lines += _findings(outcome, view) + _notes(outcome) + _undo(outcome)
    if note is not UNSET and note.summary:
        lines += ["", *layer2.text(note)]
    return lines + _next(outcome, view)


def _restore(batch: Batch, outcome: Outcome, view: View) -> Page:
    lines = [state(outcome, view), title(outcome, view), *_checks(outcome, view)]
    if outcome.output is not None:
        verb = {"applied": "wrote", "planned": "to write"}.get(outcome.status, "there")
        lines += labelled(verb, [visible(outcome.output.session)])
    return lines + _findings(outcome, view) + _notes(outcome) + _next(outcome, view)


def _verify(batch: Batch, outcome: Outcome, view: View) -> Page:
    verdict = "whole: every check holds" if outcome.exit_code == 0 else paint("not whole", "error", view)
    lines = [title(outcome, view), *labelled("verdict", [verdict]), *_checks(outcome, view)]
    return lines + _findings(outcome, view) + _notes(outcome)


_PAGES = {
    "inspect": _inspect,
    "audit": _audit,
    "estimate": _estimate,
    "spill": _spill,
    "summarize": _summarize,
    "compact": _summarize,
    "restore": _restore,
    "verify": _verify,
}


# parts of a page -------------------------------------------------------------------------------


def title(outcome: Outcome, view: View) -> str:
    """Return the first line: which session, what wrote it, how big."""
    facts = [outcome.agent or outcome.format, outcome.model]
    shown = [visible(fact) for fact in facts if fact]
    if outcome.bytes is not UNSET:
        shown.append(words.size(outcome.bytes.before))
    if outcome.details is not UNSET:
        shown.append(words.count(outcome.details.lines, "line"))
    return "   ".join(filter(None, [paint(name(outcome), "bold", view), " · ".join(shown)]))


def name(outcome: Outcome) -> str:
    """Return the path, with the conversation's number where one file holds several."""
    numbered = "" if outcome.index is UNSET else f" [{outcome.index}]"
    return visible(outcome.path) + numbered


def state(outcome: Outcome, view: View) -> str:
    """Return what a writing command did, as the first thing to know."""
    match outcome.status:
        case "planned":
            return "dry run: nothing was written"
        case "applied" if outcome.exit_code == 0:
            return "applied and verified"
        case "applied":
            return paint("applied, but not all of it: see below", "warning", view)
        case "unchanged" if outcome.output is not None:
            return "already done: nothing was written"
        case "unchanged":
            return "nothing to do: nothing was written"
    return outcome.status


def problem(outcome: Outcome) -> str:
    """Return why a session failed or was skipped."""
    if outcome.error is None:
        return f"exit code {outcome.exit_code}"
    return visible(outcome.error.message.removeprefix(f"{outcome.path}: "))


def _context(outcome: Outcome) -> Page:
    lines: Page = []
    if outcome.tokens is not UNSET:
        tokens = outcome.tokens
        share = words.percent(tokens.before, tokens.window)
        lines += labelled(
            "context",
            [
                f"{tokens.before:,} of {tokens.window:,} tokens ({share})",
                words.anchor(tokens),
                *filter(None, [words.between(tokens.before_low, tokens.before_high)]),
                words.window(tokens),
            ],
        )
    lines += labelled("messages", [_counts(outcome)])
    if outcome.details is not UNSET:
        lines += labelled("history", list(_history(outcome.details)))
        lines += labelled("subagents", list(_side_runs(outcome.details)))
    return lines


def _counts(outcome: Outcome) -> str:
    counted = [
        "" if number is UNSET else words.count(number, thing)
        for number, thing in (
            (outcome.messages, "message"),
            (outcome.rounds, "tool round"),
            (outcome.tool_results, "tool result"),
        )
    ]
    if outcome.details is not UNSET and outcome.details.requests:
        counted.append(words.count(outcome.details.requests, "request"))
    return " · ".join(filter(None, counted))


def _history(details: Details) -> Iterable[str]:
    for compaction in details.compactions:
        facts = [f"{compaction.tokens_before:,} tokens before"] if compaction.tokens_before is not None else []
        facts += [clipped(compaction.trigger, NAME_WIDTH)] if compaction.trigger else []
        yield f"compacted at line {compaction.line}" + (f" ({', '.join(facts)})" if facts else "")


def _side_runs(details: Details) -> Iterable[str]:
    for run in details.side_runs:
        tokens = f", {run.tokens:,} tokens" if run.tokens is not None else ""
        yield f"{clipped(run.agent, NAME_WIDTH)}: {words.count(run.messages, 'message')}{tokens}, not in context"


def _context_change(outcome: Outcome) -> Page:
    if outcome.tokens is UNSET:
        return []
    tokens = outcome.tokens
    shares = [words.percent(figure, tokens.window) for figure in (tokens.before, tokens.after)]
    share = shares[0] if tokens.before == tokens.after else " -> ".join(shares)
    between = words.between(tokens.after_low, tokens.after_high)
    after = [f"after: {between}"] if between and tokens.before != tokens.after else []
    return [f"{words.change(tokens.before, tokens.after)} of {tokens.window:,} tokens ({share})", *after]


def _undo(outcome: Outcome) -> Page:
    if outcome.undo is UNSET:
        return []
    disk = [] if outcome.disk is UNSET else [f"{words.size(outcome.disk.before)} -> {words.size(outcome.disk.after)}"]
    return [
        *labelled("disk", [f"{change}, all included" for change in disk]),
        *labelled("resume", _resume(outcome)),
        *labelled("undo", [visible(outcome.undo)]),
    ]


def _resume(outcome: Outcome) -> Page:
    """Return the command that resumes a session in its agent, or why there is none."""
    way = outcome.resume
    if way is UNSET:
        return []
    if way.command is None:
        return [visible(way.remark)]
    return [visible(way.command), *([f"({visible(way.remark)})"] if way.remark else [])]


def _bytes(details: Details) -> Page:
    rows = []
    for kind, word in words.KIND_WORDS.items():
        everywhere = details.bytes_by_kind.get(kind, 0)
        in_context = details.context_bytes_by_kind.get(kind, 0)
        if everywhere or in_context:
            rows.append([word, f"{everywhere:,}", f"{in_context:,}" if in_context else "-"])
    return table(["bytes", "in the file", "in context"], rows, ("left", "right", "right"))


def _biggest(details: Details) -> Page:
    heading = f"biggest of {words.count(details.results_in_file, 'tool result')}"
    return _big_results(heading, "in context", [(big, _whether(big)) for big in details.biggest_results])


def _why_nothing(layer1: Layer1Note) -> Page:
    """Return what keeps the biggest results where they are, and what lower limits would do."""
    kept = [(big, visible(big.why)) for big in layer1.biggest or ()]
    lines = _big_results("biggest tool results", "why it stays", kept)
    return [*lines, *([""] if lines else []), *labelled("spill", words.would_spill(layer1.would_spill or ()))]


def _big_results(heading: str, said: str, biggest: Sequence[tuple[BigResult, str]]) -> Page:
    rows = [
        [f"{big.line}", f"{big.bytes:,}", clipped(big.tool, NAME_WIDTH), why] for big, why in biggest[:BIGGEST_SHOWN]
    ]
    if not rows:
        return []
    body = table(["line", "bytes", "tool", said], rows, ("right", "right", "left", "left"))
    return ["", heading, *(f"  {line}" for line in body)]


def _whether(big: BigResult) -> str:
    return f"{'yes' if big.in_context else 'no'}, {visible(big.why)}"


def _spills(layer1: Layer1Note) -> Page:
    rows = []
    for spill in layer1.spills:
        tool = clipped(spill.tool or spill.call_id, NAME_WIDTH)
        start = clipped(" ".join(spill.preview_start.split()), PREVIEW_WIDTH)
        rows.append([f"{spill.line}", f"{spill.bytes:,}", tool, visible(spill.why), start])
    lines: Page = []
    if rows:
        body = table(
            ["line", "bytes", "tool", "why", "preview starts"], rows, ("right", "right", "left", "left", "left")
        )
        lines += ["", *(f"  {line}" for line in body), ""]
    for failure in layer1.failures:
        place = f"line {failure.line}: " if failure.line else ""
        lines += labelled("not spilled", [f"{place}{clipped(failure.call_id, NAME_WIDTH)}: {visible(failure.error)}"])
    return lines


def _written(outcome: Outcome) -> Page:
    if outcome.output is None:
        return []
    output = outcome.output
    verb = {"applied": "wrote", "planned": "to write"}.get(outcome.status, "there")
    return labelled(verb, [visible(path) for path in (output.session, output.spill_dir, output.report) if path])


def _checks(outcome: Outcome, view: View) -> Page:
    if outcome.checks is UNSET:
        return []
    held = {True: "ok", False: paint("FAILED", "failed", view)}
    return labelled("checks", [f"{held[ok]}  {words.check(name)}" for name, ok in outcome.checks.items()])


def _findings(outcome: Outcome, view: View) -> Page:
    return labelled("problems", list(findings(outcome.findings, view)))


def findings(found: Sequence[FindingNote], view: View) -> Iterable[str]:
    """Yield a line a finding, the worst first, at most a screenful."""
    found = sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
    shown = found if view.verbose else found[:FINDINGS_SHOWN]
    for finding in shown:
        place = f"line {finding.line}: " if finding.line is not None else ""
        severity = paint(finding.severity, finding.severity, view)
        yield f"{severity} {visible(finding.rule)}: {place}{visible(finding.message)}"
    if len(shown) < len(found):
        yield f"and {len(found) - len(shown):,} more (-v shows all)"


def _notes(outcome: Outcome) -> Page:
    return [visible(note) for note in outcome.notes]


def _next(outcome: Outcome, view: View) -> Page:
    if outcome.status != "planned" or not view.command_line:
        return []
    return ["", f"to write it: {visible(view.command_line)}"]


def labelled(label: str, lines: Sequence[str]) -> Page:
    """Return lines with a label before the first one; nothing where there are no lines."""
    first = label.ljust(LABEL_WIDTH - 1) + " "
    return [(first if index == 0 else " " * len(first)) + line for index, line in enumerate(lines) if line]


def _spaced(lines: Page) -> Page:
    return ["", *lines] if lines else []


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], align: Sequence[str]) -> Page:
    """Return the rows as aligned lines. Cells are text already; nothing in them is taken for a number."""
    if not rows:
        return []
    text = tabulate([headers, *rows], tablefmt="plain", disable_numparse=True, colalign=align)
    return [line.rstrip() for line in text.splitlines()]


def paint(text: str, style: str, view: View) -> str:
    """Return the text in colour where the view has colour."""
    code = _COLORS.get(style)
    return f"\x1b[{code}m{text}\x1b[0m" if view.color and code else text
