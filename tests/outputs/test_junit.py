"""JUnit as Jenkins and GitLab take it: a case for each rule that fails."""

import xml.etree.ElementTree as ElementTree

import pytest

from compactctl.outputs import View
from tests.builders.outcomes import failed, outcome
from tests.outputs.reported import ATTACKS, ROOT, VIEW, attacked, audit, note, printed

JUNIT_CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase", "system-out"},
    "testcase": {"failure", "skipped"},
    "failure": set(),
    "skipped": set(),
    "system-out": set(),
}
JUNIT_ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors"},
    "testcase": {"name", "classname"},
    "failure": {"message", "type"},
    "skipped": set(),
    "system-out": set(),
}
"""What Jenkins' junit-10.xsd allows, of which all that is listed here is written each time."""


def assert_junit(tree):
    """Check the structure, strictly: elements, attributes, and sums that are right."""
    assert tree.tag == "testsuites"
    for element in tree.iter():
        assert set(element.attrib) == JUNIT_ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= JUNIT_CHILDREN[element.tag]
        if element.tag.startswith("testsuite"):
            sums = (len(list(element.iter("testcase"))), len(list(element.iter("failure"))), 0)
            assert (int(element.get("tests")), int(element.get("failures")), int(element.get("errors"))) == sums


def junit(*outcomes, view: View = VIEW):
    tree = ElementTree.fromstring(printed("junit", audit(*outcomes), view))
    assert_junit(tree)
    return tree


def test_each_rule_that_fails_is_a_failed_case():
    findings = (note(), note(line=50), note("large-result", "warning", 3, "60,000 bytes"))
    (suite,) = junit(outcome(f"{ROOT}/a.jsonl", findings=findings))
    (case,) = suite.findall("testcase")
    assert (case.get("classname"), case.get("name")) == ("a.jsonl", "torn-tail")
    assert case.find("failure").text.splitlines() == [
        "a.jsonl:41: error torn-tail: cut off",
        "a.jsonl:50: error torn-tail: cut off",
    ]
    assert suite.find("system-out").text == "a.jsonl:3: warning large-result: 60,000 bytes"


@pytest.mark.parametrize(
    "fail_on, known, failures", [("error", None, 1), ("warning", None, 2), ("never", None, 0), ("warning", True, 0)]
)
def test_what_fails_is_what_fails_the_run(fail_on, known, failures):
    more = {} if known is None else {"known": known}
    findings = (note(**more), note("large-result", "warning", **more), note("no-usage", "note", **more))
    tree = junit(outcome(findings=findings), view=View(root=ROOT, fail_on=fail_on))
    assert tree.get("failures") == str(failures)


def test_a_session_without_findings_passes_and_one_that_was_passed_over_is_skipped():
    passed, skipped = junit(outcome("a.jsonl"), failed("b.jsonl", 0, status="skipped"))
    assert [child.tag for child in passed.find("testcase")] == []
    assert [child.tag for child in skipped.find("testcase")] == ["skipped"]


def test_what_could_not_be_read_fails_whatever_fail_on_says():
    tree = junit(failed(), view=View(fail_on="never"))
    assert [case.get("name") for case in tree.iter("testcase")] == ["unknown_format"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_junit_stays_well_formed_and_holds_no_more_elements(attack):
    tree = ElementTree.fromstring(printed("junit", attacked(attack)))
    assert [len(suite.findall("testcase")) for suite in tree] == [1, 1, 1]
    assert_junit(tree)
