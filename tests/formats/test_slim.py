"""What no model is sent is taken out of a session, and what a model is sent stays as it was."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactctl import formats, splicing
from compactctl.document import Document, Place
from compactctl.formats.claude_code import FORMAT as CLAUDE
from compactctl.formats.codex import FORMAT as CODEX
from compactctl.formats.interface import Spilled
from compactctl.formats.pi import FORMAT as PI
from compactctl.splicing import Drop, Replace
from tests.builders import claude, codex, pi
from tests.builders.claude import DROP, Session, call, result, text
from tests.builders.generated import stories, write
from tests.conftest import CORPUS
from tests.formats import reading
from tests.formats.sent import context

PATH = "s.compacted/copies.jsonl.zst"
LONG = "a line of output\n" * 200
LIMIT_BYTES = 2048


def slimmed(format_, raw, limit_bytes=LIMIT_BYTES):
    """Return the bytes after slimming, having checked that doing it again changes nothing."""
    once = _slimmed(format_, raw, limit_bytes)
    assert _slimmed(format_, once, limit_bytes) == once
    return once


def _slimmed(format_, raw, limit_bytes):
    document = reading.opened(raw)
    format_.read(document)
    return b"".join(
        splicing.edited(document, splicing.concrete(document, format_.slim_edits(document, limit_bytes, PATH)))
    )


def note(size_bytes):
    return f"[{size_bytes} bytes, saved by compactctl to {PATH}]"


# claude code: copies for the display -----------------------------------------------------------


@pytest.mark.parametrize(
    "copy, left",
    [
        ({"stdout": LONG, "stderr": "", "interrupted": False}, {"stdout": "NOTE", "stderr": "", "interrupted": False}),
        ({"file": {"content": LONG, "numLines": 200}}, {"file": {"content": "NOTE", "numLines": 200}}),
        ([text(LONG), text("x")], [text("NOTE"), text("x")]),
        ({"lines": list(range(1000))}, {"lines": [0]}),
        ({"short": "x" * 200, "lines": ["y" * 200] * 50}, {"short": "x" * 200, "lines": ["y" * 200]}),
        (LONG, "NOTE"),
    ],
)
def test_a_long_copy_keeps_its_shape_and_says_where_it_is_saved(copy, left):
    s = Session()
    s.user("Go.")
    s.assistant(call("c1"))
    s.results(result("c1", "seen"), copy=copy)
    size = len(json.dumps(copy, ensure_ascii=False, separators=(",", ":")).encode())
    made = reading.values(slimmed(CLAUDE, s.bytes()))[2]["toolUseResult"]
    assert made == json.loads(json.dumps(left).replace('"NOTE"', json.dumps(note(size))))


def test_a_copy_is_slimmed_wherever_it_stands_and_only_over_the_limit():
    s = Session()
    s.user("Go.")
    s.assistant(call("c1"))
    s.results(result("c1", LONG), copy={"stdout": LONG})
    s.boundary()
    s.summary()
    s.assistant(call("c2"))
    s.results(result("c2", "seen"), copy={"stdout": "x" * (LIMIT_BYTES - len('{"stdout":""}'))})
    made = reading.values(slimmed(CLAUDE, s.bytes()))
    before = reading.values(s.bytes())
    assert made[2]["toolUseResult"]["stdout"].startswith("[")
    assert made[2]["message"] == before[2]["message"]
    assert made[6] == before[6]


def a_claude_session():
    s = Session()
    s.user("Go.")
    s.assistant(call("c1"))
    s.results(result("c1", LONG), copy={"stdout": LONG})
    return s.bytes()


def a_rollout(*events):
    return codex.rollout(codex.user("Go."), codex.call("c1"), *events, codex.output("c1", LONG))


def a_pi_session(tool="bash"):
    s = pi.Session().say("a", pi.user("Go.")).say("b", pi.assistant(pi.call("c1", tool)))
    return s.say("c", pi.result("c1", LONG, toolName=tool, details={"truncation": {"content": LONG}})).jsonl()


@pytest.mark.parametrize(
    "format_, raw",
    [
        (CLAUDE, a_claude_session()),
        (CODEX, a_rollout(codex.event("exec_command_end", call_id="c1", stdout=LONG, formatted_output=LONG))),
        (CODEX, a_rollout(codex.event("item_completed", item={"id": "c1", "aggregated_output": LONG}))),
        (PI, a_pi_session()),
    ],
)
def test_slimming_edits_the_places_that_spilling_takes_for_copies(format_, raw):
    document = reading.opened(raw)
    [transcript] = format_.read(document)
    spilled = [Spilled(message.result, "p", "n") for message in transcript.messages if message.result]
    results = [item.result.place for item in spilled]
    copies = [edit.place for edit in format_.spill_edits(document, spilled) if edit.place not in results]
    assert [edit.place for edit in format_.slim_edits(document, LIMIT_BYTES, PATH)] == copies != []


# claude code: progress ---------------------------------------------------------------------------


def chain(session, raw):
    """Return each line's kind and its parent's number among the lines with a uuid, as they were before."""
    number = {session.id_of(count): count for count in range(1, 100)}
    return [(value["type"], number.get(value.get("parentUuid"))) for value in reading.values(raw)]


def test_what_hangs_on_progress_hangs_on_the_line_above_it():
    s = Session()
    s.user("Go.")
    s.assistant(call("c1"))
    s.progress()
    s.progress()
    s.results(result("c1", "seen"))
    s.progress(parent=s.id_of(4))
    s.assistant("Done.", parent=s.id_of(5))
    assert chain(s, slimmed(CLAUDE, s.bytes())) == [("user", None), ("assistant", 1), ("user", 2), ("assistant", 5)]
    assert context(CLAUDE, slimmed(CLAUDE, s.bytes())) == context(CLAUDE, s.bytes())


def test_what_hangs_on_a_root_of_progress_is_a_root():
    s = Session()
    s.progress(parent=None)
    s.user("Go.")
    s.assistant("Done.")
    assert chain(s, slimmed(CLAUDE, s.bytes())) == [("user", None), ("assistant", 2)]


def test_progress_that_leads_to_a_line_that_is_lost_leaves_the_loss_to_what_hangs_on_it():
    s = Session()
    s.user("Go.")
    s.progress(parent="99999999-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
    s.assistant("Done.")
    s.user("Thanks.")
    made = slimmed(CLAUDE, s.bytes())
    assert reading.values(made)[1]["parentUuid"] == "99999999-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
    assert context(CLAUDE, made) == context(CLAUDE, s.bytes())


def test_progress_of_a_subagent_goes_as_well():
    s = Session()
    s.user("Go.")
    s.user("Look.", parent=None, isSidechain=True)
    s.progress(isSidechain=True)
    s.assistant("Seen.", isSidechain=True)
    s.assistant("Done.", parent=s.id_of(1))
    assert chain(s, slimmed(CLAUDE, s.bytes())) == [("user", None), ("user", None), ("assistant", 2), ("assistant", 1)]


@pytest.mark.parametrize(
    "pointer",
    [
        {"type": "last-prompt", "leafUuid": "P"},
        {"type": "file-history-snapshot", "messageId": "P", "snapshot": {"messageId": "P"}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "u", "logicalParentUuid": "P"},
        {"type": "system", "uuid": "u", "compactMetadata": {"preservedSegment": {"tailUuid": "P"}}},
    ],
)
def test_progress_that_anything_but_a_chain_points_at_stays(pointer):
    s = Session()
    s.user("Go.")
    uuid = s.progress()
    s.assistant("Done.")
    s.line(json.loads(json.dumps(pointer).replace('"P"', f'"{uuid}"')))
    assert slimmed(CLAUDE, s.bytes()) == s.bytes()


def test_progress_in_a_circle_and_progress_written_twice_stay():
    s = Session()
    s.user("Go.")
    s.progress(parent=s.id_of(3))
    s.progress(parent=s.id_of(2))
    s.assistant("On.", parent=s.id_of(3))
    s.progress()
    s.assistant("Done.")
    s.again(4)
    assert slimmed(CLAUDE, s.bytes()) == s.bytes()


def test_a_session_whose_only_link_leads_to_progress_keeps_it():
    s = Session()
    s.user("Go.")
    s.progress(parent=None)
    s.assistant("Done.")
    assert context(CLAUDE, slimmed(CLAUDE, s.bytes())) == context(CLAUDE, s.bytes())


def test_logged_requests_go_and_bookkeeping_stays():
    s = Session()
    s.user("Go.")
    for kind in ("api-request-shape", "api-request-blob", "api-request"):
        s.other(kind, message={"role": "user", "content": LONG})
    for kind in ("custom-title", "mode", "permission-mode", "last-prompt", "queue-operation", "cost-state"):
        s.other(kind)
    s.attachment("prompt_snapshot", systemPrompt=[LONG])
    s.assistant("Done.")
    kinds = [value["type"] for value in reading.values(slimmed(CLAUDE, s.bytes()))]
    assert kinds[1:7] == ["custom-title", "mode", "permission-mode", "last-prompt", "queue-operation", "cost-state"]
    assert [kinds[0], *kinds[7:]] == ["user", "attachment", "assistant"]


def test_only_whole_records_without_a_result_are_dropped_and_each_place_is_edited_once():
    s = Session()
    s.user("Go.")
    s.progress()
    s.assistant(call("c1"))
    s.progress()
    s.results(result("c1", LONG), copy={"stdout": LONG})
    document = s.document()
    CLAUDE.read(document)
    edits = CLAUDE.slim_edits(document, LIMIT_BYTES, PATH)
    assert sorted(edit.record for edit in edits if isinstance(edit, Drop)) == [1, 3]
    assert sorted(edit.place for edit in edits if isinstance(edit, Replace)) == [
        Place(2, ("parentUuid",)),
        Place(4, ("parentUuid",)),
        Place(4, ("toolUseResult",)),
    ]


# codex -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event, field",
    [
        (codex.event("exec_command_end", call_id="c1", stdout="", aggregated_output=LONG), ("aggregated_output",)),
        (codex.event("mcp_tool_call_end", call_id="c1", result={"Ok": {"content": LONG}}), ("result", "Ok", "content")),
        (codex.event("patch_apply_end", call_id="c1", changes={"/a": {"content": LONG}}), ("changes", "/a", "content")),
        (codex.event("item_completed", item={"id": "c1", "aggregated_output": LONG}), ("item", "aggregated_output")),
    ],
)
def test_a_long_copy_in_an_event_is_shortened_and_nothing_else(event, field):
    raw = a_rollout(event)
    made, before = reading.values(slimmed(CODEX, raw)), reading.values(raw)
    value = made[3]["payload"]
    for key in field:
        value = value[key]
    assert value.startswith("[")
    assert value.endswith(f"bytes, saved by compactctl to {PATH}]")
    assert [*made[:3], *made[4:]] == [*before[:3], *before[4:]]
    assert context(CODEX, slimmed(CODEX, raw)) == context(CODEX, raw)


@pytest.mark.parametrize(
    "event",
    [
        codex.event("exec_command_end", call_id="c1", aggregated_output="short"),
        codex.event("user_message", message=LONG),
        codex.event("agent_message", message=LONG),
        codex.event("exec_command_end", aggregated_output=LONG),
    ],
)
def test_events_that_are_short_or_hold_no_copy_of_an_output_stay(event):
    raw = a_rollout(event)
    assert slimmed(CODEX, raw) == raw


# pi ----------------------------------------------------------------------------------------------


def test_long_details_of_a_tool_of_pis_own_are_shortened():
    made = slimmed(PI, a_pi_session("bash"))
    assert reading.values(made)[3]["message"]["details"] == {
        "truncation": {"content": note(len(json.dumps({"truncation": {"content": LONG}})))}
    }
    assert context(PI, made) == context(PI, a_pi_session("bash"))


def test_details_of_an_extensions_tool_stay_since_they_hold_its_state():
    assert slimmed(PI, a_pi_session("todo")) == a_pi_session("todo")


def test_an_extensions_state_stays_when_its_result_is_spilled():
    raw = a_pi_session("todo")
    assert reading.values(reading.spilled(PI, raw))[3]["message"]["details"] == {"truncation": {"content": LONG}}


# laws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["chat", "anthropic", "claude-code", "codex", "pi"])
@settings(max_examples=40)
@given(story=stories, limit_bytes=st.sampled_from([0, 100, LIMIT_BYTES]))
def test_slimming_leaves_the_context_of_every_session_and_settles_at_once(name, story, limit_bytes):
    raw = write(story, name)
    format_ = formats.get(name)
    assert context(format_, slimmed(format_, raw, limit_bytes)) == context(format_, raw)


UUIDS = [f"{number:08}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for number in range(1, 16)]
PARENTS = st.sampled_from([*UUIDS, None, "99999999-aaaa-4aaa-8aaa-aaaaaaaaaaaa"])
LINES = st.lists(
    st.tuples(
        st.sampled_from(["progress", "progress", "user", "assistant", "result", "system", "boundary"]),
        st.just(claude.LAST) | st.just(claude.LAST) | PARENTS | st.just(DROP),
        st.booleans(),
        st.none() | st.sampled_from(UUIDS),
        st.booleans() | st.just(False),
    ),
    min_size=3,
    max_size=14,
)


def a_tree(lines):
    s = Session()
    s.user("Start.")
    for number, (kind, parent, is_side, pointer, is_again) in enumerate(lines):
        fields = {"parent": parent, "isSidechain": is_side and parent is not claude.LAST}
        match kind:
            case "progress":
                s.progress(**fields)
            case "user":
                s.user(f"So {number}.", **fields)
            case "assistant":
                s.assistant(text(f"Yes {number}."), call(f"c{number}"), **fields)
            case "result":
                s.results(result(f"c{number - 1}"), sourceToolAssistantUUID=pointer or DROP, **fields)
            case "system":
                s.system("turn_duration", **fields)
            case "boundary":
                s.boundary(preservedSegment={"headUuid": pointer, "anchorUuid": None, "tailUuid": pointer})
        if pointer and kind == "user":
            s.other("last-prompt", leafUuid=pointer)
        if is_again:
            s.again(len(s.raw_lines) - 1)
    return s.bytes()


@given(lines=LINES)
def test_slimming_leaves_the_context_of_every_tree(lines):
    raw = a_tree(lines)
    made = slimmed(CLAUDE, raw)
    assert context(CLAUDE, made) == context(CLAUDE, raw)
    before, after = (sorted({rule for _, rule in reading.rules(reading.session(CLAUDE, data))}) for data in (raw, made))
    assert set(after) <= set(before)


FILES = sorted(path for name in ("claude-code", "codex", "pi") for path in (CORPUS / name).glob("*.jsonl"))


@pytest.mark.corpus
@pytest.mark.parametrize(
    "path",
    FILES or [pytest.param(None, marks=pytest.mark.skip(reason="no corpus"))],
    ids=lambda path: path and f"{path.parent.name}/{path.name[:24]}",
)
def test_slimming_leaves_the_context_of_a_real_session(path):
    raw = path.read_bytes()
    format_ = formats.recognise(Document(io.BytesIO(raw)))
    if format_ is None:
        return
    assert context(format_, slimmed(format_, raw)) == context(format_, raw)
