"""Headers of images, of any size in pixels, without the pixels."""

import base64
import struct


def png(width: int, height: int) -> bytes:
    """Return the head of a PNG of this size."""
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", width, height, 8, 6, 0, 0, 0) + bytes(40)


def gif(width: int, height: int) -> bytes:
    """Return the head of a GIF of this size."""
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(58)


def jpeg(width: int, height: int, padding: int = 0) -> bytes:
    """Return the head of a JPEG of this size, with this many bytes of comment before the size."""
    comments = b""
    while padding > 0:
        size = min(padding, 60_000)
        comments += b"\xff\xfe" + struct.pack(">H", size + 2) + bytes(size)
        padding -= size
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + comments + frame + b"\xff\xd9"


def encoded(raw: bytes) -> str:
    """Return base64, as sessions hold it."""
    return base64.b64encode(raw).decode()
