"""Files read, never written: plain ones alone, since a pipe or a device could keep us waiting for ever.

A session may be packed, or come by standard input: then it is read from a temporary file without a name.
"""

import contextlib
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from io import BufferedReader, FileIO
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from compactctl import packing
from compactctl.errors import NotFound, ReadError, Unreadable, reason_of

READ_BUFFER_BYTES = 1 << 20
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
BINARY = getattr(os, "O_BINARY", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)


class Snapshot(Struct, frozen=True):
    """What tells whether a file is still the one that was opened."""

    size_bytes: int
    modified_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "Snapshot | None":
        """Return how a file is now; None where it is gone."""
        try:
            status = path.stat()
        except OSError:
            return None
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)


def open_plain(path: Path | str, *, follow: bool = True) -> BufferedReader:
    """Open a plain file for reading. Raises OSError for all else: a pipe or a device could keep us waiting for ever.

    Without `follow` a link is no plain file either.
    """
    _require_plain(os.stat(path, follow_symlinks=follow))
    descriptor = os.open(path, os.O_RDONLY | _NO_WAITING | BINARY | (0 if follow else NO_FOLLOW))
    try:
        _require_plain(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return BufferedReader(FileIO(descriptor), READ_BUFFER_BYTES)


def _require_plain(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder, not a file")
    if stat.S_ISFIFO(status.st_mode):
        raise OSError(errno.EINVAL, "it is a pipe, not a file; standard input is read by the name -")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device or a socket or a link, not a file")


@contextlib.contextmanager
def reading(path: str) -> Iterator[BinaryIO]:
    """Open a session for reading: a file, a zstd file (unpacked to a temporary file), or `-` for standard input.

    Raises NotFound or Unreadable, naming the path.
    """
    if path == "-":
        if sys.stdin is None:
            raise Unreadable("standard input is closed")
        with tempfile.TemporaryFile() as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled, READ_BUFFER_BYTES)
            spooled.seek(0)
            yield spooled
        return
    try:
        source = open_plain(path)
    except OSError as error:
        raise read_error(path, error) from None
    with source:
        try:
            is_session_packed = _is_packed(source)
        except OSError as error:
            raise read_error(path, error) from None
        if not is_session_packed:
            yield source
            return
        with tempfile.TemporaryFile() as unpacked:
            _unpack(path, source, unpacked)
            unpacked.seek(0)
            yield unpacked


def is_packed(path: str) -> bool:
    """Return whether a file is compressed by zstd."""
    try:
        with open_plain(path) as source:
            return _is_packed(source)
    except OSError as error:
        raise read_error(path, error) from None


def _is_packed(source: BufferedReader) -> bool:
    """Return whether a file that was just opened is compressed, without filling its buffer."""
    start = source.raw.read(len(packing.MAGIC))
    source.raw.seek(0, os.SEEK_SET)
    return start == packing.MAGIC


def _unpack(path: str, source: BinaryIO, unpacked: BinaryIO) -> None:
    try:
        unpacked.writelines(packing.unpacked(_windows(source), path))
    except OSError as error:
        raise Unreadable(f"{path}: no room to unpack it in {tempfile.gettempdir()}: {reason_of(error)}") from None


def _windows(source: BinaryIO) -> Iterator[bytes]:
    while window := source.read(READ_BUFFER_BYTES):
        yield window


def read_error(path: str, error: OSError) -> ReadError:
    """Return the error that says why a path can't be read."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotFound(f"{path}: no such file or folder")
    return Unreadable(f"{path}: {reason_of(error)}")


def read_beside(path: Path) -> bytes | None:
    """Return the bytes of a small file that lies beside a session; None where there is none that can be read."""
    try:
        with open_plain(path) as source:
            return source.read()
    except OSError:
        return None


_OURS = b'{"schema":"compactctl.'


def may_be_ours(path: Path) -> bool:
    """Return whether what lies there starts as each JSON file of ours does, as far as it goes: one may be torn."""
    try:
        with open_plain(path) as source:
            start = b"".join(source.read(2 * len(_OURS)).split())[: len(_OURS)]
    except OSError:
        return False
    return _OURS.startswith(start)


def file_sha256(path: Path) -> str:
    """Return the hex digest of a file; "" for what is no plain file that can be read."""
    digest = sha256()
    try:
        with open_plain(path) as source:
            for window in _windows(source):
                digest.update(window)
    except OSError:
        return ""
    return digest.hexdigest()


def line_digests(path: Path) -> frozenset[str]:
    """Return the hex digests of a file's lines, without their line ends and the blanks before those."""
    with path.open("rb") as source:
        return frozenset(sha256(line.rstrip(b"\r\n")).hexdigest() for line in source)


def size_bytes(folder: Path) -> int:
    """Return the bytes of all plain files under a folder; 0 where there is none."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                status = os.lstat(os.path.join(root, name))
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return total
