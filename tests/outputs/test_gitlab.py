"""GitLab's report of code quality."""

import json

from compactctl.outcome import EditNote, FixNote
from tests.builders.outcomes import outcome
from tests.outputs.reported import ROOT, audit, note, printed


def test_an_issue_of_gitlab():
    issues = json.loads(printed("gitlab", audit(outcome(f"{ROOT}/a.jsonl", findings=(note(), note(line=None))))))
    assert issues[0] == {
        "description": "torn-tail: cut off",
        "check_name": "torn-tail",
        "fingerprint": "f1",
        "severity": "critical",
        "location": {"path": "a.jsonl", "lines": {"begin": 41}},
    }
    assert issues[1]["location"]["lines"] == {"begin": 1}


def test_what_is_mended_is_no_issue_for_gitlab():
    fix = FixNote("a.fixed.jsonl", (EditNote(7, "torn-tail", "leaves out 12 bytes"),))
    assert json.loads(printed("gitlab", audit(outcome(f"{ROOT}/a.jsonl", fix=fix)))) == []
