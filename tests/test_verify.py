"""What is noted of a context before its messages are given up tells every change of it afterwards."""

import io

import pytest
from msgspec.structs import replace

from compactctl.document import Document, Place
from compactctl.model import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from compactctl.plan import Cut, Plan, Spill
from compactctl.verify import Context, cut_changes, not_restored

AT = Place(0)
SAID = Message("assistant", (Reasoning(AT, 5, 7), Text(AT, 9), ToolCall(AT, "c1", "Bash", 20)), (0,), 1, key="m1")
SPILLED = Message("user", (ToolResult(Place(1), "c1", 90_000, "Bash"),), (1,), 2, key="u1")
KEPT = Message("user", (ToolResult(Place(2), "c2", 10, "Bash", media=(Media(AT, 8),)),), (2,), 3, key="u2")
SHOWN = Message("user", (Media(AT, 40, "image", 3, 4), Opaque(AT, "attachment", 6)), (3,), 4, key="u3")
PLAN = Plan((Spill(SPILLED.result, "m1", 2, "single", 0, "5eed", "c1.txt", "a preview"),))
PREVIEWED = replace(SPILLED, parts=(ToolResult(Place(1), "c1", len("a preview"), "Bash", is_preview=True),))
BEFORE = (SAID, SPILLED, KEPT, SHOWN)
AFTER = (SAID, PREVIEWED, KEPT, SHOWN)


def with_part(message, index, **changes):
    parts = list(message.parts)
    parts[index] = replace(parts[index], **changes)
    return replace(message, parts=tuple(parts))


def test_a_context_with_its_previews_and_nothing_else_is_what_was_planned():
    assert Context.of(BEFORE, PLAN).changes_in(AFTER) == []
    moved = tuple(replace(message, records=(9,), line=message.line + 5) for message in AFTER)
    assert Context.of(BEFORE, PLAN).changes_in(moved) == []


@pytest.mark.parametrize(
    ("index", "changed"),
    [
        (0, replace(SAID, role="user")),
        (0, replace(SAID, key="m2")),
        (0, replace(SAID, parts=SAID.parts[1:])),
        (0, replace(SAID, parts=(*SAID.parts[1:], SAID.parts[0]))),
        (0, with_part(SAID, 0, size_bytes=6)),
        (0, with_part(SAID, 0, sealed_bytes=8)),
        (0, with_part(SAID, 1, size_bytes=10)),
        (0, with_part(SAID, 2, call_id="c9")),
        (0, with_part(SAID, 2, name="Read")),
        (0, with_part(SAID, 2, arguments_bytes=21)),
        (1, SPILLED),
        (1, with_part(PREVIEWED, 0, call_id="c9")),
        (1, with_part(PREVIEWED, 0, size_bytes=8)),
        (1, with_part(PREVIEWED, 0, is_error=True)),
        (1, with_part(PREVIEWED, 0, media=(Media(AT, 8),))),
        (2, with_part(KEPT, 0, size_bytes=11)),
        (2, with_part(KEPT, 0, is_error=True)),
        (2, with_part(KEPT, 0, name="Read")),
        (3, with_part(SHOWN, 0, size_bytes=41)),
        (3, with_part(SHOWN, 0, kind="pdf")),
        (3, with_part(SHOWN, 0, width=4)),
        (3, with_part(SHOWN, 0, height=3)),
        (3, with_part(SHOWN, 0, pages=1)),
        (3, with_part(SHOWN, 1, kind="block")),
        (3, with_part(SHOWN, 1, size_bytes=7)),
    ],
)
def test_any_other_change_is_told_with_its_line(index, changed):
    after = (*AFTER[:index], changed, *AFTER[index + 1 :])
    said = f"message {index + 1} (line {BEFORE[index].line}) is not what it was"
    assert Context.of(BEFORE, PLAN).changes_in(after) == [said]


def test_a_message_that_is_gone_is_told():
    assert Context.of(BEFORE, PLAN).changes_in(AFTER[1:]) == ["4 messages before, 3 after"]


def test_under_new_ids_keys_may_differ_and_without_sizes_texts_may():
    renamed = tuple(replace(message, key="new") for message in AFTER)
    assert Context.of(BEFORE, PLAN, same_ids=False).changes_in(renamed) == []
    redacted = (with_part(SAID, 1, size_bytes=1), *AFTER[1:])
    assert Context.of(BEFORE, PLAN, same_sizes=False).changes_in(redacted) == []
    other = (with_part(SAID, 2, call_id="c9"), *AFTER[1:])
    assert Context.of(BEFORE, PLAN, same_sizes=False).changes_in(other) == ["message 1 (line 1) is not what it was"]


@pytest.mark.parametrize(
    "pieces, is_told",
    [
        ([b"one\ntwo\n"], False),
        ([b"on", b"e\ntwo", b"", b"\n"], False),
        ([b"one\ntwo"], True),
        ([], True),
        ([b"one\ntwo\n", b"\n"], True),
        ([b"one\n", b"Two\n"], True),
    ],
)
def test_what_is_given_back_is_the_source_to_the_byte_or_that_is_told(pieces, is_told):
    told = not_restored(pieces, Document(io.BytesIO(b"one\ntwo\n")))
    assert told == (["putting the originals back gives another file"] if is_told else [])


LEADER = Message("user", (Text(AT, 4),), (0,), 1, key="u0")
CUT = Cut(0, 1)
SUMMARY = Message("user", (Text(AT, 30),), (9,), 9, is_summary=True)
SEALED = replace(SAID, key="rs_1", unsealed_key="fc_1")
UNSEALED = replace(SEALED, parts=SEALED.parts[1:], key="fc_1", unsealed_key=None)
NAMED = replace(UNSEALED, key="rs_1")
TWO_THOUGHTS = replace(SEALED, parts=(Reasoning(AT, 3, 4), *SEALED.parts), unsealed_key="rs_2")


@pytest.mark.parametrize(
    ("old", "new", "is_told"),
    [
        (SEALED, SEALED, False),
        (SEALED, UNSEALED, False),
        (SEALED, NAMED, True),
        (SEALED, replace(SEALED, key="fc_1"), True),
        (SEALED, replace(UNSEALED, key="fc_2"), True),
        (SEALED, replace(UNSEALED, key=""), True),
        (SEALED, replace(UNSEALED, parts=UNSEALED.parts[1:]), True),
        (replace(SEALED, unsealed_key=""), replace(UNSEALED, key=""), False),
        (SAID, replace(SAID, parts=SAID.parts[1:]), False),
        (SAID, replace(SAID, parts=SAID.parts[1:], key="m2"), True),
        (TWO_THOUGHTS, replace(SEALED, key="rs_2"), False),
        (TWO_THOUGHTS, replace(with_part(SEALED, 0, size_bytes=6), key="rs_2"), True),
    ],
)
def test_an_answer_that_loses_its_sealed_reasoning_is_called_by_what_is_left_of_it(old, new, is_told):
    told = cut_changes((LEADER, old), (SUMMARY, new), Plan(), CUT)
    assert told == (["message 1 (line 1) is not what it was"] if is_told else [])
