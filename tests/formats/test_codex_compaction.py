"""A compaction in a Codex rollout: the lines that come out, one by one."""

import pytest

from compactctl import formats
from compactctl.formats.interface import Metas
from compactctl.plan import Cut
from tests.builders.codex import (
    assistant,
    call,
    compacted_by_entries,
    compacted_by_message,
    custom_call,
    custom_output,
    developer,
    event,
    jsonl,
    line,
    meta,
    output,
    reasoning,
    rolled_back,
    said,
    started,
    tokens,
    turn,
    user,
)
from tests.builders.codex import compacted as compacted_to
from tests.compactions import METAS, TOKENS, compacted, lines, opened
from tests.formats.reading import values

CODEX = formats.get("codex")
RULES, AGENTS = (
    developer("Rules."),
    user("# AGENTS.md instructions for /srv\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>"),
)
SUMMARY = user(METAS.summary)
STAMP = "2026-04-05T06:07:08.000Z"


def record(*history, message=METAS.summary, **fields):
    """The record that is added."""
    return line("compacted", {"message": message, "replacement_history": list(history)}, **fields)


def a_session():
    return [
        meta(),
        event("thread_name_updated", thread_name="Moving"),
        started("t1"),
        said(RULES),
        said(AGENTS),
        turn(),
        event("user_message", message="Old."),
        said(user("Old.")),
        said(assistant("Yes.")),
        tokens(80_000, 5, total=80_005),
        event("task_complete", turn_id="t1"),
        started("t2"),
        turn("gpt-6"),
        event("user_message", message="Move the shop."),
        said(user("Move the shop.")),
        said(call("c1")),
        event("exec_command_end", call_id="c1", aggregated_output="done"),
        said(output("c1")),
        tokens(90_000, 5, total=170_005),
        said(reasoning("Hm.", "sealed")),
        said(assistant("Half.")),
        said(user("And the till.")),
    ]


def test_one_record_stands_before_the_kept_lines_with_what_leads_the_summary_and_the_request():
    rows = a_session()
    raw, made = compacted(CODEX, jsonl(*rows), Cut(2, 7, 4))
    count = tokens(90_000, 5, total=170_005)
    count["payload"]["info"]["last_token_usage"] |= {"input_tokens": TOKENS[1], "total_tokens": TOKENS[1]}
    assert values(raw) == [
        rows[0],
        rows[1],
        rows[6],
        rows[11],
        count,
        record(RULES, AGENTS, SUMMARY, user("Move the shop.")),
        rows[12],
        rows[20],
        rows[21],
    ]
    assert (made.moved, made.dropped_reasoning) == ((2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 14, 15, 16, 17, 19), 1)


def test_what_leads_stays_in_front_and_the_summary_is_known_for_one():
    raw, _ = compacted(CODEX, jsonl(*a_session()), Cut(2, 7, 4))
    assert [told.split("\n")[0] for told in lines(CODEX, raw)] == [
        "developer: Rules. (leading)",
        "user: # AGENTS.md instructions for /srv",
        f"user: {METAS.summary} (summary)",
        "user: Move the shop.",
        "assistant: Half.",
        "user: And the till.",
    ]
    assert [message.is_leading for message in opened(raw, CODEX)[1].messages[:3]] == [True, True, False]


def test_the_history_can_stay_in_front():
    rows = a_session()
    raw, made = compacted(CODEX, jsonl(*rows), Cut(2, 7, 4), keep_history=True)
    assert len(values(raw)) == len(rows) + 2 - 1
    assert [value["type"] for value in values(raw)[19:21]] == ["compacted", "turn_context"]
    assert lines(CODEX, raw)[2:] == lines(CODEX, compacted(CODEX, jsonl(*rows), Cut(2, 7, 4))[0])[2:]
    assert made.moved == compacted(CODEX, jsonl(*rows), Cut(2, 7, 4))[1].moved


def test_in_a_session_with_ordinals_the_new_records_have_one_and_the_last_keeps_its_own():
    rows = [{**row, "ordinal": index} for index, row in enumerate(a_session())]
    raw, _ = compacted(CODEX, jsonl(*rows), Cut(2, 7, 4))
    assert [value["ordinal"] for value in values(raw)] == [0, 1, 6, 11, 18, 18, 18, 20, 21]


def test_a_second_compaction_may_cut_inside_what_the_first_kept_in_its_history():
    rows = [
        meta(),
        turn(),
        compacted_to(user("q1"), user("q2"), user("s1"), user("q3"), message="s1"),
        said(assistant("a3")),
    ]
    data = jsonl(*rows)
    assert lines(CODEX, data) == ["user: q1", "user: q2", "user: s1 (summary)", "user: q3", "assistant: a3"]
    for cut, kept in (
        (Cut(0, 3), ["user: q3", "assistant: a3"]),
        (Cut(0, 3, 1), ["user: q2", "user: q3", "assistant: a3"]),
    ):
        raw, made = compacted(CODEX, data, cut)
        assert lines(CODEX, raw) == [f"user: {METAS.summary} (summary)", *kept]
        assert [value["type"] for value in values(raw)] == ["session_meta", "compacted", "response_item"]
        assert made.moved == (1, 2)


def test_a_history_of_entries_is_cut_inside_too():
    kept = said(user("q2", id="msg_2"))
    entries = [
        {"type": "inline", "item": user("q1")},
        {"type": "reference", "item_id": "msg_2"},
        {"type": "inline", "item": user("q3")},
    ]
    data = jsonl(meta(), kept, compacted_by_entries(*entries), said(assistant("a3")))
    assert lines(CODEX, data) == ["user: q1", "user: q2", "user: q3", "assistant: a3"]
    raw, _ = compacted(CODEX, data, Cut(0, 2))
    assert lines(CODEX, raw) == [f"user: {METAS.summary} (summary)", "user: q3", "assistant: a3"]


def test_what_an_old_compaction_kept_goes_into_the_new_history():
    rows = [
        meta(),
        said(user("q1")),
        said(user("q2")),
        said(assistant("a2")),
        compacted_by_message("s1"),
        said(user("q3")),
    ]
    data = jsonl(*rows)
    assert lines(CODEX, data) == ["user: q1", "user: q2", "user: s1 (summary)", "user: q3"]
    raw, _ = compacted(CODEX, data, Cut(0, 1))
    assert lines(CODEX, raw) == [f"user: {METAS.summary} (summary)", "user: q2", "user: s1", "user: q3"]


def test_two_compactions_in_a_row_leave_one_record():
    once, _ = compacted(CODEX, jsonl(*a_session()), Cut(2, 5))
    twice, _ = compacted(CODEX, once, Cut(2, 6, 4), Metas("Both stories."))
    assert [value["type"] for value in values(twice)].count("compacted") == 1
    assert (
        lines(CODEX, twice)[2:] == ["user: Both stories. (summary)", "user: And the till."] or lines(CODEX, twice)[2:]
    )


@pytest.mark.parametrize("keep_history", [False, True])
def test_turns_that_were_taken_back_stay_taken_back(keep_history):
    rows = [
        meta(),
        started("t1"),
        turn(),
        said(user("Old.")),
        said(assistant("Yes.")),
        said(custom_call("p1")),
        said(custom_output("p1", "patched")),
        started("t2"),
        turn(),
        said(user("Wrong.")),
        said(assistant("Oh.")),
        rolled_back(1),
        started("t3"),
        turn(),
        said(user("Right.")),
    ]
    for first_kept in (1, 3):
        raw, _ = compacted(CODEX, jsonl(*rows), Cut(0, first_kept), keep_history=keep_history)
        assert lines(CODEX, raw)[1:] == lines(CODEX, jsonl(*rows))[first_kept:]


def test_a_sealed_history_is_never_dropped_for_stale_reasoning():
    sealed = {"type": "compaction", "encrypted_content": "c2VhbGVk"}
    data = jsonl(meta(), compacted_to(user("q1"), user("q2"), sealed), said(user("q3")))
    raw, made = compacted(CODEX, data, Cut(0, 1))
    assert len(opened(raw, CODEX)[1].messages) == 4
    assert made.dropped_reasoning == 0


def test_where_nothing_is_kept_the_record_ends_the_file():
    rows = [meta(), turn(), said(user("Go.")), said(assistant("Yes."))]
    raw, _ = compacted(CODEX, jsonl(*rows), Cut(0, 2, 0))
    assert values(raw) == [rows[0], record(SUMMARY, user("Go.")), rows[1]]


def test_an_answer_without_its_sealed_reasoning_has_the_key_that_was_foretold():
    answers = [
        [reasoning("Hm.", "sealed", id="rs_1"), assistant("One.", id="msg_1"), call("c1", id="fc_1")],
        [reasoning("Hm.", "sealed", id="rs_2"), call("c2")],
        [reasoning("Hm.", "sealed", id="rs_3"), reasoning("Ah.", id="rs_4"), call("c3", id="fc_3")],
        [assistant("Four.", id="msg_4"), reasoning("Hm.", "sealed", id="rs_5"), call("c4", id="fc_4")],
        [reasoning("Hm.", id="rs_6"), call("c5", id="fc_5")],
        [reasoning("Hm.", "sealed"), call("c6", id="fc_6")],
    ]
    rows = [meta(), said(user("Go.")), said(assistant("Yes.")), said(user("On."))]
    for number, items in enumerate(answers, 1):
        rows += [*map(said, items), said(output(f"c{number}"))]
    raw, made = compacted(CODEX, jsonl(*rows), Cut(0, 2, 0))
    before = [message for message in opened(jsonl(*rows), CODEX)[1].messages[2:] if message.role == "assistant"]
    after = [message.key for message in opened(raw, CODEX)[1].messages if message.role == "assistant"]
    assert [message.key for message in before] == ["rs_1", "rs_2", "rs_3", "msg_4", "rs_6", "fc_6"]
    assert [message.unsealed_key for message in before] == ["msg_1", "", "rs_4", None, None, None]
    assert after == ["msg_1", "", "rs_4", "msg_4", "rs_6", "fc_6"]
    assert made.dropped_reasoning == 5
