"""`extract`: a summary without a model and without a network, made of what the session itself says.

The promise: the same messages give the same summary, and every word of it, headings and counts aside, stands in them.
Prose is quoted and never parsed for facts: what the user said, and of the assistant's words those where it says what it
found, decided, and was doing. Literal things in bulk are for `facts`, which stand beside any summary.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from compactctl.facts import HEADING as FACTS_HEADING
from compactctl.model import utf8_size
from compactctl.providers.extract_sections import WRITERS, Source
from compactctl.providers.interface import Answer, Kind, ProviderConfig, SummaryRequest
from compactctl.story import Said

SHARES: Mapping[str, float] = {
    "1. Request and intent": 0.15,
    "2. Key facts and concepts": 0.10,
    "3. Files and code": 0.14,
    "4. Errors and fixes": 0.10,
    "5. Decisions and problem solving": 0.12,
    "6. What the user said": 0.18,
    "7. Open tasks": 0.08,
    "8. Present work": 0.10,
    "9. Next step": 0.03,
}
"""The nine sections, and how much of the summary each may take; what one leaves goes to those after it."""

LEAST_BYTES, MOST_BYTES = 3_500, 10_000
SHARE_OF_SOURCE = 0.05
"""How long a summary becomes: a share of what it stands for, between these bounds."""

BYTES_PER_TOKEN = 3
"""Fewer than a token really has, so that no answer is longer than it may be."""

STOP = "stop"


class Extract(Struct, frozen=True):
    """The provider that needs nothing."""

    name: str
    kind: Kind = "extract"
    model: str | None = None
    window_tokens: int | None = None
    is_remote: bool = False
    address: str = "this machine"

    def answer(self, request: SummaryRequest) -> Answer:
        """Return the summary of `request.said`; the prompt is not looked at."""
        return Answer(f"<summary>\n{summary_of(request)}\n</summary>", STOP)


def make(config: ProviderConfig, environment: Mapping[str, str]) -> Extract:
    """Return the provider; there is nothing to configure."""
    return Extract(config.name)


def missing(config: ProviderConfig, environment: Mapping[str, str]) -> list[str]:
    """Return nothing: it needs nothing."""
    return []


def summary_of(request: SummaryRequest) -> str:
    """Return the nine sections."""
    said = [item for item in request.said if not item.is_summary]
    earlier = request.previous or "\n".join(item.text for item in request.said if item.is_summary)
    previous = _sections_of(earlier)
    room = _room(said, request.max_output_tokens)
    left, parts = 0, []
    for (title, share), write in zip(SHARES.items(), WRITERS, strict=True):
        mine = int(room * share) + left
        body = write(Source(said, previous.get(title, ""), mine))
        left = max(0, mine - utf8_size(body))
        parts.append(f"{title}\n{body or 'none'}")
    return _harmless("\n\n".join(parts))


def _room(said: Sequence[Said], max_output_tokens: int) -> int:
    """Return how many bytes the summary may have."""
    source = sum(utf8_size(item.text) + sum(len(call.arguments) for call in item.calls) for item in said)
    wanted = min(max(int(source * SHARE_OF_SOURCE), LEAST_BYTES), MOST_BYTES)
    return min(wanted, max_output_tokens * BYTES_PER_TOKEN)


_TAGS = re.compile(
    r"<(?=[\s/]*(?:antml:)?(?:summary|analysis|think(?:ing)?|reasoning|scratchpad|invoke|parameter"
    r"|tool_use|tool_calls?|function_calls?)\b)",
    re.IGNORECASE,
)


def _harmless(text: str) -> str:
    """Return the text so that no quoted tag can be taken for the answer's own."""
    return _TAGS.sub("‹", text)


# an earlier summary ------------------------------------------------------------------------------

_NUMBERED = re.compile(r"^#*\s*\**\s*([1-9])\.\s+\**([^\n]{0,60}?)\**:?\**\s*$", re.MULTILINE)


def _sections_of(summary: str) -> dict[str, str]:
    """Return an earlier summary by our sections: by their numbers where it has nine, else all of it as the second."""
    text = summary.partition(FACTS_HEADING)[0].strip()
    if not text:
        return {}
    marks = list(_NUMBERED.finditer(text))
    titles = list(SHARES)
    if len(marks) < 5:
        return {titles[1]: text}
    found: dict[str, str] = {}
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        body = text[mark.end() : end].strip()
        if body.lower() not in ("", "none"):
            found[titles[int(mark[1]) - 1]] = body
    return found
