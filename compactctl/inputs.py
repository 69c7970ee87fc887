"""Which files a command works on: from files, folders, globs and `-` to a list without repeats, in a fixed order."""

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from compactctl.errors import ReadError
from compactctl.generations import is_output
from compactctl.store import COMPACTED, read_error

SESSION_ENDINGS = (".jsonl", ".json", ".jsonl.zst")
OWN_ENDINGS = (f"{COMPACTED}.jsonl", f"{COMPACTED}.jsonl.zst")


class Input(Struct, frozen=True):
    """One file to work on. `relative` is where its results go under `--out`; a named file is `explicit`."""

    path: str
    relative: str
    is_explicit: bool


class Inputs(Struct, frozen=True):
    """The files found, and what could not be looked at: named paths as errors, the rest as sentences."""

    files: tuple[Input, ...]
    errors: tuple[tuple[str, ReadError], ...]
    problems: tuple[str, ...]


def find(paths: Sequence[str], *, own_outputs: bool = False) -> Inputs:
    """Return the files that `paths` stand for.

    Folders are walked in order of names: for most commands all session files but our own outputs, for `verify`
    and `restore` (`own_outputs`) our outputs alone.
    """
    files: dict[str, Input] = {}
    errors: list[tuple[str, ReadError]] = []
    problems: list[str] = []
    for path in (found for given in paths for found in _globbed(given)):
        if path == "-":
            files.setdefault(path, Input(path, "stdin.jsonl", True))
        elif os.path.isdir(path):
            walk = _Walk(own_outputs)
            try:
                for file in walk.files(path):
                    relative = os.path.relpath(file, path)
                    files.setdefault(os.path.realpath(file), Input(file, relative, False))
            except OSError as error:
                errors.append((path, read_error(path, error)))
            problems += walk.problems
        else:
            known = files.get(os.path.realpath(path))
            relative = known.relative if known else os.path.basename(path)
            files[os.path.realpath(path)] = Input(known.path if known else path, relative, True)
    return Inputs(tuple(files.values()), tuple(errors), tuple(problems))


def _globbed(path: str) -> list[str]:
    if any(mark in path for mark in "*?[") and not os.path.lexists(path):
        return sorted(glob.glob(path, recursive=True)) or [path]
    return [path]


class _Walk:
    """One folder, walked: links to folders are followed as given and one level below, loops are told."""

    def __init__(self, own_outputs: bool) -> None:
        self.problems: list[str] = []
        self._own_outputs = own_outputs
        self._seen: set[tuple[int, int]] = set()

    def files(self, top: str) -> Iterator[str]:
        """Yield the session files under `top`. Raises OSError where `top` itself can't be read."""
        yield from self._folder(top, os.scandir(top), 0)

    def _folder(self, path: str, entries: "os.ScandirIterator[str]", depth: int) -> Iterator[str]:  # type: ignore[name-defined]
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in self._seen:
            self.problems.append(f"{path}: a link back to a folder that is already read; skipped")
            return
        self._seen.add((status.st_dev, status.st_ino))
        with entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
        for entry in ordered:
            try:
                yield from self._entry(entry, depth)
            except OSError as error:
                self.problems.append(str(read_error(entry.path, error)))

    def _entry(self, entry: "os.DirEntry[str]", depth: int) -> Iterator[str]:
        if entry.is_dir(follow_symlinks=depth == 0):
            if not entry.name.endswith(COMPACTED):
                yield from self._folder(entry.path, os.scandir(entry.path), depth + 1)
        elif entry.is_symlink() and entry.is_dir():
            self.problems.append(f"{entry.path}: a link to a folder, too deep to be followed; name it to read it")
        elif self._is_wanted(entry) and entry.is_file():
            yield entry.path

    def _is_wanted(self, entry: "os.DirEntry[str]") -> bool:
        name = entry.name
        if self._own_outputs:
            return name.endswith(OWN_ENDINGS) or is_output(Path(entry.path))
        is_own = f"{COMPACTED}." in name or name.endswith(".estimate.json")
        return name.lower().endswith(SESSION_ENDINGS) and not is_own


def output_folder(item: Input, out: str | None) -> Path:
    """Return the folder that the results of one input go to."""
    if out is None:
        return Path(item.path).parent
    return Path(out) / Path(item.relative).parent
