"""The shapes that lines of a Claude Code session are decoded to.

Nearly all lines are decoded in one go, message and all. The few that are odd (other blocks than text, thinking and
tools; a message of another shape) are decoded again, their message apart, so that no line is lost to an odd field.
"""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactctl.document import FirstFit
from compactctl.formats.blocks import Content, UsualContent
from compactctl.json_text import read_json
from compactctl.model import MOST_TOKENS, token_count


class _Fields(Struct, gc=False):
    """The fields of any line that matter, in the order in which the client writes them: so they are found fastest."""

    parentUuid: str | UnsetType | None = UNSET
    isSidechain: bool | None = None
    agentId: str | None = None
    teamName: str | None = None
    cwd: str | None = None
    sessionId: str | None = None
    version: str | None = None
    type: str | None = None
    subtype: str | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    requestId: str | None = None
    isApiErrorMessage: bool | None = None
    isAbortedMidStream: bool | None = None
    toolUseResult: Raw = Raw()
    sourceToolAssistantUUID: str | None = None
    attachment: Raw = Raw()
    rendered: Raw = Raw()
    compactMetadata: Raw = Raw()
    microcompactMetadata: Raw = Raw()
    leafUuid: str | None = None
    uuid: str | None = None


_Count = Annotated[int, msgspec.Meta(ge=0, lt=MOST_TOKENS)]


class Usage(Struct, gc=False):
    input_tokens: _Count = 0
    cache_creation_input_tokens: _Count = 0
    cache_read_input_tokens: _Count = 0
    output_tokens: _Count = 0


class Message(Struct, gc=False):
    model: str | None = None
    id: str | None = None
    content: UsualContent = None
    usage: Usage | None = None

    is_plain: ClassVar[bool] = False


class UsualLine(_Fields, gc=False):
    message: Message | UnsetType = UNSET
    """UNSET where the line has none."""


class _OddUsage(Struct):
    input_tokens: int | float | None = 0
    cache_creation_input_tokens: int | float | None = 0
    cache_read_input_tokens: int | float | None = 0
    output_tokens: int | float | None = 0


class _OddMessage(Struct):
    model: str | None = None
    id: str | None = None
    content: Content = None
    usage: _OddUsage | None = None


class _LooseMessage(Struct):
    """A message whose id, model or usage are not what they should be: what it says still counts."""

    content: Content = None


class LookedInto(Struct):
    """A message that had to be looked into."""

    content: Content = None
    model: str | None = None
    id: str | None = None
    usage: Usage | None = None
    is_plain: bool = False
    """The message is its content: a mere string."""


class OddLine(_Fields, gc=False):
    raw_message: Raw = msgspec.field(default=Raw(), name="message")

    @property
    def message(self) -> LookedInto | UnsetType | None:
        """The line's message: UNSET where it has none, None where it is of no known shape."""
        return _looked_into(self.raw_message) if len(self.raw_message) else UNSET


Line = UsualLine | OddLine

LINE = FirstFit[Line](msgspec.json.Decoder(UsualLine), msgspec.json.Decoder(OddLine))

_ODD_MESSAGE = msgspec.json.Decoder(_OddMessage)
_LOOSE_MESSAGE = msgspec.json.Decoder(_LooseMessage)


def _looked_into(raw: Raw) -> LookedInto | None:
    try:
        odd = _ODD_MESSAGE.decode(raw)
    except msgspec.DecodeError:
        value = read_json(bytes(raw))
        if isinstance(value, str):
            return LookedInto(value, is_plain=True)
        return LookedInto(_LOOSE_MESSAGE.decode(raw).content) if isinstance(value, dict) else None
    counts = map(token_count, msgspec.structs.astuple(odd.usage)) if odd.usage else None
    return LookedInto(odd.content, odd.model, odd.id, Usage(*counts) if counts else None)


def text_of(content: Content | UsualContent) -> str:
    """Return the text of a message's content, without anything else in it."""
    if isinstance(content, str):
        return content
    return "".join(map(_text_in, content)) if isinstance(content, list) else ""


def _text_in(block: Any) -> str:
    if not isinstance(block, Raw):
        return str(getattr(block, "text", ""))
    value = read_json(bytes(block))
    return str(value.get("text", "")) if isinstance(value, dict) else ""
