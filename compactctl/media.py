"""What images, documents and sealed reasoning cost in tokens: rules of their own, outside the bytes of text.

An image costs by its pixels, however many bytes of base64 carry it, and by whose model sees it. Every rule is bounded
and never zero, so that neither a 34 MB screenshot nor a broken header distorts an estimate. Reading finds the pixels
(and pages) alone; a rule makes them tokens once the model is known.

Sources: Claude's patches of 28 pixels and both generations of limits as in litellm 1.110.2's token counter and
Anthropic's page on vision; OpenAI's tiles and patches as in its guide on images and vision, and for gpt-5.2 and later
as litellm has them (high detail); Gemini's tiles as in Google's pages on tokens and media resolution (Gemini 3: the
default for images). A page of a PDF as in Anthropic's page on PDF support (1,500 to 3,000 tokens of text); sealed
reasoning from langchain-ai/langchain#39697 (a blob of 4 KB was 440 tokens).
"""

import base64
import binascii
import io
import math
import re
from bisect import bisect_right
from typing import NamedTuple

from msgspec import Struct

from compactctl.model import Media

HEADER_CHARACTERS = 64 * 1024
"""How much base64 is decoded to find an image's dimensions. A multiple of four."""

IMAGE_MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")
"""How the image kinds start that providers take; no other reader is let loose on a transcript's bytes."""

PDF_HEADER_BYTES = 1024
"""Where a PDF that is made for the web says how many pages it has."""

MOST_PAGES = 100
"""A PDF that says more is counted as this: providers take no more."""

SEALED_SAMPLE_BYTES, SEALED_SAMPLE_TOKENS = 4096, 440


# what an image costs ------------------------------------------------------------------------------------


class Patches(Struct, frozen=True):
    """A token for each square patch, times a factor, after the image was shrunk to both limits, its shape kept."""

    side: int
    most: int
    """An image of more patches is shrunk until it has no more."""
    long_edge: int = 1 << 16
    """A longer image is shrunk to this before it is counted."""
    factor: float = 1.0

    def tokens(self, width: int, height: int) -> int:
        """Return what an image of these pixels costs."""
        longest = max(width, height)

        def patches(edge: int) -> int:
            return self._along(width * edge / longest) * self._along(height * edge / longest)

        edges = range(1, min(longest, self.long_edge) + 1)
        fitting = bisect_right(edges, self.most, key=patches)
        return math.ceil(patches(edges[max(fitting - 1, 0)]) * self.factor)

    def _along(self, pixels: float) -> int:
        return max(1, -(-round(pixels) // self.side))

    @property
    def unknown(self) -> int:
        """The most that an image can cost."""
        return math.ceil(self.most * self.factor)


class Tiles(Struct, frozen=True):
    """A base and so much for each tile of 512 pixels, after shrinking into a square of 2048 and a short side of 768."""

    base: int
    tile: int

    def tokens(self, width: int, height: int) -> int:
        """Return what an image of these pixels costs."""
        scale = min(1, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        across, down = (max(1, -(-round(pixels * scale) // 512)) for pixels in (width, height))
        return self.base + self.tile * across * down

    @property
    def unknown(self) -> int:
        """The most that an image can cost: two by four tiles."""
        return self.base + self.tile * 8


class GeminiTiles(Struct, frozen=True):
    """As much for each tile of 768 pixels, and for a small image as for one."""

    tile: int = 258
    most: int = 16

    def tokens(self, width: int, height: int) -> int:
        """Return what an image of these pixels costs."""
        if max(width, height) <= 384:
            return self.tile
        return self.tile * min(self.most, -(-width // 768) * -(-height // 768))

    @property
    def unknown(self) -> int:
        """What four tiles cost, as a screenshot does."""
        return self.tile * 4


class Fixed(Struct, frozen=True):
    """The same for every image."""

    unknown: int

    def tokens(self, width: int, height: int) -> int:
        """Return what any image costs."""
        return self.unknown


class Rule(Struct, frozen=True):
    """What media cost one family of models."""

    name: str
    image: Patches | Tiles | GeminiTiles | Fixed
    page_tokens: int = 3_000
    """A page of a PDF; so is a recording, or a document whose length no header tells, counted."""
    text_bytes_per_token: float | None = None
    """Set where a gateway counts the encoded bytes as text: then nothing else counts."""

    def tokens(self, item: Media) -> int:
        """Return what an image, a document or another block costs. What has no known size costs the most it can."""
        if self.text_bytes_per_token is not None:
            return math.ceil(item.size_bytes / self.text_bytes_per_token)
        match item.kind:
            case "image" if item.width > 0 and item.height > 0:
                return self.image.tokens(item.width, item.height)
            case "image":
                return self.image.unknown
            case "block":
                return -(-item.size_bytes * 2 // 7)
            case _:
                return self.page_tokens * max(1, min(item.pages, MOST_PAGES))


CLAUDE = Rule("Claude before 4.7", Patches(28, 1568, 1568))
CLAUDE_4_7 = Rule("Claude from 4.7", Patches(28, 4784, 2576))
GEMINI = Rule("Gemini", GeminiTiles(), page_tokens=258)
GEMINI_3 = Rule("Gemini 3", Fixed(1120), page_tokens=560)

_OPENAI: tuple[tuple[str, Rule], ...] = (
    (r"gpt-4o-mini", Rule("gpt-4o-mini", Tiles(2833, 5667))),
    (r"gpt-4\.1-nano|gpt-5-nano", Rule("gpt-5-nano", Patches(32, 1536, factor=2.46))),
    (r"gpt-4\.1-mini|gpt-5-mini", Rule("gpt-5-mini", Patches(32, 1536, factor=1.62))),
    (r"o4-mini", Rule("o4-mini", Patches(32, 1536, factor=1.72))),
    (r"gpt-5\.(?:[2-9]|\d\d)|gpt-[6-9]", Rule("gpt-5.2", Patches(32, 2500, 2048, factor=1.2))),
    (r"gpt-5|codex", Rule("gpt-5", Tiles(70, 140))),
    (r"o[13]", Rule("o3", Tiles(75, 150))),
    (r"gpt|chatgpt|o\d", Rule("gpt-4o", Tiles(85, 170))),
)
"""OpenAI's rules by how the name of a model begins; the first that fits counts."""

_CLAUDE_VERSION = re.compile(r"claude-[a-z]+-(\d+)(?:[-.](\d{1,2}))?(?![\d])")


def rule(model: str | None) -> Rule:
    """Return what media cost for a model; for one of no known family, as for Claude before 4.7."""
    name = (model or "").lower().rpartition("/")[2]
    if "gemini" in name:
        return GEMINI_3 if "gemini-3" in name else GEMINI
    if "claude" in name:
        version = _CLAUDE_VERSION.search(name)
        is_newer = version is not None and (int(version[1]), int(version[2] or 0)) >= (4, 7)
        return CLAUDE_4_7 if is_newer else CLAUDE
    return next((each for start, each in _OPENAI if re.match(start, name)), CLAUDE)


def sealed_tokens(sealed_bytes: int) -> int:
    """Return what encrypted reasoning of this many bytes of ciphertext costs, rounded up; 0 for none."""
    return -(-sealed_bytes * SEALED_SAMPLE_TOKENS // SEALED_SAMPLE_BYTES)


# what reading finds out ---------------------------------------------------------------------------------


class Pixels(NamedTuple):
    """The size of an image; 0 and 0 where no header that a provider takes tells it."""

    width: int
    height: int


def image_pixels(data: str) -> Pixels:
    """Return the size of an image that is given as base64 or as a data URL. Only the head of the data is decoded."""
    raw = _head(data)
    if not raw.startswith(IMAGE_MAGIC):
        return Pixels(0, 0)
    import imagesize  # type: ignore[import-untyped]  # takes 50 ms, and most sessions have no image

    width, height = imagesize.get(io.BytesIO(raw))
    return Pixels(width, height) if width > 0 and height > 0 else Pixels(0, 0)


_LINEARIZED = re.compile(rb"/Linearized\b[^>]{0,400}?/N (\d{1,6})\b")


def pdf_pages(data: str) -> int:
    """Return how many pages a PDF in base64 says that it has; 0 where its head does not say it."""
    found = _LINEARIZED.search(_head(data)[:PDF_HEADER_BYTES])
    return int(found[1]) if found else 0


def _head(data: str) -> bytes:
    if data.startswith("data:"):
        data = data[data.find(",") + 1 :]
    packed = "".join(data[:HEADER_CHARACTERS].split())
    try:
        return base64.b64decode(packed[: len(packed) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""
