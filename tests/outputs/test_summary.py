"""The summary of a job: small, the worst first, and nothing of a session is markup in it."""

import re

import pytest

from compactctl.outputs.summary import FINDINGS_LIMIT
from tests.builders.outcomes import outcome
from tests.outputs.reported import ATTACKS, ROOT, attacked, audit, note, printed


def test_a_summary_counts_by_rule_and_tells_the_worst_first():
    findings = (note("no-usage", "note", None, "none"), note(), note(line=50))
    text = printed("summary", audit(outcome(f"{ROOT}/a.jsonl", findings=findings)))
    assert text.startswith("## compactctl audit\n\n1 session · 2 errors, 1 note\n")
    assert "| error | `torn-tail` | 2 |\n| note | `no-usage` | 1 |\n" in text
    assert text.endswith(
        "| error | `a.jsonl:41` | `torn-tail` | `cut off` |\n"
        "| error | `a.jsonl:50` | `torn-tail` | `cut off` |\n"
        "| note | `a.jsonl` | `no-usage` | `none` |\n"
    )


def test_a_summary_stays_small():
    long = "\x1b" * 9_000
    findings = tuple(note(line=line, message=long) for line in range(FINDINGS_LIMIT + 7))
    text = printed("summary", audit(outcome(f"{ROOT}/{'x' * 4_000}", findings=findings)))
    assert len(text) < 100_000
    assert text.endswith("\n\nand 7 more\n")


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_is_markup_in_the_summary(attack):
    text = printed("summary", attacked(attack))
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    plain = re.sub(r"[0-9A-Za-z ,.:|·\n-]", "", outside)
    assert plain == "##"  # the heading; all else that is no letter is in code spans
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4, 5}
