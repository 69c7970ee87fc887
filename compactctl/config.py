"""Settings from where they may stand: the user's file, a file found upward, a named one, the environment, `--set`.

The promise: a file that nobody named, as it comes with a folder that somebody else made, sets limits and nothing
else, unless it is said to be trusted.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from compactctl.errors import UsageError, reason_of
from compactctl.settings import (
    Given,
    Layer,
    Resolved,
    Source,
    flattened,
    from_assignments,
    from_environment,
    resolve,
)

FILE_NAME = "compactctl.toml"
FOLDER_NAME = "compactctl"
LARGEST_FILE_BYTES = 1 << 20
"""What is larger holds no settings; it is not read into memory to find out."""


class Surroundings(Struct, frozen=True):
    """What settings depend on from outside: the working folder (None: it is gone), the environment, the platform."""

    folder: str | None
    environment: Mapping[str, str]
    platform: str

    @classmethod
    def here(cls) -> "Surroundings":
        """Return those of this process."""
        try:
            folder = os.getcwd()
        except OSError:
            folder = None
        return cls(folder, os.environ, sys.platform)

    @property
    def home(self) -> str:
        return self.environment.get("HOME") or self.environment.get("USERPROFILE") or os.path.expanduser("~")


class SettingsFile(Struct, frozen=True):
    """A file that settings came from."""

    source: Source
    path: str


class Config(Struct, frozen=True):
    """Settings with their origins, the files that were read, and where the user's own file would be."""

    resolved: Resolved
    files: tuple[SettingsFile, ...]
    user_file: str


def load(named: str | None, assignments: Sequence[str], *, trust_project: bool, surroundings: Surroundings) -> Config:
    """Return the settings of a run: from low to high the user's file, the found one, the named one, the environment
    and the assignments.

    Raises UsageError that names the file or variable and the key.
    """
    own_files = user_files(surroundings)
    user_file = next((path for path in own_files if path.is_file()), None)
    files: list[tuple[Source, Path]] = [("user file", user_file)] if user_file else []
    found = found_file(surroundings)
    if found is not None and not _is_one_of(found, user_file, named):
        files.append(("found file", found))
    if named is not None:
        files.append(("config file", Path(named)))
    way_out = f"move it to {own_files[0]}, name the file with --config, or say --trust-project"
    layers = [
        Layer(source, _given(path), way_out if source == "found file" and not trust_project else "")
        for source, path in files
    ]
    resolved = resolve([*layers, from_environment(surroundings.environment), from_assignments(assignments)])
    return Config(
        resolved, tuple(SettingsFile(source, str(path)) for source, path in files), str(user_file or own_files[0])
    )


def user_files(surroundings: Surroundings) -> list[Path]:
    """Return where the user's own file may be, the most usual place first; the first that is there counts."""
    environment, home = surroundings.environment, Path(surroundings.home)
    chosen = environment.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(chosen):
        folders = [Path(chosen)]
    elif surroundings.platform == "win32":
        folders = [Path(environment.get("APPDATA") or home / "AppData" / "Roaming")]
    else:
        folders = [home / ".config"]
    if surroundings.platform == "darwin":
        folders.append(home / "Library" / "Application Support")
    return [folder / FOLDER_NAME / FILE_NAME for folder in folders]


def found_file(surroundings: Surroundings) -> Path | None:
    """Return the nearest settings file in the working folder or above it."""
    if surroundings.folder is None:
        return None
    folder = Path(surroundings.folder)
    return next((path for each in (folder, *folder.parents) if (path := each / FILE_NAME).is_file()), None)


def _is_one_of(path: Path, *others: str | Path | None) -> bool:
    return any(other is not None and os.path.exists(other) and os.path.samefile(path, other) for other in others)


def _given(path: Path) -> tuple[Given, ...]:
    import tomllib  # most runs find no file

    text = _text(path)
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(_not_toml(path, error)) from None
    lines = dict(reversed(list(_lines_of_keys(text))))
    return tuple(
        Given(key, value, f"{path}:{lines[key]}" if key in lines else str(path)) for key, value in flattened(tree)
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as source:
            raw = source.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: settings can't be read: {reason_of(error)}") from None
    if len(raw) > LARGEST_FILE_BYTES:
        raise UsageError(f"{path}: over {LARGEST_FILE_BYTES:,} bytes: no settings")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8") from None


_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


def _not_toml(path: Path, error: Exception) -> str:
    said = str(error) or type(error).__name__
    at = _AT_LINE.search(said)
    place = f"{path}:{at[1]}" if at else str(path)
    return f"{place}: not TOML: {_AT_LINE.sub('', said)[:200]}"


_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?$")
_KEY = re.compile(r"\s*([\w.\-\"' ]+?)\s*=")


def _lines_of_keys(text: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted keys that a text seems to set, each with its line: tomllib does not tell it."""
    prefix = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            prefix = _bare(header[1]) + "."
            yield _bare(header[1]), number
        elif key := _KEY.match(line):
            yield prefix + _bare(key[1]), number


def _bare(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))
