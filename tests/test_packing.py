"""Bytes compressed by zstd come back whole, however their frames lie in the pieces that are read."""

import pytest

from compactctl.errors import Unreadable
from compactctl.packing import packed, unpacked

TEXTS = (b"one\n", b"two two two\n", b"three\n")
FRAMES = tuple(b"".join(packed([text])) for text in TEXTS)


def pieces(raw, size):
    return [raw[start : start + size] for start in range(0, len(raw), size)]


@pytest.mark.parametrize("size", range(1, len(b"".join(FRAMES)) + 1))
def test_frames_may_end_anywhere_in_what_is_read(size):
    assert b"".join(unpacked(pieces(b"".join(FRAMES), size), "s.zst")) == b"".join(TEXTS)


@pytest.mark.parametrize("read", [FRAMES, [b"".join(FRAMES)]], ids=["a frame each", "all at once"])
def test_a_torn_last_frame_is_refused(read):
    torn = [*read[:-1], read[-1][:-1]]
    with pytest.raises(Unreadable, match=r"^s\.zst: not a whole zstd file: its end is missing$"):
        list(unpacked(torn, "s.zst"))


@pytest.mark.parametrize("read", [[*FRAMES, b"no frame"], [FRAMES[0] + b"no frame"]], ids=["alone", "behind a frame"])
def test_what_follows_a_frame_and_is_none_is_refused(read):
    with pytest.raises(Unreadable, match=r"^s\.zst: not a whole zstd file: "):
        list(unpacked(read, "s.zst"))
