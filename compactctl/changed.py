"""Which files differ from a revision of git: asked of git itself, in the repository that each file lies in."""

import os
import subprocess
from collections.abc import Sequence

import msgspec

from compactctl.errors import UsageError
from compactctl.inputs import STANDARD_INPUT, Inputs

OPTION = "--changed-since"

_OWN_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX")
"""What a hook's environment says about where git is; here each file's own folder says it."""


def only(found: Inputs, revision: str) -> Inputs:
    """Return the files that differ from the revision in the working tree, or that git does not know.

    Raises UsageError where the revision is none, a file is in no repository, or git is not to be had.
    """
    if any(item.path == STANDARD_INPUT for item in found.files):
        raise UsageError(f"{OPTION}: standard input is no file that git could know")
    repositories = _Repositories(revision)
    kept = tuple(item for item in found.files if repositories.differs(_place(item.path)))
    left_out = len(found.files) - len(kept)
    told = (f"{left_out:,} files are as in {revision}",) if left_out else ()
    return msgspec.structs.replace(found, files=kept, notes=(*found.notes, *told))


def _place(path: str) -> str:
    """Return where a file is for git: links to folders are followed, a link that is the file itself is not."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


class _Repositories:
    """The repositories met so far: by folder where each is, by its top what differs there and what git knows."""

    def __init__(self, revision: str) -> None:
        self._revision = revision
        self._tops: dict[str, str] = {}
        self._files: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def differs(self, path: str) -> bool:
        """Return whether a file differs from the revision, or is new."""
        folder = os.path.dirname(path)
        if folder not in self._tops:
            self._tops[folder] = self._top(folder)
        top = self._tops[folder]
        if top not in self._files:
            self._files[top] = self._of(top)
        changed, known = self._files[top]
        name = os.path.relpath(path, top).replace(os.sep, "/")
        return name in changed or name not in known

    def _top(self, folder: str) -> str:
        made = _git(folder, ["rev-parse", "--show-toplevel"])
        if made is None:
            raise UsageError(f"{OPTION} {self._revision}: {folder} is in no git repository")
        return os.path.realpath(made.removesuffix("\n"))

    def _of(self, top: str) -> tuple[frozenset[str], frozenset[str]]:
        commit = None
        if self._revision and not self._revision.startswith("-"):
            commit = _git(top, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{self._revision}^{{commit}}"])
        if commit is None:
            raise UsageError(f"{OPTION} {self._revision}: no such revision in {top}; in CI, fetch its history, too")
        diff = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"]
        changed = _git(top, [*diff, "--ignore-submodules", commit.strip(), "--"])
        known = _git(top, ["ls-files", "-z"])
        if changed is None or known is None:
            raise UsageError(f"{OPTION} {self._revision}: git can't compare the files in {top}")
        return frozenset(changed.split("\0")), frozenset(known.split("\0"))


def _git(folder: str, arguments: Sequence[str]) -> str | None:
    """Return what git prints; None where it fails. Raises UsageError where there is no git."""
    environment = {name: value for name, value in os.environ.items() if name not in _OWN_PLACES}
    command = ["git", "-C", folder, "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL, env=environment)
    except OSError as error:
        raise UsageError(f"{OPTION}: git can't be run: {error.strerror or error}") from None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None
