"""Gates over scores: a limit, an earlier result, and what neither had anything to judge by."""

import msgspec
import pytest

from compactctl import scoring
from compactctl.options import Options, Scoring
from tests.builders.scored import note, score


@pytest.mark.parametrize("p90, limit, count", [(0.06, 6.0, 0), (0.061, 6.0, 1), (0.2, None, 0)])
def test_a_p90_above_the_limit_fails(p90, limit, count):
    options = Options(scoring=Scoring(max_p90_percent=limit))
    assert len(list(scoring.broken(note(score(p90=p90)), options))) == count


@pytest.mark.parametrize(
    "changes, count",
    [
        ({}, 0),
        ({"bias": -0.2}, 1),
        ({"median": 0.2, "bias": 0.2}, 2),
        ({"median": 0.022}, 0),
        ({"bias": 0.2, "n": 5}, 0),
    ],
)
def test_an_estimator_that_has_drifted_fails(tmp_path, changes, count):
    earlier = tmp_path / "earlier.json"
    earlier.write_bytes(msgspec.json.encode({"totals": {"accuracy": note(score())}}))
    options = Options(scoring=Scoring(compare=str(earlier)))
    assert len(list(scoring.broken(note(score(**changes)), options))) == count


@pytest.mark.parametrize("median, count", [(0.24, 0), (0.26, 1)])
def test_an_error_has_drifted_from_a_quarter_more_on(tmp_path, median, count):
    earlier = tmp_path / "earlier.json"
    earlier.write_bytes(msgspec.json.encode({"totals": {"accuracy": note(score(median=0.2))}}))
    options = Options(scoring=Scoring(compare=str(earlier)))
    assert len(list(scoring.broken(note(score(median=median)), options))) == count


@pytest.mark.parametrize("now, before, count", [({}, {}, 0), ({"n": 9}, {}, 2), ({}, {"estimator": "x"}, 1)])
def test_a_gate_that_had_nothing_to_judge_is_told(tmp_path, now, before, count):
    earlier = tmp_path / "earlier.json"
    earlier.write_bytes(msgspec.json.encode({"totals": {"accuracy": note(score(**before))}}))
    options = Options(scoring=Scoring(max_p90_percent=50.0, compare=str(earlier)))
    assert list(scoring.broken(note(score(**now)), options)) == []
    assert len(list(scoring.unheld(note(score(**now)), options))) == count
