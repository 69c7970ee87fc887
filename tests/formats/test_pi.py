"""What else is read out of a session of pi: which records are its own, usage, findings, bytes; and how it is edited."""

import json

import pytest

from compactctl import splicing
from compactctl.formats.interface import Spilled
from compactctl.formats.pi import FORMAT
from compactctl.model import KINDS, Usage
from tests.builders import pi
from tests.builders.pi import Session, assistant, bare, call, header, result, thinking, usage, user
from tests.formats.pi_trees import opened, rules, talk

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
