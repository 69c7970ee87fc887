"""The exact messages that a Claude Code session stands for: answers in several lines, compactions, and what is sent.

What is expected here was seen in requests of Claude Code 2.1.332 resuming such sessions, save where a test says so.
"""

import pytest

from tests.builders.claude import DROP, Session, call, image, result, text, thinking
from tests.builders.images import encoded, png
from tests.formats.conversations import context, read, rules

# answers in several lines, parallel calls --------------------------------------------------------


def test_the_lines_of_one_answer_are_one_message():
    s = Session()
    s.user("Go.")
    s.assistant(thinking("Hm."), id="msg_a")
    s.assistant("I look.", id="msg_a")
    s.assistant(call("toolu_1"), id="msg_a")
    s.results(result("toolu_1", "seen"))
    messages = read(s).messages
    assert context(s)[1:] == ["assistant: ~Hm. I look. +toolu_1", "user: toolu_1=seen"]
    assert (messages[1].key, messages[1].records, messages[1].line) == ("msg_a", (1, 2, 3), 2)


def test_an_answer_stays_one_message_when_results_stand_between_its_lines():
    s = Session()
    s.user("Go.")
    s.assistant(call("toolu_1"), id="msg_a")
    s.results(result("toolu_1", "one"))
    s.assistant(call("toolu_2"), id="msg_a")
    s.results(result("toolu_2", "two"))
    assert context(s)[1:] == [
        "assistant: +toolu_1 +toolu_2",
        "user: toolu_1=one",
        "user: toolu_2=two",
    ]
    assert rules(s) == []


def parallel(goes_on_from, written):
    """Three calls of one answer, each result on its own call's line, the next answer on one of them."""
    s = Session()
    s.user("Go.")
    asked = {n: s.assistant(call(f"toolu_{n}"), id="msg_a") for n in (1, 2, 3)}
    answered = {n: s.results(result(f"toolu_{n}", f"r{n}"), parent=asked[n]) for n in written}
    s.assistant("All done.", parent=answered[goes_on_from])
    return s


@pytest.mark.parametrize("goes_on_from", [1, 2, 3])
@pytest.mark.parametrize("written", [[1, 2, 3], [3, 1, 2]])
def test_parallel_results_on_other_branches_are_put_back_in_the_order_of_the_file(goes_on_from, written):
    s = parallel(goes_on_from, written)
    assert context(s)[1:] == [
        "assistant: +toolu_1 +toolu_2 +toolu_3",
        *(f"user: toolu_{n}=r{n}" for n in written),
        "assistant: All done.",
    ]
    assert rules(s) == []


def test_a_result_that_hangs_on_a_line_of_the_display_is_put_back():
    s = Session()
    s.user("Go.")
    first = s.assistant(call("toolu_1"), id="msg_a")
    second = s.assistant(call("toolu_2"), id="msg_a")
    s.progress(parent=first)
    s.results(result("toolu_1", "one"))
    s.results(result("toolu_2", "two"), parent=second)
    s.assistant("Done.")
    assert context(s)[2:] == ["user: toolu_1=one", "user: toolu_2=two", "assistant: Done."]


def test_a_result_that_comes_late_still_follows_its_call():
    s = Session()
    s.user("Go.")
    first = s.assistant(call("toolu_1"), id="msg_a")
    second = s.assistant(call("toolu_2"), id="msg_a")
    s.results(result("toolu_1", "one"), parent=first)
    done = s.assistant("Done.")
    s.results(result("toolu_2", "two"), parent=second)
    s.user("Next.", parent=done)
    assert context(s)[2:] == [
        "user: toolu_1=one",
        "user: toolu_2=two",
        "assistant: Done.",
        "user: Next.",
    ]


def test_an_answered_call_takes_no_second_result_from_a_branch_that_was_left():
    s = Session()
    s.user("Go.")
    asked = s.assistant(call("toolu_1"))
    s.results(result("toolu_1", "first try"), parent=asked)
    s.results(result("toolu_1", "second try"), parent=asked)
    s.assistant("Done.")
    assert context(s)[2:] == ["user: toolu_1=second try", "assistant: Done."]
    assert rules(s) == []


def test_a_named_leaf_among_parallel_results_is_on_the_path():
    s = Session()
    s.user("Go.")
    first = s.assistant(call("toolu_1"), id="msg_a")
    second = s.assistant(call("toolu_2"), id="msg_a")
    dead_end = s.results(result("toolu_1", "one"), parent=first)
    s.results(result("toolu_2", "two"), parent=second)
    s.other("last-prompt", lastPrompt="…", leafUuid=dead_end)
    s.assistant("Done.")
    assert context(s)[-1] == "assistant: Done."


# compaction --------------------------------------------------------------------------------------


def before_compaction():
    """A session up to a compaction, and its last four lines of talk."""
    s = Session()
    s.user("A1")
    s.assistant("B1")
    last = [
        s.user("A2"),
        s.assistant(call("toolu_1")),
        s.results(result("toolu_1", "r1")),
        s.assistant("B2"),
    ]
    return s, last


def compacted(**metadata):
    """The context after a compaction with this metadata and one more turn."""
    s, _ = before_compaction()
    s.boundary(**metadata)
    s.summary("In short.")
    s.user("A3")
    s.assistant("B3")
    return context(s)


_, KEPT = before_compaction()
BOUNDARY = Session().id_of(7)
SUMMARY = Session().id_of(8)
KEPT_SHOWN = ["user: A2", "assistant: +toolu_1", "user: toolu_1=r1", "assistant: B2"]
SUMMARY_SHOWN = ["user: In short. (summary)"]
REST = ["user: A3", "assistant: B3"]


def segment(head, anchor, tail):
    return {"preservedSegment": {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}}


def listed(anchor, *uuids):
    return {"preservedMessages": {"anchorUuid": anchor, "uuids": list(uuids), "allUuids": list(uuids)}}


@pytest.mark.parametrize(
    "metadata, expected",
    [
        ({}, [*SUMMARY_SHOWN, *REST]),
        (segment(KEPT[0], SUMMARY, KEPT[-1]), [*SUMMARY_SHOWN, *KEPT_SHOWN, *REST]),
        (listed(SUMMARY, *KEPT[1:]), [*SUMMARY_SHOWN, *KEPT_SHOWN[1:], *REST]),
        # the list decides where there are both
        (
            {**segment(KEPT[0], SUMMARY, KEPT[-1]), **listed(SUMMARY, KEPT[0], KEPT[3])},
            [*SUMMARY_SHOWN, KEPT_SHOWN[0], KEPT_SHOWN[3], *REST],
        ),
        # named twice, sent once
        (listed(SUMMARY, KEPT[3], KEPT[3]), [*SUMMARY_SHOWN, KEPT_SHOWN[3], *REST]),
        # kept in front of the summary
        (segment(KEPT[0], BOUNDARY, KEPT[-1]), [*KEPT_SHOWN, *SUMMARY_SHOWN, *REST]),
        # one of them is gone: nothing is kept
        (segment("gone", SUMMARY, KEPT[-1]), [*SUMMARY_SHOWN, *REST]),
        (listed(SUMMARY, "gone", KEPT[-1]), [*SUMMARY_SHOWN, *REST]),
    ],
)
def test_after_a_compaction_the_summary_what_it_kept_and_what_came_after_count(metadata, expected):
    assert compacted(**metadata) == expected


def test_only_the_newest_compaction_counts():
    s, last = before_compaction()
    s.boundary(**listed(SUMMARY, last[3]))
    s.summary("First.")
    more = [s.user("A3"), s.assistant("B3")]
    s.boundary(**listed(s.id_of(12), last[3], *more))
    s.summary("Second.")
    s.user("A4")
    assert context(s) == ["user: Second. (summary)", "assistant: B2", "user: A3", "assistant: B3", "user: A4"]


def test_a_boundary_counts_also_where_it_names_a_parent():
    s = Session()
    s.user("A1")
    s.assistant("B1")
    s.system("compact_boundary", compactMetadata={"trigger": "manual", "preTokens": 1000})
    s.summary("In short.")
    assert context(s) == ["user: In short. (summary)"]


def test_a_rewind_to_before_a_compaction_brings_the_old_messages_back():
    s = Session()
    s.user("A1")
    fork = s.assistant("B1")
    s.boundary()
    s.summary("In short.")
    s.user("Back again.", parent=fork)
    assert context(s) == ["user: A1", "assistant: B1", "user: Back again."]


def test_a_late_result_whose_call_was_compacted_away_is_an_orphan():
    s = Session()
    s.user("Start the job.")
    s.assistant(call("toolu_1"))
    s.boundary()
    s.summary("A job runs.")
    s.results(result("toolu_1", "built"))
    s.assistant("It is built.")
    assert context(s) == ["user: A job runs. (summary)", "user: toolu_1=built", "assistant: It is built."]
    assert rules(s) == [(5, "result-without-call")]


@pytest.mark.parametrize("content", ["", "  \n", DROP])
def test_a_compaction_without_a_summary_is_found(content):
    s = Session()
    s.user("A1")
    s.assistant("B1")
    s.boundary()
    if content is not DROP:
        s.summary(content)
    s.user("A2")
    assert (3, "blank-summary") in rules(s)


# microcompaction ---------------------------------------------------------------------------------


def microcompacted():
    s = Session()
    s.user("Go.")
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", "long " * 1000), copy={"stdout": "long"})
    s.assistant(call("toolu_2"))
    s.results(result("toolu_2", "short"))
    s.system("microcompact_boundary", microcompactMetadata={"compactedToolIds": ["toolu_1"], "preTokens": 50_000})
    s.user("More.")
    return s


def test_a_microcompacted_result_counts_as_the_note_that_stood_for_it():
    """As the requests of that run had it; 2.1.332 no longer heeds the record."""
    s = microcompacted()
    first, second = (m.result for m in read(s).messages if m.result is not None)
    assert (first.size_bytes, first.is_preview) == (33, True)
    assert (second.size_bytes, second.is_preview) == (5, False)
    assert context(s)[-1] == "user: More."


def test_a_result_after_a_microcompaction_is_not_touched_by_it():
    s = microcompacted()
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", "again"))
    assert context(s)[-1] == "user: toolu_1=again"


def test_an_attachment_that_a_microcompaction_cleared_is_not_sent():
    s = Session()
    s.user("Go.")
    gone = s.attachment("file", content="text", filename="a.py")
    s.assistant("Done.")
    s.system("microcompact_boundary", microcompactMetadata={"clearedAttachmentUUIDs": [gone]})
    s.user("More.")
    assert context(s) == ["user: Go.", "assistant: Done.", "user: More."]


# what is sent ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags, is_sent",
    [
        ({"isMeta": True}, True),
        ({"isVisibleInTranscriptOnly": True}, True),
        ({"isSidechain": True}, False),
    ],
)
def test_which_user_lines_are_sent(flags, is_sent):
    s = Session()
    s.user("Go.")
    s.assistant("Done.")
    s.user("This one.", **flags)
    s.user("More.", parent=s.id_of(2) if "isSidechain" in flags else s.last)
    assert ("user: This one." in context(s)) == is_sent


@pytest.mark.parametrize(
    "model, is_error, is_sent",
    [("<synthetic>", True, False), ("<synthetic>", False, True), ("claude-sonnet-4-5", True, True)],
)
def test_a_note_about_an_error_that_the_client_made_itself_is_not_sent(model, is_error, is_sent):
    s = Session()
    s.user("Go.")
    s.assistant("API Error: overloaded", model=model, isApiErrorMessage=is_error)
    s.user("More.")
    assert ("assistant: API Error: overloaded" in context(s)) == is_sent


def test_an_answer_of_thinking_alone_is_not_sent():
    s = Session()
    s.user("Go.")
    s.assistant(thinking("Hm."))
    s.user("More.")
    assert context(s) == ["user: Go.", "user: More."]


def test_empty_messages_are_not_sent():
    s = Session()
    s.user("Go.")
    s.assistant("")
    s.user("")
    s.user([])
    s.assistant("Done.")
    assert context(s) == ["user: Go.", "assistant: Done."]


def test_local_command_lines_of_the_system_are_no_conversation_and_split_no_answer():
    """2.1.332 sends them as user text; anthropics/claude-code#92509 is what that leads to."""
    s = Session()
    s.user("Ask the advisor.")
    s.assistant({"type": "server_tool_use", "id": "srvtoolu_1", "name": "advisor", "input": {}}, id="msg_a")
    s.system("local_command", content="<command-name>/usage</command-name>")
    s.system("local_command", content="<local-command-stdout>closed</local-command-stdout>")
    answer = {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": [text("TTL.")]}
    s.assistant(answer, "TTL then.", id="msg_a")
    s.user("Fine.")
    assert context(s) == [
        "user: Ask the advisor.",
        "assistant: <server_tool_use> <advisor_tool_result> TTL then.",
        "user: Fine.",
    ]
    assert rules(s) == []


def test_every_result_is_a_message_of_its_own_and_text_beside_it_another():
    s = Session()
    s.user("Go.")
    s.assistant(call("toolu_1"), call("toolu_2"))
    s.results(text("First."), result("toolu_1", "one"), result("toolu_2", "two"), text("Last."))
    assert context(s)[2:] == [
        "user: First.",
        "user: toolu_1=one",
        "user: toolu_2=two",
        "user: Last.",
    ]


def test_an_image_in_a_result_is_media_and_counted_once():
    s = Session()
    data = encoded(png(1280, 800))
    s.user("Look.")
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", [text("a"), image(data), text("b")]), copy={"file": {"base64": data}})
    found = read(s).messages[2].result
    assert found is not None
    assert (found.size_bytes, len(found.media), found.media[0].size_bytes) == (3, 1, len(data))
    assert (found.media[0].width, found.media[0].height) == (1280, 800)
