"""Limits from the command line: broken where an option says so, and nowhere else."""

from compactctl.rules.interface import Page

PAGES: dict[str, Page] = {
    "max-tokens": Page(
        name="More tokens than allowed",
        meaning="the largest context of the session is over --max-tokens",
        why="The peak counts, not the end: a compaction does not make an overfull run good.",
        example="--max-tokens 120k, and a peak of 141,207",
        fix="Find out what filled the context: compactctl inspect.",
    ),
    "max-context": Page(
        name="Fuller than allowed",
        meaning="the largest context takes more of the window than --max-context",
        why="The same in percent of the model's window.",
        example="--max-context 60, and a peak of 71 %",
        fix="Find out what filled the context: compactctl inspect.",
    ),
    "max-compactions": Page(
        name="More compactions than allowed",
        meaning="more compactions are recorded than --max-compactions",
        why="Each compaction loses something; a job that needs several does too much in one session.",
        example="--max-compactions 0, and one at line 212",
        fix="Split the task, or spill earlier.",
    ),
    "max-result-bytes": Page(
        name="Larger result than allowed",
        meaning="a tool result of the session is over --max-result-bytes",
        why="A tool that floods the context should be told to print less.",
        example="--max-result-bytes 100000, and a result of 912,004 bytes at line 88",
        fix="Have the tool print less, or to a file.",
    ),
    "max-estimator-error": Page(
        name="Estimates worse than allowed",
        meaning="the estimates of the session are further from recorded usage than --max-estimator-error",
        why="A new model with another tokenizer shows here first.",
        example="--max-estimator-error 20, and a median of 34 %",
        fix="compactctl accuracy --fit FILE makes a profile for the model.",
    ),
}
