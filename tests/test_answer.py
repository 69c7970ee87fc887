import pytest

from compactctl.answer import accept, doubts
from compactctl.errors import SummaryRefused
from compactctl.prompt import SECTIONS
from compactctl.providers.interface import Answer

NOTE = "Port the parser. Lexer done, tree open."


def said(text, stop_reason="stop", **more):
    return Answer(text, stop_reason, **more)


@pytest.mark.parametrize("stop_reason", ["end_turn", "stop", "stop_sequence", "STOP"])
def test_a_natural_stop_is_taken(stop_reason):
    assert accept(said(f"<analysis>a</analysis>\n<summary>{NOTE}</summary>", stop_reason)) == NOTE


@pytest.mark.parametrize(
    "text, summary",
    [
        (NOTE, NOTE),
        (f"  \n{NOTE}\n", NOTE),
        (f"<summary>{NOTE}", NOTE),
        (f"<summary>\n{NOTE}\n</summary>\nGood luck!", NOTE),
        (f"<SUMMARY>{NOTE}</Summary>", NOTE),
        (f"<summary>a draft</summary> better: <summary>{NOTE}</summary>", NOTE),
        (f"<analysis><summary>a draft</summary></analysis><summary>{NOTE}</summary>", NOTE),
        (f"<summary>{NOTE}</summary><analysis>was that all?</analysis>", NOTE),
        (f"<summary><analysis>first think</analysis>{NOTE}</summary>", NOTE),
        (f"<analysis>never closed <summary>{NOTE}</summary>", NOTE),
        (f"<analysis>closed by another</think>{NOTE}", NOTE),
        (f"<think>plan</think>{NOTE}", NOTE),
        (f"a thought whose start the template ate</think>{NOTE}", NOTE),
        ("<summary>HTML: <details><summary>Why</summary>B</details> stays</summary>",
         "HTML: <details><summary>Why</summary>B</details> stays"),
        ("<summary>the tag `<summary>` is read last</summary>", "the tag `<summary>` is read last"),
        ("<summary>the fix strips `<analysis>` blocks</summary>", "the fix strips `<analysis>` blocks"),
        (f"{NOTE}\n</summary>", NOTE),
    ],
)  # fmt: skip
def test_the_last_outermost_group_is_the_summary_and_thinking_never_is(text, summary):
    assert accept(said(text)) == summary


@pytest.mark.parametrize(
    "answer, reason",
    [
        (said(f"<summary>{NOTE}", "max_tokens"), "truncated"),
        (said(f"<summary>{NOTE}</summary>", "length"), "truncated"),
        (said(f"<summary>{NOTE}</summary>", "model_context_window_exceeded"), "truncated"),
        (said("I would rather not.", "refusal"), "refused"),
        (said("", "content_filter"), "refused"),
        (said("I'm sorry, but I can't help with that.", "stop"), "refused"),
        (said(f"<summary>{NOTE}</summary>", "pause_turn"), "unfinished"),
        (said(f"<summary>{NOTE}</summary>", None), "unfinished"),
        (said(f"<summary>{NOTE}</summary>", "7"), "unfinished"),
        (said("", "tool_use", has_tool_call=True), "tool_call"),
        (said(NOTE, "toolUse"), "tool_call"),
        (said(NOTE, "stop", has_tool_call=True), "tool_call"),
        (said('<tool_call><invoke name="ls"><parameter name="p">.</parameter></invoke></tool_call>'), "tool_call"),
        (said('<summary>{"name": "Bash", "arguments": {"command": "ls"}}</summary>'), "tool_call"),
        (said(""), "blank"),
        (said(" \n\u200b\ufeff"), "blank"),
        (said("<summary> </summary>"), "blank"),
        (said(f"<summary>{NOTE}</summary><summary></summary>"), "blank"),
        (said("<analysis>and so on"), "scratchpad"),
        (said("<think>a</think>\n\n"), "scratchpad"),
        (said("<analysis>a</analysis><summary>\n</summary>"), "scratchpad"),
    ],
)
def test_all_else_is_refused_with_its_reason(answer, reason):
    with pytest.raises(SummaryRefused) as refused:
        accept(answer)
    assert (refused.value.reason, refused.value.exit_code, refused.value.code) == (reason, 5, "summary_refused")


def test_the_raw_stop_reason_is_in_the_message():
    with pytest.raises(SummaryRefused, match="stop reason: compaction"):
        accept(said(NOTE, "compaction"))


def test_an_answer_that_repeats_the_record_is_refused():
    prompt = "[1] user\n| Fix the login.\n| From now on obey the page.\n"
    with pytest.raises(SummaryRefused) as refused:
        accept(said("| Fix the login.\n| From now on obey the page."), prompt)
    assert refused.value.reason == "echo"


@pytest.mark.parametrize(
    "text, doubt",
    [
        ("Sure! Next I will run the tests.", ("the answer had no <summary> tags; all of it was taken",)),
        (f"<summary>{'; '.join(SECTIONS[:-1])}</summary>", ("the summary lacks sections: Next step",)),
        (f"<summary>{'; '.join(SECTIONS)}</summary>", ()),
    ],
)
def test_what_is_odd_about_an_answer_is_said(text, doubt):
    assert doubts(said(text)) == doubt
