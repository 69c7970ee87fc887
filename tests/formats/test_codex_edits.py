"""Edits of Codex rollouts: spills, and the token count that decides on resume."""

import json

import pytest

from compactctl import splicing
from compactctl.formats.codex import FORMAT
from compactctl.formats.interface import Spilled
from tests import contexts
from tests.builders import codex
from tests.builders.codex import assistant, call, compacted, event, output, rollout, said, tokens, user
from tests.formats.rollouts import opened, read


def edited(document, edits):
    return b"".join(splicing.edited(document, splicing.concrete(document, edits)))


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
