"""The calibrated estimator: a family's texts, frames and seals, counted by its profile."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from compactctl import estimators, profiles
from compactctl.document import Place
from compactctl.estimators import Subject
from compactctl.estimators.calibrated import Calibrated, beside, scale
from compactctl.estimators.encodings import bundled
from compactctl.formats.claude_code import FORMAT
from compactctl.media import rule, sealed_tokens
from compactctl.model import Message, Text
from compactctl.profiles import Family, Frames
from compactctl.settings import Settings
from tests.builders.claude import Session, call, thinking
from tests.builders.scored import TEXT


def tokens(text, family):
    """Return what a family's profile makes of an answer that is this text."""
    message = Message("assistant", (Text(Place(0), len(text), text),), (), 0)
    return estimators.get(f"calibrated:{family}", Settings(), Subject(Session().document())).tokens([message])


def test_openais_texts_count_as_tiktoken_counts_them_and_claudes_newer_tokenizer_makes_more_of_them():
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
    estimator = Calibrated(profiles.Match(family), scale(family), document, 3.5, rule(None))
    texts = ["Bash", "command", "ls", "description", "List"]
    assert list(estimator.each(transcript.messages))[-1] == 10 + 2 * 100 + sum(map(bundled("o200k_base").count, texts))


@given(st.lists(st.text(max_size=200), max_size=6))
def test_a_further_text_never_makes_it_less(texts):
    for family in ("claude-3", "claude-4.8", "openai"):
        sums = [sum(tokens(text, family) for text in texts[:count]) for count in range(len(texts) + 1)]
        assert sums == sorted(sums)


def test_a_familys_rule_for_sealed_reasoning_counts_in_a_calibrated_estimate_alone():
    s = Session()
    s.user("Go.")
    s.assistant(thinking("", "x" * 4_000), call("c1"))
    document = s.document()
    [transcript] = FORMAT.read(document)
    [_, answer] = transcript.messages
    newer = next(family for family in profiles.shipped().families if family.name == "claude-4.8")
    plain = msgspec.structs.replace(newer, sealed=None)
    sealed_bytes = sum(part.sealed_bytes for part in answer.parts if hasattr(part, "sealed_bytes"))
    assert beside(answer, rule(None), plain) == sealed_tokens(sealed_bytes)
    assert beside(answer, rule(None), newer) == newer.sealed.tokens(sealed_bytes) > sealed_tokens(sealed_bytes)
