"""All edits that a planned job comes to, fitted to each other: no value is given two texts. Nothing is written."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from compactctl import splicing
from compactctl.cut import summarised
from compactctl.document import Document
from compactctl.formats.interface import CompactionEdits, NewSession, RecordedCut
from compactctl.job import Job, Planned
from compactctl.json_text import read_json, write_json
from compactctl.model import Transcript
from compactctl.plan import Plan
from compactctl.rewrite import beside, is_within, spill_edits
from compactctl.splicing import Drop, Edit, Insert, Put, Replace, Splice, Splices


class Edits(Struct, frozen=True):
    """All edits of a file: those of its plan, and those that only take out what the model never sees."""

    planned: list[Edit]
    slimming: list[Edit]
    renaming: Iterable[Replace] = ()
    """What gives new ids, in order of records; where one of them and another edit replace the same, it counts."""
    moved: frozenset[int] = frozenset()
    """The records that are kept verbatim in the history."""
    cuts: tuple[CompactionEdits, ...] = ()
    """For each session of the file."""

    def splices(self, document: Document) -> Splices:
        """Return all of them made concrete."""
        return splicing.concrete(document, [*self.planned, *self.slimming], self.renaming)

    def slimmed(self, document: Document, every: Iterable[Splice]) -> frozenset[Splice]:
        """Return which of all the splices only take out what the model never sees."""
        slim = frozenset(splicing.concrete(document, self.slimming)) if self.slimming else frozenset[Splice]()
        return frozenset(splice for splice in every if splice in slim) if slim else slim


def bytes_saved(splices: Iterable[Splice]) -> int:
    """Return by how many bytes these splices make a file shorter."""
    return sum(splice.end - splice.start - len(splice.new) for splice in splices)


def make_edits(job: Job) -> Edits:
    """Return all edits of the file: previews, compactions, what slimming takes out, new ids, no torn tail."""
    document = job.session.document
    plans: list[tuple[Transcript, Plan, int | None]] = [
        (item.sized.transcript, item.plan, None if item.cut else item.tokens_after) for item in job.planned
    ]
    planned = spill_edits(job.session.read.format, document, plans, job.paths.spill_path)
    cuts = [_compaction(job, item) for item in job.planned]
    planned = [*planned, *(edit for made in cuts for edit in made.edits)]
    slimming = beside(_slimming_of(job), planned)
    renaming = _Renaming(job.new, [*planned, *slimming]) if job.new else ()
    if job.new and job.is_cut:
        ids = _new_ids(job, job.new)
        planned = [_with_new_ids(edit, ids) for edit in planned]
    moved = frozenset(record for made in cuts for record in made.moved) | _summarised_records(job)
    if job.options.redact:
        from compactctl.cleaning import without_secrets  # what few ask for, and slow to load

        renamed = list(renaming)
        planned = [*_but_renamed(planned, renamed), *_but_renamed(slimming, renamed), *renamed]
        return Edits(without_secrets(document, planned), [], (), moved, tuple(cuts))
    return Edits(planned, slimming, renaming, moved, tuple(cuts))


def _compaction(job: Job, item: Planned) -> CompactionEdits:
    done, session = item.summarised, job.session
    if done is None:
        return CompactionEdits((), ())
    tokens = item.sized.measured.tokens, item.tokens_after
    recorded = RecordedCut(done.cut, done.metas, *tokens, job.options.keep_history)
    return session.read.format.compaction(session.document, item.sized.transcript, recorded)


def _summarised_records(job: Job) -> frozenset[int]:
    return frozenset(
        record
        for item in job.planned
        if item.cut is not None
        for index in summarised(item.cut)
        for record in item.sized.transcript.messages[index].records
    )


def _slimming_of(job: Job) -> list[Edit]:
    """Return what slimming does to this file; in one that is cut only what is large, since its chain is made anew."""
    if not job.is_cut:
        return job.slimming
    document, limit = job.session.document, job.options.settings.layer1.twin_limit_bytes
    return [
        edit
        for edit in job.slimming
        if isinstance(edit, Replace) and len(document.raw_value(edit.place)) > max(limit, len(edit.json))
    ]


def _new_ids(job: Job, new: NewSession) -> Callable[[str], str]:
    """Return what gives the new id for an old one, of a session of the file or of a line, and other texts back."""
    sessions = {t.session_id: new.session_id for t in job.session.read.transcripts if t.session_id}
    return lambda text: sessions[text] if text in sessions else new.renamed.get(text, text)


def _with_new_ids(edit: Edit, ids: Callable[[str], str]) -> Edit:
    """Return an edit of a compaction with the new session's ids in what it writes."""
    match edit:
        case Insert(after, new):
            return Insert(after, b"\n".join(write_json(_renamed_in(read_json(line), ids)) for line in new.split(b"\n")))
        case Put(place, new_elements):
            return Put(place, tuple(write_json(_renamed_in(read_json(each), ids)) for each in new_elements))
        case _:
            return edit


def _renamed_in(value: Any, ids: Callable[[str], str]) -> Any:
    """Return a value with every text that is an old id replaced by the new one."""
    match value:
        case str():
            return ids(value)
        case list():
            return [_renamed_in(each, ids) for each in value]
        case dict():
            return {key: _renamed_in(each, ids) for key, each in value.items()}
    return value


class _Renaming:
    """The edits that give new ids, fitted to the others: what is dropped needs none, and an id that another edit put
    in a chain is renamed there."""

    def __init__(self, new: NewSession, others: Sequence[Edit]) -> None:
        self._new = new
        self._dropped = {edit.record for edit in others if isinstance(edit, Drop)}
        self._placed = {edit.place: edit for edit in others if isinstance(edit, Replace)}
        self._touched = {place.record for place in self._placed}

    def __iter__(self) -> Iterator[Replace]:
        for edit in self._new.edits:
            place = edit.place
            if place.record in self._dropped:
                continue
            if place.record not in self._touched:
                yield edit
            elif place in self._placed:
                yield _renamed(self._placed[place], self._new.renamed)
            elif not is_within(place, self._placed):
                yield edit


def _but_renamed(edits: list[Edit], renaming: Iterable[Replace]) -> list[Edit]:
    """Return the edits whose place gets no new id."""
    renamed = {edit.place for edit in renaming}
    return [edit for edit in edits if not (isinstance(edit, Replace) and edit.place in renamed)]


def _renamed(edit: Replace, renamed: Mapping[str, str]) -> Replace:
    value = read_json(edit.json)
    return Replace(edit.place, write_json(renamed.get(value, value))) if isinstance(value, str) else edit
