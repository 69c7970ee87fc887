"""Where checks begin to find: the last case that is none, and the first that is one."""

import pytest

from compactctl import run
from compactctl.checks.secrets import fingerprint
from compactctl.options import Audit, Options
from compactctl.settings import Settings, with_changes
from tests.builders.claude import Session, call, image, result, usage


@pytest.fixture
def found(tmp_path):
    """Return what an audit finds of one rule in a session, as lines and messages."""

    def audited(session, rule, *changes, window_tokens=None):
        path = tmp_path / "s.jsonl"
        path.write_bytes(session.bytes())
        settings = with_changes(Settings(), list(changes))
        options = Options(settings=settings, audit=Audit(selected=(rule,)), window_tokens=window_tokens)
        [outcome] = run.audit([str(path)], options).outcomes
        return [(finding.line, finding.message) for finding in outcome.findings]

    return audited


def answered(*answers, model="claude-opus-4-5"):
    """Return a session of requests and answers: each is its text and its usage, or a model as well."""
    s = Session()
    for number, (text, counted, *named) in enumerate(answers):
        s.user("More.")
        s.assistant(text, usage=counted, id=f"m{number}", requestId=f"r{number}", model=(named or [model])[0])
    return s


@pytest.mark.parametrize(
    "before, after, model, is_found",
    [
        (40_000, 20_000, "claude-opus-4-5", True),
        (39_998, 19_999, "claude-opus-4-5", False),  # less than 20,000
        (60_000, 30_001, "claude-opus-4-5", False),  # more than half of it is left
        (60_000, 30_000, "claude-opus-4-5", True),
        (60_000, 10_000, "claude-haiku-4-5", False),  # another model has another tokenizer
    ],
)
def test_input_falls_from_a_number_of_tokens_and_a_share_on(found, before, after, model, is_found):
    s = answered(("Done.", usage(before, out=4)), ("Done.", usage(after, out=4), model))
    assert bool(found(s, "falling-usage")) == is_found


@pytest.mark.parametrize(
    "answers, is_found",
    [
        ([(400, 10)] * 3, False),  # 40 bytes a token
        ([(401, 10)] * 3, True),
        ([(399, 1)] * 3, False),  # too short to tell
        ([(401, 10)] * 2, False),
        ([(401, 10)] * 3 + [(401, 100)] * 3, False),  # half of them were counted
        ([(401, 10)] * 4 + [(401, 100)] * 3, True),
    ],
)
def test_outputs_are_placeholders_where_most_longer_answers_have_too_few_tokens(found, answers, is_found):
    s = answered(*[("y" * size, usage(20_000 + n, out=tokens)) for n, (size, tokens) in enumerate(answers)])
    assert bool(found(s, "placeholder-output")) == is_found


def test_one_estimate_that_is_far_off_proves_nothing(found):
    counted = [usage(20_000, out=4), usage(30_000, out=4), usage(40_000, out=4)]
    assert found(answered(*[("Done.", each) for each in counted[:2]]), "estimator-error") == []
    assert len(found(answered(*[("Done.", each) for each in counted]), "estimator-error")) == 1


def test_usage_that_comes_again_without_output_is_not_told_twice(found):
    again = [("Done.", usage(20_000, out=0))] * 2
    assert found(answered(*again), "repeated-usage") == []
    assert len(found(answered(*[("Done.", usage(20_000, out=4))] * 2), "repeated-usage")) == 1


@pytest.mark.parametrize("characters, is_found", [(4_000, False), (4_004, True)])
def test_an_image_is_as_large_as_its_bytes_not_as_its_base64(found, characters, is_found):
    s = Session()
    s.user([image("A" * characters)])
    s.assistant("Done.")
    assert bool(found(s, "large-image", "audit.image_limit_bytes=3000")) == is_found


@pytest.mark.parametrize("count, is_found", [(4, False), (5, True), (6, True)])
def test_the_heaviest_results_count_together(found, count, is_found):
    s = Session()
    s.user("Look.")
    s.assistant(*[call(f"c{number}") for number in range(count)])
    s.results(*[result(f"c{number}", "x" * 35_000) for number in range(count)])
    s.assistant("Done.")
    said = found(s, "heavy-results", "audit.heavy_results_percent=45", window_tokens=100_000)
    text = "the 5 largest results, 175,000 bytes, take about 50 % of the window of 100,000 tokens"
    assert said == ([(None, text)] if is_found else [])


# secrets -----------------------------------------------------------------------------------------

KEY = "AKIA" + "QYLPMN5HFIQR7XYZ"
"""The shape of a key that opens nothing."""


def test_the_fingerprint_of_a_secret_is_the_same_in_every_version_and_slow_to_try():
    assert fingerprint("hunter2hunter2") == "14bbcc0caf1d"


@pytest.mark.parametrize(
    "text, kinds",
    [
        (f"the key is {KEY}", ["aws-access-key"]),
        ("the key is AKIA" + "IOSFODNN7EXAMPLE", []),  # what documents have
        ("password=k3yK4rl2", ["named-secret"]),
        ("password=<your-password>", []),
        ("password=settings.database.password", []),  # an expression of a program
    ],
)
def test_what_only_stands_where_a_secret_would_is_none(found, text, kinds):
    said = found(answered((text, usage(20_000, out=4))), "secrets")
    assert [message.partition(" in ")[0] for _, message in said] == kinds


def test_a_secret_in_the_way_to_a_secret_is_not_told(found):
    s = Session()
    s.user([{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": KEY, KEY: KEY}]}])
    said = [message for _, message in found(s, "secret")]
    assert said
    assert not any(KEY in message for message in said)
