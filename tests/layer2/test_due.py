"""When a summary is asked for, and that what is done already is not asked for again."""

import pytest

from compactctl import run
from compactctl.errors import SpillFailed
from tests.builders.long_chat import long_chat
from tests.layer2.running import compact, options, summarize
from tests.runs import files_in, only


def test_compact_asks_nobody_below_the_threshold(tmp_path, write_session, provider):
    fake = provider()
    outcome = compact(write_session(long_chat(3)))
    assert (outcome.status, outcome.layer2.reason, outcome.layer2.due) == ("unchanged", "below_threshold", False)
    assert (fake.asked, files_in(tmp_path)) == ([], ["s.jsonl"])


def test_compact_asks_nobody_where_spilling_is_enough(tmp_path, write_session, provider):
    fake = provider()
    path = write_session(long_chat(3, 20_000))
    outcome = compact(path, options(changes=["layer1.single_limit_bytes=1000", "layer1.preview_head_bytes=100"]))
    assert (outcome.status, outcome.layer2.reason, len(outcome.layer1.spills)) == ("applied", "below_threshold", 3)
    assert fake.asked == []


def test_compact_at_the_threshold_is_due_and_comes_below_it(write_session, provider):
    provider()
    outcome = compact(write_session(long_chat()))
    assert (outcome.status, outcome.layer2.reason, outcome.layer2.due, outcome.layer2.ran) == (
        "applied",
        "due",
        True,
        True,
    )
    assert outcome.tokens.after < outcome.tokens.threshold <= outcome.tokens.before


@pytest.mark.parametrize("command", [run.summarize, run.compact])
def test_nothing_older_than_what_is_kept_asks_nobody_and_ends_well(command, tmp_path, write_session, provider):
    fake = provider()
    path = write_session([{"role": "user", "content": "word " * 4_000}, {"role": "assistant", "content": "Yes."}])
    outcome = only(command([str(path)], options(window=4_000)))
    assert (outcome.status, outcome.layer2.reason, outcome.exit_code) == ("unchanged", "nothing_older", 0)
    assert (fake.asked, files_in(tmp_path)) == ([], ["s.jsonl"])


def test_a_second_summary_of_a_summary_alone_asks_nobody(tmp_path, write_session, provider):
    fake = provider()
    summarize(write_session(long_chat()))
    outcome = summarize(tmp_path / "s.compacted.jsonl")
    assert (outcome.status, outcome.layer2.reason, len(fake.asked)) == ("unchanged", "nothing_older", 1)


def test_a_failed_spill_does_not_stop_layer_2(write_session, provider, monkeypatch):
    from compactctl import spill_files

    provider()

    def refuse(folder, name, data):
        raise SpillFailed(f"{name}: no space left on device")

    monkeypatch.setattr(spill_files, "write", refuse)
    path = write_session(long_chat(12, 3_000))
    changes = ["layer1.single_limit_bytes=1000", "layer1.preview_head_bytes=900"]
    planned = compact(path, options(apply=False, window=8_000, changes=changes))
    assert planned.layer2.reason == "below_threshold"
    outcome = compact(path, options(window=8_000, changes=changes))
    assert outcome.layer2.ran
    assert (outcome.status, outcome.exit_code, outcome.error.code) == ("applied", 6, "spill_failed")


# asked for again ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["beside", "in place"])
def test_a_session_that_is_done_already_costs_nothing(tmp_path, write_session, provider, place):
    fake = provider()
    path = write_session(long_chat())
    summarize(path, options(place=place))
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)}
    outcome = summarize(path, options(place=place))
    assert (outcome.status, outcome.layer2.reason, len(fake.asked)) == ("unchanged", "already_done", 1)
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)} == before


def test_other_settings_are_another_run(write_session, provider):
    fake = provider()
    path = write_session(long_chat())
    summarize(path)
    again = summarize(path, options(changes=["layer2.recent_keep_messages=5"]))
    assert (again.status, len(fake.asked)) == ("applied", 2)


def test_an_output_in_which_an_agent_went_on_is_not_overwritten_and_nobody_is_asked(tmp_path, write_session, provider):
    fake = provider()
    path = write_session(long_chat())
    summarize(path)
    with (tmp_path / "s.compacted.jsonl").open("a") as file:
        file.write('{"role":"user","content":"Go on."}\n')
    outcome = summarize(path)
    assert (outcome.exit_code, outcome.error.code, len(fake.asked)) == (6, "output_changed", 1)
