"""Faults, planted one at a time in a healthy session of each format: each is found, on its line, and nothing else."""

import hashlib
from pathlib import Path

import pytest

from compactctl import run
from compactctl.findings import GROUPS, RULES
from compactctl.options import Audit, Options
from compactctl.outcome import Outcome
from compactctl.settings import Settings, with_changes
from tests.builders.healthy import healthy, jsonl
from tests.builders.planted import (
    ALL,
    KEY,
    PLANTS,
    Fault,
    a_key_in_a_message,
    a_key_in_a_result,
    a_key_in_a_torn_line,
    a_password_in_the_arguments,
)


def audited(path: Path, fault: Fault | None = None) -> Outcome:
    # usage that is changed alone is never near an estimate, so that is looked at in its own turn
    alone = () if fault is None or fault.rule == "estimator-error" else ("audit.severity.estimator-error=off",)
    settings = with_changes(Settings(), (*alone, *fault.settings)) if fault else Settings()
    window = fault.window_tokens if fault else None
    options = Options(settings=settings, window_tokens=window, audit=Audit(fail_on="note"))
    [made] = run.audit([str(path.parent)], options).outcomes
    return made


CASES = [pytest.param(name, plants, id=f"{title}-{name}") for title, names, plants in PLANTS for name in names]


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_found_in_a_healthy_session(name, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(jsonl(healthy(name)))
    made = audited(path)
    assert (made.format, made.findings, made.exit_code) == (name, (), 0)


@pytest.mark.parametrize("name, plants", CASES)
def test_a_planted_fault_is_found_on_its_line(name, plants, tmp_path):
    fault: Fault = plants(name, healthy(name))
    path = tmp_path / "s.jsonl"
    path.write_bytes(fault.file)
    made = audited(path, fault)
    found = {(finding.rule, finding.line) for finding in made.findings}
    assert (fault.rule, fault.line) in found
    assert {rule for rule, _ in found} <= {fault.rule, *fault.also}
    assert made.exit_code == 1


SECRETS = (a_key_in_a_message, a_key_in_a_result, a_key_in_a_torn_line, a_password_in_the_arguments)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("plants", SECRETS)
def test_no_finding_tells_a_secret(name, plants, tmp_path):
    fault: Fault = plants(name, healthy(name))
    path = tmp_path / "s.jsonl"
    path.write_bytes(fault.file)
    told = repr(audited(path, fault))
    assert "Tr0ub4dor" not in told
    assert KEY not in told
    assert hashlib.sha256(KEY.encode()).hexdigest()[:12] not in told


ELSEWHERE = {"missing-spill", "no-estimate"}
"""Rules about what no session file has in it; they have tests of their own, as gates and losses do."""


def test_every_rule_is_planted():
    planted = {plants(name, healthy(name)).rule for _, names, plants in PLANTS for name in names}
    elsewhere = ELSEWHERE | {rule for rule in RULES if GROUPS[rule] == "gates"}
    assert planted | elsewhere == set(RULES)
