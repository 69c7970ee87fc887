"""A session under a new id and the one that it comes from go on side by side, and slimming changes nothing sent."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compactctl import formats, splicing
from compactctl.document import Document
from tests.builders import codex, pi
from tests.clients import real
from tests.clients.large import BIG, a_pi_session, a_rollout

pytestmark = pytest.mark.clients


def unspent(session: bytes) -> bytes:
    """Return the session with usage that makes no client compact it first."""
    return re.sub(rb"\b1[89]5\d{3}\b", b"20000", session)


CASES = pytest.mark.parametrize(
    "client, session, id",
    [
        ("codex", unspent(a_rollout()), codex.SESSION_ID),
        ("pi", unspent(a_pi_session()), pi.SESSION_ID),
        ("piold", unspent(a_pi_session()), pi.SESSION_ID),
    ],
)


class Home:
    """A client's home that lasts, with one session in the client's own folder for sessions."""

    def __init__(self, client: str, session: bytes, folder: Path) -> None:
        source = folder / "source.jsonl"
        source.write_bytes(session)
        self._folder = folder
        self._command, self._environment = real.prepare(client, source, folder)
        if client != "codex":
            staged = Path(self._command[-2])
            own = folder / "home/.pi/agent/sessions" / f"--{re.sub(r'[/:]', '-', str(folder / 'work')[1:])}--"
            own.mkdir(parents=True)
            staged.rename(own / f"2026-04-05T06-07-08-000Z_{pi.SESSION_ID}.jsonl")

    def sessions(self) -> dict[str, Path]:
        """Return the sessions by id, as the names of their files tell it."""
        files = (self._folder / "home").rglob("*.jsonl")
        return {
            path.stem[-36:]: path for path in files if path.name != "requests.jsonl" and ".compacted" not in str(path)
        }

    def resume(self, id: str) -> list[real.Json]:
        """Return what the client sends when it resumes the session with this id."""
        log = self._folder / "requests.jsonl"
        log.unlink(missing_ok=True)
        command = [*self._command[:-2], id, self._command[-1]]
        [sent] = real.requests(command, self._environment, log, self._folder / "work")
        return sent


@CASES
def test_both_sessions_are_resumed_by_their_ids_and_each_goes_on_in_its_own_file(client, session, id, tmp_path):
    home = Home(client, session, tmp_path)
    [(_, source)] = home.sessions().items()
    command = ["-m", "compactctl", "spill", "--apply", "--new-session", "--slim"]
    limit = ["--set", "layer1.single_limit_bytes=20000"]
    subprocess.run([sys.executable, *command, *limit, str(source)], check=True, capture_output=True)
    [new] = home.sessions().keys() - {id}
    before = {key: path.read_bytes() for key, path in home.sessions().items()}
    results = {}
    for key, other in ((new, id), (id, new)):
        sent = home.resume(key)
        assert sent[-1]["text"] == real.QUESTION
        results[key] = {message["result_of"]: message["text"] for message in sent if "result_of" in message}
        grown = {name: path.read_bytes() for name, path in home.sessions().items()}
        assert grown[key].startswith(before[key])
        assert real.QUESTION.encode() in grown[key][len(before[key]) :]
        assert grown[other] == before[other]
        before = grown
    mark, start = "[content offloaded]", BIG[:40]
    assert [(text.startswith(mark), start in text) for text in results[new].values()] == [(True, True)] * 2
    assert [(mark in text, start in text) for text in results[id].values()] == [(False, True)] * 2


@CASES
def test_a_slimmed_session_sends_what_it_sent_before(client, session, id, tmp_path):
    document = Document(io.BytesIO(session))
    format_ = formats.recognise(document)
    format_.read(document)
    edits = format_.slim_edits(document, 2048, "s.compacted/copies.jsonl.zst")
    slim = b"".join(splicing.edited(document, splicing.concrete(document, edits)))
    assert len(slim) < len(session) - len(BIG) + 4096
    sent = []
    for name, data in (("whole", session), ("slim", slim)):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(data)
        sent.append(re.sub(r"real-[a-z]+-\w+", "home", json.dumps(real.resumed_request(client, path))))
    assert sent[0] == sent[1]
