"""What images, documents and sealed reasoning cost in tokens: rules of their own, outside the bytes of text.

An image costs by its pixels, however many bytes of base64 carry it. Every rule is bounded and never zero, so
that neither a 34 MB screenshot nor a broken header distorts an estimate.

Sources: Claude's patches of 28 pixels and both limits as in litellm's token counter and Anthropic's page on
vision (limits of the models before Claude Opus 4.7); a page of a PDF as in Anthropic's page on PDF support
(1,500 to 3,000 tokens); sealed reasoning from langchain-ai/langchain#39697 (a blob of 4 KB was 440 tokens).
"""

import base64
import binascii
import io
from bisect import bisect_right

PATCH_PIXELS = 28
"""The side of the square patch that costs one token."""

LONG_EDGE_PIXELS = 1568
"""A longer image is shrunk to this before it is counted."""

IMAGE_LIMIT_TOKENS = 1568
"""An image that would still cost more is shrunk until it does not."""

UNREADABLE_IMAGE_TOKENS = IMAGE_LIMIT_TOKENS
"""For an image whose size is unknown (a remote address, a strange header): the most that one can cost."""

OTHER_MEDIA_TOKENS = 3_000
"""For a PDF or a recording, whose length no header tells: the most that is stated for one page."""

HEADER_CHARACTERS = 64 * 1024
"""How much base64 is decoded to find an image's dimensions. A multiple of four."""

IMAGE_MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
"""How the image kinds start that providers take; no other reader is let loose on a transcript's bytes."""

SEALED_SAMPLE_BYTES, SEALED_SAMPLE_TOKENS = 4096, 440


def image_tokens(data: str) -> int:
    """Return what an image costs, given as base64 or as a data URL.

    Only the head of the data is decoded. What has no readable dimensions costs `UNREADABLE_IMAGE_TOKENS`.
    """
    if data.startswith("data:"):
        data = data[data.find(",") + 1 :]
    width, height = _dimensions(data[:HEADER_CHARACTERS])
    if width < 1 or height < 1:
        return UNREADABLE_IMAGE_TOKENS
    return pixel_tokens(width, height)


def pixel_tokens(width: int, height: int) -> int:
    """Return what an image of these pixels costs after it was shrunk to both limits, its shape kept."""
    long_edge = max(width, height)

    def cost(edge: int) -> int:
        return _patches(width * edge / long_edge) * _patches(height * edge / long_edge)

    edges = range(1, min(long_edge, LONG_EDGE_PIXELS) + 1)
    fitting = bisect_right(edges, IMAGE_LIMIT_TOKENS, key=cost)
    return cost(edges[max(fitting - 1, 0)])


def _patches(pixels: float) -> int:
    return max(1, -(-round(pixels) // PATCH_PIXELS))


def _dimensions(head: str) -> tuple[int, int]:
    """Return width and height, or -1 and -1 where no header that a provider takes is found."""
    packed = "".join(head.split())
    try:
        raw = base64.b64decode(packed[: len(packed) // 4 * 4])
    except (binascii.Error, ValueError):
        return -1, -1
    if not raw.startswith(IMAGE_MAGIC):
        return -1, -1
    import imagesize  # type: ignore[import-untyped]  # takes 50 ms, and most sessions have no image

    width, height = imagesize.get(io.BytesIO(raw))
    return width, height


def sealed_tokens(sealed_bytes: int) -> int:
    """Return what encrypted reasoning of this many bytes of ciphertext costs, rounded up; 0 for none."""
    return -(-sealed_bytes * SEALED_SAMPLE_TOKENS // SEALED_SAMPLE_BYTES)
