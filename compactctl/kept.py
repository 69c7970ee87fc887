"""What gives the original of a compacted session back, written beside the session: the values that were replaced, the
whole original, the lines that a summary stands for.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from compactctl import generations, history, originals, packing, store
from compactctl.document import Document
from compactctl.job import Job
from compactctl.job_edits import Edits, bytes_saved
from compactctl.receipt import FileNote
from compactctl.splicing import Splice, Splices


class Kept(Struct):
    """The files that give the original back: the whole of it, or the values that were replaced."""

    header: originals.Header
    number: int | None
    whole: store.Candidate | None = None
    values: store.Candidate | None = None
    copies: store.Candidate | None = None
    history: store.Candidate | None = None
    summary: store.Candidate | None = None
    slimmed_bytes: int = 0

    @property
    def files(self) -> list[store.Candidate]:
        kept = (self.whole, self.history, self.summary, self.values, self.copies)
        return [file for file in kept if file is not None]

    def original(self, result: Document, put_back: Callable[[Splice], object] = lambda splice: None) -> Iterator[bytes]:
        """Yield the original session from what lies on disk, not yet in place; `put_back` is told of each value."""
        files = (self.whole, self.values, self.copies, self.history)
        whole, values, copies, lines = (file.written if file else None for file in files)
        return originals.restored(result, self.header.output.bytes, whole, values, copies, lines, put_back=put_back)


def candidate(on_disk: contextlib.ExitStack, path: Path, like: Path | None = None) -> store.Candidate:
    """Return a file to be written, which is thrown away with the stack unless it was put in place."""
    made = store.Candidate(path, like)
    on_disk.callback(made.discard)
    return made


def write_kept(
    on_disk: contextlib.ExitStack, job: Job, planned: Edits, every: Splices, session_file: store.Candidate
) -> Kept:
    document = job.session.document
    source = FileNote(Path(job.session.path).name, document.size_bytes, job.source_sha256, document.line_count)
    output = FileNote(job.paths.session.name, session_file.size_bytes, session_file.sha256)
    kept = Kept(originals.Header(originals.SCHEMA, source, output), _number(job))
    slimming = planned.slimmed(document, every)
    kept.slimmed_bytes = bytes_saved(slimming)
    rest = (splice for splice in every if splice not in slimming)
    moved = _write_history(on_disk, job, planned.moved, tuple(rest), kept) if job.is_cut else {}
    if job.keeps_whole:
        kept.whole = candidate(on_disk, _backup_path(job, kept.number or 1))
        chunks = document.windows(0, document.size_bytes)
        kept.whole.write(packing.packed(chunks) if job.options.backup == "zst" else chunks)
        return kept
    values, copies = _values_paths(job, kept.number)
    kept.values = candidate(on_disk, values)
    kept.values.write(originals.lines(kept.header, document, every, lambda splice: splice not in slimming, moved))
    if slimming:
        kept.copies = candidate(on_disk, copies)
        kept.copies.write(packing.packed(originals.lines(kept.header, document, every, slimming.__contains__, moved)))
    return kept


def _write_history(
    on_disk: contextlib.ExitStack, job: Job, moved: frozenset[int], splices: Sequence[Splice], kept: Kept
) -> Mapping[Splice, int]:
    """Write the lines that summaries stand for, and the summaries; return where in it what was left out stands."""
    document = job.session.document
    planned = history.plan(document, moved, splices)
    kept.history = candidate(on_disk, history_path(job, kept.number))
    kept.history.write(history.chunks(document, planned))
    kept.summary = candidate(on_disk, summary_path(job, kept.number))
    kept.summary.write([_summaries(job).encode()])
    return planned.offsets


def _summaries(job: Job) -> str:
    """Return the text of the summary file: the summary; where the file has several sessions, each under its number."""
    texts = [(item.sized.transcript.index, item.summarised.text) for item in job.planned if item.summarised]
    if len(texts) == 1:
        return texts[0][1].rstrip("\n") + "\n"
    return "\n".join(f"# {index}\n\n{text.rstrip()}\n" for index, text in texts)


def history_path(job: Job, number: int | None = None) -> Path:
    """Return where the history goes; in place it is numbered, and `number` is the next one unless it is known."""
    number = _number(job) if number is None else number
    return job.paths.history if number is None else job.paths.numbered("history", number, ".jsonl")


def summary_path(job: Job, number: int | None = None) -> Path:
    """Return where the summary goes as a text of its own."""
    number = _number(job) if number is None else number
    return job.paths.summary if number is None else job.paths.numbered("summary", number, ".md")


def _number(job: Job) -> int | None:
    if not job.is_in_place:
        return None
    return generations.next_number(job.paths, _backup_folder(job))


def _backup_folder(job: Job) -> Path:
    if job.options.backup_dir is None:
        return job.paths.folder
    return Path(job.options.backup_dir).absolute() / job.paths.folder.name


def _backup_path(job: Job, number: int) -> Path:
    ending = ".jsonl.zst" if job.options.backup == "zst" else ".jsonl"
    return _backup_folder(job) / job.paths.numbered("original", number, ending).name


def _values_paths(job: Job, number: int | None) -> tuple[Path, Path]:
    if number is None:
        return job.paths.originals, job.paths.copies
    return job.paths.numbered("originals", number, ".jsonl"), job.paths.numbered("copies", number, ".jsonl.zst")
