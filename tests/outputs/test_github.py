"""Annotations of GitHub: each is one command of ours, and there are no more of a kind than are shown."""

import re
from collections import Counter

import pytest

from compactctl.outputs import View
from compactctl.outputs.github import ANNOTATIONS_LIMIT
from tests.builders.outcomes import outcome
from tests.outputs.reported import ATTACKS, COMMAND, ROOT, VIEW, attacked, audit, note, printed


def annotations(*outcomes, view: View = VIEW):
    return printed("github", audit(*outcomes), view).splitlines()


def test_annotations_name_file_line_and_rule_errors_first():
    findings = (note("no-usage", "note", None, "none"), note("large-result", "warning", 3, "100 %, a:b"), note())
    assert annotations(outcome(f"{ROOT}/x,y:z.jsonl", findings=findings)) == [
        "::error file=x%2Cy%3Az.jsonl,line=41,title=torn-tail::cut off",
        "::warning file=x%2Cy%3Az.jsonl,line=3,title=large-result::100 %25, a:b",
        "::notice file=x%2Cy%3Az.jsonl,title=no-usage::none",
    ]


def test_there_are_no_more_annotations_of_a_kind_than_are_shown_and_one_line_counts_the_rest():
    findings = [note(line=line) for line in range(25)] + [note("large-result", "warning")] * 11
    found = annotations(outcome(findings=tuple(findings)))
    assert Counter(line.split(" ")[0] for line in found) == {
        "::error": ANNOTATIONS_LIMIT,
        "::warning": ANNOTATIONS_LIMIT,
        "compactctl:": 1,
    }
    assert found[-1] == "compactctl: 15 errors, 1 warning more, not annotated"


def test_a_long_message_is_annotated_as_far_as_a_runner_shows_it():
    [line] = [each for each in annotations(outcome(findings=(note(message="x" * 5_000),))) if "torn-tail" in each]
    assert line.endswith("::" + "x" * 2_000)


def test_what_is_known_is_not_annotated():
    assert annotations(outcome(findings=(note(known=True), note("bad-call-id", known=False)))) == [
        "::error file=a.jsonl,line=41,title=bad-call-id::cut off"
    ]


@pytest.mark.parametrize("attack", ATTACKS)
def test_each_annotation_is_one_command_of_ours(attack):
    found = printed("github", attacked(attack))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\u200b\ufeff\ud800-\udfff]", found)
    commands = [COMMAND.fullmatch(line) for line in found.splitlines()]
    assert [command and command[1] for command in commands] == ["error", "error", "warning", "notice"]
    for command in commands:
        properties = dict(item.split("=", 1) for item in command[2].split(","))
        assert set(properties) <= {"file", "line", "title"}
        assert "##[" not in command[0]
        assert "%" not in re.sub("%(25|0D|0A|3A|2C)", "", command[0])
