import json

import pytest
from msgspec import Raw

from compactctl.document import Place
from compactctl.formats.blocks import read_content, read_result
from compactctl.media import CLAUDE
from compactctl.model import Media, Opaque, Reasoning, Text, ToolCall, ToolResult
from tests.builders.images import encoded, png

PLACE = Place(3, ("content",))
IMAGE = encoded(png(280, 280))
DATA_URL = "data:image/png;base64," + IMAGE


def blocks(*values):
    return [Raw(json.dumps(value, ensure_ascii=False).encode()) for value in values]


def only(*values):
    parts = read_content(blocks(*values), PLACE)
    assert len(parts) == 1
    return parts[0]


@pytest.mark.parametrize(
    "block, part",
    [
        ({"type": "text", "text": "naïve"}, Text(PLACE.at(0, "text"), 6)),
        ({"type": "input_text", "text": "a\nb"}, Text(PLACE.at(0, "text"), 3)),
        ({"type": "output_text", "text": "ok"}, Text(PLACE.at(0, "text"), 2)),
        ({"type": "refusal", "refusal": "no"}, Text(PLACE.at(0, "refusal"), 2)),
        ({"type": "thinking", "thinking": "hm", "signature": "AAAA"}, Reasoning(PLACE.at(0, "thinking"), 2)),
        ({"type": "thinking", "thinking": "", "signature": "AAAA"}, Reasoning(PLACE.at(0, "signature"), 0, 4)),
        ({"type": "redacted_thinking", "data": "AAAAAA"}, Reasoning(PLACE.at(0, "data"), 0, 6)),
        (
            {"type": "tool_use", "id": "c1", "name": "run", "input": {"a": [1]}},
            ToolCall(PLACE.at(0, "input"), "c1", "run", 10),
        ),
        ({"type": "tool_use", "id": None, "name": "run"}, ToolCall(PLACE.at(0), "", "run", 0)),
        (
            {"type": "toolCall", "id": "c1", "name": "run", "arguments": {"a": [1]}},
            ToolCall(PLACE.at(0, "arguments"), "c1", "run", 10),
        ),
        (
            {"type": "thinking", "thinking": "", "thinkingSignature": "AAAA"},
            Reasoning(PLACE.at(0, "thinkingSignature"), 0, 4),
        ),
        (
            {"type": "thinking", "thinking": "(hidden)", "thinkingSignature": "AAAA", "redacted": True},
            Reasoning(PLACE.at(0, "thinkingSignature"), 0, 4),
        ),
        (
            {"type": "tool_result", "tool_use_id": "c1", "content": "é", "is_error": True},
            ToolResult(PLACE.at(0, "content"), "c1", 2, is_error=True),
        ),
        ({"type": "tool_result", "tool_use_id": "c1"}, ToolResult(PLACE.at(0), "c1", 0)),
        ({"type": "server_tool_use", "id": "s"}, Opaque(PLACE.at(0), "server_tool_use", 38)),
        ({"type": 5}, Opaque(PLACE.at(0), "block", 11)),
        ("bare", Opaque(PLACE.at(0), "block", 6)),
        (7, Opaque(PLACE.at(0), "block", 1)),
        ({"type": "text", "text": None}, Opaque(PLACE.at(0), "text", 30)),
    ],
)
def test_a_block_becomes_the_part_it_means_and_anything_else_stays_opaque(block, part):
    assert only(block) == part


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
        {"type": "image_url", "image_url": {"url": DATA_URL}},
        {"type": "image_url", "image_url": DATA_URL},
        {"type": "input_image", "image_url": DATA_URL},
        {"type": "image", "image": DATA_URL},
        {"type": "image", "data": IMAGE, "mimeType": "image/png"},
        {"inlineData": {"mimeType": "image/png", "data": IMAGE}},
        {"inline_data": {"mime_type": "image/png", "data": IMAGE}},
    ],
)
def test_an_image_of_any_shape_costs_its_pixels(block):
    part = only(block)
    assert (type(part), part.width, part.height, CLAUDE.tokens(part)) == (Media, 280, 280, 100)


@pytest.mark.parametrize(
    "block, tokens",
    [
        ({"type": "image_url", "image_url": {"url": "https://example.invalid/x.png"}}, 1568),
        ({"type": "image_url", "image_url": {"url": 5}}, 1568),
        ({"type": "image_url"}, 1568),
        ({"type": "image", "source": {"type": "url", "url": "https://example.invalid"}}, 1568),
        ({"type": "document", "source": {"type": "base64", "data": "JVBERi0="}}, 3000),
        ({"type": "input_audio", "input_audio": {"data": "A" * 99_999}}, 3000),
    ],
)
def test_media_of_unknown_size_have_a_bounded_cost(block, tokens):
    part = only(block)
    assert (type(part), CLAUDE.tokens(part)) == (Media, tokens)


def test_escaped_slashes_in_base64_are_read_as_slashes():
    raw = Raw(json.dumps({"type": "image", "data": IMAGE}).replace("/", "\\/").encode())
    part = read_content([raw], PLACE)[0]
    assert CLAUDE.tokens(part) == 100


def test_the_text_of_a_document_is_text():
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "abc"}}
    nested = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "de"}]}}
    assert read_content(blocks(plain, nested), PLACE) == [
        Text(PLACE.at(0, "source", "data"), 3),
        Text(PLACE.at(1, "source", "content", 0, "text"), 2),
    ]


@pytest.mark.parametrize("content", [None, "", []])
def test_an_empty_content_has_no_parts(content):
    assert read_content(content, PLACE) == []


def test_several_texts_of_a_result_are_joined_by_one_newline_each():
    content = blocks({"type": "text", "text": "ab"}, {"type": "image", "data": IMAGE}, {"type": "text", "text": "c"})
    result = read_result(content, PLACE, "c1")
    assert (result.size_bytes, [CLAUDE.tokens(item) for item in result.media]) == (4, [100])


def test_a_block_of_a_result_that_nobody_knows_still_costs_its_bytes():
    result = read_result(blocks({"type": "tool_reference", "name": "x"}), PLACE, "c1")
    assert (result.size_bytes, [CLAUDE.tokens(item) for item in result.media]) == (0, [12])


@pytest.mark.parametrize("as_list", [False, True])
def test_a_preview_is_known_by_its_whole_shape(as_list):
    text = "[content offloaded] original size: 9 bytes\n[saved to] x/y.txt\n[head preview]\nabc"
    content = blocks({"type": "text", "text": text}) if as_list else text
    assert read_result(content, PLACE, "c1").is_preview
