"""A session whose big results were spilled goes on in the agent that wrote it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import codex, pi
from tests.clients import mock, real

pytestmark = pytest.mark.clients

BIG = "".join(f"line {number} of the till's journal\n" for number in range(1200))
SPENT_TOKENS = 185_000
"""So much that every one of these agents would compact the session first."""


def a_rollout() -> bytes:
    full = codex.tokens(SPENT_TOKENS, 50, total=SPENT_TOKENS + 50, window=190_000)
    again = codex.tokens(SPENT_TOKENS + 100, 50, total=2 * SPENT_TOKENS, window=190_000)
    return codex.rollout(
        codex.started(),
        codex.line("turn_context", {"cwd": "/srv/shop", "model": "gpt-5.5", "turn_id": "t1", "approval_policy": "never",
                                    "sandbox_policy": {"type": "danger-full-access"}, "summary": "auto"}),
        codex.user("Read both."),
        codex.event("user_message", message="Read both."),
        codex.call("c1"),
        codex.call("c2"),
        codex.event("exec_command_end", call_id="c1", stdout=BIG, exit_code=0),
        codex.output("c1", BIG),
        codex.output("c2", [{"type": "input_text", "text": BIG}]),
        full,
        codex.assistant("Read."),
        again,
        codex.event("task_complete", turn_id="t1", last_agent_message="Read."),
    )  # fmt: skip


def a_pi_session() -> bytes:
    def answer(*blocks):
        told = {"usage": pi.usage(195_000, 40), "timestamp": 1_800_000_000_000}
        return pi.assistant(*blocks, model=mock.MODEL, provider="mock", api="openai-completions", **told)

    return (
        pi.Session()
        .say("a", pi.user("Read both."))
        .say("b", answer(pi.call("c1"), pi.call("c2")))
        .say("c", pi.result("c1", BIG, details={"truncation": {"content": BIG}}))
        .say("d", pi.result("c2", [pi.text(BIG), pi.text("The end.")]))
        .say("e", answer("Read."))
        .jsonl()
    )


@pytest.mark.parametrize("client, session", [("codex", a_rollout()), ("pi", a_pi_session()), ("piold", a_pi_session())])
def test_a_spilled_session_resumes_with_its_previews_and_is_not_compacted_first(client, session, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(session)
    command = ["-m", "compactctl", "spill", "--apply", "--set", "layer1.single_limit_bytes=20000", str(path)]
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    (sent,) = real.resumed_requests(client, tmp_path / "s.compacted.jsonl")
    results = {message["result_of"]: message["text"] for message in sent if "result_of" in message}
    assert list(results) == ["c1", "c2"]
    for call_id, text in results.items():
        size, saved = text.splitlines()[:2]
        kept = Path(saved.removeprefix("[saved to] "))
        assert size.startswith("[content offloaded] original size: ")
        assert kept.name == f"{call_id}.txt"
        assert kept.read_text().startswith(BIG)
    assert sent[-1]["text"] == real.QUESTION
