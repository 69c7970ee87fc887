import io
import json

import pytest

from compactctl import splicing
from compactctl.document import Document, Place
from compactctl.formats.interface import Spilled
from compactctl.formats.pi import FORMAT
from compactctl.model import KINDS, Copy, Message, Text, ToolCall, ToolResult, Usage
from tests import contexts
from tests.builders import pi
from tests.builders.pi import Session, assistant, bare, call, header, ran, result, thinking, usage, user


def opened(session: bytes):
    document = Document(io.BytesIO(session))
    (transcript,) = FORMAT.read(document)
    return document, transcript


def context(session) -> list[str]:
    raw = session if isinstance(session, bytes) else session.jsonl()
    return contexts.lines(*opened(raw))


def rules(session: Session) -> list[tuple[str, int | None]]:
    _, transcript = opened(session.jsonl())
    return [(finding.rule, finding.line) for finding in transcript.findings if finding.rule != "no-usage"]


def talk() -> Session:
    """Two turns, a call in the first: entries a to f on lines 2 to 7."""
    return (
        Session()
        .say("a", user("Look."))
        .say("b", assistant(call("c1")))
        .say("c", result("c1", "till.py"))
        .say("d", assistant("Seen."))
        .say("e", user("Fix it."))
        .say("f", assistant("Fixed."))
    )


TALK = ["user: Look.", "assistant: +c1", "toolResult: c1=till.py", "assistant: Seen.", "user: Fix it."]

# recognising ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "record",
    [
        header(),
        header(None),
        pi.entry("message", "a", None, message=user("Hi.")),
        bare(assistant("Hi.")),
        pi.entry("compaction", "a", None, summary="…"),
        pi.entry("custom_message", "a", "b", content="…"),
        {"type": "compaction", "timestamp": "…", "summary": "…", "firstKeptEntryIndex": 3},
        {"type": "model_change", "timestamp": "…", "provider": "anthropic", "modelId": "claude-opus-4-5"},
    ],
)
def test_headers_and_entries_are_claimed(record):
    assert FORMAT.claims(record)


@pytest.mark.parametrize(
    "record",
    [
        {"type": "session", "id": "x", "timestamp": "…"},
        {"type": "message", "role": "user", "content": "Hi."},
        {"type": "message", "timestamp": "…", "message": "Hi."},
        {"type": "user", "timestamp": "…", "message": {"role": "user", "content": "Hi."}, "parentUuid": None},
        {"type": "custom", "timestamp": "…"},
        {"type": 5, "timestamp": "…"},
        {"role": "user", "content": "Hi."},
    ],
)
def test_other_records_are_not_claimed(record):
    assert not FORMAT.claims(record)


def test_a_document_without_a_record_of_pi_is_no_session():
    assert FORMAT.read(pi.document({"role": "user", "content": "Hi."})) == []


# the effective context -----------------------------------------------------------------------------

GOLDEN = {
    "the path to the last entry": (talk(), [*TALK, "assistant: Fixed."]),
    "a branch leaves the other one out": (
        talk().say("x", user("Rather not."), "d").say("y", assistant("Left.")),
        ["user: Look.", "assistant: +c1", "toolResult: c1=till.py", "assistant: Seen.", "user: Rather not.",
         "assistant: Left."],
    ),
    "results on sibling branches belong to their own branch only": (
        Session()
        .say("a", user("Look."))
        .say("b", assistant(call("c1"), call("c2")))
        .say("c", result("c1", "one"))
        .say("d", result("c2", "two"))
        .say("x", result("c1", "tried again"), "b")
        .say("y", result("c2", "tried as well")),
        ["user: Look.", "assistant: +c1 +c2", "toolResult: c1=tried again", "toolResult: c2=tried as well"],
    ),
    "a branch's summary is told to the new one": (
        talk().add("branch_summary", "s", "d", fromId="f", summary="It was fixed.").say("x", user("Undo it.")),
        [*TALK[:4], "user: It was fixed.", "user: Undo it."],
    ),
    "entries that only pi reads say nothing, wherever they stand in the chain": (
        Session()
        .add("model_change", "m", provider="anthropic", modelId="claude-opus-4-5")
        .say("a", user("Look."))
        .add("label", "l", targetId="a", label="start")
        .add("thinking_level_change", "t", thinkingLevel="high")
        .add("custom", "c", customType="x", data={})
        .say("b", assistant("Seen."))
        .add("session_info", "i", name="Till"),
        ["user: Look.", "assistant: Seen."],
    ),
    "a label is the last entry, so its parent is the last message": (
        talk().add("label", "l", "d", targetId="a", label="start"),
        TALK[:4],
    ),
    "the newest compaction, what it kept, what came after": (
        talk().compact("k", "So far.", "d").say("g", user("Thanks.")).say("h", assistant("Welcome.")),
        ["user: So far. (summary)", "assistant: Seen.", "user: Fix it.", "assistant: Fixed.", "user: Thanks.",
         "assistant: Welcome."],
    ),
    "an older compaction among what is kept is skipped, also between a call and its result": (
        Session()
        .say("a", user("Look."))
        .say("b", assistant(call("c1")))
        .compact("k1", "Old.", "a")
        .say("c", result("c1", "till.py"))
        .say("d", assistant("Seen."))
        .compact("k2", "New.", "a")
        .say("e", user("Thanks.")),
        ["user: New. (summary)", "user: Look.", "assistant: +c1", "toolResult: c1=till.py", "assistant: Seen.",
         "user: Thanks."],
    ),
    "what the first compaction kept is kept by the second from where that says": (
        Session()
        .say("a", user("1"))
        .say("b", assistant("A"))
        .say("c", user("2"))
        .say("d", assistant("B"))
        .compact("k1", "One.", "c")
        .say("e", user("3"))
        .say("f", assistant("C"))
        .compact("k2", "One and two.", "c"),
        ["user: One and two. (summary)", "user: 2", "assistant: B", "user: 3", "assistant: C"],
    ),
    "a compaction that kept an unknown entry keeps nothing": (
        talk().compact("k", "So far.", "zz").say("g", user("Thanks.")),
        ["user: So far. (summary)", "user: Thanks."],
    ),
    "a compaction on another branch does not count": (
        talk().compact("k", "So far.", "e").say("x", user("Rather not."), "d"),
        [*TALK[:4], "user: Rather not."],
    ),
    "a missing parent ends the path": (
        talk().say("x", user("Hello?"), "gone").say("y", assistant("Yes.")),
        ["user: Hello?", "assistant: Yes."],
    ),
    "a parent that is the header is a root": (
        Session().say("a", user("Look."), pi.SESSION_ID).say("b", assistant("Seen.")),
        ["user: Look.", "assistant: Seen."],
    ),
    "a cycle is walked once": (
        Session().say("a", user("Look."), "c").say("b", assistant("Seen.")).say("c", user("Fix it.")),
        ["user: Look.", "assistant: Seen.", "user: Fix it."],
    ),
    "of entries with one id the last counts": (
        Session().say("a", user("Look.")).say("b", assistant("Old.")).say("b", assistant("New."), "a"),
        ["user: Look.", "assistant: New."],
    ),
    "an answer that broke off is not sent again; results of its calls are": (
        Session()
        .say("a", user("Look."))
        .say("b", assistant(call("c1"), stop="aborted"))
        .say("c", result("c1", "till.py"))
        .say("d", assistant("Overload", stop="error"))
        .say("e", user("Again.")),
        ["user: Look.", "toolResult: c1=till.py", "user: Again."],
    ),
    "an extension's message stays where it is, also between a call and its result": (
        Session()
        .say("a", user("Look."))
        .say("b", assistant(call("c1")))
        .add("custom_message", "x", customType="note", content="By the way.", display=True)
        .say("c", result("c1", "till.py")),
        ["user: Look.", "assistant: +c1", "user: By the way.", "toolResult: c1=till.py"],
    ),
    "a command that a person ran is told, unless it is excluded": (
        Session().say("a", ran("ls", "till.py")).say("b", ran("env", "KEY=1", excludeFromContext=True)),
        ["user: ls till.py"],
    ),
    "thinking of another model than the last is not sent": (
        Session()
        .say("a", user("Look."))
        .say("b", assistant(thinking("Deeply."), "Seen.", model="claude-sonnet-4-5"))
        .say("c", user("And?"))
        .say("d", assistant(thinking("Again."), "That's all.")),
        ["user: Look.", "assistant: Seen.", "user: And?", "assistant: ~Again. That's all."],
    ),
    "an edit puts another content in place, or takes an entry out; the last one counts": (
        talk()
        .add("context_edit", "x", targetId="c", replacement={"content": "(long)"})
        .add("context_edit", "y", targetId="c", replacement={"content": "(short)"})
        .add("context_edit", "z", targetId="f", replacement=None),
        [*TALK[:2], "toolResult: c1=(short)", *TALK[3:]],
    ),
    "system messages come to one in front: texts appended, sections patched, tools by name": (
        Session()
        .say("s", {"role": "system", "content": "Base.", "sections": {"till": "A", "shop": "B"},
                   "toolsAdded": [{"name": "read"}, {"name": "bash"}]})
        .say("a", user("Look."))
        .say("t", {"role": "system", "content": "More.", "sections": {"till": None, "door": "C"},
                   "toolsRemoved": [{"name": "bash"}]}),
        ["system: Base. More. B <tool> C (leading)", "user: Look."],
    ),
    "a compaction carries the system messages before it": (
        Session()
        .say("s", {"role": "system", "content": "Base."})
        .say("a", user("Look."))
        .say("t", {"role": "system", "content": "More."})
        .compact("k", "So far.", "a", systemMessage={"role": "system", "content": "Base and more."})
        .say("u", {"role": "system", "content": "And then."}),
        ["system: Base and more. And then. (leading)", "user: So far. (summary)", "user: Look."],
    ),
    "contents may be strings or missing": (
        Session()
        .say("a", {"role": "user", "content": "Look."})
        .say("b", {**assistant(), "content": None})
        .say("c", {**result("c1"), "content": "till.py"})
        .say("d", {"role": "user", "content": None}),
        ["user: Look.", "toolResult: c1=till.py"],
    ),
    "version 2 calls an extension's role a hook": (
        Session(2).say("a", user("Look.")).say("b", {"role": "hookMessage", "content": "A hook."}),
        ["user: Look.", "user: A hook."],
    ),
}  # fmt: skip


@pytest.mark.parametrize("session, expected", GOLDEN.values(), ids=GOLDEN)
def test_context(session, expected):
    assert context(session) == expected


def first_version(kept: int) -> bytes:
    """A version 1 session whose compaction keeps from the entry of this number on; the header is number 0."""
    compaction = {"type": "compaction", "timestamp": "…", "summary": "So far.", "firstKeptEntryIndex": kept}
    return pi.jsonl(
        header(None, provider="anthropic", modelId="claude-opus-4-5"),
        bare(user("1")),
        bare(assistant("A")),
        {"type": "thinking_level_change", "timestamp": "…", "thinkingLevel": "high"},
        bare(user("2")),
        bare(assistant("B")),
        compaction,
        bare(user("3")),
    )


@pytest.mark.parametrize(
    "kept, expected",
    [
        (4, ["user: So far. (summary)", "user: 2", "assistant: B", "user: 3"]),
        (1, ["user: So far. (summary)", "user: 1", "assistant: A", "user: 2", "assistant: B", "user: 3"]),
        (0, ["user: So far. (summary)", "user: 3"]),  # the header is no entry
        (99, ["user: So far. (summary)", "user: 3"]),
    ],
)
def test_version_1_is_a_line_and_counts_its_entries_with_the_header(kept, expected):
    document, transcript = opened(first_version(kept))
    assert contexts.lines(document, transcript) == expected
    assert [finding.rule for finding in transcript.findings if finding.rule != "no-usage"] == []


def test_a_file_in_which_no_entry_says_its_parent_is_read_in_order_and_that_is_said():
    session = talk()
    for record in session.records[1:]:
        del record["parentId"]
    assert context(session) == [*TALK, "assistant: Fixed."]
    assert rules(session) == [("dangling-parent", 2)]


def test_parts_tell_their_places_and_sizes():
    session = Session().say("a", user("Größe?")).say("b", assistant(call("c1", "run", x="é"))).say(
        "c", result("c1", "naïve", isError=True, details={"exit": 1})
    )  # fmt: skip
    _, transcript = opened(session.jsonl())
    assert transcript.messages == (
        Message("user", (Text(Place(1, ("message", "content", 0, "text")), 8),), (1,), 2),
        Message(
            "assistant",
            (ToolCall(Place(2, ("message", "content", 0, "arguments")), "c1", "run", len('{"x": "é"}'.encode())),),
            (2,),
            3,
            "b",
        ),
        Message(
            "toolResult",
            (
                ToolResult(
                    Place(3, ("message", "content")),
                    "c1",
                    6,
                    "bash",
                    is_error=True,
                    copies=(Copy(Place(3, ("message", "details")), len('{"exit": 1}')),),
                ),
            ),
            (3,),
            4,
        ),
    )


def test_the_place_of_an_edited_result_is_where_its_text_now_is():
    session = talk().add("context_edit", "x", targetId="c", replacement={"content": "(short)"})
    _, transcript = opened(session.jsonl())
    edited = transcript.messages[2].result
    assert (edited.place, edited.size_bytes, edited.call_id) == (Place(7, ("replacement", "content")), 7, "c1")


# usage ---------------------------------------------------------------------------------------------


def test_what_an_answer_took_in_is_fresh_and_cached_together():
    session = Session().say("a", user("Look.")).say("b", assistant("Seen.", usage=usage(206, 78, 98_432, 100)))
    _, transcript = opened(session.jsonl())
    told = Usage(3, 98_738, 78, 98_432, 100, "claude-opus-4-5")
    assert transcript.messages[1].usage == told
    assert (transcript.requests, transcript.peak_tokens) == ((told,), 98_816)


def test_the_parts_are_summed_where_no_total_is_told():
    counts = {"input": 10, "output": 2, "cacheRead": 3, "cacheWrite": 4}
    _, transcript = opened(Session().say("a", assistant("Hi.", usage=counts)).jsonl())
    assert (transcript.messages[0].usage.input_tokens, transcript.messages[0].usage.output_tokens) == (17, 2)


@pytest.mark.parametrize("fields", [{"stop": "aborted"}, {"stop": "error"}, {"usage": usage(0, 0)}, {"usage": None}])
def test_a_usage_that_tells_nothing_is_none(fields):
    _, transcript = opened(
        Session().say("a", user("Look.")).say("b", assistant("Seen.", **{"usage": usage(9, 1), **fields})).jsonl()
    )
    assert transcript.requests == ()
    assert all(message.usage is None for message in transcript.messages)


def with_usage() -> Session:
    return (
        Session()
        .say("a", user("1"))
        .say("b", assistant("A", usage=usage(1000, 10)))
        .say("c", user("2"))
        .say("d", assistant("B", usage=usage(1100, 10)))
    )


@pytest.mark.parametrize(
    "session, floor",
    [
        (with_usage(), 0),
        (with_usage().compact("k", "So far.", "c").say("e", user("3")), 3),
        (with_usage().add("context_edit", "x", targetId="a", replacement={"content": "1!"}).say("e", user("3")), 4),
    ],
)
def test_no_usage_from_before_a_compaction_or_an_edit_is_an_anchor(session, floor):
    _, transcript = opened(session.jsonl())
    assert transcript.anchor_floor == floor
    assert len(transcript.requests) == 2


def test_the_header_and_the_path_tell_whose_session_it_is():
    session = with_usage().compact("k", "So far.", "c").add("model_change", "m", provider="openai", modelId="gpt-6")
    _, transcript = opened(session.jsonl())
    told = transcript.session_id, transcript.agent, transcript.model, transcript.cwd
    assert told == (pi.SESSION_ID, "pi", "gpt-6", "/srv/shop")
    assert [(c.line, c.tokens_before) for c in transcript.compactions] == [(6, 50_000)]


# findings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "session, expected",
    [
        (talk(), []),
        (Session().say("a", assistant(call("c1"))), [("unfinished-call", 2)]),
        (Session().say("a", assistant(call("c1"))).say("b", user("?")), [("call-without-result", 2)]),
        (Session().say("a", user("?")).say("b", result("c1")), [("result-without-call", 3)]),
        (
            Session().say("a", assistant(call("c1"))).say("b", user("?")).say("c", result("c1")),
            [("result-out-of-place", 3)],
        ),
        (talk().say("x", user("Hello?"), "gone"), [("dangling-parent", 8)]),
        (talk().say("x", user("Hello?"), "gone").say("y", user("No."), "f"), [("dangling-parent", 8)]),
        (Session().say("a", user("1"), "b").say("b", user("2")), [("parent-cycle", 3)]),
        (Session().say("a", user("1"), "a"), [("parent-cycle", 2)]),
        (Session().say("a", user("1")).say("a", user("2"), None), [("replayed-records", 2)]),
        (talk().compact("k", "So far.", "e"), []),
        (talk().compact("k", " ", "e"), [("blank-summary", 8)]),
        (talk().compact("k", "", "e"), [("blank-summary", 8)]),
        (talk().compact("k", "", "e").compact("l", "So far.", "e"), []),
        (talk().add("till_state", "x"), [("unknown-record", 8)]),
        (talk().say("x", {"role": "cashier", "content": "Next!"}), [("unknown-record", 8)]),
        (talk().add("message", "x", message="a string"), [("unknown-record", 8)]),
        (talk().add("message", "x", message=[1]), [("unknown-record", 8)]),
        (talk().raw(b"[1]").raw(b"null"), [("unknown-record", 8)]),
        (Session(), [("empty-session", None)]),
        (Session().add("custom", "c", customType="x"), [("empty-session", None)]),
    ],
)
def test_findings(session, expected):
    assert rules(session) == expected


def test_a_call_id_that_comes_again_is_another_call():
    session = talk().say("g", assistant(call("c1"))).say("h", result("c1", "again"))
    assert rules(session) == []


def test_a_path_of_many_thousand_entries_is_walked():
    session = Session()
    for number in range(20_000):
        session.say(f"e{number}", user("x"))
    assert len(opened(session.jsonl())[1].messages) == 20_000


# results and bytes of the whole file -----------------------------------------------------------------


def test_every_result_in_the_file_is_listed_with_why_it_is_not_in_context():
    session = (
        talk()
        .compact("k", "So far.", "e")
        .say("g", assistant(call("c2")))
        .say("h", result("c2", "here"))
        .say("x", result("c2", "elsewhere"), "g")
        .say("y", user("Go on."), "h")
    )
    _, transcript = opened(session.jsonl())
    assert [(result.line, result.size_bytes, result.why) for result in transcript.outside] == [
        (4, 7, "before the last compaction"),
        (11, 9, "not on the path to the last entry"),
    ]


def test_bytes_by_kind_sum_to_the_file():
    session = Session().say("a", user("Größe?")).say("b", assistant(thinking("Hm."), call("c1"))).say(
        "c", result("c1", "x" * 99, details={"truncation": "y" * 50})
    )  # fmt: skip
    _, transcript = opened(session.jsonl())
    counted = transcript.bytes_by_kind
    assert set(counted) == set(KINDS)
    assert sum(counted.values()) == len(session.jsonl())
    assert {kind: counted[kind] for kind in ("text", "results", "reasoning", "copies")} == {
        "text": 8,
        "results": 99,
        "reasoning": 3,
        "copies": len(json.dumps({"truncation": "y" * 50})),
    }


# edits ---------------------------------------------------------------------------------------------


def edited(document, edits):
    return b"".join(splicing.edited(document, splicing.concrete(document, edits)))


def test_a_spill_puts_the_preview_in_place_and_slims_the_details():
    session = talk().say("g", assistant(call("c2"))).say(
        "h", result("c2", "x" * 900, details={"truncation": {"content": "x" * 900, "lines": 1}})
    )  # fmt: skip
    document, transcript = opened(session.jsonl())
    spilled = Spilled(transcript.messages[-1].result, "[preview]", "[note]")
    last = json.loads(edited(document, FORMAT.spill_edits(document, [spilled])).splitlines()[-1])
    assert last["message"]["content"] == [{"type": "text", "text": "[preview]"}]
    assert last["message"]["details"] == {"truncation": {"content": "[note]", "lines": 1}}


def usage_after(session: Session, tokens_after: int) -> dict[str, dict[str, int]]:
    """The usage of each entry that the edits changed."""
    document, transcript = opened(session.jsonl())
    after = edited(document, FORMAT.usage_edits(document, transcript, tokens_after))
    pairs = zip(session.records, map(json.loads, after.splitlines()), strict=True)
    return {new["id"]: new["message"]["usage"] for old, new in pairs if new != old}


def counts(fresh: int, given: int, total: int) -> dict[str, int]:
    return {"input": fresh, "output": given, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total}


full = assistant("Full.", usage=usage(5, 40, 190_000, 5_000))


@pytest.mark.parametrize(
    "session, expected",
    [
        (with_usage().say("e", full), {"e": counts(860, 40, 900)}),
        (with_usage().say("e", full).say("f", user("?")).add("label", "l"), {"e": counts(860, 40, 900)}),
        (with_usage().say("e", full).say("f", assistant("…", stop="error")), {"e": counts(860, 40, 900)}),
        (with_usage().say("e", full).say("x", user("?"), "d"), {"d": counts(890, 10, 900)}),
        (with_usage().say("e", full).compact("k", "So far.", "e"), {}),
        (Session().say("a", user("Look.")), {}),
        (Session().say("a", user("1")).say("b", assistant("A", usage=usage(1, 2000))), {"b": counts(0, 900, 900)}),
    ],
)
def test_the_last_answer_on_the_path_is_set_to_the_new_estimate(session, expected):
    assert usage_after(session, 900) == expected


def test_a_total_that_was_not_told_is_not_invented():
    told = {"input": 195_000, "output": 40, "cacheRead": 0, "cacheWrite": 0}
    session = Session().say("a", user("Look.")).say("b", assistant("Seen.", usage=told))
    assert usage_after(session, 900) == {"b": {**told, "input": 860}}


# real sessions -------------------------------------------------------------------------------------


@pytest.mark.corpus
def test_every_real_session_is_read_whole(corpus):
    for path in sorted((corpus / "pi").iterdir()):
        session = path.read_bytes()
        _, transcript = opened(session)
        assert sum(transcript.bytes_by_kind.values()) == len(session), path.name
        assert min(transcript.bytes_by_kind.values()) >= 0, path.name
        assert transcript.messages, path.name
