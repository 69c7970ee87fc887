"""The outputs for CI, all alike: none is steered by what a session holds, and each tells what was mended."""

import json
import re

import pytest

from compactctl.outcome import EditNote, FixNote
from compactctl.outputs import AUDIT_OUTPUTS, REPORTS
from tests.builders.outcomes import HOSTILE, outcome
from tests.outputs.reported import ATTACKS, ROOT, attacked, audit, note, printed


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("name", [name for name in AUDIT_OUTPUTS if name != "github"])
def test_no_line_is_a_command_and_nothing_steers_a_terminal(name, attack):
    text = printed(name, attacked(attack))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\u200b\ufeff\ud800-\udfff]", text)
    assert not re.search(r"##\w*\[", text)
    assert not re.search(r"^\s*::", text, re.MULTILINE)


@pytest.mark.parametrize("name", [name for name in AUDIT_OUTPUTS if name != "gitlab"])
def test_what_is_mended_is_told_and_its_text_steers_nothing(name):
    fix = FixNote(f"{ROOT}/{HOSTILE}", (EditNote(7, "torn-tail", f"leaves out 12 bytes {HOSTILE}"),))
    text = printed(name, audit(outcome(f"{ROOT}/a.jsonl", fix=fix, status="planned")))
    assert "leaves out 12 bytes" in text
    assert "torn-tail" in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\u200b\ufeff\ud800-\udfff]", text)


def test_a_list_counts_what_is_mended_in_each_session():
    fix = FixNote("a.fixed.jsonl", (EditNote(7, "torn-tail", "leaves out 12 bytes"),))
    made = audit(outcome("a.jsonl", fix=fix, status="applied", findings=(note(),)), outcome("b.jsonl"))
    assert [line.rpartition("  ")[2] for line in printed("table", made).splitlines()[1:3]] == ["1 error, 1 fixed", "-"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_sarif_and_gitlab_hold_text_as_text(attack):
    (run,) = json.loads(printed("sarif", attacked(attack)))["runs"]
    assert len(run["results"]) == 3
    assert not any("](" in result["message"]["text"] for result in run["results"])
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"(file://)?(%[0-9A-F]{2}|[A-Za-z0-9._~/-])+", uri)
    assert len(json.loads(printed("gitlab", attacked(attack)))) == 4


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_of_nothing_is_whole(name):
    text = printed(name, audit())
    assert text == "" if name == "github" else text.endswith("\n")
