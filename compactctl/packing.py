"""Bytes compressed by zstd, and back, a chunk at a time."""

from collections.abc import Iterable, Iterator

from compactctl.errors import Unreadable

MAGIC = b"\x28\xb5\x2f\xfd"
"""What a zstd file starts with."""
_LEVEL = 3


def packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield bytes compressed by zstd, as one frame."""
    import zstandard  # costs start-up time; packed sessions are few

    frame = zstandard.ZstdCompressor(level=_LEVEL).compressobj()
    for chunk in chunks:
        yield frame.compress(chunk)
    yield frame.flush()


def unpacked(chunks: Iterable[bytes], path: str) -> Iterator[bytes]:
    """Yield the bytes of the frames in a packed file. Raises Unreadable, naming the path, where they are not whole."""
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    try:
        for chunk in chunks:
            rest = chunk
            while rest:
                if frame.eof:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(rest)
                rest = frame.unused_data
    except zstandard.ZstdError as error:
        raise Unreadable(f"{path}: not a whole zstd file: {error}") from None
    if not frame.eof:
        raise Unreadable(f"{path}: not a whole zstd file: its end is missing")
