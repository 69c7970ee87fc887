"""Which format a document is in, and what is said of one that is in none."""

import io
import json
from collections import Counter

import pytest

from compactctl import formats
from compactctl.document import Document
from compactctl.errors import UsageError
from compactctl.model import ANTHROPIC_FORMATS
from tests.builders import anthropic, chat
from tests.builders.chat import lines

CODEX = {"timestamp": "t", "type": "session_meta", "payload": {"id": "x", "cwd": "/w", "cli_version": "0.140.0"}}
CLAUDE = {
    "type": "user",
    "uuid": "u1",
    "parentUuid": None,
    "sessionId": "s1",
    "isSidechain": False,
    "message": {"role": "user", "content": "hi"},
}
PI = {"type": "session", "version": 3, "id": "p1", "timestamp": "t", "cwd": "/w"}
CONVERSATION = {"messages": [chat.user(), chat.assistant()]}


def recognised(raw):
    found = formats.recognise(Document(io.BytesIO(raw)))
    return found and found.name


def seen(raw):
    return formats.seen(Document(io.BytesIO(raw)))


@pytest.mark.parametrize(
    "raw, name",
    [
        (lines(chat.user(), chat.assistant()), "chat"),
        (lines(chat.user(), chat.assistant(None, [("c", "f", "{}")]), chat.tool("c")), "chat"),
        (lines(CONVERSATION, CONVERSATION), "chat"),
        (lines(anthropic.user("x"), anthropic.assistant(anthropic.use("a"))), "anthropic"),
        (lines(anthropic.user("x"), anthropic.assistant(anthropic.thinking())), "anthropic"),
        (lines(*[chat.user()] * 99, anthropic.user(anthropic.result("a"))), "anthropic"),
        (lines(CONVERSATION, {"messages": [anthropic.user(anthropic.result("a"))]}), "anthropic"),
        (lines(CODEX), "codex"),
        (lines(CLAUDE), "claude-code"),
        (lines(PI), "pi"),
        # what an agent wrote counts more than plain messages beside it
        (lines(CODEX, *[chat.user()] * 3), "codex"),
        # but one stray record among many messages does not
        (lines(CODEX, *[chat.user()] * 40), "chat"),
        # damage
        (b"\xef\xbb\xbf" + lines(chat.user()), "chat"),
        (b"\0\0" + lines(chat.user()), "chat"),
        (lines(chat.user())[:-1] + lines(chat.user()), "chat"),
        (b"garbage\n" + lines(chat.user(), chat.assistant()), "chat"),
        (lines(chat.user()) + b'{"role":"assis', "chat"),
        (lines(5, [1], None, chat.user()), "chat"),
        (b'{"role":"user","content":"\\ud83d"}\n', "chat"),
        # nothing certain
        (b"", None),
        (b"\n\n", None),
        (b"plain words\nand more\n", None),
        (lines({"a": 1}), None),
        (lines({"role": "user"}), None),
        (lines({"role": "model", "parts": [{"text": "x"}]}), None),
        (lines({"role": "user", "message": {"content": []}}), None),
        (lines({"role": "user", "content": {"odd": 1}}), None),
        (lines({"messages": []}), None),
        (lines({"messages": [chat.user(), "odd"]}), None),
        (lines({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}), None),
        (lines(chat.user(), {"event": 1}, {"event": 2}), None),
        (lines({"role": "_system_prompt", "content": "x"}, *[chat.user()] * 50), None),
        (lines({"role": "user", "created": 5, "content": [{"type": "toolRequest", "id": "x"}]}), None),
        (json.dumps([chat.user(), chat.assistant()], indent=1).encode(), None),
        (json.dumps(CONVERSATION, indent=1).encode(), None),
    ],
)
def test_the_format_is_told_from_content(raw, name):
    assert recognised(raw) == name


@pytest.mark.parametrize("name", ["claude-code", "anthropic", "chat"])
@pytest.mark.parametrize("odd", [{}, [], [[]], 1, None, True])
def test_a_record_whose_words_are_no_words_is_not_claimed_and_raises_nothing(name, odd):
    format_ = formats.get(name)
    records = [{**CLAUDE, "type": odd}, {**chat.user(), "role": odd}, {"messages": [{"role": odd, "content": "x"}]}]
    assert [format_.claims(record) for record in records] == [False, False, False]


@pytest.mark.parametrize("size", [formats.FIRST_LINE_BYTES, formats.HEAD_BYTES + 1])
@pytest.mark.parametrize("after", [b"", b"\n", lines(chat.assistant()), b"junk\n" * 3])
def test_a_session_may_begin_with_a_long_line(size, after):
    first = lines({"messages": [chat.user("x" * size), chat.assistant()]}).removesuffix(b"\n")
    assert recognised(first + (b"\n" + after if after else b"")) == "chat"


def test_a_block_far_into_the_file_makes_it_anthropic():
    raw = lines(*[chat.user()] * 5_000, anthropic.assistant(anthropic.use("a")))
    assert recognised(raw) == "anthropic"


def test_words_that_name_a_block_do_not_make_it_anthropic():
    raw = lines(*[chat.user()] * 300, chat.user('{"type": "tool_use"}'), {**chat.user(), "tags": ["tool_use"]})
    assert recognised(raw) == "chat"


def test_a_session_that_begins_late_is_recognised():
    assert recognised(lines(*[{"note": 1}] * 300, *[chat.user()] * 301)) == "chat"


def test_a_document_can_be_read_after_it_was_recognised():
    raw = lines(*[chat.user()] * 500)
    document = Document(io.BytesIO(raw))
    (transcript,) = formats.recognise(document).read(document)
    assert len(transcript.messages) == 500


@pytest.mark.parametrize(
    "raw, words",
    [
        (b"", "an empty file"),
        (b"some words\nand more\n", "lines of which most are not JSON"),
        (lines({"type": "a"}), "1 line, JSON objects of type a"),
        (lines({"type": "a"}, {"type": "b", "x": 1}), "2 lines, JSON objects of types a, b"),
        (lines({"x": 1, "y": 2}), "1 line, JSON objects with the keys x, y"),
        (lines([1], 5), "2 lines, JSON that is an array or no object"),
        (lines(*({"type": str(number)} for number in range(9))), "9 lines, JSON objects of types 0, 1, 2, 3, 4, 5, …"),
        (lines(*[{"type": "a"}] * 500), "more than 200 lines, JSON objects of type a"),
        (lines({"type": "\x1b[31m\u202e"}), "1 line, JSON objects of type '\\x1b[31m\\u202e'"),
        (
            b'[\n{"a":1},\n{"a":2}\n]',
            "one JSON document, an array of 2 and not a record a line, JSON objects with the key a",
        ),
        (
            lines({"type": "session.start", "data": {}}, {"type": "user.message", "data": {}}),
            "a Copilot CLI session (2 lines, JSON objects of types session.start, user.message)",
        ),
        (
            json.dumps([chat.user()], indent=1).encode(),
            "one JSON document, an array of 1 and not a record a line, JSON objects with the keys role, content; "
            "its messages would be read one a line",
        ),
        (b'{\n"a": 1\n}\n', "one JSON document, not a record a line, JSON objects with the key a"),
    ],
)
def test_what_was_seen_is_said(raw, words):
    assert seen(raw) == words


@pytest.mark.parametrize(
    "record, words",
    [
        ({"type": "session.start", "data": {}}, "Copilot"),
        ({"sessionId": "s", "projectHash": "h", "messages": []}, "Gemini CLI"),
        ({"uuid": "u", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "parts": []}}, "Qwen Code"),
        ({"role": "_checkpoint", "id": 0}, "Kimi CLI"),
        ({"type": "metadata", "protocol_version": "1.5"}, "Kimi wire"),
        ({"id": "1", "timestamp": "t", "source": "agent", "action": {}}, "OpenHands"),
        ({"schema_version": "ATIF-v1.7", "steps": []}, "ATIF"),
        ({"info": {}, "messages": [{"info": {}, "parts": []}]}, "opencode"),
        ({"trajectory": [], "environment": "x"}, "SWE-agent"),
        ({"simulations": []}, "tau2"),
        ({"conversations": [{"from": "human", "value": "x"}]}, "ShareGPT"),
        ({"role": "user", "created": 5, "content": [], "metadata": {}}, "Goose"),
        ({"role": "user", "message": {"content": []}}, "Cursor"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "Responses"),
        ({"custom_id": "1", "body": {}}, "batch"),
        ({"messages": [{"role": "user", "parts": []}]}, "Gemini's shape"),
        ({"schema": "compactctl.spill/1", "sessions": []}, "compactctl itself"),
    ],
)
def test_files_of_other_programs_are_called_by_name_and_not_read(record, words):
    assert words in seen(lines(record))
    assert words in seen(json.dumps(record, indent=1).encode())
    assert words in seen(lines([record]))
    assert recognised(lines(record)) is None


@pytest.mark.parametrize("name, words", [("claude", "did you mean claude-code"), ("xyz", "known: claude-code, codex")])
def test_an_unknown_format_is_wrong_usage_that_names_what_there_is(name, words):
    with pytest.raises(UsageError, match=words):
        formats.get(name)


@pytest.mark.parametrize("name", formats.FORMATS)
def test_every_format_goes_by_the_name_it_has(name):
    format_ = formats.get(name)
    assert (format_.name, format_.preview_style in ("seed", "native")) == (name, True)


@pytest.mark.parametrize("name", formats.FORMATS)
@pytest.mark.parametrize("raw", [b"", b"\0", b"[]\n", b"{}\n", lines({"a": 1}), b"\xff\n{", lines(5, None, "x")])
def test_no_format_finds_a_session_in_what_is_not_its_own(name, raw):
    assert list(formats.get(name).read(Document(io.BytesIO(raw)))) == []


@pytest.mark.corpus
def test_real_files_are_claimed_by_their_own_format_alone(corpus):
    """Where the corpus's index says otherwise, the file was looked at: it is named after where it came from."""
    odd = {
        ("chat-json", "chat"): 1,  # one object with `messages`, on one line
        ("claude-code", None): 1,  # another agent's records
    }
    own = {"claude-code": "claude-code", "codex": "codex", "pi": "pi", "openai-chat": "chat"}
    found = Counter()
    for path in sorted(corpus.glob("*/*")):
        with path.open("rb") as source:
            claimed = formats.recognise(Document(source))
        name = claimed.name if claimed else None
        if name != own.get(path.parent.name):
            found[path.parent.name, name] += 1
    assert found == odd


@pytest.mark.parametrize(
    ("name", "anywhere", "at_home"),
    [
        ("claude-code", ("claude", "--resume", "/s.jsonl", "--fork-session"), ("claude", "--resume", "id-1")),
        ("pi", ("pi", "--session", "/s.jsonl"), ("pi", "--session", "/s.jsonl")),
        ("codex", (), ("codex", "resume", "id-1")),
        ("claude-stream", (), ()),
        ("codex-exec", (), ()),
        ("anthropic", (), ()),
        ("chat", (), ()),
    ],
)
def test_each_agent_is_resumed_its_own_way(name, anywhere, at_home):
    resume = formats.FORMATS[name].resume
    assert (resume("/s.jsonl", None).words, resume("/s.jsonl", "id-1").words) == (anywhere, at_home)


def test_the_formats_whose_models_are_anthropics_are_known_by_their_names():
    assert {name for name, each in formats.FORMATS.items() if each.is_anthropic} == ANTHROPIC_FORMATS
