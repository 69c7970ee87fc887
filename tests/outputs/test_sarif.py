"""SARIF by the rules of who reads it, and by its official schema."""

import json
import os
from pathlib import Path

import pytest

from compactctl.findings import RULES
from compactctl.outputs import View
from tests.builders.outcomes import failed, outcome
from tests.outputs.reported import ATTACKS, ROOT, VIEW, attacked, audit, note, printed


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
    if "SCHEMAS" not in os.environ:
        pytest.skip("SCHEMAS is not set: run tests/schemas/install (make test-schemas does)")
    return json.loads(Path(os.environ["SCHEMAS"], "sarif-2.1.0.json").read_text())
