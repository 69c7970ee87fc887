"""Hand-made outcomes and batches, for what prints them."""

from typing import Any

from compactctl.outcome import (
    BigResult,
    Bytes,
    CompactionNote,
    Details,
    FindingNote,
    KeepCounts,
    Layer1Note,
    Outcome,
    Output,
    Problem,
    SpillNote,
    Status,
    Tokens,
    WouldSpill,
)
from compactctl.totals import Batch

KINDS = ("text", "calls", "results", "media", "reasoning", "copies", "progress", "other")


def tokens(before: int = 94_172, after: int | None = None, **changes: Any) -> Tokens:
    """Return tokens of a context of 200,000 that start from recorded usage at line 40."""
    facts: dict[str, Any] = {
        "estimator": "heuristic",
        "anchored": True,
        "window": 200_000,
        "window_source": "table",
        "threshold": 167_000,
        "anchor_line": 40,
        "anchor_tokens": before - 172,
    }
    return Tokens(before=before, after=before if after is None else after, **{**facts, **changes})


def details(**changes: Any) -> Details:
    """Return what `inspect` knows of a session with one compaction and two results."""
    facts: dict[str, Any] = {
        "lines": 41,
        "window_used_percent": 47,
        "bytes_by_kind": {**dict.fromkeys(KINDS, 0), "text": 2_000, "results": 90_000, "copies": 40_000},
        "context_bytes_by_kind": {**dict.fromkeys(KINDS, 0), "text": 1_500, "results": 60_000},
        "results_in_file": 2,
        "biggest_results": (
            BigResult(12, 69_033, "Read", False, "before the compaction"),
            BigResult(30, 23_211, "Bash", True, "under the limit of 50,000"),
        ),
        "would_spill": (WouldSpill(50_000, 0, 0, 0), WouldSpill(20_000, 1, 23_211, 6_012)),
        "compactions": (CompactionNote(20, 167_979, "auto"),),
        "side_runs": (),
        "requests": 9,
        "peak_tokens": 167_979,
    }
    return Details(**{**facts, **changes})


def outcome(path: str = "a.jsonl", **changes: Any) -> Outcome:
    """Return one inspected session."""
    facts: dict[str, Any] = {
        "format": "claude-code",
        "agent": "Claude Code 2.1.29",
        "session_id": "5c3a83f2-1982-4cec-acdc-ae1668adf92e",
        "parent_session_id": None,
        "project": "/home/dev/tidewatch",
        "modified": "2026-03-02T09:20:00+00:00",
        "model": "claude-opus-4-5",
        "messages": 31,
        "rounds": 9,
        "tool_results": 12,
        "bytes": Bytes(142_000, 142_000, 0),
        "tokens": tokens(),
        "details": details(),
    }
    return Outcome(path=path, **{**facts, **changes})


def spilled(path: str = "a.jsonl", status: Status = "planned", **changes: Any) -> Outcome:
    """Return one session with a spill, planned or applied."""
    note = SpillNote(
        call_id="toolu_1",
        tool="Bash",
        line=14,
        bytes=169_033,
        sha256="0" * 64,
        reason="single",
        file="a.compacted/tool-results/toolu_1.txt",
        preview_start="npm ERR! code ERESOLVE",
        why="over 50,000",
    )
    facts: dict[str, Any] = {
        "status": status,
        "bytes": Bytes(410_000, 221_000, 190_000),
        "tokens": tokens(141_203, 103_480),
        "layer1": Layer1Note((note,), (), (KeepCounts("under the limits", 14),)),
        "output": Output("a.compacted.jsonl", "a.compacted.report.json", "a.compacted/tool-results"),
    }
    return outcome(path, **{**facts, **changes})


def failed(path: str = "notes.txt", exit_code: int = 3, **changes: Any) -> Outcome:
    """Return a named file that is no session."""
    problem = Problem("unknown_format", f"{path}: no format recognises it: plain text")
    facts: dict[str, Any] = {"status": "failed", "error": problem, "exit_code": exit_code}
    return Outcome(path=path, **{**facts, **changes})


def finding(
    rule: str = "torn-tail", severity: str = "error", line: int | None = 41, message: str = "cut off"
) -> FindingNote:
    return FindingNote(rule, severity, line, message)


def batch(*outcomes: Outcome, command: str = "inspect", **changes: Any) -> Batch:
    """Return a batch that ends with the highest exit code met."""
    made = Batch.of(command, outcomes)
    made.exit_code = max((item.exit_code for item in outcomes), default=0)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


HOSTILE = (
    "::error::gotcha\n\x1b]0;owned\x07\u202e##vso[task.x]\ud800 | `x` ``` "
    "<script>alert(1)</script> ![i](https://e.org/p) =1+1"
)
"""What a session may hold to steer a terminal, a CI runner, a spreadsheet or a page."""


def hostile() -> Batch:
    """Return a batch in which every text that comes from a session is hostile."""
    big = BigResult(3, 10, HOSTILE, True, HOSTILE)
    notes = SpillNote(HOSTILE, HOSTILE, 3, 10, "0" * 64, "single", HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    one = outcome(
        HOSTILE,
        format=HOSTILE,
        agent=HOSTILE,
        session_id=HOSTILE,
        model=HOSTILE,
        project=HOSTILE,
        details=details(biggest_results=(big,), compactions=(CompactionNote(1, 2, HOSTILE),)),
        layer1=Layer1Note((notes,)),
        estimates={HOSTILE: 3},
        checks={HOSTILE: False},
        findings=(finding(message=HOSTILE),),
        output=Output(HOSTILE, HOSTILE, HOSTILE),
        notes=(HOSTILE,),
        status="planned",
    )
    bad = failed(HOSTILE, error=Problem("unknown_format", HOSTILE))
    return batch(one, bad)
