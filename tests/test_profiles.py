"""Profiles: which family a model has, how far an estimate may be off, and which files are no profiles."""

import pytest

from compactctl import profiles, run
from compactctl.errors import UsageError
from compactctl.estimators import encodings
from compactctl.options import Options
from compactctl.profiles import Family, Interval, Profile, Spread
from tests.builders.claude import call, result, usage
from tests.builders.scored import TEXT, grown


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


def test_a_profile_without_families_is_refused():
    with pytest.raises(UsageError):
        profiles.match(Profile(name="x", families=()), "gpt-5", None)


def test_weights_are_for_every_token_of_the_encoding():
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


@pytest.mark.parametrize("sealed_bytes, tokens", [(0, 0), (100, 0), (101, 0.5), (300, 100)])
def test_a_seal_costs_what_is_beyond_what_every_seal_has(sealed_bytes, tokens):
    assert profiles.Sealed(0.5, 100).tokens(sealed_bytes) == tokens


# intervals ----------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
def test_what_is_left_of_a_context_lies_in_its_own_interval(tmp_path, factor):
    path = tmp_path / "s.jsonl"
    s = grown(3_000, 3_000, factor=factor)
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", TEXT * 10))
    s.assistant("Done.", usage=usage(20_000 + int(20_000 * factor)))
    path.write_bytes(s.bytes())
    found = run.spill([str(path)], Options()).outcomes[0].tokens
    assert found.after < found.before
    assert found.after_low <= found.after <= found.after_high
