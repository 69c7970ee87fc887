"""Each check that an apply makes before anything is put in place fails where what it looks at is not as it must be."""

import json

import msgspec
import pytest

from compactctl import commit_checks, job, job_edits, originals, run, spill_files, splicing
from compactctl.findings import Finding
from compactctl.options import Options
from compactctl.splicing import Replace
from tests.builders.big_chat import big_chat

PLACES = ("beside", "in place")


def flipped(real):
    """One byte of the session is written other than it was meant."""

    def edited(document, splices, until=None, read=None):
        written = b"".join(real(document, splices, until, read))
        yield written if until is not None else written.replace(b"role", b"rule", 1)

    return edited


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


def torn(real):
    """The result reads with a problem that its source lacks."""

    def reread(*arguments):
        document, read = real(*arguments)
        found = (*read.file_findings, Finding(1, "torn-tail", "the last line is torn"))
        return document, msgspec.structs.replace(read, file_findings=found)

    return reread


def stricter(real):
    """A second run finds results over its limit that the first one left, and knows nothing of that one."""

    def make_plan(messages, layer1, ledger, *rest):
        limits = msgspec.structs.replace(layer1, single_limit_bytes=1_000)
        return real(messages, layer1 if rest[3:] else limits, ledger if rest[3:] else {}, *rest)

    return make_plan


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("holder", "name", "mutated", "check"),
    [
        (splicing, "edited", flipped, "restorable: putting the originals back gives another file"),
        (originals, "lines", without_one, "restorable: putting the originals back gives another file"),
        (originals, "lines", changed, "restorable: putting the originals back gives another file"),
        (spill_files, "keep", gone, "spills_present: "),
        (job_edits, "spill_edits", longer, "context_kept: message "),
        (commit_checks, "reread", torn, "no_new_problem: line 1: torn-tail"),
        (job, "make_plan", stricter, "settled: line "),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_check_that_does_not_hold_leaves_everything_as_it_was(
    tmp_path, write_session, monkeypatch, place, holder, name, mutated, check
):
    path = write_session(big_chat((60_000, 5_000, 70_000)))
    source = path.read_bytes()
    monkeypatch.setattr(holder, name, mutated(getattr(holder, name)))
    [outcome] = run.spill([str(path)], Options(apply=True, place=place, backup="none")).outcomes
    assert (outcome.status, outcome.exit_code) == ("failed", 7)
    assert f"not written, it failed its checks: {check}" in outcome.error.message
    assert path.read_bytes() == source
    left = {file.name for file in tmp_path.rglob("*") if file.is_file()}
    assert {name for name in left if not name.endswith(".txt")} == {path.name}
