"""The logs that agents print: what is read of them, and that nothing compacts them."""

import json

import pytest

from compactctl import formats
from compactctl.__main__ import exit_code
from compactctl.errors import NotCompactable
from compactctl.formats import claude_stream, codex_exec
from compactctl.formats.interface import Metas, Spilled
from compactctl.measure import measure
from compactctl.settings import Settings
from compactctl.windows import choose
from tests.builders import codex, logs
from tests.builders.chat import lines
from tests.builders.claude import Session as ClaudeCode
from tests.builders.logs import Claude, command, completed, started, text, use
from tests.formats.reading import context, opened, rules, session, sessions

CLAUDE = claude_stream.FORMAT
CODEX = codex_exec.FORMAT


class Bytes:
    """An estimator that is easy to follow: a token a byte of text."""

    name = "bytes"

    def tokens(self, messages):
        return sum(part.size_bytes for message in messages for part in message.parts if hasattr(part, "size_bytes"))


def measured(transcript):
    window = choose(transcript, Settings(), None, None)
    return measure(transcript, Bytes(), window, Settings(), anchored=True)


def recognised(raw):
    found = formats.recognise(opened(raw))
    return found and found.name


def closely(records):
    """Lines without a blank, as the client prints them."""
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def _session_of_claude_code():
    made = ClaudeCode()
    made.user()
    made.assistant()
    return made.bytes()


# telling them ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw, name",
    [
        (lines(*logs.claude_run()), "claude-stream"),
        (logs.array(logs.claude_run()), "claude-stream"),
        (json.dumps(logs.claude_run()).encode(), "claude-stream"),
        (b"\xef\xbb\xbf \n" + logs.array(logs.claude_run()), "claude-stream"),
        (lines(Claude().result()), "claude-stream"),
        (lines(*logs.codex_run()), "codex-exec"),
        (b"some warning of the shell\n" + lines(*logs.codex_run()), "codex-exec"),
        # the agents' own sessions stay theirs, also where a log was appended
        (
            _session_of_claude_code() + lines(Claude().result()),
            "claude-code",
        ),
        (lines(codex.meta(), codex.said(codex.user("hi"))), "codex"),
        # an array of anything else is read by nobody
        (logs.array(logs.codex_run()), None),
        (logs.array([{"a": 1}, *logs.claude_run()[:1]]), None),
        (logs.array(logs.claude_run())[:-2], None),
        (b"[]", None),
        (lines({"type": "result", "subtype": "success"}), None),
        (lines({"type": "error", "message": "x"}), None),
    ],
)
def test_a_log_is_told_from_its_records(raw, name):
    assert recognised(raw) == name


# claude -p ---------------------------------------------------------------------------------------

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
    assert [(result.size_bytes, result.outside) for result in found.results] == [(5, "a subagent's"), (12, "")]
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


# codex exec --json -------------------------------------------------------------------------------


def test_a_run_of_codex_is_read():
    raw = lines(*logs.codex_run())
    found = session(CODEX, raw)
    assert context(found) == [
        ("assistant", "reasoning 20", "text 14", "call item_2 command_execution 11"),
        ("tool", "result item_2 command_execution 14"),
        ("assistant", "text 20"),
    ]
    assert (found.format, found.session_id, found.agent, found.model) == ("codex-exec", logs.THREAD, "Codex", None)
    assert rules(found) == [(None, "no-usage")]
    assert sum(found.bytes_by_kind.values()) == len(raw)


def test_totals_of_a_thread_anchor_nothing():
    found = session(CODEX, lines(*logs.codex_run()))
    assert (found.requests, found.peak_tokens, measured(found).anchored) == ((), 0, False)


@pytest.mark.parametrize(
    "items, read",
    [
        (
            command(1, "ls", "x", code=2),
            [("assistant", "call item_1 command_execution 2"), ("tool", "result item_1 command_execution 1 error")],
        ),
        (
            [completed(1, "file_change", changes=[{"path": "a", "kind": "add"}], status="completed")],
            [("assistant", "call item_1 file_change 30"), ("tool", "result item_1 file_change 0")],
        ),
        (
            [
                completed(
                    1,
                    "mcp_tool_call",
                    server="s",
                    tool="t",
                    arguments={"q": 1},
                    status="completed",
                    result={"content": [text("found")]},
                    error=None,
                )
            ],
            [("assistant", "call item_1 s.t 8"), ("tool", "result item_1 s.t 5")],
        ),
        (
            [
                completed(
                    1,
                    "mcp_tool_call",
                    server="s",
                    tool="t",
                    arguments=None,
                    status="failed",
                    result=None,
                    error={"message": "no"},
                )
            ],
            [("assistant", "call item_1 s.t 4"), ("tool", "result item_1 s.t 2 error")],
        ),
        (
            [completed(1, "web_search", query="weather", action={"type": "search"})],
            [("assistant", "call item_1 web_search 7"), ("tool", "result item_1 web_search 0")],
        ),
        (
            [completed(1, "collab_tool_call", tool="spawn_agent", prompt="Look.", status="completed")],
            [("assistant", "call item_1 spawn_agent 5"), ("tool", "result item_1 spawn_agent 0")],
        ),
        (
            [started(1, "todo_list", items=[]), completed(1, "todo_list", items=[])],
            [("assistant", "opaque todo_list 2")],
        ),
        ([completed(1, "error", message="a warning")], []),
        (
            [started(1, "agent_message", text="Hi"), completed(1, "agent_message", text="Hi.")],
            [("assistant", "text 3")],
        ),
    ],
)
def test_each_item_is_read_by_its_type(items, read):
    assert context(session(CODEX, lines(logs.thread(), *items))) == read


def test_results_of_calls_at_once_stand_behind_their_message_in_the_order_they_came():
    first, second = command(1, "ls", "a"), command(2, "pwd", "bb")
    raw = lines(logs.thread(), first[0], second[0], second[1], completed(3, "agent_message", text="Hm."), first[1])
    found = session(CODEX, raw)
    assert context(found) == [
        ("assistant", "call item_1 command_execution 2", "call item_2 command_execution 3"),
        ("tool", "result item_2 command_execution 2"),
        ("tool", "result item_1 command_execution 1"),
        ("assistant", "text 3"),
    ]
    assert rules(found) == [(None, "no-usage")]


def test_ids_of_items_mean_others_in_the_next_run():
    again = [logs.thread(), logs.TURN_STARTED, *command(0, "pwd", "bb")]
    raw = lines(logs.thread(), logs.TURN_STARTED, command(0, "ls", "a")[0], *again)
    found = session(CODEX, raw)
    assert context(found) == [
        ("assistant", "call item_0 command_execution 2"),
        ("assistant", "call item_0 command_execution 3"),
        ("tool", "result item_0 command_execution 2"),
    ]
    assert (2 + 1, "call-without-result") in rules(found)


def test_threads_in_one_log_are_each_a_session():
    other = [logs.thread("0ther"), *logs.codex_run()[1:]]
    found = sessions(CODEX, lines(*logs.codex_run(), *other))
    assert [(each.index, each.session_id, len(each.messages)) for each in found] == [
        (0, logs.THREAD, 3),
        (1, "0ther", 3),
    ]


def test_a_run_that_failed_has_no_message():
    failed = {"type": "turn.failed", "error": {"message": "no network"}}
    raw = lines(logs.thread(), logs.TURN_STARTED, {"type": "error", "message": "no network"}, failed)
    assert rules(session(CODEX, raw)) == [(None, "empty-session")]


def test_odd_events_are_named_and_lose_nothing_else():
    odd = [{"type": "shiny"}, {"no": "type"}, 5, completed(1, "hologram"), {"type": "item.completed", "item": []}]
    found = session(CODEX, lines(logs.thread(), *odd, completed(2, "agent_message", text="Hi.")))
    assert context(found) == [("assistant", "text 3")]
    assert [finding.message for finding in found.findings if finding.rule == "unknown-record"] == [
        "one event of type shiny",
        "2 record without a type",
        "one item of type hologram",
        "one item of type no known shape",
    ]


# none of them is compacted -----------------------------------------------------------------------


@pytest.mark.parametrize("command", ["spill", "compact", "summarize", "restore", "verify"])
@pytest.mark.parametrize(
    "records, printed_by, session_id, home",
    [
        (logs.claude_run(), "claude -p --output-format stream-json", logs.SESSION, "~/.claude/projects"),
        (logs.codex_run(), "codex exec --json", logs.THREAD, "~/.codex/sessions"),
    ],
)
def test_no_command_compacts_a_log_and_each_says_what_to_give(
    command, records, printed_by, session_id, home, tmp_path, capsys
):
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(*records))
    assert exit_code([command, str(path), *(["--apply"] if command == "spill" else [])]) == 3
    said = capsys.readouterr().err
    assert f"can't be compacted: `{printed_by}` printed it" in said
    assert f"by its id ({session_id}) or as a file below {home}" in said
    assert sorted(tmp_path.iterdir()) == [path]


def test_inspect_does_not_say_that_a_log_could_be_spilled(tmp_path, capsys):
    path = tmp_path / "run.jsonl"
    path.write_bytes(lines(*logs.codex_run()))
    for arguments in (["--sort", "saved"], ["-o", "json"]):
        assert exit_code(["inspect", str(path), *arguments]) == 0
    page, _, result = capsys.readouterr().out.partition("\n{")
    assert [line for line in page.splitlines() if line.startswith("spill")] == [
        "spill     never: a log that an agent printed is only read"
    ]
    assert json.loads("{" + result)["sessions"][0]["details"]["would_spill"] == []


def test_in_a_folder_a_log_is_passed_over(tmp_path, capsys):
    (tmp_path / "log.jsonl").write_bytes(lines(*logs.claude_run()))
    (tmp_path / "chat.jsonl").write_bytes(lines({"role": "user", "content": "Hi."}))
    assert exit_code(["spill", str(tmp_path), "-o", "json"]) == 0
    found = {s["path"].rpartition("/")[2]: s["status"] for s in json.loads(capsys.readouterr().out)["sessions"]}
    assert found == {"chat.jsonl": "unchanged", "log.jsonl": "skipped"}


@pytest.mark.parametrize("command", ["inspect", "estimate", "audit"])
@pytest.mark.parametrize("raw", [lines(*logs.claude_run()), logs.array(logs.claude_run()), lines(*logs.codex_run())])
def test_logs_are_read(command, raw, tmp_path, capsys):
    path = tmp_path / "log.json"
    path.write_bytes(raw)
    assert exit_code([command, str(path), "-o", "json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["sessions"]
    assert (only["status"], only["messages"] > 2, only["tokens"]["before"] > 0) == ("read", True, True)


@pytest.mark.parametrize("raw, rules", [(lines(*logs.claude_run()), []), (lines(*logs.codex_run()), ["no-usage"])])
def test_an_audit_asks_no_more_of_a_log_than_a_log_has(raw, rules, tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    path.write_bytes(raw)
    assert exit_code(["audit", str(path), "-o", "json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["sessions"]
    assert [finding["rule"] for finding in only["findings"]] == rules


@pytest.mark.parametrize("format_, records", [(CLAUDE, logs.claude_run()), (CODEX, logs.codex_run())])
def test_a_log_has_no_edits(format_, records):
    document = opened(lines(*records))
    (found,) = format_.read(document)
    result = next(message.result for message in found.messages if message.result)
    with pytest.raises(NotCompactable):
        format_.spill_edits(document, [Spilled(result, "gone", "moved")])
    with pytest.raises(NotCompactable):
        format_.compaction(document, found, None, Metas("s"), 1, 1, keep_history=False)
    assert format_.spill_edits(document, []) == []
    assert format_.usage_edits(document, found, 5) == format_.slim_edits(document, 0, "p") == []
    assert format_.new_session(document, found, "n", "s") is None
    assert "resume the session that it is about" in format_.resume("/s.jsonl", None).remark
