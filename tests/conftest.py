"""What every test may use. No test touches the network, the clock or anything outside its own temporary folder."""

import json
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("seeded", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("seeded")

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"


@pytest.fixture
def corpus() -> Path:
    """The folder of real sessions, where there is one."""
    if not CORPUS.is_dir():
        pytest.skip("no corpus of real sessions beside the repository")
    return CORPUS


@pytest.fixture
def write_session(tmp_path):
    """Write records (or whole lines as bytes) as a session file and return its path."""

    def write(records, name="s.jsonl", folder=None):
        path = (folder or tmp_path) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() for row in records]
        path.write_bytes(b"".join(row + b"\n" for row in rows))
        return path

    return write
