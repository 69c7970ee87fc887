import io
import json

import pytest

from compactctl.document import Document, Place
from compactctl.formats.codex import FORMAT
from compactctl.formats.codex.items import SUMMARY_START
from compactctl.formats.interface import Spilled
from compactctl.model import KINDS, Copy, Message, Reasoning, Text, ToolCall, Usage
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
    meta,
    output,
    reasoning,
    rolled_back,
    rollout,
    said,
    started,
    tokens,
    turn,
    user,
)

ENVIRONMENT = user("<environment_context>\n<cwd>/srv/shop</cwd>\n</environment_context>")
INSTRUCTIONS = user("# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>")


def opened(session: bytes):
    document = Document(io.BytesIO(session))
    (transcript,) = FORMAT.read(document)
    return document, transcript


def read(*records):
    return opened(rollout(*records))


def context(*records) -> list[str]:
    return contexts.lines(*read(*records))


def rules(*records) -> list[tuple[str, int | None]]:
    _, transcript = read(*records)
    return [(finding.rule, finding.line) for finding in transcript.findings if finding.rule != "no-usage"]


# recognising ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "record",
    [
        meta(),
        turn(),
        said(user("Hi.")),
        event("token_count", info=None),
        compacted(),
        line("world_state", {"full": True}),
        line("token_usage_record", {}),
        {"id": "x", "timestamp": codex.STAMP, "instructions": None, "git": {}},
        {"record_type": "state"},
    ],
)
def test_records_of_a_rollout_are_claimed(record):
    assert FORMAT.claims(record)


@pytest.mark.parametrize(
    "record",
    [
        {"type": "thread.started", "thread_id": "x"},
        {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "Hi."}},
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
        user("Hi."),
        call("c1"),
        {"role": "user", "content": "Hi."},
        {"type": "event_msg", "payload": "text"},
        {"type": "message", "payload": {"type": "message"}},
        {"id": "x", "timestamp": codex.STAMP, "instructions": "…", "messages": []},
    ],
)
def test_printed_logs_plain_items_and_messages_are_not_claimed(record):
    assert not FORMAT.claims(record)


def test_a_document_without_a_record_of_a_rollout_is_no_session():
    assert FORMAT.read(codex.document({"role": "user", "content": "Hi."})) == []


# the effective context -----------------------------------------------------------------------------

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


# usage ---------------------------------------------------------------------------------------------


def usages(*records):
    _, transcript = read(*records)
    return transcript, [(m.line, m.usage.input_tokens, m.usage.output_tokens) for m in transcript.messages if m.usage]


def test_repeated_token_counts_are_one_request_and_what_was_cached_is_inside():
    first = tokens(1500, 300, total=1800, cached=600)
    second = tokens(1400, 100, total=3300, cached=900)
    transcript, anchors = usages(
        turn("gpt-5.5"), user("Do it."), assistant("Part one."), first, first, first, user("More."), assistant("Two."),
        second, second,
    )  # fmt: skip
    assert anchors == [(4, 1500, 300), (9, 1400, 100)]
    assert transcript.requests == (
        Usage(5, 1500, 300, 600, 0, "gpt-5.5"),
        Usage(10, 1400, 100, 900, 0, "gpt-5.5"),
    )
    assert transcript.peak_tokens == 1800


def test_a_token_count_belongs_to_the_answer_it_closes_though_outputs_are_written_before_it():
    _, anchors = usages(
        user("Go."),
        call("c1"),
        output("c1", "one"),
        tokens(1000, 10, total=1010),
        call("c2"),
        output("c2", "two"),
        user("Wait."),
        tokens(2000, 20, total=3030),
    )
    assert anchors == [(3, 1000, 10), (6, 2000, 20)]


@pytest.mark.parametrize(
    "count",
    [
        event("token_count", info=None),
        tokens(0, 0, total=5000),  # codex's own estimate after a compaction
        tokens(150_000, 9, total=150_009),  # more than the model takes
        event("token_count", info={"prompt": 5, "completion": 9}),
        event("token_count", info={"total_token_usage": codex.counts(36_000, 0)}),  # only what was spent so far
    ],
)
def test_a_count_that_tells_of_no_request_is_none(count):
    transcript, anchors = usages(user("Go."), assistant("Yes."), count)
    assert (anchors, transcript.requests) == ([], ())


def test_a_count_may_reach_what_the_model_takes_though_codex_uses_less():
    _, anchors = usages(user("Go."), assistant("Yes."), tokens(105_000, 200, total=105_200, window=100_000))
    assert anchors == [(3, 105_000, 200)]


def test_nothing_before_the_newest_compaction_is_an_anchor():
    transcript, anchors = usages(
        user("Old."),
        assistant("Old."),
        tokens(31_000, 900, total=31_900),
        compacted(user("Old."), assistant("Kept."), user("So far.")),
        user("Go on."),
        assistant("Done."),
        tokens(4200, 600, total=36_700),
    )
    assert anchors == [(7, 4200, 600)]
    assert transcript.anchor_floor == 3
    assert [(c.line, c.tokens_before) for c in transcript.compactions] == [(5, 31_900)]


def test_a_rollback_leaves_the_anchors_of_what_it_keeps():
    transcript, anchors = usages(
        user("One."),
        assistant("1"),
        tokens(1000, 10, total=1010),
        user("Two."),
        assistant("2"),
        tokens(1100, 10, total=2120),
        rolled_back(1),
        user("Three."),
    )
    assert anchors == [(3, 1000, 10)]
    assert (transcript.anchor_floor, len(transcript.requests)) == (0, 2)


def test_the_header_and_the_turns_tell_whose_session_it_is():
    _, transcript = opened(
        codex.jsonl(
            meta(source={"subagent": {"thread_spawn": {"parent_thread_id": "parent-1", "depth": 1}}}),
            meta(id="another", cwd="/elsewhere"),
            turn("gpt-5.5"),
            turn("gpt-6"),
            said(user("Go.")),
            tokens(10, 1, total=11, window=258_400),
        )
    )
    assert transcript.session_id == codex.SESSION_ID
    assert (transcript.agent, transcript.model, transcript.cwd) == ("Codex 0.120.0", "gpt-6", "/srv/shop")
    assert (transcript.parent_session_id, transcript.recorded_window_tokens) == ("parent-1", 258_400)


# findings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "records, expected",
    [
        ([user("Go."), call("c1")], [("unfinished-call", 3)]),
        ([user("Go."), call("c1"), user("Stop.")], [("call-without-result", 3)]),
        ([user("Go."), output("lost"), assistant("Yes.")], [("result-without-call", 3)]),
        ([user("Go."), call("c1"), output("c1"), output("c1")], [("duplicate-result", 5)]),
        ([user("Go."), call("c1"), user("Wait."), output("c1")], []),  # codex matches by id, wherever they stand
        ([user("Go."), line("till_state", {}), line("till_state", {})], [("unknown-record", 3)]),
        ([user("Go."), {"type": "tool_call"}], [("unknown-record", 3)]),
        ([user("Go."), compacted_by_message(" ")], [("blank-summary", 3)]),
        ([user("Go."), compacted(user("Kept."))], []),
        (
            [compacted_by_entries({"type": "reference", "item_id": "gone"})],
            [("empty-session", None), ("unknown-record", 2)],
        ),
        ([], [("empty-session", None)]),
    ],
)
def test_findings(records, expected):
    assert rules(*records) == expected


def test_an_agent_that_normally_tells_usage_and_does_not_is_noted():
    _, transcript = read(user("Go."), assistant("Yes."))
    assert [finding.rule for finding in transcript.findings] == ["no-usage"]


def test_records_of_odd_shapes_are_counted_and_hide_nothing():
    _, transcript = opened(
        codex.jsonl(
            meta(),
            b'{"type":"event_msg","payload":"text"}',
            b'{"type":"response_item","payload":{"type":5}}',
            b"[1,2]",
            b"null",
            said({**user("Go."), "call_id": 7, "name": ["x"], "id": {}}),
            said({"type": "message", "role": "user", "content": "A string."}),
            said({"type": "message", "role": None, "content": [5, None, {"type": "input_text"}]}),
        )
    )
    assert [message.role for message in transcript.messages] == ["user", "user", "user"]
    assert [(f.line, f.rule, f.message) for f in transcript.findings] == [
        (2, "unknown-record", "another shape: 4 of them, the first here; not read")
    ]


def test_a_compaction_whose_text_no_provider_would_take_is_still_read():
    raw = json.dumps(compacted(user("So far: \ud83d."))).encode()
    document, transcript = opened(codex.jsonl(meta(), raw, said(assistant("Yes."))))
    assert contexts.lines(document, transcript) == ["user: So far: \ufffd.", "assistant: Yes."]


# results and bytes of the whole file -----------------------------------------------------------------


def test_every_result_in_the_file_is_listed_with_why_it_is_not_in_context():
    _, transcript = read(
        started("t1"),
        user("Go."),
        call("c1"),
        output("c1", "old"),
        compacted(call("c2"), output("c2", "kept")),
        started("t2"),
        user("More."),
        call("c3"),
        output("c3", "gone"),
        rolled_back(1),
        started("t3"),
        user("Again."),
        call("c4"),
        output("c4", "here"),
    )
    assert [(seen.line, seen.size_bytes, seen.outside) for seen in transcript.results] == [
        (5, 3, "before the last compaction"),
        (6, 4, ""),
        (10, 4, "rolled back"),
        (15, 4, ""),
    ]


def test_bytes_by_kind_sum_to_the_file():
    session = rollout(
        user("Größe?"),
        reasoning("Hm.", "QUJD"),
        call("c1"),
        output("c1", "x" * 99),
        event("agent_message", message="Hm."),
    )
    _, transcript = opened(session)
    assert set(transcript.bytes_by_kind) == set(KINDS)
    assert sum(transcript.bytes_by_kind.values()) == len(session)
    assert {kind: transcript.bytes_by_kind[kind] for kind in ("text", "calls", "results", "reasoning")} == {
        "text": 8,
        "calls": 12,
        "results": 99,
        "reasoning": 7,
    }


# edits ---------------------------------------------------------------------------------------------


def edited(document, edits):
    return b"".join(document.edited(document.splices(edits)))


def test_a_spill_puts_the_preview_in_place_and_slims_the_copies():
    session = rollout(
        user("Go."),
        call("c1"),
        event("exec_command_end", call_id="c1", stdout="x" * 900, exit_code=0),
        output("c1", "x" * 900),
    )
    document, transcript = opened(session)
    spilled = Spilled(transcript.messages[-1].result, "[preview]", "[note]")
    lines = [json.loads(raw) for raw in edited(document, FORMAT.spill_edits(document, [spilled])).splitlines()]
    assert lines[4]["payload"]["output"] == "[preview]"
    assert lines[3]["payload"] == {"type": "exec_command_end", "call_id": "c1", "stdout": "[note]", "exit_code": 0}


@pytest.mark.parametrize(
    "value", [[{"type": "input_text", "text": "x" * 900}], {"content": "x" * 900, "success": True}]
)
def test_a_spill_keeps_the_shape_of_the_output(value):
    document, transcript = read(user("Go."), call("c1"), output("c1", value))
    spilled = Spilled(transcript.messages[-1].result, "[preview]", "[note]")
    again, transcript = opened(edited(document, FORMAT.spill_edits(document, [spilled])))
    assert contexts.lines(again, transcript)[-1] == "tool: c1=[preview]"
    assert transcript.messages[-1].result.size_bytes == len("[preview]")


def test_the_newest_token_count_is_set_to_the_new_estimate_and_nothing_else_changes():
    session = rollout(
        user("Go."),
        assistant("Yes."),
        tokens(900, 9, total=909),
        tokens(95_000, 500, total=96_409),
        said(output("c9", 'holds the word "token_count"')),
        event("token_count", info=None),
    )
    document, transcript = opened(session)
    after = edited(document, FORMAT.usage_edits(document, transcript, 1234))
    before_lines, after_lines = session.splitlines(), after.splitlines()
    assert [n for n, (a, b) in enumerate(zip(before_lines, after_lines, strict=True)) if a != b] == [4]
    counts = json.loads(after_lines[4])["payload"]["info"]
    assert counts["last_token_usage"] == {**codex.counts(1234, 500), "total_tokens": 1234}
    assert counts["total_token_usage"]["total_tokens"] == 96_409


def test_the_estimate_that_codex_makes_after_a_compaction_does_not_become_a_request():
    estimate = tokens(0, 0, total=0)
    estimate["payload"]["info"]["last_token_usage"]["total_tokens"] = 96_000
    document, transcript = read(user("Go."), compacted(user("Go."), assistant("Yes.")), estimate)
    after = edited(document, FORMAT.usage_edits(document, transcript, 1234))
    counts = json.loads(after.splitlines()[-1])["payload"]["info"]["last_token_usage"]
    assert (counts["input_tokens"], counts["total_tokens"]) == (0, 1234)
    assert opened(after)[1].requests == ()


def test_without_a_token_count_no_usage_is_set():
    document, transcript = read(user("Go."), assistant("Yes."), event("token_count", info=None))
    assert FORMAT.usage_edits(document, transcript, 1234) == []


# real sessions -------------------------------------------------------------------------------------


@pytest.mark.corpus
def test_every_real_session_is_read_whole(corpus):
    for path in sorted((corpus / "codex").iterdir()):
        session = path.read_bytes()
        _, transcript = opened(session)
        assert sum(transcript.bytes_by_kind.values()) == len(session), path.name
        assert min(transcript.bytes_by_kind.values()) >= 0, path.name
        assert all(result.place.record < len(session) for m in transcript.messages if (result := m.result)), path.name
