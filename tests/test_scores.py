"""Errors made into scores: bias, quantiles, an interval, and each request once."""

import pytest

from compactctl.predictions import ALL, Row, Worst
from compactctl.scores import Collected, median_interval, quantile, scores


def row(predicted, actual=100, session="s", request_id=None, way="new", line=1, estimator="e"):
    return Row(session, line, request_id, "m", "a", estimator, way, "code", 5_000, 9_000, predicted, actual)


@pytest.mark.parametrize("share, expected", [(0, 1), (0.5, 2.5), (0.9, 3.7), (1, 4)])
def test_quantiles_are_interpolated(share, expected):
    assert quantile([1.0, 2.0, 3.0, 4.0], share) == pytest.approx(expected)


def test_a_score_has_the_bias_the_quantiles_and_the_worst_case_with_its_place():
    collected = Collected()
    collected.add("/x.jsonl", [row(p, line=i) for i, p in enumerate((90, 100, 110, 150))], {"no anchor": 2}, 6)
    whole, code = scores(collected, 0)
    assert (whole.kind, code.kind, whole.n, whole.sessions) == (ALL, "code", 4, 1)
    assert (whole.bias, whole.median, whole.p90) == pytest.approx((0.05, 0.1, 0.38))
    assert whole.worst == Worst(0.5, "/x.jsonl", 3)
    assert sum(whole.histogram) == 4


def test_a_request_that_stands_in_several_files_counts_once():
    collected = Collected()
    collected.add("/a", [row(90, request_id="r"), row(95, request_id="r", way="next")], {}, 1)
    collected.add("/b", [row(90, session="t", request_id="r"), row(91, session="t", request_id="q", line=2)], {}, 2)
    assert ([r.request_id for r in collected.rows], dict(collected.excluded)) == (
        ["r", "r", "q"],
        {"counted elsewhere": 1},
    )


def test_a_request_without_an_id_is_known_by_its_place_and_what_it_took_in():
    collected = Collected()
    for path in ("/a", "/a-copy"):
        collected.add(path, [row(90), row(95, way="next"), row(90, line=2)], {}, 2)
    assert (len(collected.rows), collected.judged, dict(collected.excluded)) == (3, 2, {"counted elsewhere": 2})


def test_the_interval_of_the_median_is_over_sessions_and_the_same_for_a_seed():
    groups = [[0.1] * 50, [0.2], [0.3]]
    assert median_interval(groups, 1) == median_interval(groups, 1)
    assert median_interval([[0.1], [0.1]], 1) == (0.1, 0.1)
    low, high = median_interval(groups, 1)
    assert low < high
    low, high = median_interval([[float(figure)] for figure in range(101)], 1)
    assert (low, high) == (pytest.approx(41, abs=2), pytest.approx(59, abs=2))
