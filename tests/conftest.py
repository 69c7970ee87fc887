"""What every test may use. No test touches the network, the clock or anything outside its own temporary folder."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.compaction_laws", "tests.runs")

settings.register_profile("seeded", deadline=None, derandomize=True, max_examples=100)
settings.load_profile("seeded")

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
CORPUS_FOLDERS = ("claude-code", "codex", "pi", "openai-chat", "chat-json")
CORPUS_SESSIONS = sorted(path for folder in CORPUS_FOLDERS for path in (CORPUS / folder).glob("*"))
"""The real sessions of formats that are compacted; none where there is no corpus beside the repository."""


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch, tmp_path_factory):
    """Whoever runs the tests has settings of their own: none of them counts here."""
    for name in [name for name in os.environ if name.startswith("COMPACTCTL_")]:
        monkeypatch.delenv(name)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-settings"))


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
