"""What reading the changed lines again tells is what reading all of the result tells: on real files of every format."""

import json
import shutil
from pathlib import Path

import pytest

from compactctl import commit, commit_checks, run
from compactctl.options import Options
from compactctl.session import opened
from compactctl.settings import Settings, with_changes
from tests.builders.big_chat import big_chat
from tests.conftest import CORPUS_SESSIONS
from tests.runs import files_in, spill

SAMPLES = sorted((Path(__file__).parents[1] / "sample_sessions").rglob("*.jsonl"))
LOW = with_changes(Settings(), ["layer1.single_limit_bytes=2000", "layer1.round_limit_bytes=8000"])


@pytest.mark.parametrize(
    "path",
    [*SAMPLES, *(pytest.param(path, marks=pytest.mark.corpus) for path in CORPUS_SESSIONS)],
    ids=lambda path: f"{path.parent.name}/{path.name[:24]}",
)
def test_both_ways_to_check_put_the_same_files_in_place(path, tmp_path, monkeypatch):
    source = tmp_path / path.name
    shutil.copy(path, source)
    read_whole = []
    monkeypatch.setattr(commit_checks, "_check_all", _noted(commit_checks._check_all, read_whole))
    by_lines = _written(source)
    if not by_lines:
        return
    assert bool(read_whole) is _is_damaged(source)
    monkeypatch.setattr(commit, "values_replaced", lambda *_: None)
    assert _written(source) == by_lines
    assert len(read_whole) == 1 + _is_damaged(source)


@pytest.mark.parametrize(
    "odd", ["1e400", "-1E+999", "123456789012345678901234567890", "[" * 500 + "]" * 500, '"\\u0000"', '{"a":1,"a":2}']
)
def test_a_line_with_an_odd_value_is_read_again_alone(odd, write_session):
    rows = [json.dumps(record).encode() for record in big_chat()]
    path = write_session([row.replace(b"{", b'{"odd": ' + odd.encode() + b", ", 1) for row in rows])
    assert spill(path).status == "applied"


def _noted(function, calls):
    def noted(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return noted


def _written(source):
    """Return the files that spilling a session puts in place, which are taken away again."""
    run.spill([str(source)], Options(apply=True, settings=LOW))
    made = [name for name in files_in(source.parent) if name != source.name]
    written = {name: (source.parent / name).read_bytes() for name in made}
    for name in made:
        (source.parent / name).unlink()
    return written


def _is_damaged(path):
    with opened(str(path), None) as session:
        return bool(session.document.findings)
