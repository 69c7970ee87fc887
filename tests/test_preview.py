import pytest

from compactctl.preview import head, is_preview, make_preview, tail
from compactctl.settings import Layer1

FAMILY = "\U0001f468‍\U0001f469‍\U0001f467"
FLAG = "\U0001f1eb\U0001f1f7"


@pytest.mark.parametrize(
    ("text", "lines", "size", "kept"),
    [
        ("", 20, 2048, ""),
        ("one\ntwo\n", 20, 2048, "one\ntwo\n"),
        ("one\ntwo\nthree", 2, 2048, "one\ntwo\n"),
        ("one\ntwo", 2, 2048, "one\ntwo"),
        ("abcdef", 20, 4, "abcd"),
        ("日本語", 20, 4, "日"),
        ("日本語", 20, 6, "日本"),
        ("a\u2028b\nc", 1, 2048, "a\u2028b\n"),
        ("ab" + FAMILY, 20, 7, "ab"),
        ("e\u0301e\u0301", 20, 4, "e\u0301"),
        (FLAG + FLAG, 20, 12, FLAG),
    ],
)
def test_a_head_is_cut_by_lines_and_bytes_on_whole_characters(text, lines, size, kept):
    assert head(text, lines, size) == kept


@pytest.mark.parametrize(
    ("text", "lines", "size", "kept"),
    [
        ("a\nb\nc", 0, 100, ""),
        ("a\nb\nc", 2, 100, "b\nc"),
        ("a\nb\nc\n", 2, 100, "b\nc\n"),
        ("abcdef", 5, 4, "cdef"),
        ("日本語", 5, 4, "語"),
        (FAMILY + "ab", 5, 9, "ab"),
    ],
)
def test_a_tail_follows_the_rules_of_the_head(text, lines, size, kept):
    assert tail(text, lines, size) == kept


@pytest.mark.parametrize("style", ["seed", "native"])
@pytest.mark.parametrize("wording", ["en", "zh"])
def test_a_preview_names_size_and_path_shows_the_head_and_warns_against_guessing(style, wording):
    text = "".join(f"line {number}\n" for number in range(1000))
    preview = make_preview(text, 8890, "/spills/call_1.txt", style, Layer1(preview_wording=wording))
    assert "8890 bytes" in preview
    assert "/spills/call_1.txt" in preview
    assert "line 19\n" in preview
    assert "line 20\n" not in preview
    assert ("Do not guess" if wording == "en" else "不要凭头部预览猜测全文") in preview
    assert is_preview(preview)


def test_a_tail_is_shown_besides_the_head_when_it_is_asked_for():
    text = "".join(f"line {number}\n" for number in range(1000))
    settings = Layer1(preview_tail_lines=3, preview_tail_bytes=500)
    for style in ("seed", "native"):
        preview = make_preview(text, 8890, "/s/c.txt", style, settings)
        assert "line 997\nline 998\nline 999\n" in preview
        assert "line 996" not in preview


def test_a_template_is_filled_in_one_pass_so_that_braces_in_a_result_mean_nothing():
    settings = Layer1(preview_wording="{size} at {path}: {head}|{tail}")
    assert make_preview("see {path} {size}", 17, "/p", "native", settings) == "17 at /p: see {path} {size}|"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<persisted-output>\nwithout an end",
        "<persisted-output>\n" + "x" * 9000 + "\n</persisted-output>",
        "[content offloaded] original size: 9 bytes\nno path",
        "[content offloaded] original size: 9 bytes\n[saved to] /p\n" + "x" * 9000,
        "quoted: <persisted-output>\n</persisted-output>",
    ],
)
def test_what_only_looks_like_a_preview_is_none(text):
    assert not is_preview(text)
