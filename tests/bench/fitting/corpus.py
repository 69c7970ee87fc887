"""What the corpus holds: its session files, those that have usage to judge by, and strings of any of them.

The same on every run, in the same order.
"""

import csv
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from compactctl import formats
from compactctl.model import Transcript
from compactctl.session import Session, opened

SEED = 1


@dataclass(frozen=True)
class Row:
    """A session file of the corpus."""

    path: Path
    repository: str
    format: str
    has_usage: bool


def listed(folder: Path) -> list[Row]:
    """Return the files that the corpus lists."""
    with (folder / "INDEX.tsv").open(encoding="utf-8") as index:
        return [
            Row(folder / row["path"], row["repo"], row["format"], row["has_usage"] == "yes")
            for row in csv.DictReader(index, delimiter="\t")
        ]


def read(rows: Sequence[Row]) -> Iterator[tuple[Row, Session, Transcript]]:
    """Yield the transcripts of all that has usage and that a format of ours reads, each while its file is open."""
    for row in rows:
        if row.has_usage and row.format in formats.FORMATS:
            with opened(str(row.path), None) as session:
                for transcript in session.read.transcripts:
                    yield row, session, transcript


TEXT_CHARACTERS = 60_000
LEAST_CHARACTERS = 40
REPOSITORY_CHARACTERS = 900_000
"""So much at most of a repository whose sessions we have no usage of, so that no single one rules."""


def texts(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield strings of sessions whatever their format, some of each repository, with the file that each is from."""
    by_repository: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_repository[row.repository].append(row)
    chance = random.Random(SEED)
    for own in by_repository.values():
        left = REPOSITORY_CHARACTERS
        share = max(TEXT_CHARACTERS, left // len(own))
        for row in own:
            raw = row.path.read_bytes()
            found: set[str] = set()
            for part in [raw] if row.format.endswith("json") else raw.splitlines():
                try:
                    found.update(_strings(msgspec.json.decode(part)))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
            taken = 0
            for text in chance.sample(sorted(found), len(found)):
                if taken > min(share, left):
                    break
                taken += len(text)
                yield text[:TEXT_CHARACTERS], row
            left -= taken
            if left <= 0:
                break


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= LEAST_CHARACTERS:
            yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)
