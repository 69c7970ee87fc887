"""What the files of a compaction are called and where they lie, told from the session's name without a look at them."""

from pathlib import Path

from msgspec import Struct

COMPACTED = ".compacted"
SPILL_FOLDER = "tool-results"
ORIGINALS = "originals.jsonl"
COPIES = "copies.jsonl.zst"
HISTORY = "history.jsonl"
SUMMARY = "summary.md"
REPORT = ".report.json"


class Paths(Struct, frozen=True):
    """Where everything of one compaction lies, derived from where its session file lies."""

    session: Path
    report: Path
    folder: Path
    """`<stem>.compacted`, which holds the spills and the originals."""

    @property
    def fixed(self) -> Path:
        """Where `audit --fix` puts the mended session."""
        return self.session.with_name(f"{self._stem}.fixed.jsonl")

    @property
    def spills(self) -> Path:
        return self.folder / SPILL_FOLDER

    @property
    def originals(self) -> Path:
        return self.folder / ORIGINALS

    @property
    def copies(self) -> Path:
        return self.folder / COPIES

    @property
    def history(self) -> Path:
        return self.folder / HISTORY

    @property
    def summary(self) -> Path:
        return self.folder / SUMMARY

    def numbered(self, kind: str, number: int, ending: str) -> Path:
        """Return the name of what one compaction in place keeps, e.g. `original.2.jsonl.zst`."""
        return self.folder / f"{kind}.{number}{ending}"

    def spill_path(self, name: str) -> str:
        """Return the full path of a spill file, as a preview names it."""
        return str(self.spills.absolute() / name)

    @property
    def restored(self) -> Path:
        return self.session.with_name(f"{self._stem}.restored.jsonl")

    @property
    def appended(self) -> Path:
        return self.session.with_name(f"{self._stem}.appended.jsonl")

    @property
    def _stem(self) -> str:
        return self.folder.name.removesuffix(COMPACTED)


def stem(name: str) -> str:
    """Return a session's file name without its endings."""
    for ending in (".jsonl.zst", ".jsonl", ".json"):
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name


def output_paths(name: str, folder: Path) -> Paths:
    """Return where the compaction of the session file called `name` goes in `folder`."""
    base = stem(name) + COMPACTED
    return Paths(folder / f"{base}.jsonl", folder / f"{base}{REPORT}", folder / base)


def own_paths(session: Path) -> Paths:
    """Return where what belongs to a session lies, if compaction wrote that session (under whatever name)."""
    base = stem(session.name)
    base = base if base.endswith(COMPACTED) else base + COMPACTED
    return Paths(session, session.with_name(base + REPORT), session.with_name(base))


def is_plain_name(name: str) -> bool:
    """Return whether this is the name of something in a folder, and not a path to elsewhere."""
    return Path(name).name == name != ".." and "\0" not in name


def is_output_name(name: str) -> bool:
    """Return whether a name is one that compaction gives a session written beside its source."""
    return stem(name).endswith(COMPACTED)
