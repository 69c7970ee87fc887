"""Two names of one file are found out before anything is written."""

import os
import re

import pytest

from compactctl import places, run
from compactctl.errors import OutputCollision
from compactctl.options import Options
from compactctl.places import Places, folds_case
from tests.builders.big_chat import big_chat


def taken(*targets):
    """Return whether a run that writes these, each for another input, is refused."""
    known = Places()
    try:
        for number, target in enumerate(targets):
            known.take(f"input {number}", [str(target)])
    except OutputCollision:
        return True
    return False


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("a/s", "a/s", True),
        ("a/s", "a/../a/./s", True),
        ("a/s", "link/s", True),
        ("a/new/s", "link/new/s", True),
        ("a/s", "b/s", False),
        ("a/s", "a/t", False),
        ("a/s", "a/S", False),
        ("new/s", "new/s", True),
        ("new/s", "other/s", False),
    ],
)
def test_which_names_are_one_file(one, other, same, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "link").symlink_to("a")
    assert taken(tmp_path / one, tmp_path / other) is same


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("a/s", "a/S", True),
        ("a/straße", "a/STRASSE", True),
        ("a/caf\u00e9", "a/cafe\u0301", True),
        ("new/x/s", "NEW/X/S", True),
        ("a/s", "a/t", False),
    ],
)
def test_case_and_spelling_do_not_count_where_the_file_system_takes_no_notice(one, other, same, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "folds_case", lambda folder: True)
    (tmp_path / "a").mkdir()
    assert taken(tmp_path / one, tmp_path / other) is same


def test_whether_case_counts_is_told_by_what_is_there(tmp_path, monkeypatch):
    (tmp_path / "12").mkdir()
    (tmp_path / "Name").mkdir()
    assert folds_case(str(tmp_path)) is os.path.exists(tmp_path / "nAME")
    assert folds_case(str(tmp_path / "12")) is False
    monkeypatch.setattr(os.path, "samefile", lambda one, other: one.lower() == other.lower())
    assert folds_case(str(tmp_path)) is True
    assert folds_case(str(tmp_path / "Name")) is True


def test_one_input_may_write_several_files():
    known = Places()
    known.take("a", ["/x/s", "/x/t"])
    known.take("a", ["/x/s"])
    with pytest.raises(OutputCollision):
        known.take("b", ["/x/t"])


# by command --------------------------------------------------------------------------------------


@pytest.fixture
def twins(write_session, tmp_path):
    """Two files whose results would have one name, in one folder."""
    return [str(write_session(big_chat(), name)) for name in ("s.jsonl", "s.json")]


def said(error):
    return re.sub(r"\S*/", "", str(error.value)).partition(";")[0]


@pytest.mark.parametrize(
    "how", [{}, {"apply": True}, {"apply": True, "place": "in place"}, {"apply": True, "out": "o"}]
)
def test_spill_refuses_two_inputs_for_one_output(how, twins, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OutputCollision) as raised:
        run.spill([str(tmp_path)], Options(**how))
    assert said(raised).startswith("s.json and s.jsonl would both write s.")
    assert sorted(tmp_path.iterdir()) == before


def test_estimate_refuses_two_inputs_for_one_output(twins):
    with pytest.raises(OutputCollision):
        run.estimate(twins, Options(apply=True))


def test_restore_refuses_two_inputs_for_one_output(write_session, tmp_path):
    for name in ("a/s.jsonl", "b/s.jsonl"):
        run.spill([str(write_session(big_chat(), name))], Options(apply=True))
    named = [str(tmp_path / name / "s.compacted.jsonl") for name in "ab"]
    with pytest.raises(OutputCollision) as raised:
        run.restore(named, Options(apply=True, out=str(tmp_path / "out")))
    assert said(raised) == "s.compacted.jsonl and s.compacted.jsonl would both write s.restored.jsonl"
    assert not (tmp_path / "out").exists()
    assert run.restore([str(tmp_path)], Options(apply=True, out=str(tmp_path / "out"))).exit_code == 0


@pytest.mark.parametrize("paths", [["a", "link"], ["a/*", "link/*"], ["a", "a/s.jsonl", "link/s.jsonl"]])
def test_a_session_that_is_reached_twice_is_worked_on_once(paths, write_session, tmp_path, monkeypatch):
    write_session(big_chat(), "a/s.jsonl")
    (tmp_path / "link").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    assert [outcome.status for outcome in run.spill(paths, Options(apply=True)).outcomes] == ["applied"]


def test_a_link_to_a_folder_hides_no_collision(write_session, tmp_path, monkeypatch):
    write_session(big_chat(), "a/s.jsonl")
    write_session(big_chat(), "a/s.json")
    (tmp_path / "link").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputCollision):
        run.spill(["a/s.jsonl", "link/s.json"], Options(apply=True))
