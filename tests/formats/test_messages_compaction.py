"""A compaction in logs of messages: the lines that come out, one by one."""

import json

import pytest

from compactctl import formats
from compactctl.plan import Cut
from tests.builders import anthropic, chat
from tests.compactions import METAS, compacted, lines, opened
from tests.formats.reading import values

CHAT, ANTHROPIC = formats.get("chat"), formats.get("anthropic")


def mark(summarised, originals):
    return f"[compactctl: summary of {summarised} earlier messages; the {originals} messages behind it are originals]\n"


def metas(summarised, originals):
    return [
        {"role": "user", "content": mark(summarised, originals) + METAS.summary},
        {"role": "assistant", "content": METAS.acknowledged},
        {"role": "user", "content": METAS.reminder},
    ]


def test_three_messages_stand_between_the_system_prompt_and_the_pinned_request():
    rows = [
        chat.system(),
        chat.user("Old."),
        chat.assistant("Yes."),
        chat.user("Now move the shop."),
        chat.assistant("", [("c1", "run", "{}")]),
        chat.tool("c1"),
        chat.assistant("Half of it is moved."),
    ]
    raw, made = compacted(CHAT, chat.lines(*rows), Cut(1, 6, 3))
    assert values(raw) == [rows[0], *metas(4, 2), rows[3], rows[6]]
    assert made.moved == (1, 2, 4, 5)


def test_the_pinned_request_keeps_its_bytes():
    request = '{"role": "user",  "content":"Move\\u0020it.", "x": 1e2}'
    raw, _ = compacted(
        CHAT, chat.lines(chat.user("Old.")) + f"{request}\n".encode() + chat.lines(chat.assistant()) * 2, Cut(0, 3, 1)
    )
    assert request.encode() in raw.splitlines()


def test_without_a_system_prompt_they_stand_before_everything():
    rows = [chat.user("Go."), chat.assistant("Yes."), chat.assistant("And more.")]
    raw, _ = compacted(CHAT, chat.lines(*rows), Cut(0, 2, 0))
    assert values(raw) == [*metas(1, 2), rows[0], rows[2]]


def test_a_summary_is_known_again_and_usage_before_it_is_no_anchor():
    used = {"usage": {"prompt_tokens": 90_000, "completion_tokens": 7}}
    rows = [chat.user("Old."), chat.assistant("Yes."), chat.user("Go."), chat.assistant("Done.", **used)]
    raw, _ = compacted(CHAT, chat.lines(*rows), Cut(0, 2))
    _, transcript = opened(raw + chat.lines(chat.user("More."), chat.assistant("Sure.", **used)), CHAT)
    assert [message.is_summary for message in transcript.messages] == [True] + [False] * 6
    assert transcript.anchor_floor == 5


def test_what_merely_quotes_a_summary_is_none():
    _, transcript = opened(chat.lines(chat.user("Go."), chat.user(mark(3, 1) + "x")), CHAT)
    assert not any(message.is_summary for message in transcript.messages)


def test_a_conversation_on_one_line_is_cut_inside_its_line():
    rows = [chat.system(), chat.user("Old."), chat.assistant("Yes."), chat.user("Go."), chat.assistant("Done.")]
    line = {"id": 7, "messages": rows, "tools": []}
    raw, made = compacted(CHAT, chat.lines(line), Cut(1, 3))
    assert values(raw) == [{**line, "messages": [rows[0], *metas(2, 2), *rows[3:]]}]
    assert made.moved == (0,)


def test_a_line_of_results_and_a_request_is_parted():
    rows = [
        anthropic.user("Go."),
        anthropic.assistant(anthropic.use("c1")),
        anthropic.user(anthropic.result("c1"), anthropic.text("And now this.")),
        anthropic.assistant("Fine."),
    ]
    raw, made = compacted(ANTHROPIC, chat.lines(*rows), Cut(0, 4, 3))
    assert values(raw)[3:] == [{"role": "user", "content": [anthropic.text("And now this.")]}, rows[3]]
    assert made.moved == (0, 1, 2)


def test_signed_thinking_goes_whole_and_an_answer_of_nothing_else_with_it():
    rows = [
        anthropic.user("Go."),
        anthropic.assistant(anthropic.thinking(), anthropic.text("Yes.")),
        anthropic.user("And?"),
        anthropic.assistant(anthropic.thinking()),
        anthropic.user("Well?"),
        anthropic.assistant(anthropic.thinking(), anthropic.text("Done."), anthropic.thinking(signature="")),
    ]
    raw, made = compacted(ANTHROPIC, chat.lines(*rows), Cut(0, 2))
    told = [anthropic.text("Done."), anthropic.thinking(signature="")]
    assert values(raw) == [*metas(2, 3), rows[2], rows[4], {"role": "assistant", "content": told}]
    assert (made.dropped_reasoning, made.emptied, made.moved) == (2, (3,), (0, 1, 3, 5))


def test_reasoning_that_nobody_signed_stays():
    rows = [chat.user("Go."), chat.assistant("Yes."), chat.assistant("Done.", reasoning_content="Hm.")]
    raw, made = compacted(CHAT, chat.lines(*rows), Cut(0, 2))
    assert (values(raw)[-1], made.dropped_reasoning) == (rows[2], 0)


@pytest.mark.parametrize("tail", [b"", b"\n", b'\n{"role": "us'])
def test_a_file_that_ends_badly_ends_well(tail):
    rows = [chat.user("Go."), chat.assistant("Yes."), chat.assistant("Done.")]
    raw, _ = compacted(CHAT, chat.lines(*rows).rstrip(b"\n") + tail, Cut(0, 2))
    assert raw.endswith(json.dumps(rows[2]).encode() + b"\n")


def test_where_nothing_is_kept_the_summary_ends_the_file():
    rows = [chat.system(), chat.user("Go."), chat.assistant("Yes.")]
    raw, _ = compacted(CHAT, chat.lines(*rows), Cut(1, 3))
    assert lines(CHAT, raw)[1].startswith("user: [compactctl: summary of 2")
    assert values(raw)[0] == rows[0]
