"""What of a message costs tokens in a calibrated estimate."""

import pytest

from compactctl.document import Place
from compactctl.formats.claude_code import FORMAT
from compactctl.framing import arguments, framed, said
from compactctl.model import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.builders.claude import Session, call

PLACE = Place(0)


@pytest.mark.parametrize(
    "role, part, follows_result, frames",
    [
        ("user", Text(PLACE, 9), False, ["user"]),
        ("assistant", Text(PLACE, 9), False, ["assistant"]),
        ("assistant", Reasoning(PLACE, 9), False, ["assistant", "reasoning"]),
        ("assistant", ToolCall(PLACE, "c", "run", 2), False, ["assistant", "call"]),
        ("tool", ToolResult(PLACE, "c", 9), False, ["result"]),
        ("tool", ToolResult(PLACE, "c", 9), True, ["next_result"]),
        ("tool", ToolResult(PLACE, "c", 9, is_error=True), True, ["next_result", "error"]),
        ("user", Opaque(PLACE, "attachment:file", 9), False, ["opaque:attachment:file"]),
        ("user", Media(PLACE, 9, "image", 1, 1), False, []),
    ],
)
def test_the_frames_of_a_message(role, part, follows_result, frames):
    assert list(framed(Message(role, (part,), (0,), 1), follows_result=follows_result)) == frames


@pytest.mark.parametrize(
    "text, members",
    [
        ('{"path": "a.py", "limit": 3, "all": [1, 2]}', [("path", "a.py"), ("limit", "3"), ("all", "[1,2]")]),
        ("{}", []),
        ("[1]", None),
        ("not JSON", None),
    ],
)
def test_arguments_are_names_and_values_as_a_model_is_shown_them(text, members):
    assert arguments(text) == members


@pytest.mark.parametrize(
    "values_alone, texts, count",
    [(False, ("Read", '{"path":"a.py","limit":3}'), 0), (True, ("Read", "path", "a.py", "limit", "3"), 2)],
)
def test_a_call_costs_its_name_and_its_arguments_and_not_its_id(values_alone, texts, count):
    s = Session()
    s.assistant(call("c1", "Read", path="a.py", limit=3))
    document = s.document()
    [message] = FORMAT.read(document)[0].messages
    found = said(message.parts[0], document, values_alone=values_alone)
    assert (found.texts, found.arguments) == (texts, count)
