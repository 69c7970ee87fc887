"""Reading bytes as a format does, for the tests of formats."""

import io

import msgspec

from compactctl import splicing
from compactctl.document import Document
from compactctl.formats.interface import Spilled
from compactctl.measure import measure
from compactctl.media import CLAUDE
from compactctl.model import Media, Opaque, Reasoning, Text, ToolCall, ToolResult
from compactctl.settings import Settings
from compactctl.windows import choose


def opened(raw):
    return Document(io.BytesIO(raw))


def sessions(format_, raw):
    """Return the sessions that a format reads out of these bytes."""
    return list(format_.read(opened(raw)))


def session(format_, raw):
    """Return the one session that is in these bytes."""
    (only,) = sessions(format_, raw)
    return only


def context(transcript):
    """Return the messages as short words: role, and each part with its sizes."""
    return [(message.role, *map(said, message.parts)) for message in transcript.messages]


def said(part):
    match part:
        case Text(size_bytes=size):
            return f"text {size}"
        case Reasoning(size_bytes=size, sealed_bytes=sealed):
            return f"reasoning {size}" + (f" sealed {sealed}" if sealed else "")
        case ToolCall(call_id=call_id, name=name, arguments_bytes=size):
            return f"call {call_id} {name} {size}"
        case ToolResult(call_id=call_id, name=name, size_bytes=size, is_error=is_error):
            return f"result {call_id} {name or '-'} {size}" + (" error" if is_error else "")
        case Media():
            return f"media {CLAUDE.tokens(part)}"
        case Opaque(kind=kind, size_bytes=size):
            return f"opaque {kind} {size}"


def rules(transcript):
    return [(finding.line, finding.rule) for finding in transcript.findings]


def texts(document, transcript):
    """Return the value at the place of every part, in order."""
    return [document.value(part.place) for message in transcript.messages for part in message.parts]


def spilled(format_, raw, preview="gone", note="moved"):
    """Return the bytes after every result gave way to a preview."""
    document = opened(raw)
    results = [
        message.result
        for transcript in format_.read(document)
        for message in transcript.messages
        if message.result is not None
    ]
    edits = format_.spill_edits(document, [Spilled(result, preview, note) for result in results])
    return b"".join(splicing.edited(document, splicing.concrete(document, edits)))


def values(raw):
    return [msgspec.json.decode(line) for line in raw.splitlines()]


class Bytes:
    """An estimator that is easy to follow: a token a byte of text."""

    name = "bytes"

    def tokens(self, messages):
        return sum(part.size_bytes for message in messages for part in message.parts if hasattr(part, "size_bytes"))


def measured(transcript):
    """Return how full the context is, its texts counted by the byte."""
    window = choose(transcript, Settings(), None, None)
    return measure(transcript, Bytes(), window, Settings(), anchored=True)
