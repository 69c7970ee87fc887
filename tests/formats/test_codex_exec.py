"""What `codex exec --json` prints: threads and their items, as they are read."""

import pytest

from compactctl.formats import codex_exec
from tests.builders import logs
from tests.builders.chat import lines
from tests.builders.logs import command, completed, started, text
from tests.formats.reading import context, measured, rules, session, sessions

CODEX = codex_exec.FORMAT


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
