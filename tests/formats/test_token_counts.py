"""What is no count of tokens is taken for none, whatever a session recorded."""

import io

import pytest

from compactctl import formats
from compactctl.document import Document
from tests.builders import anthropic, chat, claude


def chat_with(value):
    return chat.lines(chat.user(), chat.assistant("x", usage={"prompt_tokens": value, "completion_tokens": 7}))


def anthropic_with(value):
    usage = {"input_tokens": value, "output_tokens": 7}
    return chat.lines(chat.user(), anthropic.assistant(anthropic.use("c1"), usage=usage))


def claude_with(value):
    session = claude.Session()
    session.user()
    session.boundary(pre_tokens=value)
    session.summary()
    session.assistant("x", usage=claude.usage(value, out=7))
    return session.bytes()


SESSIONS = {"chat": chat_with, "anthropic": anthropic_with, "claude-code": claude_with}


def anchors(name, value):
    [transcript] = formats.get(name).read(Document(io.BytesIO(SESSIONS[name](value))))
    found = [message.usage.input_tokens for message in transcript.messages if message.usage]
    return found, transcript.peak_tokens, [compaction.tokens_before for compaction in transcript.compactions]


@pytest.mark.parametrize("name", SESSIONS)
def test_a_count_is_read(name):
    found, peak, _ = anchors(name, 500)
    assert (found, peak >= 500) == ([500], True)


@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.parametrize("value", [2**53, 2**63, 2**64, 10**30, 1e300, -1, -(2**63), "12", None, [], {}])
def test_a_figure_that_is_no_count_of_tokens_is_no_anchor(name, value):
    found, peak, before = anchors(name, value)
    assert (found, peak < 100, before in ([], [None])) == ([], True, True)
