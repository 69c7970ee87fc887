"""Which requests of a session are judged, which are not and why, and what is predicted for those that are."""

import io
from collections import Counter

import pytest

from compactctl import estimators, formats
from compactctl.document import Document
from compactctl.estimators import Subject
from compactctl.formats.claude_code import FORMAT
from compactctl.judge import judgeable, judged, kind_of
from compactctl.settings import Settings
from tests.builders import logs
from tests.builders.chat import lines
from tests.builders.claude import Session, call, result, thinking, usage
from tests.builders.scored import TEXT, grown


def predictions(session):
    name, settings = "heuristic", Settings()
    document = session.document()
    [transcript] = FORMAT.read(document)
    found = judgeable(transcript, settings)
    estimator = estimators.get(name, settings, Subject(document, transcript.model, transcript.format))
    kinds = {i: kind_of(transcript.messages[step.first : step.end], document) for i, step in found.steps.items()}
    return found, list(judged(found, transcript, estimator, kinds, transcript.model))


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
