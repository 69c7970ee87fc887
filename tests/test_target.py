"""`--target` and `--check` on whole files."""

import pytest

from compactctl import run
from compactctl.options import Options
from tests.builders.big_chat import big_chat
from tests.runs import files_in, spill


@pytest.mark.parametrize(("target", "reached"), [("30000", True), ("10%", True), ("12k", True), ("100", False)])
def test_a_target_is_met_or_the_smallest_result_is_written_with_exit_4(tmp_path, write_session, target, reached):
    path = write_session(big_chat((20_000, 30_000, 40_000, 45_000)))
    outcome = spill(path, Options(apply=True), target=target)
    tokens = {"30000": 30_000, "10%": 12_800, "12k": 12_000, "100": 100}[target]
    assert (outcome.tokens.after <= tokens) == reached
    assert outcome.exit_code == (0 if reached else 4)
    assert outcome.status == "applied"
    assert {note.reason for note in outcome.layer1.spills} == {"target"}
    assert run.verify([str(tmp_path)], Options()).exit_code == 0
    assert spill(path, Options(apply=True), target=target).status == "unchanged"


def test_a_target_spills_no_more_than_it_needs(write_session):
    path = write_session(big_chat((20_000, 30_000, 40_000, 45_000)))
    outcome = spill(path, Options(), target="30000")
    assert [note.call_id for note in outcome.layer1.spills] == ["call_3"]
    assert outcome.exit_code == 0


@pytest.mark.parametrize("target", ["half", "-5", "", "%", "9" * 400, "9" * 400 + "%", "1e3"])
def test_a_target_that_is_no_number_is_wrong_usage(write_session, target):
    with pytest.raises(run.UsageError, match="--target"):
        spill(write_session(big_chat()), target=target)


def test_check_says_by_its_exit_code_whether_there_is_something_to_do(tmp_path, write_session):
    assert spill(write_session(big_chat(), "a.jsonl"), Options(check=True)).exit_code == 1
    assert spill(write_session(big_chat((5,)), "b.jsonl"), Options(check=True)).exit_code == 0
    assert files_in(tmp_path) == ["a.jsonl", "b.jsonl"]
