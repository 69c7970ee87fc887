"""Batches of `audit` to be reported, also such as hold attacks on whoever reads the report."""

import re

from compactctl.outcome import FindingNote, Problem
from compactctl.outputs import View, load
from compactctl.totals import Batch
from tests.builders.outcomes import HOSTILE, batch, failed, outcome

ROOT = "/srv/repo"

VIEW = View(root=ROOT)

ATTACKS = (
    HOSTILE,
    "::error file=x,line=1::gotcha",
    "\n::set-output name=x::1",
    "a\r::add-mask::x",
    "%0A::error::x",
    "%250D%250A::warning::x",
    "x,line=9,title=y::z",
    "##[command]x",
    "##vso[task.setvariable]x",
    "##teamcity[x]",
    "section_start:1:x\r\x1b[0K",
    "</failure><testcase name='x'/>",
    "]]><x/>&amp;&#10;",
    "`" * 9 + "\n# heading\n",
    "| cell | <details open>",
    "<img src=x onerror=alert(1)>",
    "[click](https://e.org) ![i](https://e.org/p) @someone #1",
    "\u202egnp.exe\u2066\u2069\u200b\ufeff",
    "\x00\x08\x1b]0;t\x07\x9b2J\x85\u2028",
    "half \ud800 \udfff",
    "\"quoted' \\u0022 \\",
    "\U000e0041\U000e0042 \ufffe\uffff",
)


def note(rule="torn-tail", severity="error", line=41, message="cut off", fingerprint="f1", **more):
    """Return a finding as an outcome tells it."""
    return FindingNote(rule, severity, line, message, fingerprint, **more)


def printed(name: str, made: Batch, view: View = VIEW) -> str:
    """Return what an output prints of an audit."""
    printer = load(name).printer("audit", view)
    return "".join(printer.outcome(item) for item in made.outcomes) + printer.end(made)


def audit(*outcomes) -> Batch:
    """Return the batch of an audit that came to these outcomes."""
    return batch(*outcomes, command="audit")


def attacked(attack: str) -> Batch:
    """Return a batch in which everything that may come from outside is an attack."""
    error = Problem("unknown_format", f"{attack}: {attack}")
    findings = tuple(note(severity=severity, message=attack, fingerprint=attack) for severity in ("error", "note"))
    return audit(
        outcome(f"{ROOT}/{attack}".replace("\0", ""), session_id=attack, model=attack, agent=attack, findings=findings),
        outcome(f"{ROOT}/a.jsonl", findings=(note("torn-tail", "warning", None, attack),)),
        failed(attack.replace("\0", ""), error=error),
    )


COMMAND = re.compile(r"::(error|warning|notice) ([a-z]+=[^,:\r\n]*(?:,[a-z]+=[^,:\r\n]*)*)::([^\r\n]*)")
