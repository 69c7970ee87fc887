"""Which inputs can't each become a new session: the id of a new one comes from what its source holds."""

import os
from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec

from compactctl import disk, generations, inputs, job
from compactctl.document import Document
from compactctl.errors import CompactctlError, OutputCollision
from compactctl.inputs import Input, Inputs
from compactctl.options import NEW_SESSION, Options
from compactctl.session import STANDARD_INPUT, opened


def without_made(found: Inputs) -> Inputs:
    """Return the inputs without those that an earlier run made of another one of them: they are written again."""
    given = {os.path.realpath(item.path) for item in found.files}
    kept = tuple(item for item in found.files if _source(item.path) not in given)
    left_out = len(found.files) - len(kept)
    if not left_out:
        return found
    said = f"left out: {left_out:,} made by --new-session of another session here (to compact it, leave that one out)"
    return msgspec.structs.replace(found, files=kept, notes=(*found.notes, said))


def _source(path: str) -> str | None:
    """Return the real path of the session that a new one was made of, where both are in one folder."""
    paths = generations.paths_of(path)
    if not os.path.exists(paths.report):
        return None
    receipt = generations.newest(paths)
    if receipt is None or receipt.place != NEW_SESSION:
        return None
    return os.path.realpath(paths.session.with_name(receipt.source.name))


def require_different(found: Inputs, options: Options) -> None:
    """Raise OutputCollision where two inputs hold the same, and would both be written as one new session.

    Only files of one size are read, and packed ones, where their results go to one folder.
    """
    files = [item for item in found.files if item.path != STANDARD_INPUT]
    for beside in _grouped((os.path.realpath(inputs.output_folder(item, options.out)), item) for item in files):
        for same_size in _grouped((_size_bytes(item.path), item) for item in beside):
            for equal in _grouped((_sha256(item.path), item) for item in same_size):
                first, other, *_ = (item.path for item in equal)
                if _has_new_session(first, options):
                    raise OutputCollision(
                        f"{first} and {other} hold the same, so that both would be written as one new session; "
                        "nothing was written"
                    )


def _grouped(keyed: Iterable[tuple[int | str | None, Input]]) -> Iterator[list[Input]]:
    """Yield the groups of several inputs that have a key in common."""
    known = sorted(((str(key), item) for key, item in keyed if key is not None), key=lambda each: each[0])
    for _, group in groupby(known, key=lambda each: each[0]):
        members = [item for _, item in group]
        if len(members) > 1:
            yield members


def _size_bytes(path: str) -> int | None:
    """Return the size of a session, unpacked; None where it can't be read."""
    try:
        if not disk.is_packed(path):
            return os.path.getsize(path)
        with disk.reading(path) as source:
            return source.seek(0, os.SEEK_END)
    except (CompactctlError, OSError):
        return None


def _sha256(path: str) -> str | None:
    try:
        with disk.reading(path) as source:
            return Document(source).sha256()
    except CompactctlError:
        return None


def _has_new_session(path: str, options: Options) -> bool:
    try:
        with opened(path, options.format) as session:
            job.new_session(session, session.document.sha256())
    except CompactctlError:
        return False
    return True
