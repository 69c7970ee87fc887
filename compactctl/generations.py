"""The receipts that speak of a session: one beside it, and one for each compaction in place, numbered.

A compaction in place never overwrites what an earlier one kept: originals and receipts count up. Which receipt a
session is the output of is told by its bytes, so it does not matter where a run was interrupted.
"""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from compactctl import disk, layout, store
from compactctl.errors import NoReceipt
from compactctl.receipt import Receipt, chunks, decode

_NUMBERED = re.compile(r"[a-z]+\.(\d+)\.[a-z.]+")
REPORT_ENDING = ".json"
UNDONE_ENDING = ".undone.json"


def paths_of(path: str) -> layout.Paths:
    """Return where what belongs to a session lies: where its path is a link, beside the file that it leads to."""
    return layout.own_paths(Path(os.path.realpath(path) if os.path.islink(path) else path))


def receipt_at(path: Path) -> Receipt | None:
    """Return the receipt at this path; None where there is none, or what is there is not one that we can read."""
    raw = disk.read_beside(path)
    if raw is None:
        return None
    try:
        return decode(raw, str(path))
    except NoReceipt:
        return None


def own(paths: layout.Paths, starts_as: Callable[[int, str], bool]) -> Receipt | None:
    """Return the newest receipt whose output the session is, or has grown from. `starts_as` looks
    whether so many of its bytes have this digest.

    For a session whose name says that compaction wrote it, its receipt counts even where the bytes have changed.
    """
    named = [receipt for receipt in _receipts(paths) if receipt.output.name == paths.session.name]
    found = next((receipt for receipt in named if starts_as(receipt.output.bytes, receipt.output.sha256)), None)
    if found is None and named and layout.is_output_name(paths.session.name):
        return named[0]
    return found


def _receipts(paths: layout.Paths) -> Iterator[Receipt]:
    """Yield the receipts beside a session, the newest compaction in place first, then the one of the plain name."""
    kept = [paths.numbered("report", number, REPORT_ENDING) for number in _in_force(paths)]
    for path in (*kept, paths.report):
        receipt = receipt_at(path)
        if receipt is not None:
            yield receipt


def newest(paths: layout.Paths) -> Receipt | None:
    """Return the newest receipt that speaks of a session of this name, whatever its bytes are now."""
    return next((receipt for receipt in _receipts(paths) if receipt.output.name == paths.session.name), None)


def is_output(path: str) -> bool:
    """Return whether a file stands where compaction wrote one, by the receipts beside it (its bytes are not read)."""
    return newest(paths_of(path)) is not None


def next_number(paths: layout.Paths, *others: Path) -> int:
    """Return the number of the next compaction in place: above all that any earlier one kept, in `others` too."""
    taken = [number for folder in (paths.folder, *others) for number in _numbers(folder)]
    return max(taken, default=0) + 1


def _numbers(folder: Path, start: str = "") -> set[int]:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return set()
    matches = (_NUMBERED.fullmatch(name) for name in names if name.startswith(start))
    return {int(match[1]) for match in matches if match}


def mend(paths: layout.Paths, receipt: Receipt | None) -> None:
    """Write a compaction's receipt beside its session where the run that made it was killed before it could.

    The receipt of another output, made later, stays: it is kept nowhere else.
    """
    if receipt is None or receipt.generation is None:
        return
    there = receipt_at(paths.report)
    if there != receipt and (not _is_of_another(paths, there) or there in _numbered(paths)):
        store.write_whole(paths.report, chunks(receipt))


def set_aside(paths: layout.Paths, receipt: Receipt) -> None:
    """Take an undone compaction's receipt out of the count, and put the one before it beside the session again.

    Where the receipt of another output is there, made later, it stays.
    """
    for number in _numbers(paths.folder, "report."):
        kept = paths.numbered("report", number, REPORT_ENDING)
        if receipt_at(kept) == receipt:
            store.rename(kept, paths.numbered("report", number, UNDONE_ENDING))
    if _is_of_another(paths, receipt_at(paths.report)):
        return
    left = _in_force(paths)
    if left:
        store.write_whole(paths.report, [paths.numbered("report", left[0], REPORT_ENDING).read_bytes()])
    else:
        store.remove(paths.report)


def _is_of_another(paths: layout.Paths, receipt: Receipt | None) -> bool:
    """Return whether a receipt beside a session is of an output of another name, which has its receipt there too."""
    return receipt is not None and receipt.output.name != paths.session.name


def _numbered(paths: layout.Paths) -> list[Receipt | None]:
    """Return the receipts that are kept under numbers and still in force."""
    return [receipt_at(paths.numbered("report", number, REPORT_ENDING)) for number in _in_force(paths)]


def _in_force(paths: layout.Paths) -> list[int]:
    """Return the numbers of the receipts that are still in force, newest first."""
    numbers = sorted(_numbers(paths.folder, "report."), reverse=True)
    return [number for number in numbers if receipt_at(paths.numbered("report", number, REPORT_ENDING))]
