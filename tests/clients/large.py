"""Sessions with results that are worth spilling, and so full that their agent would compact them first."""

from tests.builders import codex, pi
from tests.clients import mock

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
