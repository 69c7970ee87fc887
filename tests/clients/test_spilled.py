"""A session whose big results were spilled goes on in the agent that wrote it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients import real
from tests.clients.large import BIG, a_pi_session, a_rollout

pytestmark = pytest.mark.clients


@pytest.mark.parametrize("client, session", [("codex", a_rollout()), ("pi", a_pi_session()), ("piold", a_pi_session())])
def test_a_spilled_session_resumes_with_its_previews_and_is_not_compacted_first(client, session, tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(session)
    command = ["-m", "compactctl", "spill", "--apply", "--set", "layer1.single_limit_bytes=20000", str(path)]
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    (sent,) = real.resumed_requests(client, tmp_path / "s.compacted.jsonl")
    results = {message["result_of"]: message["text"] for message in sent if "result_of" in message}
    assert list(results) == ["c1", "c2"]
    for call_id, text in results.items():
        size, saved = text.splitlines()[:2]
        kept = Path(saved.removeprefix("[saved to] "))
        assert size.startswith("[content offloaded] original size: ")
        assert kept.name == f"{call_id}.txt"
        assert kept.read_text().startswith(BIG)
    assert sent[-1]["text"] == real.QUESTION
