"""Estimators against recorded usage: what is judged, what is not and why, and what comes of the errors."""

import csv
import io
import json
import math
import sys
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactctl import accuracy, baseline, estimators, fit, formats, profiles, run, scoring
from compactctl.__main__ import exit_code
from compactctl.content import content
from compactctl.document import Document
from compactctl.errors import UsageError
from compactctl.estimators import Subject
from compactctl.formats.claude_code import FORMAT
from compactctl.judge import judgeable, judged, kind_of
from compactctl.options import Options, Scoring
from compactctl.outcome import Batch, ScoresNote
from compactctl.outputs import View, table
from compactctl.outputs.accuracy import bars
from compactctl.predictions import ALL, Observed, Row, Score, Worst
from compactctl.profiles import Family, Frames, Interval, Profile, Spread
from compactctl.scores import Collected, median_interval, quantile, scores
from compactctl.settings import Settings, with_changes
from tests.builders import logs
from tests.builders.chat import lines
from tests.builders.claude import Session, call, image, result, thinking, usage

TEXT = "The quick brown fox jumps over the lazy dog. " * 120


def grown(*steps, overhead=20_000, factor=1.0, **fields):
    """Return a session whose provider counts `overhead`, and `factor` times what the heuristic says of what is new."""
    s = Session()
    total = overhead
    for index, size in enumerate(steps):
        s.user(TEXT[:size])
        total += math.ceil(factor * (size + 4) / 3.5)
        s.assistant("Done.", usage=usage(total, out=4), id=f"msg_{index}", requestId=f"req_{index}", **fields)
        total += 4
    return s


def predictions(session):
    name, settings = "heuristic", Settings()
    document = session.document()
    [transcript] = FORMAT.read(document)
    found = judgeable(transcript, settings)
    estimator = estimators.get(name, settings, Subject(document, transcript.model, transcript.format))
    kinds = {i: kind_of(transcript.messages[step.first : step.end], document) for i, step in found.steps.items()}
    return found, list(judged(found, transcript, estimator, kinds, transcript.model))


# what is judged ------------------------------------------------------------------------------------


def test_an_estimator_that_is_right_has_no_error_in_any_way():
    _, found = predictions(grown(*[5_000] * 22))
    assert Counter(each.way for each in found) == {"next": 21, "new": 21, "whole": 21, "ahead-5": 17, "ahead-20": 2}
    assert max(abs(each.predicted - each.actual) for each in found if each.way != "whole") < 30


def test_what_is_new_shows_the_factor_that_the_whole_hides():
    _, found = predictions(grown(*[5_000] * 3, factor=2.0))
    errors = {each.way: round((each.predicted - each.actual) / each.actual, 2) for each in found}
    assert errors["new"] == -0.5
    assert -0.1 < errors["next"] < 0


def test_every_request_is_judged_or_has_a_reason():
    s = grown(500, 500)
    s.user("More.")
    s.assistant("Done.", usage=usage(900, out=4), id="fallen")  # below the one before: something was cleared
    s.user("More.")
    s.assistant("Done.", usage=usage(2_000, out=4), id="other", model="claude-opus-4-6")
    s.user("More.")
    s.assistant(thinking(""), call("c1"), usage=usage(3_000, out=2), id="hidden", model="claude-opus-4-6")
    s.user(result("c1", TEXT))
    s.assistant("Done.", usage=usage(5_000, out=4), id="after", model="claude-opus-4-6")
    found, _ = predictions(s)
    assert list(found.excluded.values()) == ["first request", "the context fell", "another model"]
    assert len(found.steps) + len(found.excluded) == 6


def test_an_answer_without_its_output_is_estimated_and_one_that_hides_its_thoughts_is_not_judged():
    s = grown(500)
    s.user("More.")
    s.assistant(thinking(""), call("c1", command="x" * 400), usage=usage(21_000, out=2), id="hidden")
    s.user(result("c1", TEXT))
    s.assistant("Done.", usage=usage(23_000, out=4), id="last")
    found, _ = predictions(s)
    assert list(found.excluded.values()) == ["first request", "no output recorded"]


def test_nothing_is_predicted_across_a_request_that_is_not_judged():
    s = grown(*[5_000] * 3)
    s.user("More.")
    s.assistant("Done.", usage=usage(900, out=4), id="fallen")
    for number in range(5):
        s.user("More.")
        s.assistant("Done.", usage=usage(1_000 + 10 * number, out=4), id=f"later_{number}")
    _, found = predictions(s)
    ahead = [each.actual for each in found if each.way == "ahead-5"]
    assert ahead == [1_040]  # from the one that fell on, but over none that did


@pytest.mark.parametrize(
    "texts, kind",
    [
        ([TEXT[:900], '{"a": 1, "b": [2]}' * 40], "prose"),
        ([TEXT[:700], '{"a": 1, "b": [2]}' * 40], "json"),
        ([TEXT[:500], '{"a": 1, "b": [2]}' * 30, "夜間のインポート" * 60], "mixed"),
        ([], "prose"),
    ],
)
def test_what_is_new_is_what_half_of_it_is_else_mixed(texts, kind):
    s = Session()
    for text in texts:
        s.user(text)
        s.assistant("")
    document = s.document()
    messages = FORMAT.read(document)[0].messages if texts else ()
    assert kind_of(messages, document) == kind


@pytest.mark.parametrize(
    "text, kind",
    [
        ("I looked at the tests and they all seem to pass. Shall I go on?", "prose"),
        ("def add(a, b):\n    return (a + b)\n\nclass Sum:\n    def __init__(self):\n        self.x = {}\n", "code"),
        ('{"name": "x", "size": 3, "items": [{"id": 1, "ok": true}, {"id": 2, "ok": false}]}', "json"),
        ("2026-01-01 10:00:00 INFO started\n2026-01-01 10:00:01 WARN slow\n", "logs"),
        ("夜間のインポートが値を二度書き込みます。原因を調べてください。", "cjk"),
        ("Ночной импорт записывает значения дважды. Найди причину.", "other-script"),
        ("iVBORw0KGgo" * 40, "base64"),
    ],
)
def test_what_a_text_is(text, kind):
    assert content(text) == kind


# calibrated ----------------------------------------------------------------------------------------


def tokens(text, family):
    return estimators.get(f"calibrated:{family}", Settings(), Subject(Session().document())).tokens(
        [msgspec.structs.replace(MESSAGE, parts=(msgspec.structs.replace(MADE, made=text, size_bytes=len(text)),))]
    )


@pytest.fixture(autouse=True, scope="module")
def _messages():
    global MESSAGE, MADE
    from compactctl.document import Place
    from compactctl.model import Message, Text

    MADE = Text(Place(0), 0, "")
    MESSAGE = Message("assistant", (MADE,), (), 0)


@pytest.mark.parametrize(
    "family, model",
    [
        ("claude-3", "claude-opus-4-5-20251101"),
        ("claude-3", "claude-3-5-sonnet-20241022"),
        ("claude-3", "claude-sonnet-4-20250514"),
        ("claude-3", "anthropic.claude-haiku-4-5-20251001-v1:0"),
        ("claude-4.8", "claude-opus-4-8"),
        ("claude-4.8", "claude-sonnet-5"),
        ("claude-4.8", "claude-fable-5"),
        ("openai", "gpt-5.5"),
        ("openai", "openai/o3"),
    ],
)
def test_a_model_has_its_family(family, model):
    assert profiles.match(profiles.shipped(), model, None) == profiles.Match(
        next(f for f in profiles.shipped().families if f.name == family)
    )


@pytest.mark.parametrize(
    "model, format_name, family",
    [("gemini-3-pro", "chat", "openai"), (None, "claude-code", "claude-4.8"), (None, "codex", "openai")],
)
def test_a_model_that_no_family_knows_is_taken_for_the_nearest_and_that_is_said(model, format_name, family):
    found = profiles.match(profiles.shipped(), model, format_name)
    assert (found.family.name, bool(found.assumed)) == (family, True)


def test_openais_texts_count_as_tiktoken_counts_them_and_claudes_newer_tokenizer_makes_more_of_them():
    from compactctl.estimators.encodings import bundled

    exact = bundled("o200k_base").count(TEXT)
    assert tokens(TEXT, "openai") == exact
    assert exact < tokens(TEXT, "claude-3") < tokens(TEXT, "claude-4.8") < 2 * exact


def test_arguments_count_for_claude_by_name_and_value():
    s = Session()
    s.user("Go.")
    s.assistant(call("c1", command="ls", description="List"))
    document = s.document()
    [transcript] = FORMAT.read(document)
    plain = Frames(call=10, argument=100)
    family = Family(name="f", models=".", values_alone=True, frames=plain)
    from compactctl.estimators.calibrated import Calibrated, scale
    from compactctl.estimators.encodings import bundled
    from compactctl.media import rule

    estimator = Calibrated(profiles.Match(family), scale(family), document, 3.5, rule(None))
    texts = ["Bash", "command", "ls", "description", "List"]
    assert list(estimator.each(transcript.messages))[-1] == 10 + 2 * 100 + sum(map(bundled("o200k_base").count, texts))


@given(st.lists(st.text(max_size=200), max_size=6))
def test_a_further_text_never_makes_it_less(texts):
    for family in ("claude-3", "claude-4.8", "openai"):
        sums = [sum(tokens(text, family) for text in texts[:count]) for count in range(len(texts) + 1)]
        assert sums == sorted(sums)


def test_weights_are_for_every_token_of_the_encoding():
    from compactctl.estimators import encodings

    for family in profiles.shipped().families:
        found = profiles.weights(family)
        assert found is None or len(found) == sum(1 for _ in encodings.tokens(family.encoding))


@pytest.mark.parametrize(
    "text, said",
    [
        (b"{", "not a profile"),
        (b'{"schema": "compactctl.profile/9", "name": "x", "families": []}', "not a profile of schema"),
        (b'{"schema": "compactctl.profile/1", "name": "x", "families": [{"name": "a", "models": "("}]}', "models"),
        (
            b'{"schema": "compactctl.profile/1", "name": "x", "families": '
            b'[{"name": "a", "models": "a", "frames": {"call": -1}}]}',
            "below 0",
        ),
        (b'{"schema": "compactctl.profile/1", "name": "x", "families": []}', "no family in it"),
        (
            b'{"schema": "compactctl.profile/1", "name": "x", "families": '
            b'[{"name": "a", "models": "a", "encoding": "../x"}]}',
            "the encoding ../x is not o200k_base, cl100k_base",
        ),
        (
            b'{"schema": "compactctl.profile/1", "name": "x", "families": '
            b'[{"name": "a", "models": "a", "weights": "claude-3", "encoding": "cl100k_base"}]}',
            "the encoding cl100k_base is not o200k_base",
        ),
        (
            b'{"schema": "compactctl.profile/1", "name": "x", "families": [{"name": "a", "models": "a", "spreads": '
            b'{"heuristic": {"low": -1, "high": 1, "tokens_low": -1e300, "tokens_high": 0, "steps": 1}}}]}',
            "beyond all sense",
        ),
    ],
)
def test_what_is_no_profile_is_said(tmp_path, text, said):
    path = tmp_path / "p.json"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=said):
        profiles.read(str(path))


# intervals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "known, estimated, spread, interval",
    [
        (1_000, 0, Spread(-0.5, 0.5, 0, 0, 9), Interval(1_000, 1_000)),
        (1_000, 300, Spread(-0.5, 0.5, 0, 0, 9), Interval(1_200, 1_600)),
        (0, 100, Spread(0.0, 0.0, -40, 10, 9), Interval(90, 140)),
        (0, 100, Spread(-0.75, 0.0, 0, 0, 9), Interval(100, 400)),
        (0, 1, Spread(0.0, 0.0, 0, 900, 9), Interval(0, 1)),
    ],
)
def test_an_interval_holds_what_estimates_were_off_by(known, estimated, spread, interval):
    assert profiles.interval(known, estimated, spread) == interval


@pytest.mark.parametrize(
    "model, low, factor",
    [
        ("m", -0.5, 2.0),
        ("m", 0.25, 1.0),  # an estimate that is always too large is large enough
        ("m", -0.99, 10.0),
        ("another", -0.5, 1.0),
        (None, -0.5, 1.0),
    ],
)
def test_an_estimate_is_made_as_large_as_a_known_model_may_count(model, low, factor):
    families = (Family(name="a", models="^m$", spreads={"heuristic": Spread(low, 0.0, 0, 0, 9)}),)
    found = profiles.upper_factor(Profile(name="p", families=families), model, "heuristic")
    assert found == pytest.approx(factor)


def test_a_context_is_told_with_its_interval(tmp_path):
    path = tmp_path / "s.jsonl"
    s = grown(500)
    s.user(TEXT)
    path.write_bytes(s.bytes())
    found = run.inspect([str(path)], Options()).outcomes[0].tokens
    assert found.before_low < found.before < found.before_high


# scores --------------------------------------------------------------------------------------------


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


def test_the_balance_of_a_batch_holds_and_no_path_is_in_a_row(tmp_path):
    s = grown(*[5_000] * 2)
    s.user("More.")
    s.assistant(TEXT, usage=usage(24_000, out=2), id="msg_9", requestId="req_9")  # its output was never recorded
    s.user("More.")
    s.assistant("Done.", usage=usage(26_000, out=4), id="msg_10", requestId="req_10")
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(s.bytes())
    rows = tmp_path / "rows.csv"
    batch = run.accuracy([str(tmp_path)], Options(scoring=Scoring(rows=str(rows))))
    note = batch.accuracy
    assert note.judged + sum(note.excluded.values()) == note.requests == 8
    assert note.excluded == {"counted elsewhere": 3, "first request": 2}
    written = list(csv.DictReader(io.StringIO(rows.read_text())))
    assert {each["way"] for each in written} == {"new", "next", "whole"}
    assert str(tmp_path) not in rows.read_text()
    assert all(float(each["error"]) == pytest.approx(_error(each), abs=1e-5) for each in written)


def test_no_text_of_a_session_is_a_formula_in_rows(tmp_path):
    s = Session()
    for size in (20_000, 21_000):
        s.user("More.")
        s.assistant("Done.", usage=usage(size, out=4), id=f"=id{size}", requestId=f"=r{size}", model="=1+1")
    (tmp_path / "a.jsonl").write_bytes(s.bytes())
    rows = tmp_path / "rows.csv"
    run.accuracy([str(tmp_path)], Options(scoring=Scoring(rows=str(rows))))
    written = list(csv.DictReader(io.StringIO(rows.read_text())))
    assert {(each["model"], each["request_id"]) for each in written} == {("'=1+1", "'=r21000")}


def _error(each):
    return (float(each["predicted"]) - float(each["actual"])) / float(each["actual"])


def test_the_requests_of_contexts_before_a_compaction_are_judged_as_well(tmp_path):
    s = grown(*[5_000] * 3)
    s.boundary()
    s.summary()
    s.user("Go on.")
    s.assistant("Done.", usage=usage(9_000, out=4), id="new")
    path = tmp_path / "s.jsonl"
    path.write_bytes(s.bytes())
    note = run.accuracy([str(path)], Options()).accuracy
    assert (note.judged, note.excluded) == (2, {"first request": 2})


def test_contexts_that_are_too_much_to_read_again_are_left_out_and_said(tmp_path, monkeypatch):
    s = grown(*[5_000] * 3)
    s.boundary()
    s.summary()
    s.user("Go on.")
    s.assistant("Done.", usage=usage(9_000, out=4), id="new")
    path = tmp_path / "s.jsonl"
    path.write_bytes(s.bytes())
    monkeypatch.setattr(accuracy, "MOST_READ_BYTES", 100)
    note = run.accuracy([str(path)], Options()).accuracy
    assert (note.judged, note.excluded) == (0, {"first request": 1, "not read again": 3})


def test_models_that_are_too_many_are_left_out_and_said(tmp_path, monkeypatch):
    s = grown(*[5_000] * 2)
    for index in range(2):
        s.user(TEXT)
        s.assistant("Done.", usage=usage(30_000 + 9_000 * index, out=4), id=f"other_{index}", model="claude-opus-4-6")
    path = tmp_path / "s.jsonl"
    path.write_bytes(s.bytes())
    monkeypatch.setattr(accuracy, "MOST_MODELS", 1)
    note = run.accuracy([str(path)], Options()).accuracy
    assert (note.judged, note.excluded) == (1, {"another model": 1, "first request": 1, "too many models": 1})


def test_nothing_is_written_where_not_all_that_was_asked_for_can_be_made(tmp_path):
    path, rows = tmp_path / "s.jsonl", tmp_path / "rows.csv"
    path.write_bytes(grown(*[5_000] * 3).bytes())
    with pytest.raises(UsageError, match="too little"):
        run.accuracy([str(path)], Options(scoring=Scoring(rows=str(rows), fit=str(tmp_path / "fit.json"))))
    assert not rows.exists()


def test_an_interrupted_run_writes_no_rows_and_no_profile(tmp_path, monkeypatch):
    path, rows, made = tmp_path / "s.jsonl", tmp_path / "rows.csv", tmp_path / "fit.json"
    path.write_bytes(grown(*[5_000] * 3).bytes())

    def interrupted(item, options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_accuracy_one", interrupted)
    batch = run.accuracy([str(path)], Options(scoring=Scoring(rows=str(rows), fit=str(made))))
    assert (batch.exit_code, batch.accuracy.fitted, rows.exists(), made.exists()) == (130, None, False, False)


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["accuracy", "--rows", ""],
        ["accuracy", "--rows", "made", "--fit", "made"],
        ["accuracy", "--rows", "made", "--fit", "../{folder}/made"],
        ["accuracy", "--fit", ""],
        ["audit", "--write-baseline", ""],
        ["audit", "--save", "json=made", "--baseline", "made"],
        ["audit", "--save", "json=made", "--write-baseline", "made"],
    ],
)
def test_files_that_are_to_be_written_have_names_of_their_own(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.jsonl").write_bytes(grown(500).bytes())
    assert exit_code([*(each.format(folder=tmp_path.name) for each in arguments), "s.jsonl"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


@pytest.mark.parametrize("option", ["--baseline", "--compare", "--profile"])
def test_a_file_without_end_is_not_read_to_its_end(option, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(baseline, "LARGEST_FILE_BYTES", 1_000)
    monkeypatch.setattr(scoring, "LARGEST_RESULT_BYTES", 1_000)
    monkeypatch.setattr(profiles, "LARGEST_FILE_BYTES", 1_000)
    (tmp_path / "s.jsonl").write_bytes(grown(500).bytes())
    (tmp_path / "endless").write_bytes(b"\0" * 1_001)
    command = {"--baseline": ["audit"], "--compare": ["accuracy"], "--profile": ["estimate", "--estimator=calibrated"]}
    assert exit_code([*command[option], option, str(tmp_path / "endless"), str(tmp_path / "s.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "too large" in said or "over 1,000 bytes" in said


# gates and fits --------------------------------------------------------------------------------------


def test_a_request_that_is_in_context_again_counts_once(tmp_path):
    s = grown(*[5_000] * 3)
    forked = s.last
    s.boundary()
    s.summary()
    s.user("Again, without the summary.", parent=forked)
    s.assistant("Done.", usage=usage(26_000, out=4), id="msg_9", requestId="req_9")
    (tmp_path / "s.jsonl").write_bytes(s.bytes())
    note = run.accuracy([str(tmp_path)], Options()).accuracy
    assert (note.judged, note.excluded) == (3, {"first request": 1})


def test_the_name_of_a_profile_is_printed_as_what_it_is():
    from compactctl.outcome import Batch
    from compactctl.outputs.accuracy import head

    told = ScoresNote("t", "red\x1b[31m\n", 0, 1, 1, {}, ())
    assert "\x1b" not in "".join(head(Batch(command="accuracy"), told))


def score(**changes):
    base = Score("e", "m", "new", ALL, 20, 3, 0.01, 0.02, 0.01, 0.03, 0.06, 0.07, Worst(0.2, "/x", 1), ())
    return msgspec.structs.replace(base, **changes)


def note(*found):
    return ScoresNote("t", "p", 0, 20, 20, {}, found)


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


# how it is shown -----------------------------------------------------------------------------------


def shown(*found, terminal=False):
    batch = Batch(command="accuracy", accuracy=note(*found))
    return table.printer("accuracy", View(terminal=terminal)).end(batch).splitlines()


def test_scores_stand_under_their_model_in_a_table_that_fits_100_columns():
    worst = Worst(-0.25, "/somewhere/2026-03-02T09-14-05-000Z_e7a3306b-d6ef.jsonl", 1_009)
    found = [
        score(estimator=e, kind=k, model=m, n=1_166, bias=-0.11, worst=worst, histogram=(1,) * 11)
        for m in ("claude-opus-4-5-20251101", "gpt-5.3-codex-spark")
        for k in (ALL, "prose")
        for e in ("calibrated", "tiktoken:o200k_base")
    ]
    for terminal in (False, True):
        lines = shown(*found, terminal=terminal)[4:]
        assert max(map(len, lines)) <= 100
        assert [line for line in lines if not line.startswith(" ")][1:] == [
            "claude-opus-4-5-20251101",
            "gpt-5.3-codex-spark",
        ]
    assert (
        "  tiktoken:o200k_base, prose     1,166         3  -11.0 %   2.0 %  6.0 %  -25.0 %  2026-03-0...:1009"
        in shown(*found)
    )


def test_a_histogram_keeps_its_empty_bins():
    counts = (0, 0, 0, 0, 0, 2, 8, 0, 0, 0, 1)
    assert bars(counts) == "·····▂█···▁"
    assert shown(score(histogram=counts), terminal=True)[-1].endswith(" ·····▂█···▁")


def test_where_nothing_is_judged_it_is_said():
    said = table.printer("accuracy", View()).end(
        Batch(command="accuracy", accuracy=ScoresNote("t", "p", 0, 0, 0, {}, ()))
    )
    assert said.splitlines()[-1] == "nothing to judge by: no request with recorded usage stands behind another one"


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


def test_a_profile_without_families_is_refused():
    with pytest.raises(UsageError):
        profiles.match(Profile(name="x", families=()), "gpt-5", None)


# ctok ----------------------------------------------------------------------------------------------


def test_ctok_counts_for_claude_only_and_says_what_is_missing(monkeypatch):
    from compactctl.errors import NoEstimator
    from compactctl.estimators import ctok

    with pytest.raises(NoEstimator, match="for Claude only, not for gpt-5"):
        estimators.get("ctok", Settings(), Subject(Session().document(), "gpt-5", "codex"))
    monkeypatch.setitem(sys.modules, "ctok", None)
    ctok.scale.cache_clear()
    with pytest.raises(NoEstimator, match=r"pip install 'compactctl\[claude\]'"):
        estimators.get("ctok", Settings(), Subject(Session().document(), "claude-opus-4-5", "claude-code"))


def test_ctok_counts_what_its_package_does_and_the_profiles_frames():
    pytest.importorskip("ctok", reason="ctok needs Python 3.12: pip install 'compactctl[claude]'")
    s = Session()
    s.user("Hello, world")
    document = s.document()
    [transcript] = FORMAT.read(document)
    estimator = estimators.get("ctok", Settings(), Subject(document, "claude-opus-4-5", "claude-code"))
    frame = next(f for f in profiles.shipped().families if f.name == "claude-3").frames.user
    assert list(estimator.each(transcript.messages)) == [pytest.approx(3 + frame)]


# sealed reasoning ----------------------------------------------------------------------------------


@pytest.mark.parametrize("sealed_bytes, tokens", [(0, 0), (100, 0), (101, 0.5), (300, 100)])
def test_a_seal_costs_what_is_beyond_what_every_seal_has(sealed_bytes, tokens):
    assert profiles.Sealed(0.5, 100).tokens(sealed_bytes) == tokens


def test_a_familys_rule_for_sealed_reasoning_counts_in_a_calibrated_estimate_alone():
    s = Session()
    s.user("Go.")
    s.assistant(thinking("", "x" * 4_000), call("c1"))
    document = s.document()
    [transcript] = FORMAT.read(document)
    [_, answer] = transcript.messages
    newer = next(family for family in profiles.shipped().families if family.name == "claude-4.8")
    plain = msgspec.structs.replace(newer, sealed=None)
    from compactctl.estimators.calibrated import beside
    from compactctl.media import rule, sealed_tokens

    sealed_bytes = sum(part.sealed_bytes for part in answer.parts if hasattr(part, "sealed_bytes"))
    assert beside(answer, rule(None), plain) == sealed_tokens(sealed_bytes)
    assert beside(answer, rule(None), newer) == newer.sealed.tokens(sealed_bytes) > sealed_tokens(sealed_bytes)


# after a compaction of ours --------------------------------------------------------------------------


def test_what_a_report_said_would_be_left_is_scored_against_the_first_request_since(tmp_path):
    s = Session()
    s.user("Go.")
    s.assistant(call("c1"), usage=usage(21_000, out=40), id="msg_a")
    s.results(result("c1", TEXT * 20))
    s.assistant("Done.", usage=usage(52_000, out=4), id="msg_b")
    path = tmp_path / "s.jsonl"
    path.write_bytes(s.bytes())
    [spilled] = run.spill([str(path)], Options(apply=True)).outcomes
    s.user("More.")
    s.assistant("Fine.", usage=usage(spilled.tokens.after + 100, out=4), id="msg_c")
    output = tmp_path / "s.compacted.jsonl"
    output.write_bytes(output.read_bytes() + b"\n".join(s.raw_lines[-2:]) + b"\n")
    note = run.accuracy([str(output)], Options()).accuracy
    [scored] = [score for score in note.scores if score.way == "compacted"]
    assert (scored.n, scored.kind) == (1, ALL)
    assert abs(scored.bias) < 0.01
    assert note.excluded["rewritten by compactctl"] == 2


def test_no_request_from_before_a_spill_of_ours_is_truth(tmp_path):
    s = grown(*[5_000] * 4)
    s.assistant(call("c1"), usage=usage(40_000, out=40), id="msg_a")
    s.results(result("c1", TEXT * 20))
    path = tmp_path / "s.jsonl"
    path.write_bytes(s.bytes())
    run.spill([str(path)], Options(apply=True))
    note = run.accuracy([str(tmp_path / "s.compacted.jsonl")], Options()).accuracy
    assert (note.judged, note.scores) == (0, ())


# logs ------------------------------------------------------------------------------------------------


def test_in_a_log_usage_without_output_counts_the_message_that_it_stands_on():
    log = logs.Claude()
    records, taken = [log.init()], 20_000
    for number in range(4):
        records.append(log.answer(f"m{number}", logs.use(f"c{number}"), taken=taken))
        records.append(log.result_of(f"c{number}", TEXT))
        taken += round((len(TEXT) + len('assistantBashuser{"command": "ls"}') + 4) / 3.5)
    document = Document(io.BytesIO(lines(*records)))
    [transcript] = formats.get("claude-stream").read(document)
    found = judgeable(transcript, Settings())
    assert [transcript.messages[step.end - 1].role for step in found.steps.values()] == ["user", "user"]
    estimator = estimators.get("heuristic", Settings(), Subject(document, logs.MODEL, "claude-stream"))
    kinds = dict.fromkeys(found.steps, "prose")
    errors = [
        each.predicted - each.actual
        for each in judged(found, transcript, estimator, kinds, logs.MODEL)
        if each.way in ("new", "next")
    ]
    assert len(errors) == 4
    assert max(map(abs, errors)) < 5
