"""One session file, opened and read: its document, its transcripts, and the receipts that speak of it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from compactctl import disk, findings, formats, generations, layout, spill_files
from compactctl.document import Document
from compactctl.errors import CompactctlError, EmptySession, NotCompactable, SourceChanged, UnknownFormat
from compactctl.findings import Finding
from compactctl.formats.interface import Format
from compactctl.model import Transcript
from compactctl.receipt import Receipt

STANDARD_INPUT = "-"


class Read(Struct, frozen=True):
    """What a format made of a document: its sessions, and the damage that was found in the file itself."""

    format: Format
    transcripts: tuple[Transcript, ...]
    file_findings: tuple[Finding, ...]

    def findings_of(self, transcript: Transcript) -> tuple[Finding, ...]:
        """Return what was found about one session, by line. The file's damage is told with its first session."""
        is_first = transcript is self.transcripts[0]
        return findings.sort((*transcript.findings, *(self.file_findings if is_first else ())))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all that was found in the file, by line."""
        own = [finding for transcript in self.transcripts for finding in transcript.findings]
        return findings.sort((*self.file_findings, *own))

    def with_contexts_alone(self) -> "Read":
        """Return it without what else was seen in the file: requests, and what is outside of the context."""
        alone = tuple(replace(each, outside=(), requests=(), side_runs=()) for each in self.transcripts)
        return Read(self.format, alone, self.file_findings)

    def without_contexts(self) -> "Read":
        """Return it without all that grows with the sessions: their messages, requests and what is outside of both."""
        nothing = tuple(replace(each, messages=(), outside=(), requests=()) for each in self.transcripts)
        return Read(self.format, nothing, self.file_findings)


class Session(Struct):
    """An open session file and what is known about it."""

    path: str
    document: Document
    read: Read
    snapshot: disk.Snapshot | None
    """None for standard input."""
    own_receipt: Receipt | None
    """The receipt that this file is the output of."""

    @property
    def stale_until_line(self) -> int:
        """Return the last line on which a recorded usage no longer says what the context is.

        What was counted before our own spills is void. Without a receipt nobody can tell what came after them.
        """
        if self.own_receipt is None:
            if not layout.is_output_name(self.path):
                return 0
            has_previews = any(
                message.result is not None and message.result.is_preview
                for transcript in self.read.transcripts
                for message in transcript.messages
            )
            return self.document.line_count if has_previews else 0
        sessions = self.own_receipt.sessions
        is_changed = any(s.fates or any(d.fate == "spilled" for d in s.decisions) for s in sessions)
        return (self.own_receipt.output.lines or 0) if is_changed else 0


@contextlib.contextmanager
def opened(path: str, format_name: str | None) -> Iterator[Session]:
    """Open and read a session file. Raises ReadError, naming the path, where that can't be done."""
    with disk.reading(path) as source, _unchanging(path) as snapshot:
        document = Document(source)
        read = read_document(path, document, format_name)
        receipt = None
        if path != STANDARD_INPUT:
            own_paths = generations.paths_of(path)
            receipt = generations.own(own_paths, document.starts_as)
            gone = _missing_spills(receipt, own_paths) if receipt else []
            read = Read(read.format, read.transcripts, (*read.file_findings, *gone))
        session = Session(path, document, read, snapshot, receipt)
        del read  # a session may give its messages up
        yield session


@contextlib.contextmanager
def opened_to_compact(path: str, format_name: str | None) -> Iterator[Session]:
    """Open and read a session file that is to be compacted. Raises ReadError as `opened` does, and for a log."""
    with opened(path, format_name) as session:
        if session.read.format.printed_by:
            raise NotCompactable(f"{path}: {_what_to_give(session.read)}")
        yield session


def _what_to_give(read: Read) -> str:
    """Return why a log is not compacted, and what to give instead."""
    ids = [transcript.session_id for transcript in read.transcripts if transcript.session_id]
    by_id = f"by its id ({ids[0]}) or " if ids else ""
    why = f"it can't be compacted: `{read.format.printed_by}` printed it as a log, which no agent reads again"
    return f"{why}; give the session that it is about, {by_id}as a file below ~/{read.format.home}"


@contextlib.contextmanager
def _unchanging(path: str) -> Iterator[disk.Snapshot | None]:
    """Give how a file is now (None for standard input). What goes wrong because it changed since is SourceChanged."""
    snapshot = None if path == STANDARD_INPUT else disk.Snapshot.of(Path(path))
    try:
        yield snapshot
    except CompactctlError:
        raise
    except Exception as error:
        if snapshot is not None and disk.Snapshot.of(Path(path)) != snapshot:
            raise SourceChanged(f"{path}: it changed while it was read; run it again") from error
        raise


def read_document(path: str, document: Document, format_name: str | None) -> Read:
    """Return the sessions in a document. Raises EmptySession or UnknownFormat, saying what was seen instead."""
    if document.size_bytes == 0:
        raise EmptySession(f"{path}: empty file")
    format_ = formats.get(format_name) if format_name else formats.recognise(document)
    if format_ is None:
        raise UnknownFormat(f"{path}: no format recognises it: {formats.seen(document)}")
    transcripts = tuple(format_.read(document))
    if not transcripts:
        raise UnknownFormat(f"{path}: no {format_.name} record in it: {formats.seen(document)}")
    return Read(format_, transcripts, document.findings)


def reread(source: BinaryIO, path: str, format_: Format) -> tuple[Document, Read]:
    """Read a file that was just written, by the format it was written in."""
    document = Document(source)
    return document, read_document(path, document, format_.name)


def _missing_spills(receipt: Receipt, paths: layout.Paths) -> list[Finding]:
    return [
        Finding(decision.line, "missing-spill", f"{paths.spills.name}/{decision.file} is gone or changed")
        for session in receipt.sessions
        for decision in session.decisions
        if decision.file is not None and not spill_files.is_whole(paths.spills, decision.file, decision.sha256 or "")
    ]


def project(transcript: Transcript, path: str) -> str | None:
    """Return the short name that a person knows the session's project by: the last part of its folder."""
    if transcript.cwd:
        return os.path.basename(transcript.cwd.replace("\\", "/").rstrip("/")) or None
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return folder or None
