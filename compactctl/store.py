"""The only module that writes session files and what lies beside them: each whole or not at all, mode 0600.

A file is written under a temporary name in the same folder, synced, and only then given its own name, which the synced
folder keeps. So after a crash there is the old file or the new one. What a killed run left is removed by the next.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from compactctl.disk import BINARY, NO_FOLLOW, may_be_ours
from compactctl.errors import OutputChanged, WriteError, reason_of
from compactctl.layout import COMPACTED

FILE_MODE = 0o600
FOLDER_MODE = 0o700

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | BINARY


class Candidate:
    """A file being written: complete and synced under a temporary name, then put in place or thrown away.

    `like` is a file whose mode, owner and time of change the new one takes over; else it is for the user alone.
    """

    def __init__(self, path: Path, like: Path | None = None) -> None:
        self.path = path
        self._like = like
        self._temporary = _temporary(path)
        self._sha256 = sha256()
        self.size_bytes = 0

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    @property
    def written(self) -> Path:
        """Where the bytes are until `commit`."""
        return self._temporary

    def write(self, chunks: Iterable[bytes]) -> None:
        """Write and sync all of it. Raises WriteError and leaves nothing where that fails."""
        try:
            make_folder(self.path.parent)
            remove_leftovers(self.path)
            with _created(self._temporary) as target:
                for chunk in chunks:
                    target.write(chunk)
                    self._sha256.update(chunk)
                    self.size_bytes += len(chunk)
                target.flush()
                os.fsync(target.fileno())
            if self._like is not None:
                _take_after(self._temporary, self._like)
        except OSError as error:
            self.discard()
            raise write_error(self.path, error) from None
        except BaseException:
            self.discard()
            raise

    def commit(self) -> None:
        """Put the file in place, in one step. Raises WriteError."""
        try:
            os.replace(self._temporary, self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            self.discard()
            raise write_error(self.path, error) from None

    def discard(self) -> None:
        """Remove the temporary file, if it is there."""
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)


def _temporary(path: Path) -> Path:
    """Return where a file is written until it is whole; `_LEFTOVER` knows such names again."""
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _created(path: Path) -> BinaryIO:
    """Open a file for writing, for the user alone, under a name that must be free."""
    return os.fdopen(os.open(path, _NEW_FILE, FILE_MODE), "wb")


def _take_after(path: Path, model: Path) -> None:
    status = model.stat()
    with contextlib.suppress(OSError, AttributeError):
        os.chown(path, status.st_uid, status.st_gid)
    os.chmod(path, stat.S_IMODE(status.st_mode))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def require_ours(path: Path) -> None:
    """Raise OutputChanged where something else lies where a JSON file of ours is to go."""
    if os.path.lexists(path) and not may_be_ours(path):
        raise OutputChanged(f"{path}: something else is there; move it away")


def write_whole(path: Path, chunks: Iterable[bytes]) -> Candidate:
    """Write a file whole or not at all, and return what was written. Raises WriteError."""
    candidate = Candidate(path)
    candidate.write(chunks)
    candidate.commit()
    return candidate


def create(path: Path, data: bytes) -> None:
    """Write a file whole or not at all under a name that must be free, which lasts once its folder is synced.

    Raises OSError as the system gives it.
    """
    temporary = _temporary(path)
    try:
        with _created(temporary) as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        _link_new(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


def _link_new(temporary: Path, path: Path) -> None:
    """Give a finished file its name, which must be free. Where the file system has no links, rename instead."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS or os.path.lexists(path):
            raise
        os.rename(temporary, path)


_OPEN_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")


def write_named(path: str, chunks: Iterable[bytes]) -> None:
    """Write a file that a person named: whole or not at all, where a link leads to.

    A device or a pipe stays what it is, and is written to. Raises WriteError.
    """
    target = Path(path)
    try:
        mode = target.stat().st_mode
        is_stream = path.startswith(_OPEN_STREAMS) or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    except OSError:
        is_stream = False
    if not is_stream:
        write_whole(Path(os.path.realpath(path)) if target.is_symlink() else target, chunks)
        return
    try:
        with open(path, "wb") as stream:
            stream.writelines(chunks)
    except OSError as error:
        raise write_error(target, error) from None


def append(path: Path, text: bytes) -> None:
    """Put lines at the end of a file that others write to as well, on a line of their own. Raises WriteError."""
    try:
        with open(path, "ab+") as file:
            if file.tell() and not _ends_a_line(file):
                text = b"\n" + text
            file.write(text)
    except OSError as error:
        raise write_error(path, error) from None


def _ends_a_line(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def rename(path: Path, new_path: Path) -> None:
    """Give a file another name, in the place of what has it. Raises WriteError."""
    try:
        os.replace(path, new_path)
    except OSError as error:
        raise write_error(new_path, error) from None


def remove(path: Path) -> None:
    """Remove a file, where there is one. Raises WriteError."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise write_error(path, error) from None


_LEFTOVER = re.compile(r"\.(.+)\.(\d+)\.part")


def remove_leftovers(path: Path) -> None:
    """Remove temporary files that a killed run left for this name, or anywhere in a folder of ours.

    What this process writes under other names is in use.
    """
    is_ours = path.parent.name.endswith(COMPACTED) or path.parent.parent.name.endswith(COMPACTED)
    for left in _leftovers(path.parent):
        if (left.name == path.name or is_ours) and not _is_in_use(left.name, left.pid, path):
            with contextlib.suppress(OSError):
                os.unlink(left.path)


class _Leftover(Struct, frozen=True):
    """A temporary file: what it was to become, and which process wrote it."""

    name: str
    pid: int
    path: str


_LARGE_FOLDER_ENTRIES = 500
_in_large_folders: dict[Path, list[_Leftover]] = {}


def _leftovers(folder: Path) -> list[_Leftover]:
    """Return the temporary files in a folder; of a large one, where a look takes long, as they were at the first."""
    known = _in_large_folders.get(folder)
    if known is not None:
        return known
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.path) for entry in entries]
    found = [_Leftover(match[1], int(match[2]), path) for name, path in listed if (match := _LEFTOVER.fullmatch(name))]
    if len(listed) > _LARGE_FOLDER_ENTRIES:
        _in_large_folders[folder] = found
    return found


def _is_in_use(name: str, pid: int, path: Path) -> bool:
    """Return whether a temporary file belongs to a process that may still be writing it."""
    if pid == os.getpid():
        return name != path.name
    return _is_alive(pid)


def _is_alive(pid: int) -> bool:
    """Return whether a process is there; elsewhere than on POSIX nobody can ask without harm, so it counts as alive."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def make_folder(path: Path) -> None:
    """Make a folder and those above it, for the user alone; one that is there is left as it is."""
    if path.is_dir():
        return
    make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=FOLDER_MODE)
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make a rename or a new name in this folder last, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def write_error(path: Path, error: OSError) -> WriteError:
    """Return the error that says why a path can't be written."""
    return WriteError(f"{path}: cannot write: {reason_of(error)}")
