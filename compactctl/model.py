"""What a format reads out of a document: the messages the model would be sent, each part with its place.

Values only, frozen. Parts hold sizes and places, not text: `texts.counted` fetches that when it is asked for. Only a
part that stands in no file yet holds its own.
Sizes are UTF-8 bytes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

from compactctl.document import Place
from compactctl.findings import Finding

Kind = Literal["text", "calls", "results", "media", "reasoning", "copies", "progress", "other"]
"""What bytes of a session file are for. `copies` and `progress` are never sent to a model."""

KINDS: tuple[Kind, ...] = ("text", "calls", "results", "media", "reasoning", "copies", "progress", "other")

ANTHROPIC_FORMATS = frozenset(("anthropic", "claude-code", "claude-stream"))
"""The formats whose models are Anthropic's where none is named (`Format.is_anthropic`)."""


class Text(Struct, frozen=True, gc=False):
    """Plain text. `place` leads to the JSON string; `made` is the text itself where it stands in no file yet."""

    place: Place
    size_bytes: int
    made: str | None = None


class Reasoning(Struct, frozen=True, gc=False):
    """Thinking. Readable text counts as text; a signature or ciphertext is `sealed_bytes`, counted by its own rule."""

    place: Place
    size_bytes: int
    sealed_bytes: int = 0


class ToolCall(Struct, frozen=True, gc=False):
    """A request to run a tool. `arguments_bytes` is the argument string, or an object's JSON as it stands."""

    place: Place
    call_id: str
    name: str
    arguments_bytes: int


MediaKind = Literal["image", "pdf", "recording", "file", "block"]


class Media(Struct, frozen=True, gc=False):
    """An image, a document, or a block of a result that is neither. `size_bytes` is its encoded size in the file.

    Pixels and pages are 0 where no header tells them. What it costs depends on the model: `media.rule`.
    """

    place: Place
    size_bytes: int
    kind: MediaKind = "image"
    width: int = 0
    height: int = 0
    pages: int = 0


class Copy(Struct, frozen=True, gc=False):
    """A second copy of a result, which the model is never sent. `place` leads to the whole value."""

    place: Place
    size_bytes: int


class ToolResult(Struct, frozen=True, gc=False):
    """The answer to a call.

    `place` leads to the value that holds the text: a JSON string, or a list of blocks of which those of
    `type` text (`input_text`, `output_text`) are the text, joined by one newline each. `size_bytes` is that
    text's. `media` are images among the blocks; `copies` are places the model never sees,
    where the format does not look for them only when the result is spilled.
    """

    place: Place
    call_id: str
    size_bytes: int
    name: str = ""
    is_error: bool = False
    is_preview: bool = False
    """The text is already a preview of a spilled text: the agent's own or ours."""
    media: tuple[Media, ...] = ()
    copies: tuple[Copy, ...] = ()
    made: str | None = None
    """The text itself, where it stands in no file yet."""


class Opaque(Struct, frozen=True, gc=False):
    """Something we do not look into but the model is sent: server-side tool traffic, unknown blocks, attachments."""

    place: Place
    kind: str
    size_bytes: int


Part = Text | Reasoning | ToolCall | ToolResult | Media | Opaque


class Usage(Struct, frozen=True, gc=False):
    """What a provider counted for one request, by the format's own rule.

    `input_tokens` is everything that the request took in, cached or not; `output_tokens` what it gave out,
    reasoning included. `line` is where it stands.
    """

    line: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    model: str | None = None
    request_id: str | None = None
    is_output_known: bool = True
    """False where `output_tokens` is what stood there when the answer began, and was never brought up to date."""

    @property
    def total_tokens(self) -> int:
        """The context right after the answer, as it was recorded."""
        return self.input_tokens + self.output_tokens


class Message(Struct, frozen=True, gc=False):
    """One thing said by one role: a provider's whole answer, a user line, or one tool result."""

    role: str
    parts: tuple[Part, ...]
    records: tuple[int, ...]
    """The records it was read from, in file order."""
    line: int
    key: str = ""
    """What the format calls it: a provider message id, a uuid. Empty where the format has none."""
    usage: Usage | None = None
    """Set on an answer whose usage may serve as an anchor by the format's own rule.

    Where only what the request took in is known, it stands without output on the message before the answer.
    """
    is_summary: bool = False
    is_leading: bool = False
    """A system or developer message that stays in front of any cut."""
    unsealed_key: str | None = None
    """What the format calls it once its sealed reasoning is gone, where that is not its `key`."""

    @property
    def result(self) -> ToolResult | None:
        """The tool result that this message is, if it is one."""
        first = self.parts[0] if self.parts else None
        return first if isinstance(first, ToolResult) else None

    def calls(self) -> Iterator[ToolCall]:
        """Yield the tool calls of this message, in order."""
        return (part for part in self.parts if isinstance(part, ToolCall))


class Compaction(Struct, frozen=True):
    """A compaction that the agent (or we) recorded in the session."""

    line: int
    tokens_before: int | None = None
    trigger: str | None = None


class OutsideResult(Struct, frozen=True, gc=False):
    """A tool result of the file that is not in context, or not as the file has it; `why` says so in words."""

    line: int
    name: str
    size_bytes: int
    why: str


class SideRun(Struct, frozen=True):
    """A subagent's run that is recorded inside the session file but never in its context."""

    agent: str
    messages: int
    usage: Usage | None = None


class Window(Struct, frozen=True):
    """How much a model can take, and how we know: `recorded`, `proved`, `receipt`, `table`, `fallback` or `option`."""

    tokens: int
    source: str


class Transcript(Struct, frozen=True):
    """One session as its agent would resume it.

    `messages` is the effective context, in the order in which the model would be sent it.
    """

    format: str
    messages: tuple[Message, ...]
    session_id: str | None = None
    agent: str | None = None
    """The name and version of what wrote it, e.g. `Claude Code 2.1.29`."""
    model: str | None = None
    cwd: str | None = None
    parent_session_id: str | None = None
    """Set where this is a subagent's session: the session that started it."""
    index: int | None = None
    """Which conversation of the file this is (from 0), where one file holds several."""
    anchor_floor: int = 0
    """No usage on a message before this index is an anchor: a compaction or an edit of the context came later."""
    recorded_window_tokens: int | None = None
    default_window_tokens: int | None = None
    """What the agent would assume for a model whose size the session does not say; None: see the table."""
    peak_tokens: int = 0
    """The largest context that any request of the session is known to have had."""
    requests: tuple[Usage, ...] = ()
    """One usage per provider request, over the whole file, in file order."""
    compactions: tuple[Compaction, ...] = ()
    outside: tuple[OutsideResult, ...] = ()
    """The tool results that are in the file and not in its context, in file order."""
    side_runs: tuple[SideRun, ...] = ()
    bytes_by_kind: Mapping[str, int] = {}
    """Bytes of the whole file by `Kind`; what is not one of them is `other`."""
    findings: tuple[Finding, ...] = ()


def context_bytes(messages: tuple[Message, ...]) -> dict[str, int]:
    """Return the bytes of these messages by `Kind`."""
    return part_bytes(part for message in messages for part in message.parts)


def part_bytes(parts: Iterable[Part]) -> dict[str, int]:
    """Return the bytes of these parts by `Kind`."""
    text = calls = results = media = reasoning = other = 0
    for part in parts:
        if isinstance(part, ToolResult):
            results += part.size_bytes
            if part.media:
                media += sum(item.size_bytes for item in part.media)
        elif isinstance(part, ToolCall):
            calls += part.arguments_bytes
        elif isinstance(part, Text):
            text += part.size_bytes
        elif isinstance(part, Reasoning):
            reasoning += part.size_bytes + part.sealed_bytes
        elif isinstance(part, Media):
            media += part.size_bytes
        else:
            other += part.size_bytes
    sizes = {"text": text, "calls": calls, "results": results, "media": media, "reasoning": reasoning, "other": other}
    return {kind: sizes.get(kind, 0) for kind in KINDS}


MOST_TOKENS = 1 << 53
"""A larger figure is no count of tokens, and no reader of our JSON could be sure of it."""


def token_count(value: object) -> int:
    """Return a recorded count of tokens; 0 for what is none."""
    return int(value) if isinstance(value, int | float) and 0 < value < MOST_TOKENS else 0


def utf8_size(text: str) -> int:
    """Return how many bytes a text takes in UTF-8; half of a surrogate pair counts as U+FFFD."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
