"""What a Claude Code session loses by damage: no more than what is damaged, and that is said."""

import pytest

from compactctl.formats.claude_code import FORMAT
from tests import contexts
from tests.builders.claude import Session, text, usage
from tests.formats import reading
from tests.formats.conversations import conversation, read
from tests.formats.reading import rules


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
