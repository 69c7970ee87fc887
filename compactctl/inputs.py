"""Which files a command works on: from files, folders, globs, ids and `-` to a list without repeats, in fixed order."""

import fnmatch
import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from compactctl import agents
from compactctl.disk import read_error
from compactctl.errors import NotFound, ReadError, UsageError
from compactctl.generations import is_output
from compactctl.layout import COMPACTED
from compactctl.options import Selection

SESSION_ENDINGS = (".jsonl", ".json", ".jsonl.zst")
OWN_ENDINGS = (f"{COMPACTED}.jsonl", f"{COMPACTED}.jsonl.zst")
STANDARD_INPUT = "-"

MOST_NAMED = 10
"""How many sessions are named where an id stands for several."""


class Input(Struct, frozen=True):
    """One file to work on. `relative` is where its results go under `--out`; a named file is `explicit`."""

    path: str
    relative: str
    is_explicit: bool
    size_bytes: int = 0
    """As the folder has it; 0 where that is not known."""


class Inputs(Struct, frozen=True):
    """The files found, and what could not be looked at: named paths as errors, the rest as sentences."""

    files: tuple[Input, ...]
    errors: tuple[tuple[str, ReadError], ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Which file an id was found to stand for."""
    left_out: int = 0
    """How many files were left out by name or date."""


def find(
    paths: Sequence[str],
    selection: Selection = Selection(),  # noqa: B008 (frozen)
    *,
    own_outputs: bool = False,
    agent_folders: Sequence[Path] = (),
) -> Inputs:
    """Return the files that `paths` stand for, without those that the selection leaves out.

    Folders are walked in order of names: for most commands all session files but our own outputs, for `verify`
    and `restore` (`own_outputs`) our outputs alone. What is no path may be the id of a session in the agents' folders;
    one that was never compacted is then given as it is, for them to say so.
    Raises UsageError where an id stands for several.
    """
    finder = _Finder(selection, own_outputs, agent_folders)
    for given in paths:
        for path in finder.meant(given):
            finder.add(path)
    return Inputs(
        tuple(finder.files.values()), tuple(finder.errors), tuple(finder.problems), tuple(finder.notes), finder.left_out
    )


class _Finder:
    """What was found so far: files by their real path."""

    def __init__(self, selection: Selection, own_outputs: bool, agent_folders: Sequence[Path]) -> None:
        self.files: dict[str, Input] = {}
        self.errors: list[tuple[str, ReadError]] = []
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.left_out = 0
        self._selection = selection
        self._own_outputs = own_outputs
        self._agent_folders = agent_folders

    def meant(self, given: str) -> list[str]:
        """Return the paths that one argument stands for: itself, what a glob matches, or a session by its id."""
        if given == STANDARD_INPUT or os.path.lexists(given):
            return [given]
        if any(mark in given for mark in "*?["):
            return sorted(glob.glob(given, recursive=True)) or [given]
        if self._agent_folders and agents.may_be_id(given):
            return self._by_id(given)
        return [given]

    def _by_id(self, given: str) -> list[str]:
        every = agents.sessions(given, self._agent_folders)
        sessions = [path for path in every if _is_session(os.path.basename(path))]
        found = (self._own_outputs and [path for path in every if _is_own(path)]) or sessions
        if len(found) > 1:
            named = ", ".join(found[:MOST_NAMED])
            more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
            raise UsageError(f"{given} is how {len(found)} session ids start; write more, or a path: {named}{more}")
        if found:
            self.notes.append(f"{given} is {found[0]}")
            return found
        looked = ", ".join(str(folder) for folder in self._agent_folders if folder.is_dir()) or "any agent's folder"
        self.errors.append((given, NotFound(f"{given}: no such file or folder, and no session of this id in {looked}")))
        return []

    def add(self, path: str) -> None:
        """Add a file, or all that is wanted in a folder."""
        if path == STANDARD_INPUT:
            self.files.setdefault(path, Input(path, "stdin.jsonl", True))
        elif os.path.isdir(path):
            self._add_folder(path)
        else:
            self._add_named(path)

    def _add_folder(self, path: str) -> None:
        walk = _Walk(path, self._selection, self._own_outputs)
        try:
            for file, real, size_bytes in walk.files():
                self.files.setdefault(real, Input(file, _below(file, path), False, size_bytes))
        except OSError as error:
            self.errors.append((path, read_error(path, error)))
        self.problems += walk.problems
        self.left_out += walk.left_out

    def _add_named(self, path: str) -> None:
        try:
            status = os.stat(path)
        except OSError:
            status = None  # it is told when it is read
        if is_excluded(path, self._selection) or (status and not _is_of_time(status, self._selection)):
            self.left_out += 1
            return
        real = os.path.realpath(path)
        known = self.files.get(real)
        relative = known.relative if known else os.path.basename(path)
        self.files[real] = Input(known.path if known else path, relative, True, status.st_size if status else 0)


class _Walk:
    """One folder, walked: links to folders are followed as given and one level below, loops are told."""

    def __init__(self, top: str, selection: Selection, own_outputs: bool) -> None:
        self.problems: list[str] = []
        self.left_out = 0
        self._top = top
        self._selection = selection
        self._own_outputs = own_outputs
        self._seen: set[tuple[int, int]] = set()

    def files(self) -> Iterator[tuple[str, str, int]]:
        """Yield each session file with its real path and its size. Raises OSError where `top` can't be read."""
        yield from self._folder(self._top, os.scandir(self._top), 0)

    def _folder(
        self,
        path: str,
        entries: "os.ScandirIterator[str]",  # type: ignore[name-defined]
        depth: int,
    ) -> Iterator[tuple[str, str, int]]:
        status = os.stat(path)
        if (status.st_dev, status.st_ino) in self._seen:
            self.problems.append(f"{path}: a link back to a folder that is already read; skipped")
            return
        self._seen.add((status.st_dev, status.st_ino))
        with entries:
            ordered = sorted(entries, key=lambda entry: entry.name)
        real = os.path.realpath(path)
        for entry in ordered:
            try:
                yield from self._entry(entry, real, depth)
            except OSError as error:
                self.problems.append(str(read_error(entry.path, error)))

    def _entry(self, entry: "os.DirEntry[str]", folder: str, depth: int) -> Iterator[tuple[str, str, int]]:
        if entry.is_dir(follow_symlinks=depth == 0):
            if not entry.name.endswith(COMPACTED) and not self._is_excluded(entry):
                yield from self._folder(entry.path, os.scandir(entry.path), depth + 1)
        elif entry.is_symlink() and entry.is_dir():
            self.problems.append(f"{entry.path}: a link to a folder, too deep to be followed; name it to read it")
        elif self._is_wanted(entry):
            if not entry.is_file():
                what = "a link to nothing" if entry.is_symlink() and not os.path.exists(entry.path) else "no plain file"
                self.problems.append(f"{entry.path}: {what}; skipped")
                return
            status = entry.stat()
            if self._is_excluded(entry) or not _is_of_time(status, self._selection):
                self.left_out += 1
                return
            real = os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(folder, entry.name)
            yield entry.path, real, status.st_size

    def _is_wanted(self, entry: "os.DirEntry[str]") -> bool:
        return _is_own(entry.path) if self._own_outputs else _is_session(entry.name)

    def _is_excluded(self, entry: "os.DirEntry[str]") -> bool:
        return bool(self._selection.excluded) and is_excluded(_below(entry.path, self._top), self._selection)


def _below(path: str, top: str) -> str:
    return path.removeprefix(top).lstrip(os.sep)


def _is_session(name: str) -> bool:
    is_ours = f"{COMPACTED}." in name or name.endswith(".estimate.json")
    return name.lower().endswith(SESSION_ENDINGS) and not is_ours


def _is_own(path: str) -> bool:
    return path.endswith(OWN_ENDINGS) or is_output(path)


def is_excluded(path: str, selection: Selection) -> bool:
    """Return whether a file or folder is left out: by its name, or by its path below the folder that was given."""
    names = (os.path.basename(path), path, os.path.join(os.sep, path))
    return any(fnmatch.fnmatch(name, pattern) for pattern in selection.excluded for name in names)


def _is_of_time(status: os.stat_result, selection: Selection) -> bool:
    since, until = selection.since_ns, selection.until_ns
    return (since is None or status.st_mtime_ns >= since) and (until is None or status.st_mtime_ns <= until)


def output_folder(item: Input, out: str | None) -> Path:
    """Return the folder that the results of one input go to."""
    if out is None:
        return Path(item.path).parent
    return Path(out) / Path(item.relative).parent
