"""What every format's compaction has in common: which messages give way, and which reasoning goes with them.

Signed thinking is bound to what stands before it: behind a summary it is refused or dropped by the provider on every
turn (earendil-works/pi#9391, openclaw/openclaw#90108). It goes whole, never in part (openclaw/openclaw#97645), and an
answer that held nothing else goes with it.
"""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from msgspec import Struct

from compactctl.document import Document, Place
from compactctl.model import Message, Reasoning
from compactctl.plan import Cut

UNSIGNED = frozenset(("reasoning", "reasoning_content", "reasoning_text"))
"""Names of the field that open models gave their thinking in, which pi keeps where others have a signature."""


class Parted(Struct, frozen=True):
    """The messages of a context, parted by a cut.

    `stale` are the blocks of reasoning in what stays that must go; `emptied` the messages (by index) that are
    nothing without them.
    """

    gone: tuple[Message, ...]
    stay: tuple[Message, ...]
    """In order, leading messages included, the emptied ones not."""
    originals: tuple[Message, ...]
    """What stays behind the summary: the pinned request, and the messages that are kept."""
    stale: tuple[Place, ...]
    emptied: tuple[int, ...]


def part(document: Document, messages: tuple[Message, ...], cut: Cut) -> Parted:
    """Return the messages parted by the cut."""
    gone = [index for index in range(cut.leading, cut.first_kept) if index != cut.pinned]
    stale = {
        index: list(signed_reasoning(document, messages[index]))
        for index in range(cut.first_kept, len(messages))
        if messages[index].role == "assistant" and not messages[index].is_summary
    }
    emptied = [
        index
        for index, blocks in stale.items()
        if blocks and all(isinstance(item, Reasoning) and _block(item) in blocks for item in messages[index].parts)
    ]
    out = {*gone, *emptied}
    stay = [index for index in range(len(messages)) if index not in out]
    return Parted(
        tuple(messages[index] for index in gone),
        tuple(messages[index] for index in stay),
        tuple(messages[index] for index in stay if index >= cut.leading),
        tuple(place for blocks in stale.values() for place in blocks),
        tuple(emptied),
    )


def signed_reasoning(document: Document, message: Message) -> Iterator[Place]:
    """Yield the places of a message's blocks of reasoning that are signed or sealed for what stood before them."""
    for item in message.parts:
        if isinstance(item, Reasoning) and _is_signed(document.value(_block(item))):
            yield _block(item)


def _block(item: Reasoning) -> Place:
    """Return where the block, or the whole item, of a piece of reasoning is."""
    place = item.place
    if place.route and place.route[-1] in ("thinking", "signature", "thinkingSignature", "data", "encrypted_content"):
        return Place(place.record, place.route[:-1])
    return place


def _is_signed(block: Any) -> bool:
    if not isinstance(block, dict):
        return False
    if block.get("type") == "redacted_thinking" or block.get("encrypted_content"):
        return True
    signature = block.get("signature") or block.get("thinkingSignature")
    return isinstance(signature, str) and signature not in UNSIGNED and not signature.startswith("{")


def derived_digits(*seeds: object) -> str:
    """Return 64 hex digits that follow from these values alone."""
    return sha256("\n".join(map(str, seeds)).encode("utf-8", "replace")).hexdigest()


# our own summaries in logs of messages -------------------------------------------------------------

_MARK = re.compile(r"\[compactctl: summary of (\d+) earlier messages; the (\d+) messages behind it are originals\]\n")


def marked(summary: str, summarised: int, originals: int) -> str:
    """Return a summary behind the line by which it is known for one, and by which its originals are."""
    mark = f"[compactctl: summary of {summarised} earlier messages; the {originals} messages behind it are originals]\n"
    return mark + summary


def originals_behind(text: object) -> int | None:
    """Return how many originals follow a summary of ours; None where a text is none."""
    match = _MARK.match(text) if isinstance(text, str) else None
    return int(match[2]) if match else None


def by_record(places: Mapping[Place, bool] | Iterator[Place] | tuple[Place, ...]) -> dict[int, list[Place]]:
    """Return the places by the record that they are in."""
    found: dict[int, list[Place]] = {}
    for place in places:
        found.setdefault(place.record, []).append(place)
    return found
