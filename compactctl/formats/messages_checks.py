"""What `audit` looks for in files of provider messages beyond what reading them finds.

- A role that is none of the API's. The Messages API knows user and assistant alone; a system message in front is how
  logs keep what is sent beside the messages.
- A message without content, or with an empty block of text: Anthropic's API refuses both, others answer to nothing.
- Thinking that was signed and is no longer what it was, or lost its signature.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Document
from compactctl.findings import Finding
from compactctl.formats.interface import OwnCheck
from compactctl.formats.messages import LEADING_ROLES, ROLES
from compactctl.formats.signed import Block, Signed
from compactctl.model import Transcript

_ANTHROPIC_ROLES = (*LEADING_ROLES, "user", "assistant")


class _Message(Struct):
    role: Any = None
    content: list[Block] | str | None = None
    tool_calls: Raw = Raw()
    function_call: Raw = Raw()
    refusal: Raw = Raw()


class _Line(_Message):
    messages: list[_Message] | None = None


_LINE = msgspec.json.Decoder(_Line)


def check(document: Document, transcript: Transcript) -> Iterator[Finding]:
    """Yield what is wrong with roles, contents and signed thinking."""
    is_anthropic = transcript.format == "anthropic"
    signed = Signed()
    found: list[Finding] = []
    is_leading = True
    for line, value in _lines(document, transcript):
        for message in [value] if value.messages is None else value.messages:
            if not isinstance(message.role, str):
                continue
            found += _said(message, line, is_anthropic, is_leading)
            is_leading = is_leading and message.role in LEADING_ROLES
            signed.note(line, message.content)
    yield from found
    if is_anthropic:
        yield from signed.findings()


def _lines(document: Document, transcript: Transcript) -> Iterator[tuple[int, _Line]]:
    """Yield the lines of a session: all of the file, or those that its messages stand on where it holds several."""
    if transcript.index is None:
        for record in document.records(_LINE):
            if record.value is not None:
                yield record.line, record.value
        return
    for index in sorted({record for message in transcript.messages for record in message.records}):
        with contextlib.suppress(msgspec.DecodeError):
            yield document.line(index), _LINE.decode(document.raw(index))


def _said(message: _Message, line: int, is_anthropic: bool, is_leading: bool) -> Iterator[Finding]:
    role = message.role
    if role not in (_ANTHROPIC_ROLES if is_anthropic else ROLES):
        yield Finding(line, "refused-role", f"role {role[:40]} is none that the API takes")
    elif is_anthropic and role in LEADING_ROLES and not is_leading:
        yield Finding(line, "refused-role", f"role {role} after the conversation has begun")
    if role in ("tool", "function") or len(message.tool_calls) > len("null") or len(message.function_call):
        return
    if not message.content and len(message.refusal) <= len('""'):
        yield Finding(line, "empty-content", "the message has no content")
    elif isinstance(message.content, list) and any(block.is_empty_text for block in message.content):
        yield Finding(line, "empty-content", "a block of text is empty")


CHECK = OwnCheck(("refused-role", "empty-content", "edited-reasoning", "hollow-reasoning"), check)
