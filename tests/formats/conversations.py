"""Sessions of Claude Code read, for the tests of their context."""

from compactctl.formats.claude_code import FORMAT
from tests import contexts


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
