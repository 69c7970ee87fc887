"""What the real agents print is read as the log that it is."""

import pytest

from compactctl import formats
from tests.clients import mock, real
from tests.formats.reading import context, measured, opened

pytestmark = pytest.mark.clients

SAID = [("assistant", f"text {len(mock.ANSWER)}")]


def read(raw):
    """Return the one session in a log, and its tokens where usage was recorded."""
    document = opened(raw)
    format_ = formats.recognise(document)
    (found,) = format_.read(document)
    size = measured(found)
    return found, size.tokens if size.anchored else None


@pytest.mark.parametrize(
    "options",
    [
        ("--output-format", "stream-json"),
        ("--output-format", "stream-json", "--include-partial-messages"),
        ("--output-format", "json"),
    ],
)
def test_what_claude_prints_is_read(options):
    found, tokens = read(real.printed("claude", *options))
    assert (found.format, context(found), found.model) == ("claude-stream", SAID, mock.MODEL)
    assert (tokens, [finding.rule for finding in found.findings]) == (1203, [])
    assert found.agent.startswith("Claude Code 2.")


def test_what_codex_prints_is_read():
    found, tokens = read(real.printed("codex"))
    assert (found.format, context(found), found.agent) == ("codex-exec", SAID, "Codex")
    assert (tokens, [finding.rule for finding in found.findings]) == (None, ["no-usage"])
