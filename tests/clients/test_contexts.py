"""The effective context is what the real agents send when they resume a session."""

import io
from pathlib import Path

import pytest

from compactctl import splicing
from compactctl.document import Document
from compactctl.formats import codex as codex_format
from compactctl.formats import pi as pi_format
from tests import contexts
from tests.builders import codex, pi
from tests.clients import mock, real

pytestmark = pytest.mark.clients

SUMMARY_FRAME = ("<summary>\n", "\n</summary>")


def ours(format_, session: bytes):
    document = Document(io.BytesIO(session))
    (transcript,) = format_.read(document)
    return contexts.messages(document, transcript)


def joined(messages):
    """Neighbouring answers as one: a request does not tell where one ends."""
    found = []
    for message in messages:
        if message["role"] == "assistant" and found and found[-1]["role"] == "assistant":
            real.join(found[-1], message)
        else:
            found.append(message)
    return found


# codex ---------------------------------------------------------------------------------------------


def a_turn(number: int, question: str, *items):
    settings = {"cwd": "/srv/shop", "model": "gpt-5.5", "turn_id": f"t{number}", "approval_policy": "never"}
    policy = {"sandbox_policy": {"type": "danger-full-access"}, "summary": "auto"}
    return [
        codex.started(f"t{number}"),
        codex.line("turn_context", {**settings, **policy}),
        codex.user(question),
        codex.event("user_message", message=question),
        *items,
        codex.event("task_complete", turn_id=f"t{number}", last_agent_message=None),
    ]


ONE = a_turn(1, "Look at the till.", codex.call("c1"), codex.output("c1", "till.py"), codex.assistant("It is there."))
TWO = a_turn(2, "Fix the sum.", codex.assistant("Fixed."))
THREE = a_turn(3, "Thank you.", codex.assistant("You are welcome."))
KEPT = (codex.user("Look at the till."), codex.user("So far: it was found."))
CONTEXT_NOTE = codex.user("<environment_context>\n<cwd>/srv/shop</cwd>\n</environment_context>")

ROLLOUTS = {
    "plain": [*ONE, *TWO],
    "parallel calls": a_turn(
        1,
        "Both.",
        codex.call("c1"),
        codex.custom_call("c2"),
        codex.custom_output("c2", "patched"),
        codex.output("c1", "listed"),
        codex.assistant("Done."),
    ),
    "compacted": [*ONE, codex.compacted(*KEPT), *TWO],
    "compacted twice": [*ONE, codex.compacted(*KEPT), *TWO, codex.compacted(codex.user("Only this.")), *THREE],
    "compacted the old way": [*ONE, codex.compacted_by_message("So far: it was found."), *TWO],
    "rolled back": [*ONE, *TWO, codex.rolled_back(1), *THREE],
    "rolled back with its context": [*ONE, CONTEXT_NOTE, *TWO, codex.rolled_back(1), *THREE],
    "rolled back to the start": [CONTEXT_NOTE, *ONE, *TWO, codex.rolled_back(9), *THREE],
    "rolled back over a compaction": [
        *ONE,
        *a_turn(2, "Go on.", codex.assistant("Hm."), codex.compacted(*KEPT), codex.assistant("On it.")),
        codex.rolled_back(1),
        *THREE,
    ],
    "rolled back, then compacted": [*ONE, *TWO, codex.rolled_back(1), codex.compacted(*KEPT), *THREE],
    "a late output": a_turn(1, "Go.", codex.call("c1"), codex.user("Wait."), codex.output("c1", "late")),
    "an id that comes again": [*ONE, *a_turn(2, "Again.", codex.call("c1"), codex.output("c1", "again"))],
    "a system message": [codex.message("system", "Never sent."), *ONE],
}


@pytest.mark.parametrize("steps", ROLLOUTS.values(), ids=ROLLOUTS)
def test_codex_sends_the_context_that_we_read(steps, tmp_path):
    session = tmp_path / "rollout.jsonl"
    session.write_bytes(codex.rollout(*steps))
    sent = real.resumed_request("codex", session)
    context = joined(ours(codex_format.FORMAT, session.read_bytes()))
    assert sent[1 : len(context) + 1] == context  # before it codex says its own instructions
    assert sent[-1] == {"role": "user", "text": real.QUESTION}


def test_codex_mends_pairs_and_we_tell_that_they_are_broken(tmp_path):
    session = tmp_path / "rollout.jsonl"
    steps = a_turn(1, "Go.", codex.output("lost", "no call"), codex.call("c1"), codex.user("Stop."))
    session.write_bytes(codex.rollout(*steps))
    sent = real.resumed_request("codex", session)
    results = [(message["result_of"], message["text"]) for message in sent if message["role"] == "tool"]
    (transcript,) = codex_format.FORMAT.read(Document(io.BytesIO(session.read_bytes())))
    assert results == [("c1", "aborted")]
    assert [finding.rule for finding in transcript.findings if finding.severity == "error"] == [
        "result-without-call",
        "call-without-result",
    ]


def nearly_full_rollout() -> bytes:
    """A session whose last answer says that the window is full, though what is there is small."""
    full = codex.tokens(185_000, 50, total=185_050, window=190_000)
    return codex.rollout(*a_turn(1, "Go.", codex.call("c1"), codex.output("c1", "small now"), full))


def edited(format_, session: bytes, tokens_after: int) -> bytes:
    document = Document(io.BytesIO(session))
    (transcript,) = format_.read(document)
    edits = format_.usage_edits(document, transcript, tokens_after)
    return b"".join(splicing.edited(document, splicing.concrete(document, edits)))


def test_codex_compacts_first_unless_the_recorded_usage_is_set_right(tmp_path):
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    before.write_bytes(nearly_full_rollout())
    after.write_bytes(edited(codex_format.FORMAT, nearly_full_rollout(), 900))
    assert len(real.resumed_requests("codex", before)) > 1
    assert len(real.resumed_requests("codex", after)) == 1


# pi ------------------------------------------------------------------------------------------------


def answer(*blocks, **fields):
    """An answer of the model that the session is resumed with, so that its thinking is kept."""
    known = {"model": mock.MODEL, "provider": "mock", "api": "openai-completions"}
    return pi.assistant(*blocks, **{**known, **fields})


def session_of_two_turns(version=3):
    return (
        pi.Session(version)
        .say("a", pi.user("Look at the till."))
        .say("b", answer(pi.thinking("I list.", "reasoning_content"), pi.call("c1")))
        .say("c", pi.result("c1", "till.py"))
        .say("d", answer("It is there."))
        .say("e", pi.user("Fix the sum."))
        .say("f", answer("Fixed."))
    )


def first_version():
    said = [pi.user("Look."), answer("Seen."), pi.user("Fix."), answer("Fixed.")]
    compaction = {"type": "compaction", "timestamp": "2026-04-05T06:07:09.000Z", "summary": "It was seen."}
    entries = [pi.bare(message) for message in said]
    kept = {**compaction, "firstKeptEntryIndex": 3, "tokensBefore": 9}
    return pi.jsonl(pi.header(None), *entries, kept, pi.bare(pi.user("Thanks.")), pi.bare(answer("Welcome.")))


PI_SESSIONS = {
    "plain": session_of_two_turns().jsonl(),
    "version 2": session_of_two_turns(2).say("h", {"role": "hookMessage", "content": "A hook."}).jsonl(),
    "version 1": first_version(),
    "a branch": session_of_two_turns().say("x", pi.user("Rather not."), "d").say("y", answer("Left.")).jsonl(),
    "a branch with its summary": session_of_two_turns()
    .add("branch_summary", "s", "d", fromId="f", summary="The sum was fixed.")
    .say("x", pi.user("Rather not."))
    .jsonl(),
    "compacted": session_of_two_turns().compact("k", "So far.", "e").say("g", pi.user("Thanks.")).jsonl(),
    "compacted in a pair": pi.Session()
    .say("a", pi.user("Look."))
    .say("b", answer(pi.call("c1")))
    .compact("k1", "Old.", "a")
    .say("c", pi.result("c1", "till.py"))
    .say("d", answer("Seen."))
    .compact("k2", "New.", "a")
    .say("e", pi.user("Thanks."))
    .jsonl(),
    "compacted, kept is unknown": session_of_two_turns().compact("k", "So far.", "zz").jsonl(),
    "a missing parent": session_of_two_turns().say("x", pi.user("Hello?"), "gone").say("y", answer("Yes.")).jsonl(),
    "labels": session_of_two_turns()
    .add("label", "l", targetId="a", label="!")
    .add("session_info", "i", name="n")
    .jsonl(),
    "an aborted answer": session_of_two_turns().say("x", answer("Hal", stop="aborted")).say("y", pi.user("?")).jsonl(),
    "a command": session_of_two_turns().say("x", pi.ran("ls", "till.py", excludeFromContext=True)).jsonl(),
    "an extension's message": session_of_two_turns().add("custom_message", "x", customType="x", content="Hm.").jsonl(),
    "another model's thinking": pi.Session()
    .say("a", pi.user("Look."))
    .say("b", pi.assistant(pi.thinking("Deeply."), "Seen."))
    .say("c", pi.user("And?"))
    .say("d", answer("That's all."))
    .jsonl(),
    "an id that comes again": session_of_two_turns()
    .say("g", pi.user("Again."))
    .say("h", answer(pi.call("c1")))
    .say("i", pi.result("c1", "again"))
    .jsonl(),
    "edits": session_of_two_turns()
    .add("context_edit", "x", targetId="c", replacement={"content": "(short)"})
    .add("context_edit", "y", targetId="f", replacement=None)
    .jsonl(),
}

ONLY_NEW_PI = {"edits", "another model's thinking"}


def without_frame(message):
    """A message without the sentences that pi puts around a summary."""
    start, end = SUMMARY_FRAME
    inside = message["text"].partition(start)[2]
    return {**message, "text": inside.removesuffix(end).removesuffix(end.strip())} if inside else message


@pytest.mark.parametrize(
    "client, name",
    [(client, name) for client in ("pi", "piold") for name in PI_SESSIONS if client == "pi" or name not in ONLY_NEW_PI],
)
def test_pi_sends_the_context_that_we_read(client, name, tmp_path):
    session = tmp_path / "s.jsonl"
    session.write_bytes(PI_SESSIONS[name])
    sent = [without_frame(message) for message in real.resumed_request(client, session)[1:]]
    assert joined(sent) == joined([*ours(pi_format.FORMAT, PI_SESSIONS[name]), {"role": "user", "text": real.QUESTION}])


def test_pi_replays_its_system_messages_into_one_and_so_do_we(tmp_path):
    session = pi.Session()
    session.say(
        "s", {"role": "system", "content": "", "sections": {"till": "Mind the till.", "shop": "Mind the shop."}}
    )
    session.say("a", pi.user("Look.")).say("t", {"role": "system", "content": "Later.", "sections": {"till": None}})
    session.say("b", answer("Seen."))
    path = tmp_path / "s.jsonl"
    path.write_bytes(session.jsonl())
    sent = real.resumed_request("pi", path)
    assert sent[0]["text"].startswith("Later.\n\nMind the shop.\n\n")
    assert ours(pi_format.FORMAT, session.jsonl())[0] == {"role": "system", "text": "Later.Mind the shop."}


def test_old_pi_compacts_first_unless_the_recorded_usage_is_set_right(tmp_path):
    session = session_of_two_turns()
    session.say("g", pi.user("More.")).say(
        "h", answer("There.", usage=pi.usage(195_000, 40), timestamp=1_800_000_000_000)
    )
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    before.write_bytes(session.jsonl())
    after.write_bytes(edited(pi_format.FORMAT, session.jsonl(), 900))
    assert len(real.resumed_requests("piold", before)) > 1
    assert len(real.resumed_requests("piold", after)) == 1


def test_every_client_is_pinned_by_the_install_script():
    script = (Path(__file__).parent / "install").read_text()
    assert all(f"  {client}) echo" in script for client in real.CLIENTS)
