"""Each check that an apply makes before anything is put in place fails where what it looks at is not as it must be."""

import json

import msgspec
import pytest

from compactctl import commit_checks, job, job_edits, line_checks, originals, run, spill_files, splicing
from compactctl.document import Place
from compactctl.findings import Finding
from compactctl.options import Options
from compactctl.splicing import Replace
from tests.builders.big_chat import big_chat

PLACES = ("beside", "in place")


def written_as(meant, wrong):
    """Return how the session is written with another text in the place of one that was meant, as long as that."""

    def mutated(real):
        def edited(document, splices, until=None, read=None):
            written = b"".join(real(document, splices, until, read))
            yield written if until is not None else written.replace(meant, wrong, 1)

        return edited

    return mutated


flipped = written_as(b"role", b"rule")
misspelled = written_as(b"Do not guess", b"Do_not guess")
"""A name that was to stay, and a preview."""


def without_one(real):
    """One of the values that were replaced is not kept."""

    def lines(header, document, splices, *rest):
        lost, *_ = splices
        return real(header, document, splices, lambda splice: splice != lost)

    return lines


def changed(real):
    """One of the values that were replaced is kept with another byte."""

    def lines(*arguments):
        *most, last = b"".join(real(*arguments)).splitlines(keepends=True)
        row = json.loads(last)
        yield b"".join(most) + json.dumps({**row, "raw": row["raw"].replace("e", "E", 1)}).encode() + b"\n"

    return lines


def gone(real):
    """A spilled text is gone when its folder is synced."""

    def keep(folder):
        real(folder)
        next(folder.iterdir()).unlink()

    return keep


def longer(real):
    """A preview is not the one that was planned."""

    def spill_edits(*arguments):
        return [
            msgspec.structs.replace(edit, json=edit.json[:-1] + b'!"') if isinstance(edit, Replace) else edit
            for edit in real(*arguments)
        ]

    return spill_edits


def one_more(real):
    """A value that no format reads is replaced, too, and no edit says so."""

    def concrete(document, edits, *rest):
        return real(document, [*edits, Replace(Place(3, ("note",)), b'"theirs"')], *rest)

    return concrete


def elsewhere(real):
    """An edit replaces the id of a call, too."""

    def spill_edits(*arguments):
        return [*real(*arguments), Replace(Place(3, ("tool_call_id",)), b'"call_9"')]

    return spill_edits


def damaged(real):
    """The result reads with a problem that its source lacks."""

    def reread(*arguments):
        document, read = real(*arguments)
        return document, msgspec.structs.replace(read, file_findings=(*read.file_findings, DAMAGE))

    return reread


def damaged_line(real):
    """A line that was written reads with a problem that it lacked."""

    def read(line, *rest):
        found = (DAMAGE,) if b"Do not guess" in line.slice(0, line.size_bytes) else ()
        return msgspec.structs.replace(real(line, *rest), file_findings=found)

    return read


DAMAGE = Finding(1, "nul-run", "zeroes")


def stricter(real):
    """A second run finds results over its limit that the first one left, and knows nothing of that one."""

    def make_plan(messages, layer1, ledger, *rest):
        limits = msgspec.structs.replace(layer1, single_limit_bytes=1_000)
        return real(messages, layer1 if rest[3:] else limits, ledger if rest[3:] else {}, *rest)

    return make_plan


LINES, WHOLE = b"", b'{"role": "user"'
"""What the last line is, torn or not: all of a file with damage is read again, of another one what changed."""

RESTORABLE = "restorable: putting the originals back gives another file"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("holder", "name", "mutated", "last", "check"),
    [
        (splicing, "edited", flipped, LINES, RESTORABLE),
        (splicing, "edited", flipped, WHOLE, RESTORABLE),
        (originals, "lines", without_one, LINES, RESTORABLE),
        (originals, "lines", without_one, WHOLE, RESTORABLE),
        (originals, "lines", changed, LINES, RESTORABLE),
        (originals, "lines", changed, WHOLE, RESTORABLE),
        (spill_files, "keep", gone, LINES, "spills_present: "),
        (spill_files, "keep", gone, WHOLE, "spills_present: "),
        (splicing, "edited", misspelled, LINES, "context_kept: more was written than the planned values"),
        (splicing, "edited", misspelled, WHOLE, "context_kept: the preview of line 4 is not what was planned"),
        (splicing, "concrete", one_more, LINES, "context_kept: line 4 is not what was planned"),
        (job_edits, "spill_edits", elsewhere, LINES, "context_kept: line 4 is not what was planned"),
        (job_edits, "spill_edits", elsewhere, WHOLE, "context_kept: message "),
        (job_edits, "spill_edits", longer, LINES, "context_kept: line 4 is not what was planned"),
        (job_edits, "spill_edits", longer, WHOLE, "context_kept: message "),
        (line_checks, "_read", damaged_line, LINES, "no_new_problem: line 1: nul-run"),
        (commit_checks, "reread", damaged, WHOLE, "no_new_problem: line 1: nul-run"),
        (job, "make_plan", stricter, LINES, "settled: line "),
        (job, "make_plan", stricter, WHOLE, "settled: line "),
    ],
    ids=lambda value: "whole" if value == WHOLE else "lines" if value == LINES else getattr(value, "__name__", None),
)
def test_a_check_that_does_not_hold_leaves_everything_as_it_was(
    tmp_path, write_session, monkeypatch, place, holder, name, mutated, last, check
):
    records = big_chat((60_000, 5_000, 70_000))
    records[3]["note"] = "ours"
    path = write_session(records)
    path.write_bytes(path.read_bytes() + last)
    source = path.read_bytes()
    monkeypatch.setattr(holder, name, mutated(getattr(holder, name)))
    [outcome] = run.spill([str(path)], Options(apply=True, place=place, backup="none")).outcomes
    assert (outcome.status, outcome.exit_code) == ("failed", 7)
    assert f"not written, it failed its checks: {check}" in outcome.error.message
    assert path.read_bytes() == source
    left = {file.name for file in tmp_path.rglob("*") if file.is_file()}
    assert {name for name in left if not name.endswith(".txt")} == {path.name}


def test_a_byte_that_was_to_stay_is_missed_where_the_original_is_kept_whole(write_session, monkeypatch):
    path = write_session(big_chat((60_000, 5_000, 70_000)))
    source = path.read_bytes()
    monkeypatch.setattr(splicing, "edited", flipped(splicing.edited))
    [outcome] = run.spill([str(path)], Options(apply=True, place="in place", backup="zst")).outcomes
    assert "checks: context_kept: more was written than the planned values" in outcome.error.message
    assert path.read_bytes() == source
