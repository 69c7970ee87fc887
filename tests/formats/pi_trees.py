"""Trees of pi as they are read, for the tests of that format."""

import io

from compactctl.document import Document
from compactctl.formats.pi import FORMAT
from tests import contexts
from tests.builders.pi import Session, assistant, call, result, user


def opened(session: bytes):
    document = Document(io.BytesIO(session))
    (transcript,) = FORMAT.read(document)
    return document, transcript


def context(session) -> list[str]:
    raw = session if isinstance(session, bytes) else session.jsonl()
    return contexts.lines(*opened(raw))


def rules(session: Session) -> list[tuple[str, int | None]]:
    _, transcript = opened(session.jsonl())
    return [(finding.rule, finding.line) for finding in transcript.findings if finding.rule != "no-usage"]


def talk() -> Session:
    """Two turns, a call in the first: entries a to f on lines 2 to 7."""
    return (
        Session()
        .say("a", user("Look."))
        .say("b", assistant(call("c1")))
        .say("c", result("c1", "till.py"))
        .say("d", assistant("Seen."))
        .say("e", user("Fix it."))
        .say("f", assistant("Fixed."))
    )


TALK = ["user: Look.", "assistant: +c1", "toolResult: c1=till.py", "assistant: Seen.", "user: Fix it."]
