"""A session of each agent in which a result, its copies too, is worth spilling."""

from tests.builders import claude, codex, pi
from tests.builders.big_chat import text


def claude_session():
    session = claude.Session()
    session.user("Run the tests.")
    for number in range(3):
        session.assistant(claude.call(f"toolu_{number}"), usage=claude.usage(9_000 * (number + 1), out=5))
        session.progress()
        session.progress()
        size = 60_000 if number == 1 else 5_000
        session.results(claude.result(f"toolu_{number}", text(size)), copy={"stdout": text(size), "stderr": ""})
    session.assistant("Done.")
    return session.bytes()


def codex_session():
    rows = [codex.meta(), codex.turn(), codex.said(codex.user("Run the tests."))]
    for number, size in enumerate((60_000, 20_000)):
        rows += [codex.said(codex.call(f"call_{number}")), codex.said(codex.output(f"call_{number}", text(size)))]
        rows.append(codex.event("exec_command_end", call_id=f"call_{number}", aggregated_output=text(size)))
    return codex.jsonl(*rows, codex.said(codex.assistant("Done.")))


def pi_session():
    session = pi.Session()
    session.say("u0000001", pi.user("Run the tests."))
    session.say("a0000001", pi.assistant(pi.call("c1"))).say("r0000001", pi.result("c1", text(60_000)))
    return session.say("a0000002", pi.assistant("Done.")).jsonl()


SESSIONS = {"claude-code": claude_session, "codex": codex_session, "pi": pi_session}
