"""What else is read out of a Claude Code session: what it says it is, its figures, its usage, its calls."""

import json

import pytest

from compactctl.document import Place
from compactctl.formats.claude_code import FORMAT
from compactctl.formats.claude_code.lines import copies
from compactctl.model import Compaction, Copy, OutsideResult, Reasoning, SideRun, Usage, context_bytes
from compactctl.settings import Settings
from compactctl.windows import choose
from tests import contexts
from tests.builders.claude import DROP, SESSION_ID, Session, call, image, result, text, thinking, usage
from tests.formats.conversations import conversation, read
from tests.formats.reading import rules

# recognising -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(4))
def test_the_lines_of_a_session_are_claimed(number):
    assert FORMAT.claims(json.loads(conversation().raw_lines[number]))


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "message": {"role": "user", "content": "Hi."}},
        {"type": "assistant", "message": {"role": "assistant", "content": [text("Hi.")]}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "u", "parentUuid": None},
        {"type": "attachment", "uuid": "u", "parentUuid": "p", "attachment": {"type": "file"}},
        {"type": "progress", "uuid": "u", "parentUuid": "p", "sessionId": "s"},
        {"type": "summary", "summary": "About it.", "leafUuid": "u"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s"},
        {"type": "last-prompt", "lastPrompt": "Hi.", "sessionId": "s"},
    ],
)
def test_records_of_claude_code_are_claimed(record):
    assert FORMAT.claims(record)


@pytest.mark.parametrize(
    "record",
    [
        # stream-json
        {"type": "system", "subtype": "init", "session_id": "s", "uuid": "u", "tools": []},
        {"type": "assistant", "message": {"role": "assistant", "content": []}, "session_id": "s", "uuid": "u"},
        {"type": "user", "message": {"role": "user", "content": []}, "parent_tool_use_id": None, "session_id": "s"},
        {"type": "result", "subtype": "success", "session_id": "s"},
        # Qwen Code
        {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "parts": []}},
        {"type": "system", "uuid": "u", "parentUuid": None, "sessionId": "s", "systemPayload": {}},
        # pi, Codex, Gemini, Copilot, chat, Cursor
        {"type": "session", "id": "s", "version": 3, "cwd": "/a"},
        {"type": "message", "id": "m", "parentId": None, "message": {"role": "user", "content": "Hi."}},
        {"type": "response_item", "payload": {"type": "message", "role": "user"}},
        {"type": "user", "id": "m", "timestamp": "t", "content": [{"text": "Hi."}]},
        {"type": "user.message", "data": {"content": "Hi."}, "id": "m", "parentId": None},
        {"role": "user", "content": "Hi."},
        {"role": "user", "message": {"content": [text("Hi.")]}},
        # not certain
        {"type": "system", "message": "denied"},
        {"type": "user", "message": "Hi."},
        {},
    ],
)
def test_other_records_are_not_claimed(record):
    assert not FORMAT.claims(record)


# who, where, which model -------------------------------------------------------------------------


def test_a_session_says_what_it_is():
    transcript = read(conversation())
    said = (transcript.session_id, transcript.agent, transcript.model, transcript.cwd, transcript.parent_session_id)
    assert said == (SESSION_ID, "Claude Code 2.1.101", "claude-sonnet-4-5", "/home/dev/project", None)


def test_the_model_is_the_newest_that_really_answered():
    s = Session()
    s.user("Go.")
    s.assistant("One.", model="claude-opus-4-5")
    s.assistant("Two.", model="<synthetic>")
    assert read(s).model == "claude-opus-4-5"


@pytest.mark.parametrize("model, window", [("claude-opus-4-6", 200_000), ("claude-opus-4-6[1m]", 1_000_000)])
def test_the_window_that_the_client_would_assume(model, window):
    s = Session()
    s.user("Go.")
    s.assistant("Done.", model=model)
    assert choose(read(s), Settings(), None, None).tokens == window


def test_the_peak_is_the_largest_context_on_record_compactions_included():
    s = conversation()
    assert read(s).peak_tokens == 10_406
    s.boundary(990_000)
    s.summary()
    assert read(s).peak_tokens == 990_000


def test_compactions_are_listed_with_what_they_recorded():
    s = conversation()
    s.boundary(168_000, "auto")
    s.summary()
    s.boundary(0, "manual")
    s.summary()
    assert read(s).compactions == (Compaction(5, 168_000, "auto"), Compaction(7, None, "manual"))


# usage -------------------------------------------------------------------------------------------


def streamed():
    """An answer in three lines whose usage grows, and a second answer."""
    s = Session()
    s.user("Explain.")
    s.assistant(thinking("Plan."), id="msg_a", usage=usage(10, 11_862, 15_555, 9))
    s.assistant("Two layers.", id="msg_a", usage=usage(10, 11_862, 15_555, 9))
    s.assistant(call("toolu_1"), id="msg_a", usage=usage(10, 11_862, 15_555, 159), requestId="req_1")
    s.results(result("toolu_1"))
    s.assistant("Two entries.", id="msg_b", usage=usage(3, 210, 27_417, 12))
    return s


def test_an_answer_in_several_lines_is_one_request_with_the_output_of_its_last_line():
    assert read(streamed()).requests == (
        Usage(4, 27_427, 159, 15_555, 11_862, "claude-sonnet-4-5", "req_1"),
        Usage(6, 27_630, 12, 27_417, 210, "claude-sonnet-4-5", "msg_b"),
    )


def test_the_usage_of_an_answer_stands_on_its_message():
    found = [
        message.usage and (message.usage.line, message.usage.total_tokens) for message in read(streamed()).messages
    ]
    assert found == [None, (4, 27_427 + 159), None, (6, 27_630 + 12)]


def test_a_smaller_output_on_a_later_line_does_not_count():
    s = Session()
    s.user("Go.")
    s.assistant("One.", id="msg_a", usage=usage(10, out=50))
    s.assistant("Two.", id="msg_a", usage=usage(10, out=1))
    assert [request.output_tokens for request in read(s).requests] == [50]


def test_requests_are_counted_on_every_branch_and_once_for_what_is_written_again():
    s = Session()
    s.user("Go.")
    fork = s.assistant("Done.", usage=usage(10))
    s.user("Old.", parent=fork)
    s.assistant("To the old.", usage=usage(20))
    s.user("New.", parent=fork)
    s.again(1)
    assert [request.input_tokens for request in read(s).requests] == [10, 20]


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "<synthetic>", "usage": usage(0)},
        {"model": "<synthetic>", "usage": usage(0), "isApiErrorMessage": True},
        {"model": "<synthetic>", "usage": usage(5)},
        {"usage": usage(0)},
        {"usage": DROP},
        {"usage": None},
        {"usage": "none"},
    ],
)
def test_an_answer_that_no_provider_counted_is_no_request_and_no_anchor(fields):
    s = Session()
    s.user("Go.")
    s.assistant("Working.", usage=usage(12, 827, 81_000, 400))
    s.user("Next.")
    s.assistant("A note.", **fields)
    transcript = read(s)
    assert [request.input_tokens for request in transcript.requests] == [81_839]
    assert [m.usage.total_tokens for m in transcript.messages if m.usage] == [82_239]


@pytest.mark.parametrize("flag", ["isApiErrorMessage", "isAbortedMidStream"])
def test_the_usage_of_a_failed_answer_is_no_anchor(flag):
    s = Session()
    s.user("Go.")
    s.assistant("Wor", usage=usage(10), **{flag: True})
    transcript = read(s)
    assert (len(transcript.requests), [m.usage for m in transcript.messages]) == (1, [None, None])


@pytest.mark.parametrize(
    "said, output_tokens, is_known",
    [
        ("word " * 100, 3, False),
        ("word " * 100, 90, True),
        ("word " * 7, 3, True),
        ("word " * 100, 0, True),  # nothing was recorded, not even that it began
        ("word " * 100, 11, True),
    ],
)
def test_a_few_output_tokens_for_a_long_answer_stood_there_when_it_began(said, output_tokens, is_known):
    s = Session()
    s.user("Go.")
    s.assistant(said, usage=usage(1000, out=output_tokens))
    answer = read(s).messages[-1].usage
    assert (answer.output_tokens, answer.is_output_known) == (output_tokens, is_known)


def test_a_session_without_any_usage_says_so():
    s = Session()
    s.user("Go.")
    s.assistant("Done.")
    assert rules(read(s)) == [(None, "no-usage")]


def test_no_usage_from_before_a_compaction_is_an_anchor():
    s = Session()
    s.user("A1")
    kept = s.assistant("B1", usage=usage(100))
    s.boundary(preservedMessages={"anchorUuid": s.id_of(4), "uuids": [kept]})
    s.summary()
    s.user("A2")
    s.assistant("B2", usage=usage(50))
    transcript = read(s)
    assert [m.line for m in transcript.messages[: transcript.anchor_floor]] == [4, 2]
    assert [m.line for m in transcript.messages[transcript.anchor_floor :]] == [5, 6]


def test_no_usage_from_before_a_microcompaction_is_an_anchor():
    s = conversation()
    s.system("microcompact_boundary", microcompactMetadata={"compactedToolIds": []})
    s.user("More.")
    assert read(s).anchor_floor == 4


# subagents ---------------------------------------------------------------------------------------


def test_a_subagents_run_inside_a_session_is_listed_apart():
    s = Session()
    s.user("Use a helper.")
    asked = s.assistant(call("toolu_a", "Task"), usage=usage(6, 400, 9500, 60))
    side = {"isSidechain": True, "agentId": "a1b2"}
    s.user("Find them.", parent=None, **side)
    s.assistant(call("toolu_s"), usage=usage(6, 400, 9500, 60), **side)
    s.results(result("toolu_s", "match " * 900), **side)
    s.assistant("Seven.", id="msg_s", usage=usage(5, 9000, 60_000, 300), **side)
    s.results(result("toolu_a", "Seven."), parent=asked)
    s.assistant("There are seven.", usage=usage(5, 300, 11_000, 30))
    transcript = read(s)
    usage_of_side = Usage(6, 69_005, 300, 60_000, 9000, "claude-sonnet-4-5", "msg_s")
    assert transcript.side_runs == (SideRun("a1b2", 4, usage_of_side),)
    assert [request.total_tokens for request in transcript.requests] == [9966, 11_335]
    assert (len(transcript.messages), transcript.peak_tokens, transcript.findings) == (4, 11_305, ())
    assert transcript.outside == (OutsideResult(5, "Bash", 5400, "a subagent's"),)


def test_sidechains_without_an_agents_name_are_told_apart_by_what_hangs_together():
    s = conversation()
    for word in ("one", "two"):
        s.user(word, parent=None, isSidechain=True)
        s.assistant(word, isSidechain=True)
    assert read(s).side_runs == (SideRun("sidechain 1", 2), SideRun("sidechain 2", 2))


def test_a_subagents_file_is_a_session_of_its_own():
    s = Session()
    side = {"isSidechain": True, "agentId": "a1b2"}
    s.user("Find them.", **side)
    s.assistant("Seven.", usage=usage(10, out=3), **side)
    document = s.document()
    [transcript] = FORMAT.read(document)
    assert contexts.lines(document, transcript) == ["user: Find them.", "assistant: Seven."]
    assert (transcript.session_id, transcript.parent_session_id) == ("a1b2", SESSION_ID)
    assert [request.total_tokens for request in transcript.requests] == [13]
    assert transcript.side_runs == ()


# bytes and results -------------------------------------------------------------------------------


def test_the_bytes_of_the_whole_file_are_told_by_kind():
    s = Session()
    s.user("Zwölf.")
    s.assistant(thinking("Hm."), "Ja.", call("toolu_1", x=1))
    s.results(result("toolu_1", [text("abc"), image("QUJD")]), copy={"stdout": "abc"})
    s.progress()
    s.other("api-request-blob", text="abc")
    transcript = read(s)
    progress, blob = len(s.raw_lines[3]), len(s.raw_lines[4])
    known = {
        "text": len("Zwölf.".encode()) + 3,
        "calls": len('{"x":1}'),
        "results": 3,
        "media": 4,
        "reasoning": 3,
        "copies": len('{"stdout":"abc"}') + blob,
        "progress": progress,
    }
    assert transcript.bytes_by_kind == {**known, "other": len(s.bytes()) - sum(known.values())}
    assert context_bytes(transcript.messages) == {**known, "copies": 0, "progress": 0, "other": 0}


@pytest.mark.parametrize(
    "thought, sizes",
    [
        (thinking("Hm.", "abcd"), (3, 0)),
        (thinking("", "abcd"), (0, 4)),
        ({"type": "redacted_thinking", "data": "abcdef"}, (0, 6)),
    ],
)
def test_thinking_counts_as_its_text_or_where_that_is_hidden_by_what_is_sealed(thought, sizes):
    s = Session()
    s.user("Go.")
    s.assistant(thought, "Done.")
    part = read(s).messages[1].parts[0]
    assert isinstance(part, Reasoning)
    assert (part.size_bytes, part.sealed_bytes) == sizes


def test_every_result_outside_the_context_is_told_with_why_it_is():
    s = conversation()
    s.boundary()
    s.summary()
    asked = s.assistant(call("toolu_2", "Read"))
    s.results(result("toolu_2", "left"), parent=asked)
    s.user("Elsewhere.", parent=asked)
    s.assistant(call("toolu_2", "Read"), id="msg_again")
    s.results(result("toolu_2", "right"))
    s.again(len(s.raw_lines) - 1)
    assert read(s).outside == (
        OutsideResult(3, "Bash", 4, "before the compaction at line 5"),
        OutsideResult(8, "Read", 4, "on a branch that was left"),
        OutsideResult(11, "Read", 5, "written again on line 12"),
    )


def test_a_preview_of_the_clients_own_is_known():
    s = Session()
    s.user("Go.")
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", "<persisted-output>\nOutput too large (61KB).\n</persisted-output>"))
    assert [m.result.is_preview for m in read(s).messages if m.result] == [True]


def test_an_error_result_keeps_its_flag():
    s = Session()
    s.user("Go.")
    s.assistant(call("toolu_1"), call("toolu_2"))
    s.results(result("toolu_1", "no such file", is_error=True), result("toolu_2"))
    assert [m.result.is_error for m in read(s).messages if m.result] == [True, False]


def test_a_copy_belongs_to_the_only_result_of_its_line():
    s = conversation()
    s.assistant(call("toolu_2"), call("toolu_3"))
    s.results(result("toolu_2"), result("toolu_3"), copy={"stdout": "ok"})
    document = s.document()
    [transcript] = FORMAT.read(document)
    found = [copies(document, m.result.place.record) for m in transcript.messages if m.result]
    assert found == [(Copy(Place(2, ("toolUseResult",)), len('{"stdout":"seen"}')),), (), ()]


@pytest.mark.parametrize("said, copied", [("\ud83d", ""), ("", "\ud83d"), ("", float("nan")), ("\ud83d", float("nan"))])
def test_a_copy_is_found_beside_what_decoders_refuse(said, copied):
    s = Session()
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", f"seen {said}"), copy={"stdout": copied})
    document = s.document()
    FORMAT.read(document)
    assert [copy.place for copy in copies(document, 1)] == [Place(1, ("toolUseResult",))]


# calls and results -------------------------------------------------------------------------------


def test_a_call_that_was_never_answered_is_found_wherever_it_stands():
    s = Session()
    s.user("Check it.")
    s.assistant(call("toolu_1"), usage=usage(10))
    s.user("Still there?")
    s.assistant("Yes.", usage=usage(20))
    assert rules(read(s)) == [(2, "call-without-result")]


def test_a_call_at_the_very_end_is_unfinished_whatever_reminder_follows_it():
    s = Session()
    s.user("Check it.")
    s.assistant(call("toolu_1"), usage=usage(10))
    s.attachment("hook_additional_context", content=["abc"])
    assert rules(read(s)) == [(2, "unfinished-call")]
