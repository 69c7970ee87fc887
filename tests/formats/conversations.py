"""Sessions of Claude Code read, for the tests of that format."""

from compactctl.formats.claude_code import FORMAT
from tests import contexts
from tests.builders.claude import Session, call, result, usage


def read(session):
    """Return the session as it is read."""
    [transcript] = FORMAT.read(session.document())
    return transcript


def context(session):
    """Return the effective context, a short line a message."""
    document = session.document()
    [transcript] = FORMAT.read(document)
    return contexts.lines(document, transcript)


def rules(session):
    """Return what is found in a session, and on which lines; that most of them tell no usage is left out."""
    return [(finding.line, finding.rule) for finding in read(session).findings if finding.rule != "no-usage"]


def conversation():
    """A short session with everything that a plain one has."""
    s = Session()
    s.user("Go.")
    s.assistant("I look.", call("toolu_1"), usage=usage(6, 400, 9500, 60))
    s.results(result("toolu_1", "seen"), copy={"stdout": "seen"})
    s.assistant("Done.", usage=usage(6, 400, 10_000, 60))
    return s
