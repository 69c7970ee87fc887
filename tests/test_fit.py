"""A profile fitted to recorded usage: what it finds, what it leaves alone, and what it says it is off by."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactctl import fit, profiles, run
from compactctl.errors import UsageError
from compactctl.formats.claude_code import FORMAT
from compactctl.judge import judgeable
from compactctl.options import Options, Scoring
from compactctl.predictions import Observed
from compactctl.settings import Settings, with_changes
from tests.builders.claude import image, usage
from tests.builders.scored import TEXT, grown


def steps(scale, frame, sessions=5, each=20):
    """Return steps of a family whose texts cost `scale` and whose results have a frame."""
    found = []
    for session in range(sessions):
        for index in range(each):
            size = 200 + 37 * ((session * each + index) % 23)
            signs = 40 + 29 * (index % 7)
            parts = {"words": float(size), "signs": float(signs), "result": 1.0}
            actual = round(scale * (size + signs) + frame)
            found.append(Observed(f"s{session}", None, "claude-3", "claude-opus-4-5", 5_000, actual, 0.0, parts))
    return found


def test_a_fit_finds_scales_and_frames_and_says_what_it_is_off_by_on_sessions_it_did_not_see():
    made = fit.fit(steps(1.3, 50), profiles.shipped(), "mine")
    family = made.families[0]
    assert (family.scales["words"], family.scales["signs"], family.frames.result) == pytest.approx(
        (1.3, 1.3, 50), rel=0.1
    )
    [held_out] = family.held_out
    assert (held_out.by, held_out.n) == ("session", 100)
    assert held_out.p90 < 0.01
    assert family.spreads["calibrated"].steps == 100
    assert made.families[1:] == profiles.shipped().families[1:]


def test_one_request_that_held_what_no_file_shows_does_not_rule_a_fit():
    found = steps(1.3, 50)
    odd = msgspec.structs.replace(found[0], actual=found[0].actual + 100_000)
    assert fit.fit([odd, *found[1:]], profiles.shipped(), "x").families[0].scales["words"] == pytest.approx(
        1.3, rel=0.1
    )


def test_what_costs_nothing_is_never_fitted_below_it():
    found = [msgspec.structs.replace(step, parts={**step.parts, "call": 1.0}) for step in steps(1.0, -200)]
    assert fit.fit(found, profiles.shipped(), "x").families[0].frames.call == 0


@pytest.mark.parametrize("times, is_fitted", [(7, False), (8, True)])
def test_a_frame_that_is_seldom_met_keeps_its_figure(times, is_fitted):
    found = steps(1.0, 0)
    for index in range(times):
        step = found[index * 9]
        found[index * 9] = msgspec.structs.replace(step, parts={**step.parts, "error": 1.0}, actual=step.actual + 500)
    base = profiles.shipped()
    changed = fit.fit(found, base, "x").families[0].frames.error != round(base.families[0].frames.error, 2)
    assert changed == is_fitted


def test_a_step_with_an_image_in_it_is_not_fitted_on():
    s = grown(5_000, 5_000)
    s.user([image("A" * 4_000)])
    s.assistant("Done.", usage=usage(40_000, out=4), id="seen")
    document = s.document()
    [transcript] = FORMAT.read(document)
    found = judgeable(transcript, Settings())
    fitted = list(fit.observed(found, transcript, document, Settings(), "s"))
    assert (len(found.steps), [step.request_id for step in fitted]) == (2, ["req_1"])


def test_sessions_that_share_requests_are_one_and_each_request_counts_once():
    found = [
        Observed(session, request_id, "f", "m", 1, 1, 0.0, {})
        for session, request_id in [
            ("a", "1"),
            ("a", "2"),
            ("b", "2"),
            ("b", "3"),
            ("c", "3"),
            ("c", None),
            ("d", None),
        ]
    ]
    assert [(step.session, step.request_id) for step in fit.once(found)] == [
        ("a", "1"),
        ("a", "2"),
        ("a", "3"),
        ("a", None),
        ("d", None),
    ]


def test_too_little_to_fit_on_is_said():
    with pytest.raises(UsageError, match="too little to fit on"):
        fit.fit(steps(1.0, 0, sessions=2), profiles.shipped(), "x")


@given(st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=3, max_size=3))
def test_the_solution_of_a_system_solves_it(rows):
    matrix = [[float(sum(a * b for a, b in zip(x, y, strict=True))) for y in rows] for x in rows]
    for index in range(3):
        matrix[index][index] += 1.0
    right = [1.0, 2.0, 3.0]
    found = fit.solved(matrix, right)
    assert [sum(a * x for a, x in zip(line, found, strict=True)) for line in matrix] == pytest.approx(right, abs=1e-6)


# from files ---------------------------------------------------------------------------------------


def test_a_fitted_profile_is_one_that_can_be_counted_with(tmp_path):
    for name in range(4):
        s = grown(*[5_000 + 97 * name] * 12, factor=1.5)
        own = s.bytes().replace(b"req_", b"req_%d_" % name).replace(b"msg_", b"msg_%d_" % name)
        (tmp_path / f"{name}.jsonl").write_bytes(own.replace(b"3d5c2f0a", b"3d5c2f%02d" % name))
    out = tmp_path / "mine.json"
    run.accuracy([str(tmp_path)], Options(scoring=Scoring(fit=str(out))))
    assert profiles.read(str(out)).name == "mine"
    settings = with_changes(Settings(), [f"estimator.profile={out}"])
    batch = run.accuracy([str(tmp_path)], Options(estimator="calibrated", settings=settings))
    assert next(s.median for s in batch.accuracy.scores if s.way == "new") < 0.05
    assert json.loads(out.read_text())["schema"] == profiles.SCHEMA


def test_steps_of_sessions_without_an_id_are_known_by_their_paths(tmp_path):
    for name in range(3):
        lines = []
        total = 9_000
        for _ in range(12):
            total += 1_700
            lines.append({"role": "user", "content": TEXT[:5_000]})
            counted = {"prompt_tokens": total, "completion_tokens": 3}
            lines.append({"role": "assistant", "content": "Done.", "model": "gpt-5", "usage": counted})
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "fit.profile"
    run.accuracy([str(tmp_path)], Options(scoring=Scoring(fit=str(out))))
    assert profiles.read(str(out)).name == "fit.profile"
