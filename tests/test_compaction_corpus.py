"""The laws of a compaction on real sessions, where a folder of them is named in CORPUS."""

import os
from pathlib import Path

import pytest

from compactctl import formats
from compactctl.cut import is_said_by_user
from tests.builders.generated import WRITERS
from tests.compactions import opened
from tests.test_compaction_laws import a_cut, check

CORPUS = os.environ.get("CORPUS", "")
LARGEST_BYTES = 1_500_000
FILES = sorted(path for path in Path(CORPUS).rglob("*.jsonl") if path.stat().st_size < LARGEST_BYTES) if CORPUS else []

pytestmark = pytest.mark.skipif(not FILES, reason="CORPUS names no folder of sessions")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_real_session_can_be_compacted_and_compacted_again(path):
    data = path.read_bytes()
    document = opened_document(data)
    format_ = formats.recognise(document)
    if format_ is None or format_.name not in WRITERS:
        pytest.skip("of no format that is written")
    for keep_history in (False, True):
        once = cut_somewhere(format_, data, 2, keep_history)
        if once is not None:
            cut_somewhere(format_, once, 3, keep_history)


def cut_somewhere(format_, data, part, keep_history):
    """Compact at about this part of the boundaries, and return the bytes; None where there is nothing to cut."""
    messages = opened(data, format_)[1].messages
    if len(messages) < part:
        return None
    cut = a_cut(messages, len(messages) // part, any(map(is_said_by_user, messages)))
    return check(format_, data, cut, keep_history) if cut is not None else None


def opened_document(data):
    import io

    from compactctl.document import Document

    return Document(io.BytesIO(data))
