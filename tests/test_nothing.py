"""A `spill` that finds nothing says why: what is biggest, what keeps it where it is, what lower limits would do."""

import json

import pytest

from compactctl import run
from compactctl.options import Options
from compactctl.outputs import View, load
from compactctl.settings import Settings, with_changes
from tests.builders import claude
from tests.builders.big_chat import big_chat, text


def options(*changes, **more):
    return Options(settings=with_changes(Settings(), changes), **more)


def spilled(path, *changes, **more):
    [outcome] = run.spill([str(path)], options(*changes, **more)).outcomes
    return outcome


def printed(batch, output="table", view=View()):  # noqa: B008
    printer = load(output).printer(batch.command, view)
    return "".join(printer.outcome(outcome) for outcome in batch.outcomes) + printer.end(batch)


def test_results_under_the_limit_are_named_with_what_lower_limits_would_do(write_session):
    path = write_session(big_chat((30_000, 12_000, 900)))
    outcome = spilled(path)
    assert outcome.status == "unchanged"
    assert [(big.bytes, big.in_context, big.why) for big in outcome.layer1.biggest] == [
        (30_000, True, "under the limit of 50,000"),
        (12_000, True, "under the limit of 50,000"),
        (900, True, "under the limit of 50,000"),
    ]
    assert [(choice.limit_bytes, choice.results, choice.bytes) for choice in outcome.layer1.would_spill] == [
        (50_000, 0, 0),
        (20_000, 1, 30_000),
        (10_000, 2, 42_000),
    ]
    assert all(choice.tokens_saved > 0 for choice in outcome.layer1.would_spill[1:])


def test_a_lower_limit_does_what_was_foretold(write_session):
    path = write_session(big_chat((30_000, 12_000, 900)))
    for choice in spilled(path).layer1.would_spill[1:]:
        done = spilled(path, f"layer1.single_limit_bytes={choice.limit_bytes}")
        assert len(done.layer1.spills) == choice.results
        assert sum(spill.bytes for spill in done.layer1.spills) == choice.bytes
        saved = done.tokens.before - done.tokens.after
        assert abs(saved - choice.tokens_saved) < 0.05 * saved


def test_what_was_spilled_before_says_so(write_session, tmp_path):
    spilled(write_session(big_chat((60_000, 900))), apply=True)
    outcome = spilled(tmp_path / "s.compacted.jsonl")
    assert [big.why for big in outcome.layer1.biggest] == ["already spilled", "under the limit of 50,000"]
    assert outcome.layer1.biggest[0].bytes < 4_000


def test_a_result_before_the_compaction_says_where_that_is(tmp_path):
    session = claude.Session()
    session.user("Read it.")
    session.assistant(claude.call("toolu_1", "Read"))
    session.results(claude.result("toolu_1", text(60_000)))
    session.assistant("Long.")
    session.boundary()
    session.summary()
    session.assistant(claude.call("toolu_2", "Read"))
    session.results(claude.result("toolu_2", text(700)))
    session.assistant("Short.")
    (tmp_path / "s.jsonl").write_bytes(session.bytes())
    outcome = spilled(tmp_path / "s.jsonl")
    assert [(big.line, big.bytes, big.in_context, big.why) for big in outcome.layer1.biggest] == [
        (3, 60_000, False, "before the compaction at line 5"),
        (8, 700, True, "under the limit of 50,000"),
    ]


def test_where_something_is_spilled_no_reasons_are_given(write_session):
    path = write_session(big_chat((60_000, 900)))
    made = json.loads(printed(run.spill([str(path)], Options()), "json"))["sessions"][0]["layer1"]
    assert "biggest" not in made
    assert "would_spill" not in made


def test_a_page_says_it_all(write_session, tmp_path):
    path = write_session(big_chat((30_000, 900)))
    lines = printed(run.spill([str(path)], Options())).splitlines()
    assert lines[0] == "nothing to do: nothing was written"
    start = lines.index("biggest tool results")
    assert [" ".join(line.split()) for line in lines[start + 1 :]] == [
        "line bytes tool why it stays",
        "4 30,000 run under the limit of 50,000",
        "6 900 run under the limit of 50,000",
        "",
        "spill at 50,000 bytes: nothing",
        "at 20,000 bytes: 1 result, about -7,986 tokens",
        "at 10,000 bytes: no more",
    ]


def test_a_list_says_what_lower_limits_would_do_over_all(write_session, tmp_path):
    write_session(big_chat((30_000,)), "a.jsonl")
    write_session(big_chat((12_000, 12_000)), "b.jsonl")
    write_session(big_chat((900,)), "c.jsonl")
    lines = printed(run.spill([str(tmp_path)], Options())).splitlines()
    assert lines[-3:] == [
        "spill     at 50,000 bytes: nothing",
        "          at 20,000 bytes: 1 result in 1 session, about -7,986 tokens",
        "          at 10,000 bytes: 3 results in 2 sessions, about -13,672 tokens",
    ]


@pytest.mark.parametrize("output", ["table", "markdown"])
def test_small_sessions_say_it_in_one_line(output, write_session):
    path = write_session(big_chat((900,)))
    assert "nothing at 50,000, 20,000 or 10,000 bytes" in printed(run.spill([str(path)], Options()), output)
