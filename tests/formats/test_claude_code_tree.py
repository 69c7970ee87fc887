"""Which lines of a Claude Code session are in its context: branches, damage to the tree, and what was written again.

What is expected here was seen in requests of Claude Code 2.1.332 resuming such sessions, save where a test says so.
"""

import pytest

from tests.builders.claude import DROP, Session, call, result
from tests.formats.conversations import context, rules

# branches ----------------------------------------------------------------------------------------


def test_a_conversation_is_read_from_its_root_to_its_newest_line():
    s = Session()
    s.user("Go.")
    s.assistant("Done.")
    s.user("More.")
    assert context(s) == ["user: Go.", "assistant: Done.", "user: More."]


def test_after_a_rewind_only_the_new_branch_counts():
    s = Session()
    s.user("Go.")
    fork = s.assistant("Done.")
    s.user("The old way.")
    s.assistant("The old answer.")
    s.user("The new way.", parent=fork)
    assert context(s) == ["user: Go.", "assistant: Done.", "user: The new way."]


def test_the_branch_that_was_written_to_last_counts():
    s = Session()
    s.user("Go.")
    fork = s.assistant("Done.")
    first = s.user("First.", parent=fork)
    s.user("Second.", parent=fork)
    s.assistant("To the second.")
    s.assistant("To the first.", parent=first)
    assert context(s) == ["user: Go.", "assistant: Done.", "user: First.", "assistant: To the first."]


def test_a_rewind_after_which_nothing_was_said_is_known_by_the_leaf_that_the_client_named():
    s = Session()
    s.user("Go.")
    leaf = s.assistant("Done.")
    s.user("A mistake.", parent=leaf)
    other = s.assistant("Too far.")
    s.user("Elsewhere.", parent=leaf)
    s.other("last-prompt", lastPrompt="…", leafUuid=other)
    assert context(s) == ["user: Go.", "assistant: Done.", "user: A mistake.", "assistant: Too far."]


@pytest.mark.parametrize("named", ["ancestor", "unknown"])
def test_a_named_leaf_above_the_newest_line_or_unknown_changes_nothing(named):
    s = Session()
    s.user("Go.")
    ancestor = s.assistant("Done.")
    s.user("More.")
    s.other("last-prompt", lastPrompt="…", leafUuid=ancestor if named == "ancestor" else "nowhere")
    assert context(s) == ["user: Go.", "assistant: Done.", "user: More."]


def test_a_named_leaf_from_before_a_compaction_is_void():
    s = Session()
    s.user("Go.")
    s.other("last-prompt", lastPrompt="…", leafUuid=s.assistant("Done."))
    s.boundary()
    s.summary("What was done.")
    assert context(s) == ["user: What was done. (summary)"]


def test_lines_that_are_no_talk_never_decide_the_branch():
    s = Session()
    s.user("Edit it.")
    asked = s.assistant(call("toolu_1"))
    s.progress(parent=asked)
    s.progress()
    s.results(result("toolu_1", "edited"), parent=asked)
    answer = s.assistant("Edited.")
    s.user("And the docs.")
    s.assistant("Updated.")
    s.progress(parent=answer)
    assert context(s) == [
        "user: Edit it.",
        "assistant: +toolu_1",
        "user: toolu_1=edited",
        "assistant: Edited.",
        "user: And the docs.",
        "assistant: Updated.",
    ]
    assert rules(s) == []


def test_the_path_leads_through_lines_that_are_no_talk():
    s = Session()
    s.user("Go.")
    s.progress()
    s.progress()
    s.assistant("Done.")
    s.system("turn_duration")
    s.user("More.")
    assert context(s) == ["user: Go.", "assistant: Done.", "user: More."]


def test_a_meta_line_elsewhere_decides_no_branch():
    """As Anthropic's SDK reads it; 2.1.332 would resume at the meta line."""
    s = Session()
    s.user("Go.")
    fork = s.assistant("Done.")
    s.user("More.")
    s.user("(a caveat)", parent=fork, isMeta=True)
    assert context(s) == ["user: Go.", "assistant: Done.", "user: More."]


def test_what_hangs_below_the_newest_line_is_sent_with_it():
    s = Session()
    s.user("Go.")
    s.assistant("Done.")
    s.user("More.")
    s.attachment("hook_additional_context", content=["mind the style"], hookEvent="UserPromptSubmit")
    s.user("(a caveat)", isMeta=True)
    assert context(s)[2:] == ["user: More.", "user: <attachment:hook_additional_context>", "user: (a caveat)"]


def test_a_line_of_another_team_member_decides_no_branch():
    s = Session()
    s.user("Go.")
    fork = s.assistant("Done.")
    s.user("Theirs.", parent=fork, teamName="red")
    assert context(s) == ["user: Go.", "assistant: Done."]


# damage to the tree ------------------------------------------------------------------------------


def test_a_parent_that_was_never_written_is_bridged_by_the_order_of_the_file():
    s = Session()
    for index, word in enumerate(["One", "Two", "Three"]):
        s.user(f"{word}?", parent=f"lost-{index}" if index else None)
        s.assistant(f"{word}.")
    assert context(s) == [f"{role}{mark}" for w in ("One", "Two", "Three") for role, mark in _turn(w)]
    assert rules(s) == [(3, "dangling-parent"), (5, "dangling-parent")]


def _turn(word):
    return [("user: ", f"{word}?"), ("assistant: ", f"{word}.")]


def test_a_parent_lost_between_lines_of_the_display_is_named_where_it_is_lost():
    s = Session()
    s.user("Go.")
    s.assistant("Done.")
    s.progress(parent="lost")
    s.system("turn_duration")
    s.user("More.")
    assert context(s) == ["user: Go.", "assistant: Done.", "user: More."]
    assert rules(s) == [(3, "dangling-parent")]


def test_a_lost_parent_right_after_a_compaction_does_not_bring_old_history_back():
    s = Session()
    s.user("A1")
    s.boundary()
    s.summary("In short.", parent="lost")
    s.user("A2")
    assert context(s) == ["user: In short. (summary)", "user: A2"]


def test_a_cycle_ends_and_is_found():
    s = Session()
    s.user("A", parent=s.id_of(4))
    s.assistant("B")
    s.user("C")
    s.assistant("D")
    assert context(s) == ["user: A", "assistant: B", "user: C", "assistant: D"]
    assert rules(s) == [(1, "parent-cycle")]


def test_what_stands_before_a_cycle_stays_in_the_context():
    s = Session()
    s.user("A")
    s.assistant("B")
    s.user("C", parent=s.id_of(4))
    s.assistant("D")
    s.user("E")
    assert context(s) == ["user: A", "assistant: B", "user: C", "assistant: D", "user: E"]
    assert rules(s) == [(3, "parent-cycle")]


def test_no_line_of_a_cycle_is_sent_twice():
    s = Session()
    s.user("A", parent=s.id_of(2))
    s.attachment("hook_additional_context", content=["abc"])
    assert context(s) == ["user: <attachment:hook_additional_context>", "user: A"]
    assert rules(s) == [(2, "parent-cycle")]


def test_a_cycle_of_display_lines_ends_and_is_found():
    s = Session()
    s.user("A")
    s.progress(parent=s.id_of(3))
    s.progress(parent=s.id_of(2))
    s.assistant("B")
    assert context(s) == ["user: A", "assistant: B"]
    assert rules(s) == [(4, "parent-cycle")]


def test_records_without_ids_stand_in_the_order_of_the_file():
    s = Session()
    s.line({"type": "user", "message": {"role": "user", "content": "Hello."}})
    s.line({"type": "assistant", "message": {"role": "assistant", "content": "Hello back."}})
    assert context(s) == ["user: Hello.", "assistant: Hello back."]


@pytest.mark.parametrize("parent", [None, DROP])
def test_a_file_in_which_no_line_names_a_parent_is_read_in_its_order(parent):
    s = Session()
    s.user("A", parent=parent)
    s.assistant("B", parent=parent)
    s.user("C", parent=parent)
    assert context(s) == ["user: A", "assistant: B", "user: C"]


def test_a_new_root_starts_a_new_context():
    s = Session()
    s.user("Plan it.")
    s.assistant("A plan.")
    s.user("Carry out this plan.", parent=None)
    s.assistant("Done.")
    assert context(s) == ["user: Carry out this plan.", "assistant: Done."]


# replays -----------------------------------------------------------------------------------------


def test_records_written_again_before_a_second_compaction_count_nothing():
    s = Session()
    s.user("Alpha.")
    s.assistant("To alpha.")
    s.boundary()
    s.summary("Alpha is done.")
    s.user("Beta.")
    s.assistant("To beta.")
    s.again(0, 1)
    s.boundary()
    s.summary("Alpha and beta are done.")
    s.user("Gamma.")
    assert context(s) == ["user: Alpha and beta are done. (summary)", "user: Gamma."]
    assert rules(s) == [(7, "replayed-records")]


def test_a_whole_history_written_again_counts_once():
    s = Session()
    s.user("Alpha.")
    s.assistant("To alpha.")
    s.again(0, 1)
    s.user("Beta.")
    assert context(s) == ["user: Alpha.", "assistant: To alpha.", "user: Beta."]


def test_a_record_written_again_below_a_summary_hangs_there():
    s = Session()
    s.user("A1")
    s.assistant("B1")
    kept = s.user("Keep me.")
    s.boundary()
    summary = s.summary("In short.")
    s.user("Keep me.", uuid=kept, parent=summary)
    s.user("A2", parent=kept)
    assert context(s) == ["user: In short. (summary)", "user: Keep me.", "user: A2"]


def test_of_a_record_written_twice_the_last_text_counts():
    s = Session()
    first = s.user("Draft.")
    s.assistant("Done.")
    s.user("Final.", uuid=first, parent=None)
    s.user("More.", parent=s.id_of(2))
    assert context(s) == ["user: Final.", "assistant: Done.", "user: More."]
