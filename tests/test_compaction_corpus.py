"""The laws of a compaction on real sessions, where they are there: each cut in the middle, and what came out again."""

import io

import pytest

from compactctl import formats
from compactctl.cut import is_said_by_user
from compactctl.document import Document
from tests.builders.generated import WRITERS
from tests.compaction_laws import a_cut, check
from tests.compactions import opened
from tests.conftest import CORPUS

FOLDERS = ("claude-code", "codex", "pi", "openai-chat")
LARGEST_BYTES = 1_500_000
FILES = sorted(path for folder in FOLDERS for path in (CORPUS / folder).glob("*.jsonl"))
SMALL = [path for path in FILES if path.stat().st_size < LARGEST_BYTES]
NO_CORPUS = pytest.param(None, marks=pytest.mark.skip(reason="no corpus of real sessions beside the repository"))


@pytest.mark.corpus
@pytest.mark.parametrize("keep_history", [False, True], ids=["moved", "kept"])
@pytest.mark.parametrize("path", SMALL or [NO_CORPUS], ids=lambda path: path and f"{path.parent.name}/{path.name[:24]}")
def test_a_real_session_can_be_compacted_and_compacted_again(path, keep_history):
    data = path.read_bytes()
    format_ = formats.recognise(Document(io.BytesIO(data)))
    if format_ is None or format_.name not in WRITERS:
        return
    once = cut_somewhere(format_, data, 2, keep_history)
    if once is not None:
        cut_somewhere(format_, once, 3, keep_history)


def cut_somewhere(format_, data, part, keep_history):
    """Compact at about this part of the boundaries, and return the bytes; None where there is nothing to cut."""
    messages = opened(data, format_)[1].messages
    pins = any(map(is_said_by_user, messages))
    cut = a_cut(messages, len(messages) // part, pins) if len(messages) >= part else None
    return check(format_, data, cut, keep_history) if cut is not None else None
