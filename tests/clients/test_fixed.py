"""A session that `audit --fix` mended goes on in the agent that wrote it, with every call answered once."""

import subprocess
import sys

import pytest

from compactctl.formats.mending import UNKNOWN_RESULT
from tests.builders import codex, pi
from tests.clients import mock, real
from tests.clients.home import FIRST, Home
from tests.clients.sent import is_closed, spoken

pytestmark = pytest.mark.clients


def a_rollout() -> bytes:
    """Return a rollout with a call without output, an output without call, one twice, and a torn tail."""
    settings = {"cwd": "/srv/shop", "model": "gpt-5.5", "turn_id": "t1", "approval_policy": "never"}
    policy = {"sandbox_policy": {"type": "danger-full-access"}, "summary": "auto"}
    return (
        codex.rollout(
            codex.started("t1"),
            codex.line("turn_context", {**settings, **policy}),
            codex.user("Look at the till."),
            codex.event("user_message", message="Look at the till."),
            codex.output("c9", "of another session"),
            codex.call("c1"),
            codex.output("c1", "till.py"),
            codex.output("c1", "till.py again"),
            codex.assistant("It is there."),
            codex.call("c2"),
            codex.custom_call("c3"),
            codex.assistant("Going on."),
            codex.tokens(5_000, 50, total=5_050),
        )
        + b'{"timestamp": "2026-04-05T06:0'
    )


def a_pi_session() -> bytes:
    """Return a session with the same faults, and an entry whose parent is gone."""

    def answer(*blocks):
        told = {"usage": pi.usage(5_000, 40), "timestamp": 1_800_000_000_000}
        return pi.assistant(*blocks, model=mock.MODEL, provider="mock", api="openai-completions", **told)

    session = (
        pi.Session()
        .say("a", pi.user("Look at the till."))
        .say("b", answer(pi.call("c1")))
        .say("c", pi.result("c1", "till.py"))
        .say("d", pi.result("c1", "till.py again"))
        .say("e", answer("It is there."), under="gone")
        .say("f", pi.user("Fix the sum."))
        .say("g", pi.result("c9", "of another session"))
        .say("h", answer(pi.call("c2"), pi.call("c3")))
        .say("i", answer("Going on."))
    )
    return session.jsonl() + b'{"type": "message", "id'


def fix(path):
    command = [sys.executable, "-m", "compactctl", "audit", "--fix", "--apply", "--fail-on", "never", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path.with_name(f"{path.stem}.fixed.jsonl")


@pytest.mark.parametrize("client, session", [("codex", a_rollout()), ("pi", a_pi_session()), ("piold", a_pi_session())])
def test_a_mended_session_resumes_with_all_that_was_said(client, session, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(session)
    (sent,) = real.resumed_requests(client, fix(path))
    told = spoken(sent)
    assert is_closed(told)
    results = [(message["result_of"].split("|")[0], message["text"]) for message in sent if message.get("result_of")]
    assert results == [("c1", "till.py"), ("c2", UNKNOWN_RESULT), ("c3", UNKNOWN_RESULT)]
    texts = [text for _, text, _, _ in told]
    assert any("Look at the till." in text for text in texts)
    assert any("It is there." in text for text in texts)
    assert texts[-1] == real.QUESTION


def test_a_session_of_claude_code_that_was_cut_off_in_a_call_resumes_with_its_answer(tmp_path):
    home = Home(tmp_path)
    home.ask(FIRST)
    session = home.session()
    lines = session.read_bytes().splitlines(keepends=True)
    asked = next(number for number, line in enumerate(lines) if mock.CALL_ID.encode() in line)
    cut = b"".join(lines[: asked + 1]) + b'{"parentUuid": "'
    session.write_bytes(cut)
    mended = fix(session)
    session.write_bytes(mended.read_bytes())
    mended.unlink()
    sent = home.ask("--resume", session.stem, real.QUESTION)
    [result] = [message["text"] for message in sent if message.get("result_of") == mock.CALL_ID]
    assert result == UNKNOWN_RESULT
    assert any(FIRST in message["text"] for message in sent)
    assert sent[-1]["text"].endswith(real.QUESTION)
