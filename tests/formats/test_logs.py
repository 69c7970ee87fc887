"""The logs that agents print: each is told from its records, read, and never compacted."""

import json

import pytest

from compactctl import formats
from compactctl.__main__ import exit_code
from compactctl.errors import NotCompactable
from compactctl.formats import claude_stream, codex_exec
from compactctl.formats.interface import Metas, RecordedCut, Spilled
from tests.builders import codex, logs
from tests.builders.chat import lines
from tests.builders.claude import Session as ClaudeCode
from tests.builders.logs import Claude
from tests.formats.reading import opened


def recognised(raw):
    found = formats.recognise(opened(raw))
    return found and found.name


def _session_of_claude_code():
    made = ClaudeCode()
    made.user()
    made.assistant()
    return made.bytes()


# telling them ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw, name",
    [
        (lines(*logs.claude_run()), "claude-stream"),
        (logs.array(logs.claude_run()), "claude-stream"),
        (json.dumps(logs.claude_run()).encode(), "claude-stream"),
        (b"\xef\xbb\xbf \n" + logs.array(logs.claude_run()), "claude-stream"),
        (lines(Claude().result()), "claude-stream"),
        (lines(*logs.codex_run()), "codex-exec"),
        (b"some warning of the shell\n" + lines(*logs.codex_run()), "codex-exec"),
        # the agents' own sessions stay theirs, also where a log was appended
        (
            _session_of_claude_code() + lines(Claude().result()),
            "claude-code",
        ),
        (lines(codex.meta(), codex.said(codex.user("hi"))), "codex"),
        # an array of anything else is read by nobody
        (logs.array(logs.codex_run()), None),
        (logs.array([{"a": 1}, *logs.claude_run()[:1]]), None),
        (logs.array(logs.claude_run())[:-2], None),
        (b"[]", None),
        (lines({"type": "result", "subtype": "success"}), None),
        (lines({"type": "error", "message": "x"}), None),
    ],
)
def test_a_log_is_told_from_its_records(raw, name):
    assert recognised(raw) == name


# none of them is compacted -----------------------------------------------------------------------


@pytest.mark.parametrize("command", ["spill", "compact", "summarize", "restore", "verify"])
@pytest.mark.parametrize(
    "records, printed_by, session_id, home",
    [
        (logs.claude_run(), "claude -p --output-format stream-json", logs.SESSION, "~/.claude/projects"),
        (logs.codex_run(), "codex exec --json", logs.THREAD, "~/.codex/sessions"),
    ],
)
def test_no_command_compacts_a_log_and_each_says_what_to_give(
    command, records, printed_by, session_id, home, tmp_path, capsys
):
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(*records))
    assert exit_code([command, str(path), *(["--apply"] if command == "spill" else [])]) == 3
    said = capsys.readouterr().err
    assert f"can't be compacted: `{printed_by}` printed it" in said
    assert f"by its id ({session_id}) or as a file below {home}" in said
    assert sorted(tmp_path.iterdir()) == [path]


def test_inspect_does_not_say_that_a_log_could_be_spilled(tmp_path, capsys):
    path = tmp_path / "run.jsonl"
    path.write_bytes(lines(*logs.codex_run()))
    for arguments in (["--sort", "saved"], ["-o", "json"]):
        assert exit_code(["inspect", str(path), *arguments]) == 0
    page, _, result = capsys.readouterr().out.partition("\n{")
    assert [line for line in page.splitlines() if line.startswith("spill")] == [
        "spill     never: a log that an agent printed is only read"
    ]
    assert json.loads("{" + result)["sessions"][0]["details"]["would_spill"] == []


def test_in_a_folder_a_log_is_passed_over(tmp_path, capsys):
    (tmp_path / "log.jsonl").write_bytes(lines(*logs.claude_run()))
    (tmp_path / "chat.jsonl").write_bytes(lines({"role": "user", "content": "Hi."}))
    assert exit_code(["spill", str(tmp_path), "-o", "json"]) == 0
    found = {s["path"].rpartition("/")[2]: s["status"] for s in json.loads(capsys.readouterr().out)["sessions"]}
    assert found == {"chat.jsonl": "unchanged", "log.jsonl": "skipped"}


@pytest.mark.parametrize("command", ["inspect", "estimate", "audit"])
@pytest.mark.parametrize("raw", [lines(*logs.claude_run()), logs.array(logs.claude_run()), lines(*logs.codex_run())])
def test_logs_are_read(command, raw, tmp_path, capsys):
    path = tmp_path / "log.json"
    path.write_bytes(raw)
    assert exit_code([command, str(path), "-o", "json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["sessions"]
    assert (only["status"], only["messages"] > 2, only["tokens"]["before"] > 0) == ("read", True, True)


@pytest.mark.parametrize("raw, rules", [(lines(*logs.claude_run()), []), (lines(*logs.codex_run()), ["no-usage"])])
def test_an_audit_asks_no_more_of_a_log_than_a_log_has(raw, rules, tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    path.write_bytes(raw)
    assert exit_code(["audit", str(path), "-o", "json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["sessions"]
    assert [finding["rule"] for finding in only["findings"]] == rules


@pytest.mark.parametrize(
    "format_, records", [(claude_stream.FORMAT, logs.claude_run()), (codex_exec.FORMAT, logs.codex_run())]
)
def test_a_log_has_no_edits(format_, records):
    document = opened(lines(*records))
    (found,) = format_.read(document)
    result = next(message.result for message in found.messages if message.result)
    with pytest.raises(NotCompactable):
        format_.spill_edits(document, [Spilled(result, "gone", "moved")])
    with pytest.raises(NotCompactable):
        format_.compaction(document, found, RecordedCut(None, Metas("s"), 1, 1))
    assert format_.spill_edits(document, []) == []
    assert format_.usage_edits(document, found, 5) == format_.slim_edits(document, 0, "p") == []
    assert format_.new_session(document, found, "n", "s") is None
    assert "resume the session that it is about" in format_.resume("/s.jsonl", None).remark
