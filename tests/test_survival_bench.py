"""The benchmark of survival, on sessions small enough to be counted by hand."""

import json

import pytest

from tests.bench.survival import LINE, REACHABLE, measure, samples
from tests.builders import chat


def row(number, command):
    call_id = f"c{number}"
    arguments = json.dumps({"command": command})
    return [chat.assistant(f"Step {number}.", [(call_id, "bash", arguments)]), chat.tool(call_id, "fine " * 400)]


@pytest.fixture
def folder(tmp_path):
    steps = [
        "pytest -q tests/test_rows.py",
        *(f"ls part{number}" for number in range(40)),
        "pytest -q tests/test_rows.py",
    ]
    rows = [chat.user("Mend src/rows.py."), *(line for at, command in enumerate(steps) for line in row(at, command))]
    (tmp_path / "s.jsonl").write_bytes(chat.lines(*rows))
    (tmp_path / "other.jsonl").write_bytes(b'{"no": "session"}\n')
    return tmp_path


def test_what_is_used_again_is_found_where_it_stands(folder):
    [measured] = [measure(sample) for sample in samples(folder)]
    assert measured.sample.own is None
    assert measured.wanted == {"path": 1, "command": 1, LINE: 1}
    assert measured.found == {
        ("path", "facts"): 1,
        ("path", REACHABLE): 1,
        ("command", "facts"): 1,
        ("command", REACHABLE): 1,
        (LINE, "facts"): 1,
        (LINE, REACHABLE): 1,
    }
    assert measured.tokens > 0


def test_nothing_after_the_cut_is_shown_to_the_summary(folder):
    [sample] = samples(folder)
    assert len(sample.transcript.messages) + len(sample.future) == 1 + 2 * 42
    assert sample.future[0].line == len(sample.transcript.messages) + 1
