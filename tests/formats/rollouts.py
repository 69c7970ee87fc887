"""Reading rollouts of Codex, for their tests."""

import io

from compactctl.document import Document
from compactctl.formats.codex import FORMAT
from tests import contexts
from tests.builders.codex import rollout


def opened(session: bytes):
    """Return the document of these bytes, and its only session."""
    document = Document(io.BytesIO(session))
    (transcript,) = FORMAT.read(document)
    return document, transcript


def read(*records):
    """Return a rollout of these records as a document, and its session."""
    return opened(rollout(*records))


def context(*records) -> list[str]:
    """Return a line a message of the effective context."""
    return contexts.lines(*read(*records))


def rules(*records) -> list[tuple[str, int | None]]:
    """Return what is found in a rollout, and on which lines; that most of them tell no usage is left out."""
    _, transcript = read(*records)
    return [(finding.rule, finding.line) for finding in transcript.findings if finding.rule != "no-usage"]
