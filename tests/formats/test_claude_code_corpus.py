"""Every real session at hand is read without a crash, and every byte of it is accounted for."""

from itertools import pairwise

import pytest

from compactctl.document import Document
from compactctl.formats.claude_code import FORMAT

pytestmark = pytest.mark.corpus

UNBROKEN = {"result-without-call", "duplicate-result", "parent-cycle"}
"""Rules that no session which its client wrote and resumed breaks: an error of reading, if one does."""


def transcripts(folder):
    for path in sorted((folder / "claude-code").glob("*.jsonl")):
        with path.open("rb") as source:
            document = Document(source)
            for transcript in FORMAT.read(document):
                yield path.name, document, transcript


def test_every_session_is_read_and_its_bytes_sum_to_the_files(corpus):
    sums = [(name, sum(t.bytes_by_kind.values()), d.size_bytes) for name, d, t in transcripts(corpus)]
    assert len(sums) > 50
    assert [item for item in sums if item[1] != item[2]] == []


def test_no_pair_is_torn_by_the_reading(corpus):
    found = [
        (name, finding)
        for name, _, transcript in transcripts(corpus)
        for finding in transcript.findings
        if finding.rule in UNBROKEN
    ]
    assert found == []


def test_the_contexts_grow_as_the_provider_counted_them(corpus):
    """Between two requests of a context the input grows by about what was said; a lost branch would show as a fall."""
    pairs = [
        (before.usage.input_tokens, after.usage.input_tokens)
        for _, _, transcript in transcripts(corpus)
        for before, after in _neighbours(transcript.messages[transcript.anchor_floor :])
    ]
    falls = [pair for pair in pairs if pair[1] < pair[0]]
    assert len(falls) < len(pairs) / 100


def _neighbours(messages):
    counted = [message for message in messages if message.usage is not None]
    return pairwise(counted)
