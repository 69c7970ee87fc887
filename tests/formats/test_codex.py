"""Codex rollouts: how they are told, whose they are, what is found in them, and all that is in the file."""

import json

import pytest

from compactctl.formats.codex import FORMAT
from compactctl.model import KINDS
from tests import contexts
from tests.builders import codex
from tests.builders.codex import (
    assistant,
    call,
    compacted,
    compacted_by_entries,
    compacted_by_message,
    event,
    line,
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
from tests.formats.rollouts import opened, read, rules

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


# whose session it is -------------------------------------------------------------------------------


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
    assert [(result.line, result.size_bytes, result.why) for result in transcript.outside] == [
        (5, 3, "before the last compaction"),
        (10, 4, "rolled back"),
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


# real sessions -------------------------------------------------------------------------------------


@pytest.mark.corpus
def test_every_real_session_is_read_whole(corpus):
    for path in sorted((corpus / "codex").iterdir()):
        session = path.read_bytes()
        _, transcript = opened(session)
        assert sum(transcript.bytes_by_kind.values()) == len(session), path.name
        assert min(transcript.bytes_by_kind.values()) >= 0, path.name
        assert all(result.place.record < len(session) for m in transcript.messages if (result := m.result)), path.name
