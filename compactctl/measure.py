"""Tokens of a transcript: what a provider counted last, plus an estimate of what came after; and when Layer 2 is due.

All arithmetic is on integers. In a small window the reserve is at most a quarter of it and the margin at most an
eighth, each rounded down, so that every window works; from 104,000 tokens up both stand as they are set.
"""

from msgspec import Struct

from compactctl.estimators import Estimator
from compactctl.findings import Finding
from compactctl.model import Transcript, Usage, Window
from compactctl.settings import Layer2, Settings
from compactctl.windows import contradicted, natural


class Measure(Struct, frozen=True):
    """How much the effective context holds, how that is known, and how much it may hold."""

    tokens: int
    anchored: bool
    anchor: Usage | None
    """The usage that the figure starts from; None where everything was estimated."""
    window: Window
    threshold: int
    """Layer 2 is due from here up."""
    findings: tuple[Finding, ...] = ()
    """Usages that were refused (`stale-usage`)."""


def measure(
    transcript: Transcript,
    estimator: Estimator,
    window: Window,
    settings: Settings,
    *,
    anchored: bool,
    stale_until_line: int = 0,
) -> Measure:
    """Return the tokens of the effective context, from the newest usage that still holds if `anchored`.

    Where that does not know what its answer took, the answer is estimated like what follows it.
    No usage on or before `stale_until_line` is an anchor: what it counted was changed since (a spill of ours).
    """
    limit = threshold(window, settings.layer2)
    index, findings = _anchor_index(transcript, settings, stale_until_line) if anchored else (None, [])
    usage = None if index is None else transcript.messages[index].usage
    if index is None or usage is None:
        tokens = estimator.tokens(transcript.messages)
        return Measure(tokens, False, None, window, limit, tuple(findings))
    tokens = usage.total_tokens + estimator.tokens(transcript.messages[index + 1 :])
    if not usage.is_output_known:
        tokens = usage.input_tokens + estimator.tokens(transcript.messages[index:])
    return Measure(tokens, True, usage, window, limit, tuple(findings))


def _anchor_index(
    transcript: Transcript, settings: Settings, stale_until_line: int
) -> tuple[int | None, list[Finding]]:
    """Return the index of the newest message whose usage holds, and what was found wrong with newer ones."""
    window_tokens = natural(transcript, settings).tokens
    refused = contradicted(transcript, window_tokens)
    findings: list[Finding] = []
    for index in range(len(transcript.messages) - 1, transcript.anchor_floor - 1, -1):
        usage = transcript.messages[index].usage
        if usage is None:
            continue
        if usage.line <= stale_until_line:
            return None, [*findings, Finding(usage.line, "stale-usage", BEFORE_A_SPILL)]
        if index not in refused:
            return index, findings
        findings.append(Finding(usage.line, "stale-usage", refused[index]))
    if transcript.requests and not findings:
        findings.append(Finding(transcript.requests[-1].line, "stale-usage", BEFORE_A_COMPACTION))
    return None, findings


BEFORE_A_SPILL = (
    "the newest recorded usage is from before results were spilled; the context is estimated whole until the next"
    " request is recorded"
)
BEFORE_A_COMPACTION = "no recorded usage is newer than the last change of the context; it is estimated whole"


def threshold(window: Window, layer2: Layer2) -> int:
    """Return from how many tokens on a context of this window is due for a summary."""
    reserve = min(layer2.summary_reserve_tokens, window.tokens // 4)
    margin = min(layer2.auto_safety_margin_tokens, window.tokens // 8)
    return window.tokens - reserve - margin


def after_layer1(before: int, estimated_saved: int) -> int:
    """Return the tokens after spills: what they took off the estimate comes off the figure; never below zero."""
    return max(0, before - estimated_saved)


def overhead(transcript: Transcript, estimator: Estimator) -> int:
    """Return the tokens of every request that no message shows (system prompt, tools): what the first request that
    still counts took in beyond the messages it carried; 0 where that is not known."""
    for index in range(transcript.anchor_floor, len(transcript.messages)):
        usage = transcript.messages[index].usage
        if usage is not None:
            return max(0, usage.input_tokens - estimator.tokens(transcript.messages[:index]))
    return 0
