"""What `claude -p` prints: lines or an array, runs, their usage and their compactions, as they are read."""

import json

import pytest

from compactctl.formats import claude_stream
from compactctl.settings import Settings
from compactctl.windows import choose
from tests.builders import logs
from tests.builders.chat import lines
from tests.builders.logs import Claude, text, use
from tests.formats.reading import context, measured, opened, rules, session, sessions

CLAUDE = claude_stream.FORMAT


def closely(records):
    """Lines without a blank, as the client prints them."""
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


RUN = [
    ("assistant", "text 14", "call c1 Bash 16", "call c2 Bash 17"),
    ("user", "result c1 Bash 13"),
    ("user", "result c2 Bash 10"),
    ("assistant", "text 20"),
]


@pytest.mark.parametrize("mark, window_tokens", [("", 200_000), ("[1m]", 1_000_000)])
@pytest.mark.parametrize("has_totals", [True, False])
def test_the_mark_of_a_long_window_is_on_the_model_of_the_session_and_not_on_that_of_its_answers(
    has_totals, mark, window_tokens
):
    records = [record for record in logs.claude_run() if has_totals or record["type"] != "result"]
    records[0]["model"] = logs.MODEL + mark
    if has_totals:
        windows = {logs.MODEL + mark: {"contextWindow": window_tokens}, "claude-haiku-4-5": {"contextWindow": 200_000}}
        records[-1]["modelUsage"] = windows
    found = session(CLAUDE, lines(*records))
    assert found.model == logs.MODEL + mark
    assert choose(found, Settings(), None, None).tokens == window_tokens


@pytest.mark.parametrize(
    "written", [closely, logs.array, lambda records: b"[%s]" % b",".join(closely(records).splitlines())]
)
def test_a_run_of_claude_is_read_alike_from_lines_and_from_an_array(written):
    found = session(CLAUDE, written(logs.claude_run()))
    about = (found.format, found.session_id, found.agent, found.model, found.cwd, found.recorded_window_tokens)
    assert context(found) == RUN
    assert about == ("claude-stream", logs.SESSION, "Claude Code 2.1.332", logs.MODEL, "/work/shop", 200_000)
    assert rules(found) == []


def test_the_records_of_an_array_stand_on_the_lines_they_start_on_and_can_be_looked_up():
    raw = logs.array(logs.claude_run())
    document = opened(raw)
    (found,) = CLAUDE.read(document)
    answer = found.messages[-1]
    assert raw.split(b"\n")[answer.line - 1] == b"  {"
    assert document.value(answer.parts[0].place) == "Two files, it seems."
    assert document.value(found.messages[1].parts[0].place) == "shop.py\ntests"
    assert document.line_count == raw.count(b"\n") + 1
    assert sum(found.bytes_by_kind.values()) == len(raw)


def test_a_placeholder_output_is_no_output_so_the_answer_is_estimated():
    found = session(CLAUDE, lines(*logs.claude_run()))
    result = measured(found)
    assert (result.anchored, result.tokens) == (True, 1400 + len("Two files, it seems."))
    assert [(usage.input_tokens, usage.output_tokens) for usage in found.requests] == [(1000, 1), (1400, 1)]


@pytest.mark.parametrize(
    "end",
    [
        lambda log: [log.answer("m2", text("Four files."), taken=1400, given=55, stop="end_turn")],
        lambda log: [
            log.event(
                {"type": "message_start", "message": {"id": "m2", "model": logs.MODEL, "usage": {"input_tokens": 1400}}}
            ),
            log.answer("m2", text("Four files."), taken=1400),
            log.event({"type": "message_delta", "usage": {"output_tokens": 55}}),
        ],
    ],
    ids=["stop reason", "partial messages"],
)
def test_an_output_count_that_is_final_counts(end):
    log = Claude()
    found = session(CLAUDE, lines(log.init(), log.answer("m1", use("c")), log.result_of("c", "x"), *end(log)))
    assert measured(found).tokens == 1455


def test_the_totals_of_a_run_are_no_anchor_unless_it_was_one_request():
    log = Claude()
    alone = session(CLAUDE, lines(log.init(), log.answer("m1", text("Hi."), taken=5000), log.result(turns=1)))
    several = session(CLAUDE, lines(*logs.claude_run()))
    torn = session(CLAUDE, lines(log.init(), log.answer("m1", text("Hi."), taken=5000), log.result(turns=2)))
    assert measured(alone).tokens == 5000 + 90
    assert not measured(torn).anchored
    assert measured(several).anchor.input_tokens == 1400


def test_of_the_models_of_a_result_alone_the_one_that_took_in_most_is_the_sessions():
    windows = {
        "claude-haiku-4-5": {"inputTokens": 898, "contextWindow": 200_000},
        "claude-opus-5[1m]": {"inputTokens": 2, "cacheReadInputTokens": 12_117, "contextWindow": 1_000_000},
    }
    found = session(CLAUDE, lines(logs.Claude().result(turns=1, modelUsage=windows)))
    assert (found.model, found.recorded_window_tokens) == ("claude-opus-5[1m]", 1_000_000)


def test_a_result_alone_is_its_answer():
    found = session(CLAUDE, lines(Claude().result("All is well.", turns=1)))
    assert context(found) == [("assistant", "text 12")]
    assert measured(found).tokens == 5090


def test_pieces_of_a_stream_are_counted_as_progress_and_never_as_messages():
    log = Claude()
    event = log.event({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Hi."}})
    found = session(CLAUDE, lines(log.init(), event, log.answer("m1", text("Hi."))))
    assert context(found) == [("assistant", "text 3")]
    assert found.bytes_by_kind["progress"] == len(json.dumps(event))


def test_what_a_subagent_says_is_beside_the_context():
    log = Claude()
    side = {"parent_tool_use_id": "c1"}
    found = session(
        CLAUDE,
        lines(
            log.answer("m1", use("c1")),
            log.user([{"type": "text", "text": "Look there."}], **side),
            log.answer("s1", use("c9"), taken=700, **side),
            log.result_of("c9", "found", **side),
            log.result_of("c1", "It is there."),
        ),
    )
    assert context(found) == [("assistant", "call c1 Bash 17"), ("user", "result c1 Bash 12")]
    assert [(run.agent, run.messages, run.usage.input_tokens) for run in found.side_runs] == [("c1", 3, 700)]
    assert [(result.size_bytes, result.why) for result in found.outside] == [(5, "a subagent's")]
    assert [usage.input_tokens for usage in found.requests] == [1000]


def test_a_compaction_begins_the_context_anew_with_its_summary_and_what_it_kept():
    log = Claude()
    old, kept = log.answer("m1", text("Old words.")), log.answer("m2", text("Kept."))
    summary = log.user("What was done.", isSynthetic=True)
    boundary = log.boundary([kept["uuid"]], summary["uuid"])
    found = session(CLAUDE, lines(old, kept, boundary, summary, log.answer("m3", text("On we go."), taken=400)))
    assert context(found) == [("user", "text 14"), ("assistant", "text 5"), ("assistant", "text 9")]
    assert [message.is_summary for message in found.messages] == [True, False, False]
    assert [(c.line, c.tokens_before, c.trigger) for c in found.compactions] == [(3, 24_000, "auto")]
    assert found.peak_tokens == 24_000
    assert measured(found).tokens == 400 + 9


def test_a_compaction_that_kept_what_the_log_lacks_keeps_nothing():
    log = Claude()
    summary = log.user("What was done.", isSynthetic=True)
    found = session(CLAUDE, lines(log.answer("m1", text("Old.")), log.boundary(["gone"], summary["uuid"]), summary))
    assert context(found) == [("user", "text 14")]


def test_what_the_client_said_itself_is_not_in_context():
    log = Claude()
    error = log.answer("e", text("Not logged in"), model="<synthetic>", error="authentication_failed")
    printed = log.user("<local-command-stdout>Compacted</local-command-stdout>", isReplay=True)
    assert context(session(CLAUDE, lines(log.init(), printed, error, log.answer("m", text("Hi."))))) == [
        ("assistant", "text 3")
    ]


def test_runs_of_several_sessions_in_one_log_are_each_a_session():
    other = logs.claude_run(Claude("0ther5e5-0000-4000-8000-000000000002"))
    raw = closely([*logs.claude_run(), *other])
    found = sessions(CLAUDE, raw)
    assert [(each.index, context(each)) for each in found] == [(0, RUN), (1, RUN)]
    assert sum(sum(each.bytes_by_kind.values()) for each in found) == len(raw)


def test_odd_records_are_named_and_lose_nothing_else():
    log = Claude()
    odd = [
        log.record("shiny"),
        {"no": "type"},
        log.record("assistant", message="words"),
        log.record("user", message={"content": 5}),
        {**log.record("stream_event"), "event": []},
        log.record("result", subtype=None),
        {**log.init(), "subtype": "compact_boundary", "compact_metadata": []},
    ]
    found = session(CLAUDE, lines(*odd, log.answer("m", text("Hi."))))
    assert context(found) == [("assistant", "text 3")]
    assert [rule for _, rule in rules(found)] == ["unknown-record"] * 3
    assert [finding.message for finding in found.findings] == [
        "one of type shiny",
        "one record without a type",
        "one of type result",
    ]


def test_a_log_that_breaks_off_in_a_call_says_so():
    log = Claude()
    raw = lines(log.init(), log.answer("m1", use("c1")))
    assert rules(session(CLAUDE, raw)) == [(2, "unfinished-call")]
