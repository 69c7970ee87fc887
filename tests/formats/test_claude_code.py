"""What else is read out of a Claude Code session: its figures, its usage, its damage; and how results are replaced."""

import json

import pytest

from compactctl import splicing
from compactctl.document import Place
from compactctl.formats.claude_code import FORMAT
from compactctl.formats.claude_code.lines import copies
from compactctl.formats.interface import Spilled
from compactctl.model import Compaction, Copy, OutsideResult, Reasoning, SideRun, Usage, context_bytes
from compactctl.settings import Settings
from compactctl.windows import choose
from tests import contexts
from tests.builders.claude import DROP, SESSION_ID, Session, call, image, result, text, thinking, usage
from tests.builders.images import encoded, png
from tests.formats import reading


def read(session):
    [transcript] = FORMAT.read(session.document())
    return transcript


def rules(transcript):
    return [(finding.line, finding.rule) for finding in transcript.findings]


def conversation():
    """A short session with everything that a plain one has."""
    s = Session()
    s.user("Go.")
    s.assistant("I look.", call("toolu_1"), usage=usage(6, 400, 9500, 60))
    s.results(result("toolu_1", "seen"), copy={"stdout": "seen"})
    s.assistant("Done.", usage=usage(6, 400, 10_000, 60))
    return s


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


# damage ------------------------------------------------------------------------------------------


def damaged(raw):
    document = reading.opened(raw)
    [transcript] = FORMAT.read(document)
    found = [(f.line, f.rule) for f in (*document.findings, *transcript.findings) if f.rule != "no-usage"]
    return contexts.lines(document, transcript), found


def test_half_a_surrogate_pair_is_read_as_a_replacement_character():
    s = conversation()
    s.user("Good \\ud83d\\ude00 bad \\ud83d end \\udc00 nul \\u0000.")
    s.raw_lines[-1] = s.raw_lines[-1].replace(b"\\\\u", b"\\u")
    lines, found = damaged(s.bytes())
    assert lines[-1] == "user: Good 😀 bad \ufffd end \ufffd nul \x00."
    assert found == [(5, "lone-surrogate")]


def test_line_separators_inside_strings_end_no_line():
    s = Session()
    s.user("a\u2028b\u2029c\x85d\x0b\x0c\x1c")
    s.assistant("Done.", usage=usage(10))
    lines, found = damaged(s.bytes())
    assert (lines[0], len(lines), found) == ("user: a\u2028b\u2029c\x85d\x0b\x0c\x1c", 2, [])


def test_a_byte_order_mark_and_windows_line_ends_lose_nothing():
    lines, found = damaged(b"\xef\xbb\xbf" + conversation().bytes(b"\r\n"))
    assert (len(lines), found) == (4, [(1, "byte-order-mark")])


def test_a_record_spread_over_lines_is_one_damaged_span_and_its_call_is_unanswered():
    s = conversation()
    s.raw_lines[2] = s.raw_lines[2].replace(b'"content":"seen"', b'"content":"first\nsecond\nseen"')
    lines, found = damaged(s.bytes())
    assert lines == ["user: Go.", "assistant: I look. +toolu_1", "assistant: Done."]
    assert found == [(3, "unreadable-line"), (2, "call-without-result"), (6, "dangling-parent")]


def test_a_torn_last_line_leaves_the_rest_whole():
    s = conversation()
    lines, found = damaged(s.bytes() + s.raw_lines[0][:40])
    assert (len(lines), found) == (4, [(5, "torn-tail")])


def test_deep_nesting_huge_integers_and_numbers_that_json_lacks_hide_no_neighbour():
    s = conversation()
    s.raw(b'{"type":"user","message":{"role":"user","content":' + b"[" * 50_000 + b"]" * 50_000 + b"}}")
    s.raw(b'{"type":"system","subtype":"metric","value":' + b"9" * 5000 + b"}")
    s.raw(b'{"type":"system","subtype":"metric","value":NaN,"value":-Infinity}')
    s.user("More.")
    lines, found = damaged(s.bytes())
    assert (lines[-1], len(lines)) == ("user: More.", 5)
    assert found == [(5, "unreadable-line"), (7, "non-json-number")]


def test_glued_records_are_both_read():
    s = conversation()
    s.raw_lines[2:] = [s.raw_lines[2] + s.raw_lines[3]]
    lines, found = damaged(s.bytes())
    assert (len(lines), found) == (4, [(3, "glued-records")])


def test_what_is_no_record_is_counted_by_kind():
    s = Session()
    for line in (b'["x"]', b"42", b"null", b'"text"', b"", b"{}", b'{"type":"new-kind"}', b'{"type":"new-kind"}'):
        s.raw(line)
    s.line({"type": "system", "message": "denied by policy"})
    s.line({"type": "user", "message": {"role": "user", "content": "A real message."}})
    s.line({"type": "assistant", "message": {"role": "assistant", "content": "A string."}})
    transcript = read(s)
    assert len(transcript.messages) == 2
    assert [(f.line, f.message) for f in transcript.findings if f.rule == "unknown-record"] == [
        (1, "4 not an object of a known shape"),
        (6, "one without a type"),
        (7, "2 of type new-kind"),
    ]


@pytest.mark.parametrize(
    "message, said",
    [
        ("A plain string.", ["user: A plain string."]),
        ({"role": "user", "id": 5, "model": [], "usage": "?", "content": "Kept."}, ["user: Kept."]),
        ({"role": "user", "content": {"odd": 1}}, ["user: <content>"]),
        ({"role": "user", "content": [5, {"type": "newer", "x": 1}, text("Kept.")]}, ["user: <block> <newer> Kept."]),
        ({"role": "user", "content": None}, []),
        ({"role": "user"}, []),
    ],
)
def test_a_message_of_another_shape_is_read_as_far_as_it_goes(message, said):
    s = Session()
    s.line({"type": "user", "uuid": "u", "parentUuid": None, "message": message})
    document = s.document()
    [transcript] = FORMAT.read(document)
    assert contexts.lines(document, transcript) == said


@pytest.mark.parametrize("field, value", [("message", 5), ("uuid", 5), ("isSidechain", "no"), ("parentUuid", [])])
def test_an_odd_envelope_is_a_finding_and_no_crash(field, value):
    s = conversation()
    s.line({"type": "user", "uuid": "u", "message": {"role": "user", "content": "Hi."}, field: value})
    assert (5, "unknown-record") in rules(read(s))


def test_a_session_with_nothing_to_send_says_so():
    s = Session()
    s.other("queue-operation", operation="enqueue")
    assert rules(read(s)) == [(None, "empty-session")]


def test_a_document_without_any_line_of_this_format_is_no_session():
    assert FORMAT.read(reading.opened(b'{"role":"user","content":"Hi."}\n')) == []


# replacing results -------------------------------------------------------------------------------


def spilled(session):
    """Return the lines after every result gave way to `PREVIEW`."""
    document = session.document()
    [transcript] = FORMAT.read(document)
    items = [Spilled(m.result, "PREVIEW", "moved") for m in transcript.messages if m.result is not None]
    edits = FORMAT.spill_edits(document, items)
    return b"".join(splicing.edited(document, splicing.concrete(document, edits))).splitlines()


def test_a_preview_takes_the_place_of_a_result_and_its_copy_is_slimmed():
    s = Session()
    s.user("Go.")
    s.assistant(thinking("Hm."), call("toolu_1"))
    copy = {"stdout": "x" * 1000, "stderr": "", "interrupted": False, "lines": ["y" * 300] * 20}
    s.results(result("toolu_1", "x" * 1000, is_error=True), copy=copy)
    s.assistant("Done.")
    after = spilled(s)
    line = json.loads(after[2])
    assert line["message"]["content"] == [result("toolu_1", "PREVIEW", is_error=True)]
    assert line["toolUseResult"] == {"stdout": "moved", "stderr": "", "interrupted": False, "lines": ["moved"] * 20}
    assert [after[i] for i in (0, 1, 3)] == [s.raw_lines[i] for i in (0, 1, 3)]


def test_images_beside_a_spilled_text_stay_as_they_are():
    s = Session()
    picture = image(encoded(png(10, 10)))
    s.user("Go.")
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", [text("a" * 50), picture, text("b" * 50)]))
    line = json.loads(spilled(s)[2])
    assert line["message"]["content"] == [result("toolu_1", [text("PREVIEW"), picture])]


def test_of_a_record_written_twice_the_one_that_the_client_reads_is_edited():
    s = conversation()
    s.again(2)
    after = spilled(s)
    assert after[2] == s.raw_lines[2]
    assert json.loads(after[4])["message"]["content"] == [result("toolu_1", "PREVIEW")]


def test_no_recorded_usage_is_rewritten():
    s = conversation()
    assert FORMAT.usage_edits(s.document(), read(s), 100) == []
