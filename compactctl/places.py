"""Whether two names are one file, also of files that are not there yet: through links, and where case does not count.

So that two outputs that would be one are told before anything is written.
"""

import os
import unicodedata
from collections.abc import Sequence
from itertools import islice

from compactctl.errors import OutputCollision

LOOKED_AT = 20
"""How many names of a folder are asked for in the other case, to learn whether case counts there."""

Place = tuple[int, int, str]
"""A folder that is there, by device and inode, and the rest of the name."""


class Places:
    """The files that a run is going to write, and for which of its inputs."""

    def __init__(self) -> None:
        self._taken: dict[Place, str] = {}
        self._folders: dict[str, Place] = {}
        self._folding: dict[Place, bool] = {}

    def take(self, source: str, targets: Sequence[str]) -> None:
        """Note what one input writes. Raises OutputCollision where another input writes the same."""
        for target in targets:
            other = self._taken.setdefault(self.place(target), source)
            if other != source:
                raise OutputCollision(
                    f"{other} and {source} would both write {target}; nothing was written "
                    "(name one folder that both are in, and --out keeps their paths apart)"
                )

    def place(self, path: str) -> Place:
        """Return what is equal for two paths exactly where they name one file."""
        head, name = os.path.split(os.path.abspath(path))
        device, inode, rest = self._folder(head)
        if self._folds_case(head, (device, inode, "")):
            name = folded(name)
        return device, inode, os.path.join(rest, name)

    def _folder(self, path: str) -> Place:
        """Return the place of a folder: its own where it is there, else that of its name in the one above."""
        if path not in self._folders:
            try:
                status = os.stat(path)
                self._folders[path] = status.st_dev, status.st_ino, ""
            except OSError:
                self._folders[path] = (0, 0, path) if os.path.dirname(path) == path else self.place(path)
        return self._folders[path]

    def _folds_case(self, path: str, place: Place) -> bool:
        if place not in self._folding:
            while not os.path.isdir(path) and os.path.dirname(path) != path:
                path = os.path.dirname(path)
            self._folding[place] = folds_case(path)
        return self._folding[place]


def folded(name: str) -> str:
    """Return a name as a file system has it that takes no notice of case."""
    return unicodedata.normalize("NFC", name).casefold()


def folds_case(folder: str) -> bool:
    """Return whether names that differ in case alone are one in a folder: what is there is asked for in the other."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, LOOKED_AT)]
    except OSError:
        names = []
    for name in [*names, os.path.join(os.pardir, os.path.basename(os.path.realpath(folder)))]:
        other = os.path.join(os.path.dirname(name), os.path.basename(name).swapcase())
        if other != name:
            return _is_same(os.path.join(folder, name), os.path.join(folder, other))
    return False


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
