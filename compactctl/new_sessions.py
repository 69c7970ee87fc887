"""Which inputs can't each become a new session: the id of a new one comes from what its source holds."""

import os
from collections.abc import Callable, Hashable, Iterable

import msgspec

from compactctl import disk, generations, inputs, job
from compactctl.document import Document
from compactctl.errors import CompactctlError, OutputCollision
from compactctl.inputs import Input, Inputs
from compactctl.options import NEW_SESSION, Options
from compactctl.session import STANDARD_INPUT, opened


def without_made(found: Inputs, options: Options) -> Inputs:
    """Return the inputs without those that an earlier run made of another one of them: they are written again."""
    beside = {os.path.join(_goes_to(item, options), os.path.basename(item.path)) for item in found.files}
    kept = tuple(item for item in found.files if _source(item.path) not in beside)
    left_out = len(found.files) - len(kept)
    if not left_out:
        return found
    said = f"left out: {left_out:,} made by --new-session of another session here (to compact it, leave that one out)"
    return msgspec.structs.replace(found, files=kept, notes=(*found.notes, said))


def _goes_to(item: Input, options: Options) -> str:
    return os.path.realpath(inputs.output_folder(item, options.out))


def _source(path: str) -> str | None:
    """Return where the session that a new one was made of would lie, were it beside it; None for any other session."""
    paths = generations.paths_of(path)
    if not os.path.exists(paths.report):
        return None
    receipt = generations.newest(paths)
    if receipt is None or receipt.place != NEW_SESSION:
        return None
    return os.path.join(os.path.realpath(paths.folder.parent), receipt.source.name)


def require_different(found: Inputs, options: Options) -> None:
    """Raise OutputCollision where two inputs hold the same, and would both be written as one new session.

    Only files of one size are read, and packed ones, where their results go to one folder.
    """
    files = [item for item in found.files if item.path != STANDARD_INPUT]
    for beside in _grouped(files, lambda item: _goes_to(item, options)):
        for same_size in _grouped(beside, lambda item: _size_bytes(item.path)):
            for first, other, *_ in _grouped(same_size, lambda item: _sha256(item.path)):
                if _has_new_session(first.path, options):
                    raise OutputCollision(
                        f"{first.path} and {other.path} hold the same, so that both would be written as one new "
                        "session; nothing was written"
                    )


def _grouped(files: Iterable[Input], key: Callable[[Input], Hashable]) -> list[list[Input]]:
    """Return the groups of several inputs that have a key in common; where it is None there is none."""
    groups: dict[Hashable, list[Input]] = {}
    for item in files:
        groups.setdefault(key(item), []).append(item)
    groups.pop(None, None)
    return [group for group in groups.values() if len(group) > 1]


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
