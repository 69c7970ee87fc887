"""A compacted session goes on in the agent that wrote it, which sends summary and kept part and compacts nothing."""

import io
import re
import subprocess
import sys

import pytest

from compactctl import formats
from compactctl.cut import boundaries, is_said_by_user, leading_count
from compactctl.document import Document
from compactctl.formats.fork import UUID
from compactctl.json_text import read_json
from compactctl.plan import Cut
from tests import contexts
from tests.builders import codex, pi
from tests.clients import mock, real
from tests.clients.sent import is_closed, spoken
from tests.compactions import METAS, compacted, opened
from tests.conftest import CORPUS

pytestmark = pytest.mark.clients

SAMPLES = CORPUS.parent / "clients" / "samples"
NAMES = {"codex": "codex", "pi": "pi", "piold": "pi"}
KEEPS = pytest.mark.parametrize("keep_history", [False, True], ids=["moved", "kept"])
SPENT = 195_000
"""So many tokens that each of these agents would compact first, were they not set right."""


# sessions ------------------------------------------------------------------------------------------


def a_rollout():
    def turn(number, question, *items):
        settings = {"cwd": "/srv/shop", "model": "gpt-5.5", "turn_id": f"t{number}", "approval_policy": "never"}
        policy = {"sandbox_policy": {"type": "danger-full-access"}, "summary": "auto"}
        used = codex.tokens(SPENT + number if number > 1 else 5_000, 50, total=SPENT * number, window=198_000)
        asked = [codex.user(question), codex.event("user_message", message=question)]
        return [codex.started(f"t{number}"), codex.line("turn_context", {**settings, **policy}), *asked, *items, used]

    agents = codex.user("# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>")
    pair = codex.call("c2"), codex.output("c2", "tests pass")
    return codex.rollout(
        codex.developer("Rules of the shop."),
        agents,
        *turn(1, "Look at the till.", codex.call("c1"), codex.output("c1", "till.py"), codex.assistant("It is there.")),
        *turn(
            2,
            "Fix the sum.",
            codex.assistant("I try."),
            *pair,
            codex.reasoning("Hm.", "gAAA"),
            codex.assistant("Done."),
        ),
        *turn(3, "Thank you.", codex.assistant("Welcome.")),
    )


def a_pi_session():
    def answer(*blocks, used=SPENT):
        told = {"usage": pi.usage(used, 40), "timestamp": 1_800_000_000_000}
        return pi.assistant(*blocks, model=mock.MODEL, provider="mock", api="openai-completions", **told)

    return (
        pi.Session()
        .add("model_change", "m", provider="mock", modelId=mock.MODEL)
        .say("a", pi.user("Look at the till."))
        .say("b", answer(pi.call("c1"), used=5_000))
        .say("c", pi.result("c1", "till.py"))
        .say("d", pi.user("Fix the sum."))
        .say("e", answer("I try.", pi.call("c2")))
        .say("f", pi.result("c2", "tests pass"))
        .say("g", answer("Done."))
        .jsonl()
    )


def real_sessions(client):
    """Return the paths of real sessions of this client: its own sample, and the smaller ones of the corpus."""
    folder = "pi-old" if client == "piold" else client
    known = sorted((SAMPLES / folder).glob("*.jsonl")) + sorted((CORPUS / NAMES[client]).glob("*.jsonl"))
    return [path for path in known if path.stat().st_size < 1_200_000 and can_resume(client, path)]


def can_resume(client, path):
    """Return whether the client opens the file at all: begun as it asks, not a made-up mode of history, and without
    glued records, which we read and it does not.
    """
    document = Document(io.BytesIO(path.read_bytes()))
    formats.get(NAMES[client]).read(document)
    if any(finding.rule == "glued-records" for finding in document.findings):
        return False
    first = read_json(document.raw(0)) if len(document) else {}
    if client == "codex":
        payload = first.get("payload") or {}
        if payload.get("history_mode") not in (None, "legacy", "paginated"):
            return False
        return bool(UUID.fullmatch(payload.get("id") or "") and re.match(r"\d{4}-", payload.get("timestamp") or ""))
    return first.get("type") == "session"


# what is sent --------------------------------------------------------------------------------------


def a_cut(messages):
    """Return a cut that leaves about the last third, and pins the newest request where that lies before it."""
    leading = leading_count(messages)
    wanted = max(leading + 1, len(messages) * 2 // 3)
    legal = [index for index in boundaries(messages) if leading < index < len(messages)]
    first_kept = max((index for index in legal if index <= wanted), default=None)
    if first_kept is None:
        return None
    asked = [index for index in range(leading, len(messages)) if is_said_by_user(messages[index])]
    pinned = asked[-1] if asked and asked[-1] < first_kept else None
    return Cut(leading, first_kept, pinned) if first_kept - leading > (pinned is not None) else None


def real_cut(client, path):
    """Return a cut of the first session of a real file; None where there is nothing to cut."""
    sessions = formats.get(NAMES[client]).read(Document(io.BytesIO(path.read_bytes())))
    return a_cut(sessions[0].messages) if sessions else None


# sessions ------------------------------------------------------------------------------------------


REAL = [
    pytest.param(client, path, cut, id=f"{client}-{path.stem[:28]}")
    for client in NAMES
    for path in real_sessions(client)
    if (cut := real_cut(client, path)) is not None
]
NO_SAMPLES = pytest.param(None, None, None, marks=pytest.mark.skip(reason="no real sessions beside the repository"))


# what is sent --------------------------------------------------------------------------------------


def resumed(client, data, cut, keep_history, tmp_path):
    """Compact, resume in the client, and return what it sent and what we read."""
    format_ = formats.get(NAMES[client])
    raw, _ = compacted(format_, data, cut, keep_history=keep_history)
    path = tmp_path / "s.jsonl"
    path.write_bytes(raw)
    document = Document(io.BytesIO(raw))
    (transcript,) = format_.read(document)
    requests = real.resumed_requests(client, path)
    assert len(requests) == 1, "it compacted first"
    return spoken(requests[0]), spoken(contexts.messages(document, transcript)[cut.leading :])


def hold(sent, ours):
    """The summary and what is kept are sent as we read it, and every pair is closed."""
    at = next(index for index, message in enumerate(sent) if METAS.summary in message[1])
    assert sent[at + 1 : at + len(ours)] == ours[1:]
    assert sent[-1][1] == real.QUESTION
    assert is_closed(sent)


@KEEPS
@pytest.mark.parametrize("client", NAMES)
def test_summary_and_kept_part_are_sent_and_nothing_else_of_the_past(client, keep_history, tmp_path):
    data = a_rollout() if client == "codex" else a_pi_session()
    messages = opened(data, formats.get(NAMES[client]))[1].messages
    first_kept = next(
        index for index, message in enumerate(messages) if any(c.call_id == "c2" for c in message.calls())
    )
    cut = Cut(leading_count(messages), first_kept, first_kept - 1)
    sent, ours = resumed(client, data, cut, keep_history, tmp_path)
    hold(sent, ours)
    assert [message[1] for message in ours[:2]] == [METAS.summary, "Fix the sum."]
    assert not any("Look at the till." in message[1] for message in sent)


@KEEPS
def test_codex_is_still_told_its_instructions_and_not_twice(keep_history, tmp_path):
    data = a_rollout()
    messages = opened(data, formats.get("codex"))[1].messages
    sent, _ = resumed("codex", data, Cut(2, len(messages) - 2), keep_history, tmp_path)
    assert sum("Be kind." in message[1] for message in sent) == 1


@pytest.mark.parametrize("place", [[], ["--in-place"], ["--keep-history"]], ids=["beside", "in place", "history kept"])
@pytest.mark.parametrize("client", NAMES)
def test_what_the_program_wrote_goes_on_and_is_not_compacted_first(client, place, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(a_rollout() if client == "codex" else a_pi_session())
    limits = ["--set", "layer2.recent_keep_tokens=10", "--set", "layer2.recent_keep_messages=2"]
    command = [sys.executable, "-m", "compactctl", "summarize", *limits, *place, str(path)]
    subprocess.run(command, check=True, capture_output=True)
    (sent,) = real.resumed_requests(client, path if "--in-place" in place else tmp_path / "s.compacted.jsonl")
    told = spoken(sent)
    assert sum("Summary by extract" in text and "s.compacted" in text for _, text, _, _ in told) == 1
    assert told[-1][1] == real.QUESTION
    assert is_closed(told)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no real sessions beside the repository")
def test_every_client_has_real_sessions_that_can_be_cut():
    assert {case.values[0] for case in REAL} == set(NAMES)


@pytest.mark.parametrize("client, path, cut", REAL or [NO_SAMPLES])
def test_a_real_session_goes_on_behind_its_summary(client, path, cut, tmp_path):
    hold(*resumed(client, path.read_bytes(), cut, False, tmp_path))
