"""A compaction in a pi session: the lines that come out, one by one."""

import pytest

from compactctl import formats
from compactctl.formats.interface import Metas
from compactctl.plan import Cut
from tests.builders import pi
from tests.compactions import METAS, TOKENS, compacted, lines
from tests.formats.reading import values

PI = formats.get("pi")


def chain(raw):
    """Return each entry's id with its parent's, the header left out."""
    return [(value["id"], value["parentId"]) for value in values(raw)[1:]]


def a_session():
    return (
        pi.Session()
        .add("model_change", "m1", provider="anthropic", modelId="claude-opus-4-5")
        .say("u1", pi.user("Old."))
        .say("a1", pi.assistant("Yes."))
        .add("session_info", "s1", name="Moving")
        .say("u2", pi.user("Move the shop."))
        .say("a2", pi.assistant(pi.call("c1")))
        .say("r2", pi.result("c1"))
        .say("a3", pi.assistant(pi.thinking("Hm."), "Half.", usage=pi.usage(90_000, 40)))
        .say("u3", pi.user("And the till."))
    )


def test_an_entry_at_the_end_names_the_pinned_request_which_is_linked_before_what_is_kept():
    raw, made = compacted(PI, a_session().jsonl(), Cut(0, 5, 2))
    new = values(raw)[-1]
    assert chain(raw) == [("m1", None), ("s1", "m1"), ("u2", "s1"), ("a3", "u2"), ("u3", "a3"), (new["id"], "u3")]
    assert new == {
        "type": "compaction",
        "id": new["id"],
        "parentId": "u3",
        "timestamp": "2026-04-05T06:07:09.000Z",
        "summary": METAS.summary,
        "firstKeptEntryId": "u2",
        "tokensBefore": TOKENS[0],
    }
    assert lines(PI, raw) == [
        f"user: {METAS.summary} (summary)",
        "user: Move the shop.",
        "assistant: Half.",
        "user: And the till.",
    ]
    assert (made.moved, made.dropped_reasoning) == ((2, 3, 6, 7, 8), 1)


def test_the_history_can_stay_as_a_branch():
    raw, made = compacted(PI, a_session().jsonl(), Cut(0, 5, 2), keep_history=True)
    assert chain(raw)[4:-1] == [("u2", "s1"), ("a2", "u2"), ("r2", "a2"), ("a3", "u2"), ("u3", "a3")]
    assert lines(PI, raw)[1:] == ["user: Move the shop.", "assistant: Half.", "user: And the till."]
    assert made.moved == (2, 3, 6, 7, 8)


def test_the_answer_whose_usage_decides_stays_where_it_is():
    session = pi.Session().say("u1", pi.user("Old.")).say("a1", pi.assistant("Yes.", usage=pi.usage(90_000, 40)))
    raw, made = compacted(PI, session.say("u2", pi.user("Go.")).jsonl(), Cut(0, 2))
    assert chain(raw)[:2] == [("a1", None), ("u2", "a1")]
    assert values(raw)[1]["message"]["usage"]["totalTokens"] == TOKENS[1]
    assert made.moved == (1, 2)
    assert lines(PI, raw)[1:] == ["user: Go."]


def test_the_entry_carries_the_system_message():
    session = pi.Session().say("s1", {"role": "system", "content": "Help.", "sections": {"rules": "Be kind."}})
    session.say("s2", {"role": "system", "content": "", "toolsAdded": [{"name": "bash"}]})
    session.say("u1", pi.user("Old.")).say("a1", pi.assistant("Yes.")).say("u2", pi.user("Go."))
    before = lines(PI, session.jsonl())
    raw, _ = compacted(PI, session.jsonl(), Cut(1, 3))
    assert values(raw)[-1]["systemMessage"] == {
        "role": "system",
        "content": "Help.",
        "sections": {"rules": "Be kind."},
        "toolsAdded": [{"name": "bash"}],
    }
    assert lines(PI, raw) == [before[0], f"user: {METAS.summary} (summary)", "user: Go."]


@pytest.mark.parametrize("keep_history", [False, True])
def test_what_the_first_compaction_kept_is_kept_or_summarised_by_the_next(keep_history):
    session = pi.Session()
    for id in ("u1", "a1", "u2", "a2"):
        session.say(id, pi.user(id) if id[0] == "u" else pi.assistant(id))
    session.compact("C1", "s1", "u2").say("u3", pi.user("u3")).say("a3", pi.assistant("a3"))
    assert lines(PI, session.jsonl()) == [
        "user: s1 (summary)",
        "user: u2",
        "assistant: a2",
        "user: u3",
        "assistant: a3",
    ]
    raw, made = compacted(PI, session.jsonl(), Cut(0, 2), Metas("Both."), keep_history=keep_history)
    assert lines(PI, raw) == ["user: Both. (summary)", "assistant: a2", "user: u3", "assistant: a3"]
    assert set(made.moved) == {1, 2, 3, 5}


def test_branches_go_with_what_they_hang_on():
    session = a_session().say("x1", pi.user("Left."), under="u1").say("x2", pi.user("Left, too."), under="a3")
    session.say("u4", pi.user("On."), under="u3")
    raw, made = compacted(PI, session.jsonl(), Cut(0, 5))
    assert [id for id, _ in chain(raw)][:-1] == ["m1", "s1", "a3", "u3", "x2", "u4"]
    assert made.moved == (2, 3, 5, 6, 7, 8, 10)


@pytest.mark.parametrize("keep_history", [False, True])
@pytest.mark.parametrize("cut", [Cut(0, 2), Cut(0, 3), Cut(0, 3, 0)])
def test_a_file_of_version_1_says_the_number_of_the_first_kept_entry(cut, keep_history):
    told = [pi.user("Old."), pi.assistant("Yes."), pi.user("Go."), pi.assistant("Done.")]
    data = pi.jsonl(pi.header(None), *map(pi.bare, told))
    raw, _ = compacted(PI, data, cut, keep_history=keep_history)
    kept = lines(PI, data)[cut.first_kept :]
    pinned = lines(PI, data)[:1] if cut.pinned is not None else []
    assert lines(PI, raw) == [f"user: {METAS.summary} (summary)", *pinned, *kept]
    assert "firstKeptEntryIndex" in values(raw)[-1]


def test_an_edit_of_a_kept_entry_stays():
    session = a_session().add("context_edit", "e1", targetId="u2", replacement={"content": "Move it all."})
    raw, _ = compacted(PI, session.jsonl(), Cut(0, 5, 2))
    assert lines(PI, raw)[1] == "user: Move it all."
