"""Content blocks of messages, in all the shapes that sessions hold, read into parts.

A content is a string or a list of blocks. Messages-API blocks (`text`, `image`, `document`, `tool_use`,
`tool_result`, `thinking`, `redacted_thinking`), chat-completions and Responses parts (`image_url`, `input_text`,
`input_image`, `file`, …), pi's calls and thinking, MCP's and Gemini's images are all understood wherever they
stand, since agents mix them (diegosouzapw/OmniRoute#8401: six shapes of one image, each counted as text). What is
not understood becomes `Opaque`, so that its bytes count and nothing is lost: server-side tool traffic is read so
on purpose.

No text is kept: a part holds the place and the size of what it stands for. Signed thinking with readable text
counts as that text; its signature counts only where the text is empty (formats: 1.2).
"""

from collections.abc import Mapping
from functools import lru_cache
from sys import intern

import msgspec
from msgspec import Raw, Struct

from compactctl.document import Place
from compactctl.media import HEADER_CHARACTERS, image_pixels, pdf_pages
from compactctl.model import Media, Opaque, Part, Reasoning, Text, ToolCall, ToolResult, utf8_size
from compactctl.preview import PREVIEW_MAX_BYTES, is_preview
from compactctl.spans import Key, Route

Content = str | list[Raw] | dict[str, Raw] | int | float | bool | None
"""For a field that holds a content: whatever JSON stands there is accepted, so that no record is lost to it."""


class _Source(Struct):
    type: str = ""
    data: Raw = Raw()
    content: Content = None


class _Text(Struct, tag="text"):
    text: str


class _InputText(_Text, tag="input_text"):
    pass


class _OutputText(_Text, tag="output_text"):
    pass


class _Refusal(Struct, tag="refusal"):
    refusal: str


class _Thinking(Struct, tag="thinking"):
    thinking: str = ""
    signature: str | None = None
    thinkingSignature: str | None = None
    redacted: bool = False


class _RedactedThinking(Struct, tag="redacted_thinking"):
    data: str = ""


class _ToolUse(Struct, tag="tool_use"):
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()


class _ToolCall(Struct, tag="toolCall"):
    id: str | None = None
    name: str | None = None
    arguments: Raw = Raw()


class _ToolResult(Struct, tag="tool_result"):
    tool_use_id: str | None = None
    content: Content = None
    is_error: bool | None = None


class _Image(Struct, tag="image"):
    source: _Source | None = None
    image: Raw = Raw()
    data: Raw = Raw()


class _ImageUrl(Struct, tag="image_url"):
    image_url: Raw = Raw()


class _InputImage(_ImageUrl, tag="input_image"):
    pass


class _Document(Struct, tag="document"):
    source: _Source = msgspec.field(default_factory=_Source)


class _File(Struct, tag="file"):
    file: dict[str, Raw]


class _InputFile(Struct, tag="input_file"):
    pass


class _Audio(Struct, tag="input_audio"):
    pass


class _Video(Struct, tag="video_url"):
    pass


class _Untagged(Struct):
    type: str = "block"
    inlineData: _Source | None = None
    inline_data: _Source | None = None


class _Url(Struct):
    url: Raw = Raw()


_Said = _Text | _InputText | _OutputText | _Refusal | _Thinking | _RedactedThinking | _ToolUse | _ToolCall | _ToolResult
_Shown = _Image | _ImageUrl | _InputImage | _Document | _File | _InputFile | _Audio | _Video
_Block = _Said | _Shown
_BLOCK: msgspec.json.Decoder[_Block] = msgspec.json.Decoder(_Block)

UsualContent = str | list[_Text | _Thinking | _RedactedThinking | _ToolUse | _ToolResult] | None
"""For a first try at a field that holds a content: the blocks that nearly all messages are made of are decoded along
with their line. A record that holds any other is to be read with `Content`."""
_UNTAGGED = msgspec.json.Decoder(_Untagged)
_STRING = msgspec.json.Decoder(str)
_URL = msgspec.json.Decoder(_Url)


NO_NAMES: Mapping[str, str] = {}


def read_content(content: Content | UsualContent, place: Place, names: Mapping[str, str] = NO_NAMES) -> list[Part]:
    """Return the parts of the content at `place`, in order. Empty texts are no parts.

    `names` are the tools by call id that results get their names from.
    """
    if isinstance(content, list):
        parts: list[Part] = []
        for index, block in enumerate(content):
            if isinstance(block, Raw):
                _read_raw(block, place.at(index), parts, names)
            else:
                _read_block(block, place.record, _routes(place.route, index), parts, names)
        return parts
    if isinstance(content, str):
        return [Text(place, utf8_size(content))] if content else []
    return [] if content is None else [Opaque(place, "content", len(msgspec.json.encode(content)))]


def read_result(content: Content, place: Place, call_id: str, name: str = "", is_error: bool = False) -> ToolResult:
    """Return the result whose text is the content at `place`: a string, or blocks joined by one newline each."""
    if content is None:
        return ToolResult(place, call_id, 0, name, is_error)
    if isinstance(content, str):
        return ToolResult(place, call_id, utf8_size(content), name, is_error, is_preview(content))
    size, texts, media = 0, 0, list[Media]()
    for part in read_content(content, place):
        match part:
            case Text(size_bytes=text_size):
                size += text_size
                texts += 1
            case Media():
                media.append(part)
            case Opaque(size_bytes=opaque_size):
                media.append(Media(part.place, opaque_size, "block"))
            case _:
                pass
    size += max(0, texts - 1)
    shown = size <= PREVIEW_MAX_BYTES and texts == 1 and isinstance(content, list) and _shows_preview(content)
    return ToolResult(place, call_id, size, name, is_error, shown, tuple(media))


def _shows_preview(content: list[Raw]) -> bool:
    for raw in content:
        block = _decoded(raw)
        if isinstance(block, _Text):
            return is_preview(block.text)
    return False


def _decoded(raw: Raw) -> _Block | None:
    try:
        return _BLOCK.decode(raw)
    except msgspec.DecodeError:
        return None


def _read_raw(raw: Raw, place: Place, parts: list[Part], names: Mapping[str, str]) -> None:
    match _decoded(raw):
        case _Image() as block:
            parts.append(_image(place, _image_data(block), len(raw)))
        case _ImageUrl(image_url=image_url):
            parts.append(_image(place, _url_data(image_url), len(raw)))
        case _Document(source=source):
            parts += _read_document(source, place.at("source"), len(raw))
        case _Audio() | _Video():
            parts.append(Media(place, len(raw), "recording"))
        case _File() | _InputFile():
            parts.append(Media(place, len(raw), "file"))
        case None:
            parts.append(_unknown(raw, place))
        case block:
            _read_block(block, place.record, _routes(place.route), parts, names)


class _Routes(Struct, frozen=True):
    """Where a block stands, and where it has each of the fields that count."""

    block: Route
    arguments: Route
    content: Route
    data: Route
    input: Route
    refusal: Route
    signature: Route
    text: Route
    thinking: Route
    thinkingSignature: Route


@lru_cache(maxsize=4096)
def _routes(around: Route, *keys: Key) -> _Routes:
    """Return the routes of the block that `keys` lead to. A session has many blocks that stand in few places."""
    block = (*around, *keys)
    return _Routes(block, *((*block, field) for field in _Routes.__struct_fields__[1:]))


def _read_block(block: _Said, record: int, at: _Routes, parts: list[Part], names: Mapping[str, str]) -> None:
    """Add what a block says. The commonest kinds are looked for first."""
    if isinstance(block, _ToolResult):
        where = Place(record, at.block if block.content is None else at.content)
        call_id = intern(block.tool_use_id or "")
        parts.append(read_result(block.content, where, call_id, names.get(call_id, ""), block.is_error is True))
    elif isinstance(block, _ToolUse):
        where = Place(record, at.input if len(block.input) else at.block)
        parts.append(ToolCall(where, intern(block.id or ""), intern(block.name or ""), argument_bytes(block.input)))
    elif isinstance(block, _Text):
        if block.text:
            parts.append(Text(Place(record, at.text), utf8_size(block.text)))
    elif isinstance(block, _Thinking):
        if block.thinking and not block.redacted:
            parts.append(Reasoning(Place(record, at.thinking), utf8_size(block.thinking)))
        elif block.signature:
            parts.append(Reasoning(Place(record, at.signature), 0, len(block.signature)))
        elif block.thinkingSignature:
            parts.append(Reasoning(Place(record, at.thinkingSignature), 0, len(block.thinkingSignature)))
    elif isinstance(block, _RedactedThinking):
        if block.data:
            parts.append(Reasoning(Place(record, at.data), 0, len(block.data)))
    elif isinstance(block, _ToolCall):
        where = Place(record, at.arguments if len(block.arguments) else at.block)
        call_id, name = intern(block.id or ""), intern(block.name or "")
        parts.append(ToolCall(where, call_id, name, argument_bytes(block.arguments)))
    elif block.refusal:
        parts.append(Text(Place(record, at.refusal), utf8_size(block.refusal)))


def argument_bytes(arguments: Raw) -> int:
    """Return the size of a call's arguments: of a string its text, of anything else its JSON as it stands."""
    size_bytes = len(arguments)
    if size_bytes and memoryview(arguments)[0] == _QUOTE:
        return utf8_size(_STRING.decode(arguments))
    return size_bytes


_QUOTE = ord('"')


def _unknown(raw: Raw, place: Place) -> Part:
    try:
        block = _UNTAGGED.decode(raw)
    except msgspec.DecodeError:
        return Opaque(place, "block", len(raw))
    inline = block.inlineData or block.inline_data
    if inline is not None:
        return _image(place, inline.data, len(raw))
    return Opaque(place, block.type, len(raw))


def _read_document(source: _Source, place: Place, size: int) -> list[Part]:
    if source.type == "text" and _opens_with(source.data, b'"'):
        return [Text(place.at("data"), utf8_size(_STRING.decode(source.data)))]
    if source.type == "content":
        return read_content(source.content, place.at("content"))
    return [Media(place, size, "pdf", pages=pdf_pages(_head(source.data)))]


# images ------------------------------------------------------------------------------------------


def _image_data(block: _Image) -> Raw:
    if block.source is not None and len(block.source.data):
        return block.source.data
    return block.image if len(block.image) else block.data


def _url_data(value: Raw) -> Raw:
    if _opens_with(value, b"{"):
        try:
            return _URL.decode(value).url
        except msgspec.DecodeError:
            return Raw()
    return value


def _image(place: Place, data: Raw, block_bytes: int) -> Media:
    """Return an image, whose data is a JSON string of base64, a data URL or an address."""
    if not _opens_with(data, b'"'):
        return Media(place, block_bytes)
    return Media(place, len(data) - 2, "image", *image_pixels(_head(data)))


def _head(data: Raw) -> str:
    """Return the first characters of a JSON string of base64; "" for anything else."""
    if not _opens_with(data, b'"'):
        return ""
    head = bytes(memoryview(data)[1 : HEADER_CHARACTERS + _DATA_URL_HEAD].cast("B"))
    return head.removesuffix(b'"').replace(b"\\/", b"/").decode("latin-1")


_DATA_URL_HEAD = 256
"""Room for what stands before the base64 in a data URL."""


def _opens_with(raw: Raw, opener: bytes) -> bool:
    return len(raw) > 0 and memoryview(raw)[0] == opener[0]
