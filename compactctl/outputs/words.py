"""Quantities and findings in words, the same in every output that people read."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import UNSET

from compactctl.outcome import SEVERITIES, FindingNote, KeepCounts, Outcome, Tokens, WouldSpill
from compactctl.outputs.safe import clipped, visible
from compactctl.totals import Batch, Forecast

_UNITS = ("kB", "MB", "GB", "TB")

KIND_WORDS = {
    "text": "messages",
    "calls": "tool calls",
    "results": "tool results",
    "media": "images, documents",
    "reasoning": "reasoning",
    "copies": "display copies",
    "progress": "progress lines",
    "other": "everything else",
}

WINDOW_WORDS = {
    "recorded": "window recorded in the session",
    "proved": "window proved by a larger context in the session",
    "receipt": "window that it was compacted for, by its report",
    "table": "window from the table of models; the session does not say",
    "fallback": "window assumed: the model is not known (--window sets it)",
    "option": "window from the command line",
}

WINDOW_MARKS = {"recorded": "r", "proved": "p", "receipt": "c", "table": "t", "fallback": "?", "option": "o"}
"""The same in one letter, for lists; `?` is a guess."""

CHECK_WORDS = {
    "receipt_matches": "the session is the one that its report tells of",
    "restorable": "the original can be given back, byte for byte",
    "no_new_problem": "it has no problem that its source lacked",
    "context_kept": "every message is there, kept or spilled",
    "spills_present": "every spilled file is there, with its hash",
    "balanced": "every message is kept, spilled or summarised, with its lines in the history",
    "history_kept": "the lines that the summary stands for are there, with their hash",
    "settled": "a second run finds nothing to do",
    "original": "equal to the original (sha256)",
}

ESTIMATE_WORDS = {
    "heuristic": "the messages alone: no file shows the system prompt and the tools",
    "tiktoken": "the same texts, by an encoding of OpenAI's",
    "calibrated": "what the model's family makes of them, and of what stands around messages",
    "ctok": "the same, the texts counted by Claude's own tokenizer",
    "anchored": "the recorded usage, and what was estimated since",
    "usage": "recorded by the provider",
}


NEVER_SPILLED = "never: a log that an agent printed is only read"


def check(name: str) -> str:
    """Return what a check says that holds, or does not."""
    return CHECK_WORDS.get(name) or visible(name.replace("_", " "))


def size(count_bytes: int) -> str:
    """Return a file size as people read it: `2.4 MB`."""
    value = float(count_bytes)
    if value < 1000:
        return f"{count_bytes} B"
    for unit in _UNITS:
        value /= 1000
        if value < 999.5 or unit == _UNITS[-1]:
            break
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"


def short(number: int) -> str:
    """Return a number as people say it: `141k`, `1.2M`."""
    if number < 1000:
        return f"{number}"
    return f"{round(number / 1000)}k" if number < 999_500 else f"{number / 1_000_000:.1f}M".replace(".0M", "M")


def window_marks(sources: Iterable[str]) -> str:
    """Return what the letters behind windows in a list mean, of those that occur."""
    seen = set(sources)
    meanings = {source: re.split("[;:]", WINDOW_WORDS[source])[0].removeprefix("window ") for source in WINDOW_MARKS}
    return " · ".join(f"{mark} {meanings[source]}" for source, mark in WINDOW_MARKS.items() if source in seen)


def count(number: int, thing: str, plural: str = "") -> str:
    """Return `1 result`, `2 results`."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def percent(part: int, whole: int) -> str:
    """Return a share in whole percent, with the sign set off: `47 %`."""
    return f"{round(100 * part / whole)} %" if whole else "-"


def change(before: int, after: int) -> str:
    """Return `a -> b`, or the one figure where they are equal."""
    return f"{before:,}" if before == after else f"{before:,} -> {after:,}"


def anchor(tokens: Tokens) -> str:
    """Return how the token figure came about."""
    if not tokens.anchored or tokens.anchor_tokens is None:
        return f"estimated ({_by(tokens)}), the messages alone; no recorded usage to start from"
    place = f" at line {tokens.anchor_line}" if tokens.anchor_line is not None else ""
    since = tokens.before - tokens.anchor_tokens
    return f"{tokens.anchor_tokens:,} recorded by the provider{place} + {since:,} estimated since ({_by(tokens)})"


def _by(tokens: Tokens) -> str:
    return clipped(tokens.estimator, 40)


def between(low: int | None, high: int | None) -> str:
    """Return an interval in words; "" where there is none, or it is one figure."""
    return "" if low is None or high is None or low == high else f"{low:,} to {high:,} in 9 of 10 cases (p5 to p95)"


def window(tokens: Tokens) -> str:
    """Return where the window comes from, and when a summary is due."""
    source = WINDOW_WORDS.get(tokens.window_source, f"window: {clipped(tokens.window_source, 40)}")
    return f"{source}. Summary due at {tokens.threshold:,}"


def would_spill(choices: Sequence[WouldSpill]) -> list[str]:
    """Return what Layer 1 would do at each limit, a line each; one line where that is nothing at all."""
    if not any(choice.results for choice in choices):
        return _nothing([choice.limit_bytes for choice in choices])
    said: list[str] = []
    before: WouldSpill | None = None
    for choice in choices:
        if before is not None and choice.results == before.results:
            said.append(f"at {choice.limit_bytes:,} bytes: {'no more' if choice.results else 'nothing'}")
        elif not choice.results:
            said.append(f"at {choice.limit_bytes:,} bytes: nothing")
        else:
            results = count(choice.results, "result")
            said.append(f"at {choice.limit_bytes:,} bytes: {results}, about -{choice.tokens_saved:,} tokens")
        before = choice
    return said


def kept(counts: Sequence[KeepCounts]) -> str:
    """Return why results stay where they are."""
    said = [visible(re.sub("^its ", "whose ", item.reason)) for item in counts]
    return " · ".join(f"{count(item.count, 'result')} {reason}" for item, reason in zip(counts, said, strict=True))


def problems(findings: Sequence[FindingNote]) -> str:
    """Return findings counted by severity: `2 errors, 1 warning`; empty where there is nothing above a note."""
    found = Counter(finding.severity for finding in findings)
    return ", ".join(count(found[severity], severity) for severity in ("error", "warning") if found[severity])


def summary(batch: Batch, shown: Callable[[str], str] = visible) -> str:
    """Return the batch in one line; `shown` makes text safe for where it stands."""
    totals, formats = batch.totals(), batch.tally.formats
    parts = [count(totals.sessions, "session"), size(totals.bytes.before)]
    if len(formats) > 1:
        parts.append(", ".join(f"{shown(name)} {number:,}" for name, number in formats.most_common()))
    if totals.tokens["before"] != totals.tokens["after"]:
        parts.append(f"context {change(totals.tokens['before'], totals.tokens['after'])} tokens")
    if totals.spills:
        parts.append(count(totals.spills, "spill"))
    if totals.disk is not UNSET:
        parts.append(f"disk {size(totals.disk.before)} -> {size(totals.disk.after)}")
    if totals.not_sessions:
        parts.append(count(totals.not_sessions, "other file"))
    parts += [f"{totals.status[status]:,} {status}" for status in ("skipped", "failed") if totals.status[status]]
    return " · ".join(parts)


def would_spill_in_all(batch: Batch) -> list[str]:
    """Return what lower limits would spill over all sessions where nothing is spilled, a line a limit."""
    forecasts = batch.tally.forecasts
    if not any(total.results for total in forecasts.values()):
        return _nothing(list(forecasts))
    return [f"at {limit:,} bytes: {_in_all(total)}" for limit, total in forecasts.items()]


def _in_all(total: Forecast) -> str:
    if not total.results:
        return "nothing"
    results, sessions = count(total.results, "result"), count(total.sessions, "session")
    saved = f"about -{total.tokens_saved:,} tokens" if total.tokens_saved else "which would save nothing"
    return f"{results} in {sessions}, {saved}"


def _nothing(limits: Sequence[int]) -> list[str]:
    """Return that none of the limits gives anything."""
    if not limits:
        return []
    *first, last = [f"{limit:,}" for limit in limits]
    return ["nothing at " + (", ".join(first) + " or " if first else "") + f"{last} bytes"]


def left_out(batch: Batch, shown: int, sort: str) -> str:
    """Return how many of the sessions are shown, and how to see more; empty where all are."""
    sessions = batch.tally.sessions
    if shown >= sessions:
        return ""
    by = f", by {sort}" if sort else ""
    return f"...{shown:,} of {sessions:,}{by}; --all, --limit N, --sort, --since DATE show others"


def mended(outcome: Outcome) -> Iterator[tuple[int, str, str, str]]:
    """Yield each edit of `audit --fix`: line, whether it is done (`fixed`, `to fix`), rule, and what it does."""
    if outcome.fix is UNSET:
        return
    said = "fixed" if outcome.status in ("applied", "unchanged") else "to fix"
    for edit in outcome.fix.edits:
        yield edit.line, said, edit.rule, edit.text


def mended_file(outcome: Outcome) -> str:
    """Return where the mended session is, or would be; empty where nothing is mended."""
    if outcome.fix is UNSET:
        return ""
    said = {"applied": "wrote ", "unchanged": "unchanged: "}.get(outcome.status, "--apply writes ")
    return f"{said}{visible(outcome.fix.file)}; what follows is found in it"


def troubled(batch: Batch) -> str:
    """Return how many sessions have errors and warnings; empty where none has."""
    hit = batch.tally.troubled
    return ", ".join(
        f"{count(hit[severity], 'session')} with {severity}s" for severity in ("error", "warning") if hit[severity]
    )


def found(batch: Batch) -> str:
    """Return an audit in one line: how many sessions, and findings by severity."""
    totals = batch.totals()
    counted = [count(totals.findings[severity], severity) for severity in SEVERITIES if totals.findings[severity]]
    known = f", {batch.tally.known:,} of them known" if batch.tally.known else ""
    parts = [count(totals.sessions, "session"), f"{', '.join(counted) or 'no findings'}{known}"]
    parts += [f"{totals.status[status]:,} {status}" for status in ("skipped", "failed") if totals.status[status]]
    if totals.not_sessions:
        parts.append(count(totals.not_sessions, "other file"))
    return " · ".join(parts)
