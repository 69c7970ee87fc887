"""The texts that count are the strings whose sizes a format read, byte for byte."""

import io
import json

import pytest
from hypothesis import given

from compactctl import formats
from compactctl.document import Document, Place
from compactctl.estimators.heuristic import weight
from compactctl.media import CLAUDE
from compactctl.model import Message, Text, ToolResult, utf8_size
from compactctl.texts import counted
from tests.builders.generated import stories, write
from tests.conftest import CORPUS
from tests.laws import EVERY_FORMAT, FEW_EXAMPLES, read

PLACE = Place(0)


def differing(document, transcripts):
    """Return where the texts of a message have another size than was read: line, size, texts."""
    read_ones = [message for transcript in transcripts for message in transcript.messages]
    found = [(message.line, weight([message], CLAUDE)[0], list(counted(message, document))) for message in read_ones]
    return [each for each in found if each[1] != sum(utf8_size(text) for _, text in each[2])]


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories)
def test_the_texts_that_count_have_the_size_that_was_read(name, story):
    document, _, transcripts = read(write(story, name))
    assert differing(document, transcripts) == []


REAL = sorted(path for folder in ("claude-code", "codex", "pi", "openai-chat") for path in (CORPUS / folder).glob("*"))
NO_CORPUS = pytest.param(None, marks=pytest.mark.skip(reason="no corpus of real sessions beside the repository"))


@pytest.mark.corpus
@pytest.mark.parametrize("path", REAL or [NO_CORPUS], ids=lambda path: path and f"{path.parent.name}/{path.name[:24]}")
def test_the_texts_of_a_real_session_have_the_size_that_was_read(path):
    with open(path, "rb") as source:
        document = Document(source)
        format_ = formats.recognise(document)
        assert format_ is None or differing(document, format_.read(document)) == []


def test_what_stands_in_no_file_says_its_own_text():
    document = Document(io.BytesIO())
    parts = (Text(PLACE, 3, "abc"), ToolResult(PLACE, "c1", 5, made="[see]"))
    assert list(counted(Message("user", parts, (), 0), document)) == [
        ("role", "user"),
        ("text", "abc"),
        ("result_call_id", "c1"),
        ("result", "[see]"),
    ]


def test_the_text_of_a_result_is_its_blocks_joined_and_its_images_are_no_text():
    blocks = [
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"type": "base64", "data": "AAAA"}},
        {"type": "text", "text": "b\ud83d"},
    ]
    record = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": blocks}]}
    document, _, transcripts = read(json.dumps(record).encode() + b"\n")
    assert list(counted(transcripts[0].messages[0], document)) == [
        ("role", "user"),
        ("result_call_id", "c1"),
        ("result", "a\nb\ufffd"),
    ]
