import pytest
from hypothesis import given, settings

from compactctl.document import Place
from compactctl.plan import Spill
from compactctl.story import Answered, Called, Said, read_story, request_test, said_by_person
from tests.builders import chat, claude, codex
from tests.builders.generated import WRITERS, stories, write
from tests.laws import read


def story_of(data, previews=None):
    document, _, [transcript] = read(data)
    return read_story(document, transcript, previews or {}), transcript


def test_a_chat_comes_as_text_with_calls_and_results():
    rows = [
        chat.system("You help."),
        chat.user("Count the rows."),
        chat.assistant("Counting.", [("a", "run", '{"command": "wc -l"}')]),
        chat.tool("a", [{"type": "text", "text": "12"}, {"type": "text", "text": "rows"}]),
    ]
    story, _ = story_of(chat.lines(*rows))
    assert story == (
        Said(0, "system", "You help.", line=1),
        Said(1, "user", "Count the rows.", line=2),
        Said(2, "assistant", "Counting.", (Called("a", "run", '{"command": "wc -l"}'),), line=3),
        Said(3, "tool", result=Answered("a", "run", "12\nrows"), line=4),
    )


def test_reasoning_is_left_out_and_media_become_a_note():
    session = claude.Session()
    session.user([claude.text("Look."), claude.image("iVBORw0KGgo=")])
    session.assistant(claude.thinking("Hm."), claude.text("A chart."), claude.call("a", path="x.py", depth=2))
    session.results(claude.result("a", [claude.text("seen"), claude.image("iVBORw0KGgo=")], is_error=True))
    story, _ = story_of(session.bytes())
    assert [said.text for said in story] == ["Look.\n[media left out]", "A chart.", "[media left out]"]
    assert story[1].calls[0].arguments == '{"path":"x.py","depth":2}'
    assert story[2].result == Answered("a", "Bash", "seen", is_error=True)


def test_a_result_that_a_plan_spills_keeps_its_text_and_says_where_it_goes():
    data = chat.lines(chat.user(), chat.assistant("", [("a", "run", "{}")]), chat.tool("a", "long output"))
    _, transcript = story_of(data)
    part = transcript.messages[2].result
    preview = "[content offloaded] original size: 11 bytes\n[saved to] /w/s.compacted/a.txt\n[head preview]\nlong\n"
    spill = Spill(part, "#1", 3, "single", 0, "", "a.txt", preview)
    story, _ = story_of(data, {part.place: spill})
    assert story[2].result == Answered("a", "run", "long output", spilled_to="/w/s.compacted/a.txt")


def test_an_earlier_spill_is_known_by_its_preview():
    preview = "[content offloaded] original size: 9 bytes\n[saved to] /w/a b.txt\n[head preview]\nlong\n"
    story, _ = story_of(chat.lines(chat.user(), chat.assistant("", [("a", "run", "{}")]), chat.tool("a", preview)))
    assert story[2].result.spilled_to == "/w/a b.txt"
    assert story[2].result.text == preview


@pytest.mark.parametrize(
    "text, own",
    [
        ("Count the rows.", "Count the rows."),
        ("<system-reminder>Tools changed.</system-reminder>", ""),
        ("<system-reminder>x</system-reminder>\nCount.", "Count."),
        ("<environment_context>\n<cwd>/w</cwd>\n</environment_context>", ""),
        ("<command-name>/deploy</command-name><command-args>to the test host</command-args>", "to the test host"),
        ("[Request interrupted by user for tool use]", ""),
        ("[media left out]", ""),
        ("a < b and <b>bold</b>", "a < b and <b>bold</b>"),
    ],
)
def test_what_a_person_wrote_is_told_from_what_clients_put_in(text, own):
    assert said_by_person(text) == own
    assert Said(0, "user", text).is_request == bool(own)


def test_a_request_is_a_persons_own_words():
    rows = [
        codex.meta(),
        codex.turn(),
        codex.said(codex.user("<environment_context>\n<cwd>/w</cwd>\n</environment_context>")),
        codex.said(codex.user("Count the rows.")),
        codex.said(codex.assistant("Twelve.")),
    ]
    document, _, [transcript] = read(codex.jsonl(*rows))
    assert list(map(request_test(document), transcript.messages)) == [False, True, False]


def test_neither_a_summary_nor_a_result_is_a_request():
    assert not Said(0, "user", "Count.", is_summary=True).is_request
    assert not Said(0, "user", "Count.", result=Answered("a", "run", "x")).is_request


@pytest.mark.parametrize("name", list(WRITERS))
@settings(max_examples=40, deadline=None, derandomize=True)
@given(story=stories)
def test_a_story_has_every_message_call_and_result(name, story):
    told, transcript = story_of(write(story, name))
    assert [said.index for said in told] == list(range(len(transcript.messages)))
    for said, message in zip(told, transcript.messages, strict=True):
        assert (said.role, said.line, said.is_summary) == (message.role, message.line, message.is_summary)
        assert [call.call_id for call in said.calls] == [call.call_id for call in message.calls()]
        assert (said.result is None) == (message.result is None)
        if message.result is not None:
            assert len(said.result.text.encode("utf-8", "surrogatepass")) == message.result.size_bytes


def test_places_are_not_part_of_a_story():
    assert not any(isinstance(field, Place) for field in Said.__struct_fields__)
