"""Attachments of Claude Code: which are sent, and how big they are."""

import pytest

from compactctl.model import Opaque
from tests.builders.claude import Session
from tests.builders.images import encoded, png
from tests.formats.conversations import context, read


@pytest.mark.parametrize(
    "type, fields, size",
    [
        ("hook_additional_context", {"content": ["abc", "de"], "hookName": "x", "hookEvent": "y"}, 5),
        ("edited_text_file", {"filename": "/a", "snippet": "1\tx"}, 3),
        ("nested_memory", {"path": "/a", "content": {"path": "/a", "content": "abc", "rawContent": "abcdef"}}, 3),
        ("skill_listing", {"content": "abc", "names": ["one", "two"], "skillCount": 2}, 3),
        ("deferred_tools_delta", {"addedNames": ["a"], "addedLines": ["a", "bc"]}, 3),
        ("file", {"filename": "/a", "content": {"type": "text", "file": {"filePath": "x", "content": "abc"}}}, 3),
        ("queued_command", {"prompt": "abc", "commandMode": "prompt"}, 3),
        ("plan_mode", {"planFilePath": "/p", "reminderType": "full"}, 0),
        ("hook_success", {"hookEvent": "SessionStart", "content": "abc", "stdout": "abcdef"}, 3),
        ("hook_success", {"hookEvent": "SessionStart", "content": "", "stdout": "abcdef"}, None),
        ("hook_success", {"hookEvent": "PreToolUse", "content": "abc"}, None),
        ("hook_system_message", {"content": "abc"}, None),
        ("command_permissions", {"allowedTools": []}, None),
        ("of_a_newer_version", {"content": "abc"}, None),
    ],
)
def test_which_attachments_are_sent_and_how_big_they_are(type, fields, size):
    s = Session()
    s.user("Go.")
    s.attachment(type, **fields)
    s.assistant("Done.")
    sizes = [part.size_bytes for message in read(s).messages for part in message.parts if isinstance(part, Opaque)]
    assert sizes == ([] if size is None else [size])


def test_the_text_that_a_newer_version_recorded_as_sent_decides():
    s = Session()
    s.user("Go.")
    s.attachment("environment", envelope={"rendered": [{"content": "<r>abc</r>"}]}, text="abc")
    s.assistant("Done.")
    opaque = read(s).messages[1].parts[0]
    assert isinstance(opaque, Opaque)
    assert (opaque.kind, opaque.size_bytes) == ("attachment:environment", 10)


def test_an_image_in_an_attachment_is_media_and_no_text():
    s = Session()
    data = encoded(png(640, 480))
    s.user("Go.")
    s.attachment("file", filename="/a.png", content={"type": "image", "file": {"base64": data, "type": "image/png"}})
    s.assistant("Done.")
    assert context(s)[1] == "user: <attachment:file> <media>"
    assert [part.size_bytes for part in read(s).messages[1].parts] == [0, len(data)]
