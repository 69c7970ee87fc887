import json

import pytest

from compactctl.outputs.safe import clipped, escaped_json, visible


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain, naïve, 中文, 👩‍🚀", "plain, naïve, 中文, 👩‍🚀"),
        ("a\tb\r\nc\x00", r"a\tb\r\nc\x00"),
        ("\x1b[31mred\x1b]0;title\x07", r"\x1b[31mred\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("abc\u202ecba\u2066", r"abc\u202ecba\u2066"),
        ("\u2028\u2029\ufeff\u200b", r"\u2028\u2029\ufeff\u200b"),
        ("half \ud83d", r"half \ud83d"),
        ("tag \U000e0041", r"tag \U000e0041"),
    ],
)
def test_what_is_unseen_is_spelled_out(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text, shown",
    [
        ("::error file=x::no", r"\::error file=x::no"),
        ("  ::add-mask::x", r"  \::add-mask::x"),
        ("std::vector", "std::vector"),
        ("see ##[group]x", r"see ##\[group]x"),
        ("##vso[task.setvariable]x", r"##vso\[task.setvariable]x"),
        ("##teamcity[blockOpened]", r"##teamcity\[blockOpened]"),
        ("## heading [link]", "## heading [link]"),
    ],
)
def test_nothing_that_a_ci_runner_obeys_is_left(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text, width, shown",
    [("short", 10, "short"), ("much too long", 10, "much to..."), ("a\x1bb", 6, r"a\x1bb"), ("a\x1bbc", 6, r"a\x...")],
)
def test_a_long_text_is_cut_after_it_was_made_visible(text, width, shown):
    assert clipped(text, width) == shown


@pytest.mark.parametrize("text", ["\u202e##[x]", "\x9b\u2028", "tag \U000e0041", "##vso[x]\ud83d\ude00", "plain"])
def test_escaped_json_says_the_same(text):
    shown = escaped_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(shown) == json.loads(json.dumps(text))
    assert "##[" not in shown
    assert "##vso[" not in shown
    assert visible(shown) == shown
