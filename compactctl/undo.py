"""The way back: `restore` gives the original, `verify` says whether a compacted session is whole.

Both need only what compaction wrote: the session, its originals file and, for `verify`, its receipt and spills.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from compactctl import originals, store, verify
from compactctl.apply import replan
from compactctl.document import Document
from compactctl.errors import NoReceipt, NotRestorable, OutputChanged, VerifyError
from compactctl.options import Options
from compactctl.outcome import Bytes, Outcome, Output, Problem, Status, notes
from compactctl.plan import Plan
from compactctl.receipt import Receipt
from compactctl.session import Read, Session, opened, read_document

FOUND_SOMETHING = 1
"""The exit code of `verify` when a check does not hold."""


class Kept(Struct):
    """A compacted session opened beside its originals: what gives the source back, and where the agent went on."""

    paths: store.Paths
    document: Document
    header: originals.Header
    rows: BinaryIO

    @property
    def appended_bytes(self) -> int:
        """Return how many bytes stand after what compaction wrote."""
        return self.document.size_bytes - self.header.output.bytes

    def original(self) -> Iterator[bytes]:
        """Yield the original session, byte for byte."""
        self.rows.seek(0)
        _, splices = originals.read(self.rows, str(self.paths.originals))
        yield from self.document.edited(splices, until=self.header.output.bytes)

    def appended(self) -> Iterator[bytes]:
        """Yield what was appended since."""
        yield from self.document.windows(self.header.output.bytes, self.document.size_bytes)


@contextlib.contextmanager
def _kept(path: str) -> Iterator[Kept]:
    """Open a compacted session for undoing. Raises NoReceipt or NotRestorable, saying what is missing."""
    paths = store.own_paths(Path(path))
    if paths is None:
        raise NoReceipt(f"{path}: not a compacted session: compactctl writes them as NAME{store.COMPACTED}.jsonl")
    if not paths.originals.exists():
        raise NoReceipt(f"{path}: {paths.originals.name} is not in {paths.folder}: nothing to restore from")
    with store.reading(path) as source, store.reading(str(paths.originals)) as rows:
        header, _ = originals.read(rows, str(paths.originals))
        document = Document(source)
        written = header.output.bytes
        if document.size_bytes < written or document.sha256_of(0, written) != header.output.sha256:
            raise NotRestorable(
                f"{path}: its first {written:,} bytes are not what compactctl wrote, so the original can't be put "
                "together; if a run was interrupted, run it again over the source"
            )
        yield Kept(paths, document, header, rows)


# restore -----------------------------------------------------------------------------------------


def restore(path: str, options: Options, folder: Path) -> list[Outcome]:
    """Write the original of a compacted session to `folder`, byte for byte, and return what was done.

    Lines that an agent appended since go to a file of their own. Raises NoReceipt, NotRestorable, or WriteError.
    """
    with _kept(path) as kept:
        if verify.digest(kept.original()) != kept.header.source.sha256:
            raise NotRestorable(f"{path}: what its originals give is not the source; {kept.paths.originals} is damaged")
        target = folder / kept.paths.restored.name
        status = _status(target, kept.header.source.sha256, kept.original(), options.apply)
        said = [f"{target} is {kept.header.source.name} byte for byte (sha256 {kept.header.source.sha256})"]
        if kept.appended_bytes:
            beside = folder / kept.paths.appended.name
            _status(beside, verify.digest(kept.appended()), kept.appended(), options.apply)
            said.append(f"{kept.appended_bytes:,} bytes that were appended since are in {beside}")
        return [
            Outcome(
                path=path,
                status=status,
                bytes=Bytes(kept.document.size_bytes, kept.header.source.bytes),
                output=Output(str(target), str(kept.paths.report), str(kept.paths.spills)),
                notes=tuple(said),
                checks={"original": True},
            )
        ]


def _status(target: Path, digest: str, chunks: Iterator[bytes], is_applied: bool) -> Status:
    """Write a file unless it is there already. Raises OutputChanged where something else is."""
    if target.exists():
        if store.file_sha256(target) == digest:
            return "unchanged"
        raise OutputChanged(f"{target}: something else is there; move it away or restore elsewhere with --out DIR")
    if not is_applied:
        return "planned"
    store.write_whole(target, chunks)
    return "applied"


# verify ------------------------------------------------------------------------------------------


def check(path: str, options: Options) -> list[Outcome]:
    """Return whether a compacted session is whole: the checks of its commit again, without the source.

    Raises NoReceipt or NotRestorable where there is nothing to check against.
    """
    with _kept(path) as kept, opened(path, options.format) as session:
        receipt = session.own_receipt
        if receipt is None:
            raise NoReceipt(f"{path}: {kept.paths.report.name} is missing or damaged")
        with tempfile.TemporaryFile() as source:
            for chunk in kept.original():
                source.write(chunk)
            document = Document(source)
            before = read_document(path, document, session.read.format.name)
            is_original = document.sha256() == receipt.source.sha256
        appended = _appended(session.document.line_count, receipt)
        own_problems = [f for f in session.read.findings if (f.line or 0) <= (receipt.output.lines or 0)]
        checks = verify.combine(
            {
                "receipt_matches": [] if receipt.output == kept.header.output else ["receipt and originals disagree"],
                "restorable": [] if is_original else ["putting the originals back gives another file"],
                "no_new_problem": verify.new_problems(before.findings, own_problems),
                "spills_present": _missing(receipt, kept.paths),
                "settled": verify.unsettled(_second_run(session.document, session.read, receipt, kept.paths)),
            }
        )
        return [_verified(session, kept, checks, appended)]


def _second_run(document: Document, read: Read, receipt: Receipt, paths: store.Paths) -> list[Plan]:
    """Return what a second run would do to the part that compaction wrote; what came later is not its matter."""
    last = receipt.output.lines or 0
    failed = {error for session in receipt.sessions for error in session.failures}
    plans = replan(document, read, receipt, paths)
    return (
        [] if failed else [Plan(spills=tuple(spill for spill in plan.spills if spill.line <= last)) for plan in plans]
    )


def _missing(receipt: Receipt, paths: store.Paths) -> list[str]:
    return [
        f"{decision.file} is gone or changed"
        for session in receipt.sessions
        for decision in session.decisions
        if decision.file and not store.spill_is_whole(paths.spills, decision.file, decision.sha256 or "")
    ]


def _appended(line_count: int, receipt: Receipt) -> int:
    return max(0, line_count - (receipt.output.lines or 0))


def _verified(session: Session, kept: Kept, checks: verify.Checks, appended_lines: int) -> Outcome:
    said = list(checks.problems)
    if appended_lines:
        said.append(f"{appended_lines} lines were appended since; they are not part of the checks")
    made = Outcome(
        path=session.path,
        format=session.read.format.name,
        session_id=session.read.transcripts[0].session_id,
        bytes=Bytes(kept.document.size_bytes, kept.document.size_bytes, store.disk_bytes(kept.paths.folder)),
        checks=checks.held,
        findings=notes(session.read.findings),
        notes=tuple(said),
    )
    if not checks.all_held:
        made.status = "failed"
        made.error = Problem(VerifyError("").code, checks.problems[0])
        made.exit_code = FOUND_SOMETHING
    return made
