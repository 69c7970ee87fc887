"""The files of spilled texts: never written or read through a link, never overwritten, read back once written."""

import contextlib
import errno
import os
import stat
from hashlib import sha256
from pathlib import Path

from compactctl import store
from compactctl.disk import file_sha256, open_plain
from compactctl.errors import SpillFailed, reason_of
from compactctl.layout import SPILL_FOLDER, is_plain_name, own_paths, stem


def write(folder: Path, name: str, data: bytes) -> Path:
    """Write one spilled text and read it back, or reuse a file with the very same bytes; `keep` makes its name last.

    Raises SpillFailed where anything else has the name, a link stands in the way, or the disk refuses.
    """
    path = folder / name
    try:
        _make_folder(folder)
        store.remove_leftovers(path)
        if os.path.lexists(path):
            if _plain_bytes(path) != data:
                raise SpillFailed(f"{path}: something else is there")
            return path
        store.create(path, data)
        if _plain_bytes(path) != data:
            raise SpillFailed(f"{path}: read back, it is not what was written")
    except OSError as error:
        raise SpillFailed(f"{path}: {reason_of(error)}") from None
    return path


def keep(folder: Path) -> None:
    """Make the names of all files in a spill folder last. Raises WriteError."""
    try:
        store.sync_folder(folder)
    except OSError as error:
        raise store.write_error(folder, error) from None


def _make_folder(folder: Path) -> None:
    """Make `<stem>.compacted/tool-results`; both must be real folders, not links to elsewhere."""
    for part in (folder.parent, folder):
        store.make_folder(part)
        if not stat.S_ISDIR(os.lstat(part).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "not a folder of its own", str(part))


def existing(folder: Path) -> dict[str, str]:
    """Return the files in a spill folder: name to sha256, or to "" for what is no plain file."""
    try:
        with os.scandir(folder) as entries:
            return {
                entry.name: file_sha256(Path(entry.path)) if entry.is_file(follow_symlinks=False) else ""
                for entry in entries
            }
    except OSError:
        return {}


def is_whole(folder: Path, name: str, digest: str) -> bool:
    """Return whether a spill file is there, is a plain file, and has this sha256."""
    if not is_plain_name(name):
        return False
    data = _plain_bytes(folder / name)
    return data is not None and sha256(data).hexdigest() == digest


def _plain_bytes(path: Path) -> bytes | None:
    """Return a plain file's bytes, never through a link; None for anything else."""
    try:
        with open_plain(path, follow=False) as source:
            return source.read()
    except OSError:
        return None


def texts_named(session: Path, text: str) -> list[str]:
    """Return the texts of the histories and spilled files beside a session that a text names, by folder and file.

    Files elsewhere are not looked at, whatever the text says; nor is what can't be read.
    """
    texts = []
    for folder in dict.fromkeys((own_paths(session).folder, session.with_name(stem(session.name)))):
        for path in sorted({*folder.glob("history*.jsonl"), *folder.glob(f"{SPILL_FOLDER}/*")}):
            if f"{folder.name}/{path.relative_to(folder).as_posix()}" in text:
                with contextlib.suppress(OSError), open_plain(path, follow=False) as source:
                    texts.append(source.read().decode("utf-8", "replace"))
    return texts
