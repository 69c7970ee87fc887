"""Recorded usage that is missing or can't be right."""

from compactctl.rules.interface import Page

PAGES: dict[str, Page] = {
    "stale-usage": Page(
        name="Stale usage",
        meaning="recorded usage that no longer says how full the context is",
        why="Several agents decide by the newest recorded usage whether to compact. One from before a change of the "
        "context makes them compact at once, or refuse to go on.",
        example="usage of 195,000 tokens, recorded before the results were spilled",
        fix="Nothing in the file: the context is estimated whole until the next answer is recorded.",
    ),
    "impossible-usage": Page(
        name="Usage over the window",
        meaning="a request is said to have held more than the model takes",
        why="It is the sum over several requests of a turn, or counted twice. Who takes it for the size of the context "
        "compacts far too early.",
        example="931,000 tokens where the window is 200,000",
        fix="Have the program record the usage of each request, not of the turn.",
    ),
    "falling-usage": Page(
        name="Usage that falls without a compaction",
        meaning="a request took in far less than the one before, and nothing in the session says why",
        why="Results were cleared in requests alone, a branch was left, or cached tokens were left out of the count. "
        "Estimates that start from such a figure may be far too low.",
        example="input of 142,000 tokens, then of 9,000",
        fix="Look at what happened between the two lines.",
    ),
    "placeholder-output": Page(
        name="Placeholder for output",
        meaning="answers are recorded with far fewer output tokens than their text has",
        why="The figure was written when the answer began and never brought up to date (Claude Code before about "
        "2.1.50). Cost and context computed from it are too low.",
        example="an answer of 4,000 characters with output_tokens of 8",
        fix="Use the input of the next request; compactctl does.",
    ),
    "repeated-usage": Page(
        name="Repeated totals",
        meaning="requests after another that are recorded with the very same usage",
        why="Somebody writes one usage several times (a line a block, a total that is told again). Sums over lines "
        "count it twice.",
        example="two answers of different ids, both with input 81,204 and output 311",
        fix="Count each request once; nothing to mend in the session.",
    ),
    "no-usage": Page(
        name="No usage",
        meaning="no provider usage to start an estimate from",
        why="All figures of tokens are estimates of the messages alone, without the system prompt and the tools.",
        example="answers without a usage member",
        fix="Have the agent record usage, where it can.",
    ),
    "no-estimate": Page(
        name="No estimate",
        meaning="an estimator that was asked for could not count this session",
        why="Its figure is missing beside those of the others.",
        example="tiktoken, in an environment where it is not installed",
        fix="The message says what it lacks.",
    ),
    "estimator-error": Page(
        name="Estimate far from what was recorded",
        meaning="the estimate of what came between two requests is off by more than audit.estimator_error_percent",
        why="Decisions about spilling and compaction rest on it: too low, and the context overflows; too high, and "
        "it is compacted too early.",
        example="estimated 41,000 tokens, recorded 58,000",
        fix="compactctl accuracy shows where it is off; another --estimator may be nearer.",
    ),
}
