"""Which messages a session of pi sends: the path to its last entry, with compactions, edits and older versions."""

import pytest

from compactctl.document import Place
from compactctl.model import Copy, Message, Text, ToolCall, ToolResult
from tests import contexts
from tests.builders import pi
from tests.builders.pi import Session, assistant, bare, call, header, ran, result, thinking, user
from tests.formats.pi_trees import TALK, context, opened, rules, talk

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
