"""The effective context of Codex rollouts: what is sent, its places and copies."""

import pytest

from compactctl.document import Place
from compactctl.formats.codex.items import SUMMARY_START
from compactctl.model import Copy, Message, Reasoning, Text, ToolCall
from tests import contexts
from tests.builders import codex
from tests.builders.codex import (
    assistant,
    call,
    compacted,
    compacted_by_entries,
    compacted_by_message,
    custom_call,
    custom_output,
    developer,
    event,
    line,
    message,
    output,
    reasoning,
    rolled_back,
    started,
    tokens,
    turn,
    user,
)
from tests.formats.rollouts import context, opened, read, rules

ENVIRONMENT = user("<environment_context>\n<cwd>/srv/shop</cwd>\n</environment_context>")
INSTRUCTIONS = user("# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>")

GOLDEN = {
    "what one answer holds is one message; results and what persons say are messages of their own": (
        [
            developer("Rules."),
            ENVIRONMENT,
            user("Look."),
            reasoning("Think."),
            assistant("Looking."),
            call("c1"),
            call("c2"),
            output("c1", "one"),
            output("c2", "two"),
            assistant("Seen."),
        ],
        [
            "developer: Rules. (leading)",
            "user: <environment_context>\n<cwd>/srv/shop</cwd>\n</environment_context> (leading)",
            "user: Look.",
            "assistant: ~Think. Looking. +c1 +c2",
            "tool: c1=one",
            "tool: c2=two",
            "assistant: Seen.",
        ],
    ),
    "a turn or a token count between two answers keeps them apart": (
        [user("Go."), assistant("A"), started("t2"), assistant("B"), tokens(900, 9, total=909), assistant("C")],
        ["user: Go.", "assistant: A", "assistant: B", "assistant: C"],
    ),
    "only a leading developer message is one": (
        [developer("Rules."), developer("More."), user("Go."), developer("Later.")],
        ["developer: Rules. (leading)", "developer: More. (leading)", "user: Go.", "developer: Later."],
    ),
    "a system message, a snapshot and an item of unknown type are not sent": (
        [message("system", "No."), {"type": "ghost_snapshot", "ghost_commit": {}}, {"type": "tool_call"}, user("Go.")],
        ["user: Go."],
    ),
    "what is empty is no message": (
        [
            user("Go."),
            assistant(""),
            reasoning(),
            {"type": "message", "role": "user", "content": []},
            assistant("Yes."),
        ],
        ["user: Go.", "assistant: Yes."],
    ),
    "every kind of call and output is one": (
        [
            user("Go."),
            custom_call("c1"),
            custom_output("c1", '{"output":"patched","metadata":{"exit_code":0}}'),
            {"type": "local_shell_call", "call_id": "c2", "status": "completed", "action": {"command": ["ls"]}},
            output("c2", "listed"),
            {"type": "web_search_call", "status": "completed", "action": {"query": "tills"}},
            {"type": "tool_search_call", "call_id": "c3", "arguments": {"query": "x"}},
            {"type": "tool_search_output", "call_id": "c3", "tools": [{"name": "x"}]},
        ],
        [
            "user: Go.",
            "assistant: +c1",
            'tool: c1={"output":"patched","metadata":{"exit_code":0}}',
            "assistant: +c2",
            "tool: c2=listed",
            "assistant: <web_search_call> <tool_search_call>",
            "tool: <tool_search_output>",
        ],
    ),
    "an output is a string, blocks, or an object with its text inside": (
        [
            user("Go."),
            call("c1"),
            output("c1", [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]),
            call("c2"),
            output("c2", {"content": "inside", "success": True}),
            call("c3"),
            output("c3", {"type": "input_text", "text": "a block"}),
        ],
        [
            "user: Go.",
            "assistant: +c1",
            "tool: c1=one\ntwo",
            "assistant: +c2",
            "tool: c2=inside",
            "assistant: +c3",
            "tool: c3=a block",
        ],
    ),
    "what another agent wrote is sent as said to this one": (
        [
            user("Go."),
            {"type": "agent_message", "author": "/root", "content": [{"type": "input_text", "text": "Help?"}]},
            line("inter_agent_communication", {"author": "/root", "recipient": "/w", "content": "Help me."}),
        ],
        ["user: Go.", "user: Help?", "user: Help me."],
    ),
    "events, settings and states say nothing": (
        [
            started(),
            turn(),
            user("Go."),
            event("user_message", message="Go."),
            line("world_state", {"full": True}),
            event("agent_message", message="Yes."),
            assistant("Yes."),
            event("task_complete", turn_id="t1"),
        ],
        ["user: Go.", "assistant: Yes."],
    ),
    "the newest compaction replaces all before it, though its message is empty": (
        [
            user("Rewrite the till."),
            call("c1"),
            output("c1", "x" * 500),
            compacted(user("Rewrite the till."), user("So far: half.")),
            event("context_compacted"),
            user("Go on."),
            assistant("Done."),
        ],
        ["user: Rewrite the till.", "user: So far: half.", "user: Go on.", "assistant: Done."],
    ),
    "a compaction may keep pairs, and a history that only the provider reads": (
        [
            user("Old."),
            compacted(call("c1"), output("c1", "kept"), {"type": "compaction", "encrypted_content": "QUJD"}),
            assistant("Go on."),
        ],
        ["assistant: +c1", "tool: c1=kept", "assistant: ~QUJD (summary)", "assistant: Go on."],
    ),
    "the summary among what is kept is told by how codex begins it, or by the message beside it": (
        [
            compacted(user("Kept."), user(f"{SUMMARY_START} and so on.")),
            compacted(user("Kept."), user("So far: half."), message="So far: half."),
        ],
        ["user: Kept.", "user: So far: half. (summary)"],
    ),
    "an old compaction leaves what persons wrote, and its message": (
        [
            INSTRUCTIONS,
            ENVIRONMENT,
            user("Rewrite the till."),
            assistant("Half done."),
            compacted_by_message("So far: half."),
            assistant("Go on."),
        ],
        ["user: Rewrite the till.", "user: So far: half. (summary)", "assistant: Go on."],
    ),
    "a second old compaction drops the summary of the first": (
        [
            user("One."),
            compacted_by_message(f"{SUMMARY_START}: one."),
            user("Two."),
            compacted_by_message(f"{SUMMARY_START}: one and two."),
        ],
        ["user: One.", "user: Two.", f"user: {SUMMARY_START}: one and two. (summary)"],
    ),
    "an old compaction reaches back as far as its limit": (
        [user("a" * 50_000), user("b" * 50_000), user("c" * 50_000), compacted_by_message("So far.")],
        ["user: " + "b" * 50_000, "user: " + "c" * 50_000, "user: So far. (summary)"],
    ),
    "entries of a history are items, or name earlier ones": (
        [
            user("Old."),
            assistant("Kept.", id="msg_1"),
            compacted_by_entries(
                {"type": "reference", "item_id": "msg_1"},
                {"type": "inline", "item": user("New."), "metadata": {}},
            ),
            assistant("Go on."),
        ],
        ["assistant: Kept.", "user: New.", "assistant: Go on."],
    ),
    "a rollback takes back the last turns": (
        [
            user("One."),
            assistant("1"),
            user("Two."),
            call("c1"),
            output("c1"),
            assistant("2"),
            rolled_back(1),
            user("3"),
        ],
        ["user: One.", "assistant: 1", "user: 3"],
    ),
    "context that codex put in before a turn goes with it": (
        [
            user("One."),
            assistant("1"),
            started("t2"),
            developer("<permissions instructions>…"),
            ENVIRONMENT,
            user("Two."),
            rolled_back(1),
            user("Three."),
        ],
        ["user: One.", "assistant: 1", "user: Three."],
    ),
    "what came before the first turn stays": (
        [developer("Rules."), ENVIRONMENT, user("One."), assistant("1"), user("Two."), rolled_back(7)],
        [
            "developer: Rules. (leading)",
            "user: <environment_context>\n<cwd>/srv/shop</cwd>\n</environment_context> (leading)",
        ],
    ),
    "a rollback takes a compaction of its turn back": (
        [
            started("t1"),
            user("One."),
            assistant("1"),
            started("t2"),
            user("Two."),
            compacted(user("One."), user("So far.")),
            assistant("2"),
            rolled_back(1),
            started("t3"),
            user("Three."),
        ],
        ["user: One.", "assistant: 1", "user: Three."],
    ),
    "and the compaction before that one counts again": (
        [
            started("t1"),
            user("One."),
            compacted(user("First summary.")),
            started("t2"),
            user("Two."),
            compacted(user("Second summary.")),
            rolled_back(1),
            started("t3"),
            user("Three."),
        ],
        ["user: First summary.", "user: Three."],
    ),
    "a rollback before a compaction changes nothing": (
        [started(), user("1"), started(), user("2"), rolled_back(1), started(), compacted(user("So far.")), user("4")],
        ["user: So far.", "user: 4"],
    ),
}


@pytest.mark.parametrize("records, expected", GOLDEN.values(), ids=GOLDEN)
def test_context(records, expected):
    assert context(*records) == expected


def test_files_of_before_0_40_are_a_bare_header_and_bare_items():
    document, transcript = opened(
        codex.jsonl(
            {"id": codex.SESSION_ID, "timestamp": codex.STAMP, "instructions": None, "git": {"branch": "main"}},
            {"record_type": "state"},
            user("Look."),
            {"record_type": "state"},
            call("c1", "shell"),
            output("c1", '{"output":"till.py","metadata":{"exit_code":0}}'),
            assistant("Seen."),
        )
    )
    assert contexts.lines(document, transcript) == [
        "user: Look.",
        "assistant: +c1",
        'tool: c1={"output":"till.py","metadata":{"exit_code":0}}',
        "assistant: Seen.",
    ]
    assert transcript.session_id == codex.SESSION_ID
    assert transcript.messages[2].result.place == Place(5, ("output",))


def test_parts_tell_their_places_and_sizes_and_the_answer_its_records():
    _, transcript = read(
        user("Größe?"), reasoning("Hm.", "QUJD", id="rs_1"), call("c1", arguments='{"cmd":"é"}'), output("c1", "naïve")
    )
    question, answer, result = transcript.messages
    assert question.parts == (Text(Place(1, ("payload", "content", 0, "text")), 8),)
    assert answer == Message(
        "assistant",
        (
            Reasoning(Place(2, ("payload",)), 3, 4),
            ToolCall(Place(3, ("payload", "arguments")), "c1", "exec_command", 12),
        ),
        (2, 3),
        3,
        "rs_1",
        unsealed_key="",
    )
    assert (result.role, result.result.place, result.result.size_bytes) == ("tool", Place(4, ("payload", "output")), 6)
    assert result.result.name == "exec_command"


def test_copies_of_an_output_are_found_in_events_before_and_after_it():
    _, transcript = read(
        user("Go."),
        call("c1"),
        event("exec_command_end", call_id="c1", stdout="out", stderr="", aggregated_output="out", exit_code=0),
        output("c1", "out"),
        event("item_completed", item={"type": "CommandExecution", "id": "c1", "aggregated_output": "out"}),
        event("mcp_tool_call_end", call_id="c2", result={"Ok": {"content": []}}),
    )
    assert transcript.messages[-1].result.copies == (
        Copy(Place(3, ("payload", "stdout")), 5),
        Copy(Place(3, ("payload", "aggregated_output")), 5),
        Copy(Place(5, ("payload", "item", "aggregated_output")), 5),
    )
    assert transcript.bytes_by_kind["copies"] == 5 + 5 + 5 + len('{"Ok": {"content": []}}')


def test_a_call_id_that_comes_again_has_its_own_name_and_copies():
    _, transcript = read(
        user("Go."),
        call("c1", "first"),
        event("exec_command_end", call_id="c1", stdout="one"),
        output("c1", "one"),
        call("c1", "second"),
        event("exec_command_end", call_id="c1", stdout="other"),
        output("c1", "other"),
    )
    results = [message.result for message in transcript.messages if message.result]
    assert [(result.name, result.copies[0].place.record) for result in results] == [("first", 3), ("second", 6)]
    assert rules(user("Go."), call("c1"), output("c1"), call("c1"), output("c1")) == []


def test_of_two_outputs_of_one_call_each_has_its_own_copies():
    _, transcript = read(
        user("Go."),
        call("c1"),
        event("exec_command_end", call_id="c1", stdout="one"),
        output("c1", "one"),
        output("c1", "other"),
        event("exec_command_end", call_id="c1", stdout="other"),
    )
    results = [message.result for message in transcript.messages if message.result]
    assert [[copy.place.record for copy in result.copies] for result in results] == [[3], [6]]


def test_an_output_that_a_digest_elsewhere_binds_is_not_offered_for_spilling():
    _, transcript = read(
        user("Go."),
        call("c1", id="fc_1"),
        output("c1", "x" * 99, id="fco_1"),
        compacted_by_entries(
            {"type": "reference_v2", "item_id": "fc_1", "source_digest": "sha256:00"},
            {"type": "reference_v2", "item_id": "fco_1", "source_digest": "sha256:00"},
        ),
    )
    assert transcript.messages[-1].result.is_preview


def test_our_own_preview_is_known_again():
    preview = "[content offloaded] original size: 90000 bytes\n[saved to] /tmp/a.txt\n[head preview]\nx\n"
    _, transcript = read(user("Go."), call("c1"), output("c1", preview))
    assert transcript.messages[-1].result.is_preview
