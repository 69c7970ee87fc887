"""The outputs for CI: each by the rules of who reads it, and none of them steered by what a session holds."""

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest

from compactctl.__main__ import exit_code
from compactctl.cli import ci
from compactctl.errors import WriteError
from compactctl.findings import RULES
from compactctl.outcome import Batch, EditNote, FindingNote, FixNote, Problem
from compactctl.outputs import AUDIT_OUTPUTS, REPORTS, View, load
from compactctl.outputs.github import ANNOTATIONS_LIMIT
from compactctl.outputs.summary import FINDINGS_LIMIT
from compactctl.store import append
from tests.builders.chat import assistant, lines, tool, user
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
    return FindingNote(rule, severity, line, message, fingerprint, **more)


def printed(name: str, made: Batch, view: View = VIEW) -> str:
    printer = load(name).printer("audit", view)
    return "".join(printer.outcome(item) for item in made.outcomes) + printer.end(made)


def audit(*outcomes) -> Batch:
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


# hostile text, in every output -------------------------------------------------------------------


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


def test_what_is_mended_is_no_issue_for_gitlab():
    fix = FixNote("a.fixed.jsonl", (EditNote(7, "torn-tail", "leaves out 12 bytes"),))
    assert json.loads(printed("gitlab", audit(outcome(f"{ROOT}/a.jsonl", fix=fix)))) == []


COMMAND = re.compile(r"::(error|warning|notice) ([a-z]+=[^,:\r\n]*(?:,[a-z]+=[^,:\r\n]*)*)::([^\r\n]*)")


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


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_is_markup_in_the_summary(attack):
    text = printed("summary", attacked(attack))
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    plain = re.sub(r"[0-9A-Za-z ,.:|·\n-]", "", outside)
    assert plain == "##"  # the heading; all else that is no letter is in code spans
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4, 5}


@pytest.mark.parametrize("attack", ATTACKS)
def test_junit_stays_well_formed_and_holds_no_more_elements(attack):
    tree = ElementTree.fromstring(printed("junit", attacked(attack)))
    assert [len(suite.findall("testcase")) for suite in tree] == [1, 1, 1]
    assert_junit(tree)


@pytest.mark.parametrize("attack", ATTACKS)
def test_sarif_and_gitlab_hold_text_as_text(attack):
    (run,) = json.loads(printed("sarif", attacked(attack)))["runs"]
    assert len(run["results"]) == 3
    assert not any("](" in result["message"]["text"] for result in run["results"])
    uri = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"(file://)?(%[0-9A-F]{2}|[A-Za-z0-9._~/-])+", uri)
    assert len(json.loads(printed("gitlab", attacked(attack)))) == 4


# SARIF -------------------------------------------------------------------------------------------


def sarif(*outcomes, view: View = VIEW):
    (run,) = json.loads(printed("sarif", audit(*outcomes), view))["runs"]
    return run


def test_a_finding_is_a_result_with_its_rule_place_and_fingerprint():
    run = sarif(outcome(f"{ROOT}/logs/a b.jsonl", findings=(note(), note("no-usage", "note", None))))
    assert run["results"][0] == {
        "ruleId": "torn-tail",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "cut off"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "logs/a%20b.jsonl", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 41},
                }
            }
        ],
        "partialFingerprints": {"compactctl/v1": "f1", "primaryLocationLineHash": "f1"},
    }
    assert run["results"][1]["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["torn-tail", "no-usage"]


def test_every_rule_comes_with_its_help():
    run = sarif(outcome(findings=tuple(note(rule, severity) for rule, severity in RULES.items())))
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"].endswith(".") for rule in rules)
    assert {r["id"] for r in rules if "security-severity" in r["properties"]} >= {"secret"} & set(RULES)


@pytest.mark.parametrize(
    "path, artifact",
    [
        (f"{ROOT}/s.jsonl", {"uri": "s.jsonl", "uriBaseId": "%SRCROOT%"}),
        ("/tmp/übrig.jsonl", {"uri": "file:///tmp/%C3%BCbrig.jsonl"}),
        (f"{ROOT}-other/s.jsonl", {"uri": f"file://{ROOT}-other/s.jsonl"}),
    ],
)
def test_paths_are_told_from_the_root_of_the_repository(path, artifact):
    (result,) = sarif(outcome(path, findings=(note(),)))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == artifact


def test_standard_input_has_no_place():
    (result,) = sarif(outcome("-", findings=(note(),)))["results"]
    assert result["locations"] == []


@pytest.mark.parametrize("known, state", [(True, "unchanged"), (False, "new")])
def test_what_a_baseline_knows_is_unchanged(known, state):
    (result,) = sarif(outcome(findings=(note(known=known),)))["results"]
    assert result["baselineState"] == state


def test_what_could_not_be_read_is_a_notification():
    run = sarif(failed(f"{ROOT}/notes.txt"))
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"], run["results"]) == (False, 3, [])
    (told,) = invocation["toolExecutionNotifications"]
    assert (told["descriptor"], told["message"]) == (
        {"id": "unknown_format"},
        {"text": "no format recognises it: plain text"},
    )


@pytest.mark.schemas
@pytest.mark.parametrize("attack", ["plain", *ATTACKS])
def test_sarif_is_valid_by_the_official_schema(attack, sarif_schema):
    import jsonschema

    made = attacked(attack)
    made.outcomes.append(outcome("-", findings=tuple(note(rule, level, known=True) for rule, level in RULES.items())))
    log = json.loads(printed("sarif", made))
    validator = jsonschema.Draft4Validator(sarif_schema, format_checker=jsonschema.FormatChecker())
    assert [error.message for error in validator.iter_errors(log)] == []


@pytest.fixture(scope="module")
def sarif_schema():
    path = Path(os.environ.get("SCHEMAS", ""), "sarif-2.1.0.json")
    if not os.environ.get("SCHEMAS") or not path.is_file():
        pytest.skip("SCHEMAS is not set: run tests/schemas/install (make test-schemas does)")
    return json.loads(path.read_text())


# JUnit -------------------------------------------------------------------------------------------

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


# annotations -------------------------------------------------------------------------------------


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


# summary, GitLab ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_of_nothing_is_whole(name):
    text = printed(name, audit())
    assert text == "" if name == "github" else text.endswith("\n")


# which CI, and what it is told -------------------------------------------------------------------


@pytest.mark.parametrize(
    "choice, environment, system",
    [
        ("auto", {}, "none"),
        ("auto", {"GITHUB_ACTIONS": "true"}, "github"),
        ("auto", {"GITHUB_ACTIONS": "false"}, "none"),
        ("auto", {"GITLAB_CI": "true"}, "gitlab"),
        ("none", {"GITHUB_ACTIONS": "true"}, "none"),
        ("github", {}, "github"),
        ("gitlab", {"GITHUB_ACTIONS": "true"}, "gitlab"),
    ],
)
def test_the_ci_is_told_from_its_own_variables(choice, environment, system):
    assert ci.system(choice, environment) == system


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository with one session in a folder, in which there is one error and one warning."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "logs"
    folder.mkdir()
    large = [user(), assistant("", [("c1", "Read", "{}")]), tool("c1", "x" * 60_000), assistant()]
    (folder / "s.jsonl").write_bytes(lines(*large) + b'{"role": "us')
    monkeypatch.chdir(folder)
    return tmp_path


ANNOTATED = [
    "::error file=logs/s.jsonl,line=5,title=torn-tail::the last line is cut off: 12 bytes are no record",
    "::warning file=logs/s.jsonl,line=3,title=large-result::60,000 bytes by Read, over the limit of 50,000",
]


def test_on_github_annotations_go_to_standard_error_and_the_summary_to_its_file(repository, monkeypatch, capsys):
    summary = repository / "summary.md"
    summary.write_text("before")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert exit_code(["audit", "s.jsonl", "-o", "json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["totals"]["exit_code"] == 1
    assert printed.err.splitlines() == ANNOTATED
    assert summary.read_text().startswith("before\n## compactctl audit\n\n1 session · 1 error, 1 warning\n")


@pytest.mark.parametrize("arguments", [[], ["--ci", "none"], ["--ci", "gitlab"]])
def test_elsewhere_nobody_is_told_besides(arguments, repository, monkeypatch, capsys):
    summary = repository / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert exit_code(["audit", "s.jsonl", *arguments]) == 1
    assert (capsys.readouterr().err, summary.exists()) == ("", False)


def test_annotations_are_not_told_twice(repository, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    exit_code(["audit", "s.jsonl", "-o", "github"])
    printed = capsys.readouterr()
    assert (printed.out.splitlines(), printed.err) == (ANNOTATED, "")


def test_an_unknown_ci_is_wrong_usage(repository, capsys):
    assert exit_code(["audit", "s.jsonl", "--ci", "gihub"]) == 2
    assert "did you mean github?" in capsys.readouterr().err


def test_a_summary_that_can_not_be_written_is_said(repository, monkeypatch):
    with pytest.raises(WriteError):
        append(repository / "no" / "such.md", b"x")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repository / "no" / "such.md"))
    assert exit_code(["audit", "s.jsonl"]) == 6


def test_several_reports_come_of_one_run(repository, capsys):
    saves = [word for kind in REPORTS for word in ("--save", f"{kind}=out.{kind}")]
    assert exit_code(["audit", "s.jsonl", *saves, "-o", "jsonl"]) == 1
    found = {kind: Path(f"out.{kind}").read_text() for kind in REPORTS}
    (run,) = json.loads(found["sarif"])["runs"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert [unquote(place) for place in places] == ["logs/s.jsonl"] * 2
    assert [issue["location"]["path"] for issue in json.loads(found["gitlab"])] == ["logs/s.jsonl"] * 2
    assert found["github"].splitlines() == ANNOTATED


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if "\ud800" not in attack])
def test_a_hostile_session_steers_no_runner(attack, repository, monkeypatch, capsys):
    """Its name, its tool, its call's id and its text are attacks; all that a run prints is looked at."""
    name = f"{attack.translate({0: None, ord('/'): '_'})}.jsonl"
    called = assistant(attack, [(attack, attack, "{}")], id=attack, model=attack)
    Path(name).write_bytes(lines(user(attack), called, tool(attack, attack + "x" * 60_000), assistant()) + b'{"role')
    Path(f"not {name}").write_text(attack)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert exit_code(["audit", name, f"not {name}", "-v", "-j", "1"]) == 3
    printed = capsys.readouterr()
    commands = [line for line in printed.err.splitlines() if line.startswith("::")]
    others = [*printed.out.splitlines(), *(line for line in printed.err.splitlines() if line not in commands)]
    assert [COMMAND.fullmatch(line)[1] for line in commands] == ["error", "error", "warning"]
    assert [line for line in others if re.match(r"\s*::", line) or re.search(r"##\w*\[", line)] == []
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", printed.out + printed.err)
    assert len(others) == 5


def test_fingerprints_stay_when_a_session_goes_on(repository):
    def fingerprints():
        exit_code(["audit", "s.jsonl", "--save", "sarif=out.sarif"])
        (run,) = json.loads(Path("out.sarif").read_text())["runs"]
        return {
            result["partialFingerprints"]["compactctl/v1"] for result in run["results"] if result["level"] == "warning"
        }

    before = fingerprints()
    path = Path("s.jsonl")
    path.write_bytes(b"\n" + path.read_bytes().removesuffix(b'{"role": "us') + lines(user("More.")))
    assert fingerprints() == before != set()
