"""A batch of `accuracy`: the requests of every context a file ever had, each once, and the files that are written."""

import csv
import io

import pytest

from compactctl import accuracy, run
from compactctl.errors import UsageError
from compactctl.options import Options, Scoring
from compactctl.predictions import ALL
from tests.builders.claude import Session, call, result, usage
from tests.builders.scored import TEXT, grown


def test_the_balance_of_a_batch_holds_and_no_path_is_in_a_row(tmp_path):
    s = grown(*[5_000] * 2)
    s.user("More.")
    s.assistant(TEXT, usage=usage(24_000, out=2), id="msg_9", requestId="req_9")  # its output was never recorded
    s.user("More.")
    s.assistant("Done.", usage=usage(26_000, out=4), id="msg_10", requestId="req_10")
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes(s.bytes())
    rows = tmp_path / "rows.csv"
    batch = run.accuracy([str(tmp_path)], Options(scoring=Scoring(rows=str(rows))))
    note = batch.accuracy
    assert note.judged + sum(note.excluded.values()) == note.requests == 8
    assert note.excluded == {"counted elsewhere": 3, "first request": 2}
    written = list(csv.DictReader(io.StringIO(rows.read_text())))
    assert {each["way"] for each in written} == {"new", "next", "whole"}
    assert str(tmp_path) not in rows.read_text()
    assert all(float(each["error"]) == pytest.approx(_error(each), abs=1e-5) for each in written)


def _error(each):
    return (float(each["predicted"]) - float(each["actual"])) / float(each["actual"])


def compacted(folder):
    """Write a session with three requests before a compaction and one after it, and return its path."""
    s = grown(*[5_000] * 3)
    s.boundary()
    s.summary()
    s.user("Go on.")
    s.assistant("Done.", usage=usage(9_000, out=4), id="new")
    path = folder / "s.jsonl"
    path.write_bytes(s.bytes())
    return path


def test_the_requests_of_contexts_before_a_compaction_are_judged_as_well(tmp_path):
    path = compacted(tmp_path)
    note = run.accuracy([str(path)], Options()).accuracy
    assert (note.judged, note.excluded) == (2, {"first request": 2})


def test_a_request_that_is_in_context_again_counts_once(tmp_path):
    s = grown(*[5_000] * 3)
    forked = s.last
    s.boundary()
    s.summary()
    s.user("Again, without the summary.", parent=forked)
    s.assistant("Done.", usage=usage(26_000, out=4), id="msg_9", requestId="req_9")
    (tmp_path / "s.jsonl").write_bytes(s.bytes())
    note = run.accuracy([str(tmp_path)], Options()).accuracy
    assert (note.judged, note.excluded) == (3, {"first request": 1})


def test_contexts_that_are_too_much_to_read_again_are_left_out_and_said(tmp_path, monkeypatch):
    path = compacted(tmp_path)
    monkeypatch.setattr(accuracy, "MOST_READ_BYTES", 100)
    note = run.accuracy([str(path)], Options()).accuracy
    assert (note.judged, note.excluded) == (0, {"first request": 1, "not read again": 3})


def test_models_that_are_too_many_are_left_out_and_said(tmp_path, monkeypatch):
    s = grown(*[5_000] * 2)
    for index in range(2):
        s.user(TEXT)
        s.assistant("Done.", usage=usage(30_000 + 9_000 * index, out=4), id=f"other_{index}", model="claude-opus-4-6")
    path = tmp_path / "s.jsonl"
    path.write_bytes(s.bytes())
    monkeypatch.setattr(accuracy, "MOST_MODELS", 1)
    note = run.accuracy([str(path)], Options()).accuracy
    assert (note.judged, note.excluded) == (1, {"another model": 1, "first request": 1, "too many models": 1})


# what is written ----------------------------------------------------------------------------------


def test_no_text_of_a_session_is_a_formula_in_rows(tmp_path):
    s = Session()
    for size in (20_000, 21_000):
        s.user("More.")
        s.assistant("Done.", usage=usage(size, out=4), id=f"=id{size}", requestId=f"=r{size}", model="=1+1")
    (tmp_path / "a.jsonl").write_bytes(s.bytes())
    rows = tmp_path / "rows.csv"
    run.accuracy([str(tmp_path)], Options(scoring=Scoring(rows=str(rows))))
    written = list(csv.DictReader(io.StringIO(rows.read_text())))
    assert {(each["model"], each["request_id"]) for each in written} == {("'=1+1", "'=r21000")}


def test_nothing_is_written_where_not_all_that_was_asked_for_can_be_made(tmp_path):
    path, rows = tmp_path / "s.jsonl", tmp_path / "rows.csv"
    path.write_bytes(grown(*[5_000] * 3).bytes())
    with pytest.raises(UsageError, match="too little"):
        run.accuracy([str(path)], Options(scoring=Scoring(rows=str(rows), fit=str(tmp_path / "fit.json"))))
    assert not rows.exists()


def test_an_interrupted_run_writes_no_rows_and_no_profile(tmp_path, monkeypatch):
    path, rows, made = tmp_path / "s.jsonl", tmp_path / "rows.csv", tmp_path / "fit.json"
    path.write_bytes(grown(*[5_000] * 3).bytes())

    def interrupted(item, options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_accuracy_one", interrupted)
    batch = run.accuracy([str(path)], Options(scoring=Scoring(rows=str(rows), fit=str(made))))
    assert (batch.exit_code, batch.accuracy.fitted, rows.exists(), made.exists()) == (130, None, False, False)


# after a compaction of ours -----------------------------------------------------------------------


def test_what_a_report_said_would_be_left_is_scored_against_the_first_request_since(tmp_path):
    s = Session()
    s.user("Go.")
    s.assistant(call("c1"), usage=usage(21_000, out=40), id="msg_a")
    s.results(result("c1", TEXT * 20))
    s.assistant("Done.", usage=usage(52_000, out=4), id="msg_b")
    path = tmp_path / "s.jsonl"
    path.write_bytes(s.bytes())
    [spilled] = run.spill([str(path)], Options(apply=True)).outcomes
    s.user("More.")
    s.assistant("Fine.", usage=usage(spilled.tokens.after + 100, out=4), id="msg_c")
    output = tmp_path / "s.compacted.jsonl"
    output.write_bytes(output.read_bytes() + b"\n".join(s.raw_lines[-2:]) + b"\n")
    note = run.accuracy([str(output)], Options()).accuracy
    [scored] = [score for score in note.scores if score.way == "compacted"]
    assert (scored.n, scored.kind) == (1, ALL)
    assert abs(scored.bias) < 0.01
    assert note.excluded["rewritten by compactctl"] == 2


def test_no_request_from_before_a_spill_of_ours_is_truth(tmp_path):
    s = grown(*[5_000] * 4)
    s.assistant(call("c1"), usage=usage(40_000, out=40), id="msg_a")
    s.results(result("c1", TEXT * 20))
    path = tmp_path / "s.jsonl"
    path.write_bytes(s.bytes())
    run.spill([str(path)], Options(apply=True))
    note = run.accuracy([str(tmp_path / "s.compacted.jsonl")], Options()).accuracy
    assert (note.judged, note.scores) == (0, ())
