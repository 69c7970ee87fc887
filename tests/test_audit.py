"""`audit` from outside: what it prints, how it ends, what it writes."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from compactctl.__main__ import exit_code
from compactctl.findings import BY_GROUP, GROUPS, RULES
from compactctl.outputs import OUTPUTS, View, load
from compactctl.rules import GROUP_WORDS, page
from tests.builders.chat import assistant, lines, tool, user
from tests.builders.claude import Session, usage
from tests.builders.healthy import HEALTHY, healthy, jsonl, set_result
from tests.builders.outcomes import batch, hostile

RESULT = "x" * 60_000

PREVIEW = (
    "<persisted-output>\nOutput too large (61.6KB). "
    "Full output saved to: /home/a/.claude/projects/p/s/tool-results/b1.txt\n\n"
    "Preview (first 2KB):\nok\n</persisted-output>"
)

KEY = "AKIA" + "QYLPMN5HFIQR7XYZ"
"""The shape of a key that opens nothing."""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a chat with one large result and nothing else to find."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(user(), assistant("", [("c1", "Read", "{}")]), tool("c1", RESULT), assistant()))
    return path


# rules -------------------------------------------------------------------------------------------


def test_every_rule_has_a_page_and_every_group_its_words():
    assert list(GROUP_WORDS) == list(BY_GROUP)
    for rule in RULES:
        told = page(rule)
        assert all(getattr(told, name).strip() for name in told.__struct_fields__), rule


@pytest.mark.parametrize("group", BY_GROUP)
def test_a_groups_pages_are_its_rules(group):
    import importlib

    pages = importlib.import_module(f"compactctl.rules.{group}").PAGES
    assert list(pages) == [rule for rule in RULES if GROUPS[rule] == group] == list(BY_GROUP[group])


def test_rules_shows_the_page_of_a_rule(capsys):
    assert exit_code(["rules", "torn-tail"]) == 0
    assert capsys.readouterr().out.startswith("torn-tail   Torn last line\n")
    assert exit_code(["rules", "torn-tial"]) == 2
    assert "did you mean torn-tail?" in capsys.readouterr().err


@pytest.mark.parametrize("rule", [[], ["torn-tail"]], ids=["all", "one"])
def test_rules_are_printed_in_every_output(rule, capsys):
    printed = {}
    for output in OUTPUTS:
        assert exit_code(["rules", *rule, "-o", output]) == 0
        printed[output] = capsys.readouterr().out
    [named] = [item for item in json.loads(printed["json"])["rules"] if item["rule"] == "torn-tail"]
    assert named in [json.loads(line) for line in printed["jsonl"].splitlines()]
    assert named in list(csv.DictReader(io.StringIO(printed["csv"])))
    assert "`torn-tail`" in printed["markdown"]


# what is printed, and the exit code --------------------------------------------------------------


def audited(capsys, *arguments):
    """Return the exit code of an audit and what it printed."""
    code = exit_code(["audit", *arguments])
    return code, capsys.readouterr().out


def test_a_finding_is_a_line_as_compilers_print_it(session, capsys):
    assert audited(capsys, "s.jsonl") == (
        0,
        "s.jsonl:3: warning large-result: 60,000 bytes by Read, over the limit of 50,000\n1 session · 1 warning\n",
    )


@pytest.mark.parametrize(
    "arguments, code",
    [
        ([], 0),
        (["--fail-on", "warning"], 1),
        (["--fail-on", "warning", "--ignore", "size"], 0),
        (["--fail-on", "warning", "--ignore", "large-result,usage"], 0),
        (["--fail-on", "note", "--select", "usage,size"], 1),
        (["--fail-on", "note", "--select", "reading", "--select", "secrets"], 0),
        (["--set", "audit.severity.large-result=error"], 1),
        (["--set", "audit.severity.large-result=error", "--fail-on", "never"], 0),
        (["--set", "audit.severity.large-result=off", "--fail-on", "warning"], 0),
        (["--max-result-bytes", "60000"], 0),
        (["--max-result-bytes", "59999"], 1),
        (["--max-result-bytes", "59999", "--select", "secrets"], 1),
        (["--max-result-bytes", "59999", "--fail-on", "never"], 0),
        (["--max-result-bytes", "59999", "--set", "audit.severity.max-result-bytes=off"], 0),
        (["--max-compactions", "0"], 0),
        (["--max-tokens", "17k"], 1),
        (["--max-context", "13%"], 1),
        (["--max-context", "14"], 0),
        (["--max-estimator-error", "0"], 0),
        (["--select", "nothing"], 2),
        (["--ignore", "large-results"], 2),
        (["--max-context", "-1"], 2),
        (["--fail-on", "fatal"], 2),
        (["--set", "audit.severity.large-result=fatal"], 2),
        (["--set", "audit.severity.large-results=note"], 2),
    ],
)
def test_what_fails(session, capsys, arguments, code):
    assert audited(capsys, "s.jsonl", *arguments)[0] == code


@pytest.mark.parametrize("output", ["text", "csv", "table", "markdown", "json", "jsonl"])
def test_hostile_text_steers_nothing(output):
    made = batch(*hostile().outcomes, command="audit")
    for view in (View(), View(verbose=True)):
        printer = load(output).printer("audit", view)
        text = "".join(printer.outcome(item) for item in made.outcomes) + printer.end(made)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
        assert not re.search(r"##\w*\[", text)
        assert not re.search(r"^\s*::", text, re.MULTILINE)


def test_csv_is_a_row_a_finding_and_one_for_what_can_not_be_read(session, capsys):
    Path("other.jsonl").write_text("no session\n")
    code, printed = audited(capsys, "s.jsonl", "other.jsonl", "-o", "csv")
    rows = [(r["path"], r["line"], r["severity"], r["group"], r["rule"]) for r in csv.DictReader(io.StringIO(printed))]
    assert (code, rows) == (
        3,
        [
            ("s.jsonl", "3", "warning", "size", "large-result"),
            ("other.jsonl", "", "error", "", "unknown_format"),
        ],
    )


def test_never_silences_no_file_that_can_not_be_read(session, capsys):
    Path("other.jsonl").write_text("no session\n")
    assert audited(capsys, "s.jsonl", "other.jsonl", "--fail-on", "never")[0] == 3


def test_reports_are_saved_beside_what_is_printed(session, capsys):
    code, printed = audited(capsys, "s.jsonl", "--save", "json=a.json", "--save", "text=a.txt", "-o", "jsonl")
    assert code == 0
    assert json.loads(printed.splitlines()[0]) == json.loads(Path("a.json").read_text())["sessions"][0]
    assert Path("a.txt").read_text(encoding="utf-8").startswith("s.jsonl:3: warning large-result")


@pytest.mark.parametrize(
    "save", [["json"], ["json="], ["jsn=a"], ["json=a", "--save", "text=./a"], ["json=s.jsonl"]], ids=" ".join
)
def test_a_report_needs_a_place_of_its_own(session, capsys, save):
    before = session.read_bytes()
    assert audited(capsys, ".", "--save", *save)[0] == 2
    assert session.read_bytes() == before


def test_a_fingerprint_stays_whatever_is_appended(session, capsys):
    def fingerprints():
        found = json.loads(audited(capsys, "s.jsonl", "-o", "json")[1])["sessions"][0]["findings"]
        return {finding["rule"]: finding["fingerprint"] for finding in found}

    before = fingerprints()
    session.write_bytes(lines(user("first")) + session.read_bytes() + lines(user("more"), assistant("fine")))
    assert list(before) == ["large-result"]
    assert [len(fingerprint) for fingerprint in before.values()] == [32]
    assert fingerprints() == before


def test_a_fingerprint_of_what_a_session_has_once_stays_though_its_line_moves(tmp_path, capsys):
    found = []
    for first in (1, 0):
        s = Session()
        for number in range(first, 4):
            s.user(f"More {number}.", uuid=f"u{number}")
            s.assistant("y" * 900, usage=usage(20_000 + number, out=1), id=f"m{number}", uuid=f"a{number}")
        path = tmp_path / "s.jsonl"
        path.write_bytes(s.bytes())
        [made] = json.loads(audited(capsys, str(path), "--select", "placeholder-output", "-o", "json")[1])["sessions"]
        found.append(made["findings"][0])
    assert found[0]["fingerprint"] == found[1]["fingerprint"]


def test_the_estimates_of_a_session_are_a_gate(tmp_path, capsys):
    path = tmp_path / "s.jsonl"
    path.write_bytes(jsonl(healthy("chat")))
    figures = json.loads(audited(capsys, str(path), "-o", "json")[1])["sessions"][0]["audit"]["figures"]
    assert figures["estimator_error_percent"] == 1.4
    assert audited(capsys, str(path), "--max-estimator-error", "1.4")[0] == 0
    assert audited(capsys, str(path), "--max-estimator-error", "1.3")[0] == 1


@pytest.mark.parametrize("name", HEALTHY)
def test_a_spilled_file_that_is_gone_is_found(name, tmp_path, capsys):
    records = healthy(name)
    set_result(name, records, RESULT)
    path = tmp_path / "s.jsonl"
    path.write_bytes(jsonl(records))
    assert exit_code(["spill", str(path), "--apply"]) == 0
    written = str(tmp_path / "s.compacted.jsonl")
    capsys.readouterr()
    assert audited(capsys, written)[0] == 0
    for file in (tmp_path / "s.compacted" / "tool-results").iterdir():
        file.unlink()
    code, printed = audited(capsys, written)
    assert code == 1
    assert next(line.split(": ")[1] for line in printed.splitlines() if "error" in line) == "error missing-spill"


def test_a_guessed_window_makes_no_error(session, capsys):
    fallback = ("--set", "window.fallback_tokens=9000", "--select", "over-window,over-threshold")
    assert audited(capsys, "s.jsonl", *fallback)[1].startswith("s.jsonl: warning over-threshold: 17,1")
    assert audited(capsys, "s.jsonl", *fallback, "--window", "9000")[1].startswith("s.jsonl: error over-window: 17,1")


def test_a_preview_is_reachable_where_the_session_took_its_files_along(tmp_path, capsys):
    records = healthy("claude-code")
    set_result("claude-code", records, PREVIEW)
    path = tmp_path / "s.jsonl"
    path.write_bytes(jsonl(records))
    asked = (str(path), "--select", "unreachable-output", "--fail-on", "note")
    assert audited(capsys, *asked)[0] == 1
    (tmp_path / "s" / "tool-results").mkdir(parents=True)
    (tmp_path / "s" / "tool-results" / "b1.txt").write_text("all of it")
    assert audited(capsys, *asked)[0] == 0


def test_a_preview_is_not_looked_for_above_the_folders_of_the_session(tmp_path, capsys):
    records = healthy("claude-code")
    set_result("claude-code", records, PREVIEW.replace("/home/a/.claude", "/home/a/../.claude"))
    path = tmp_path / "s.jsonl"
    path.write_bytes(jsonl(records))
    (tmp_path / "s" / "tool-results").mkdir(parents=True)
    (tmp_path / "s" / "tool-results" / "b1.txt").write_text("all of it")
    assert audited(capsys, str(path), "--select", "unreachable-output", "--fail-on", "note")[0] == 1


def test_a_secret_in_a_spilled_file_is_found(session, capsys):
    session.write_bytes(conversation(tool("c1", RESULT + "\n" + KEY)))
    assert exit_code(["spill", "s.jsonl", "--apply"]) == 0
    capsys.readouterr()
    code, printed = audited(capsys, "s.compacted.jsonl", "--select", "secrets")
    assert (code, KEY in printed) == (1, False)
    assert printed.startswith("s.compacted.jsonl:3: error secret: aws-access-key in the file tool-results/")
    assert audited(capsys, "s.compacted.jsonl", "--no-secrets")[0] == 0


# baselines ---------------------------------------------------------------------------------------

BIG = tool("c1", RESULT)


def conversation(*more):
    return lines(user(), assistant("", [("c1", "Read", "{}")]), *more, assistant())


def test_only_what_the_baseline_lacks_fails(session, capsys):
    strict = ("s.jsonl", "--fail-on", "warning", "--max-result-bytes", "50000")
    assert audited(capsys, *strict, "--write-baseline", "b.json")[0] == 1
    assert audited(capsys, *strict, "--baseline", "b.json") == (0, "1 session · 1 error, 1 warning, 2 of them known\n")
    session.write_bytes(conversation(BIG, tool("c1", RESULT + "y")))
    code, printed = audited(capsys, *strict, "--baseline", "b.json")
    assert code == 1
    assert [line.split(":")[1].split()[-1] for line in printed.splitlines()[:-1]] == ["max-result-bytes", "4", "4"]


def test_new_sessions_share_what_those_that_are_gone_had(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(f"{name}.jsonl").write_bytes(conversation(BIG))
    assert audited(capsys, ".", "--write-baseline", "../b.json")[0] == 0
    for old, new in (("a", "c"), ("b", "d")):
        Path(f"{old}.jsonl").rename(f"{new}.jsonl")
    strict = (".", "--fail-on", "warning", "--baseline", "../b.json")
    assert audited(capsys, *strict)[0] == 0
    assert audited(capsys, *strict, "--max-result-bytes", "50000")[0] == 0
    Path("e.jsonl").write_bytes(conversation(BIG))
    code, printed = audited(capsys, *strict)
    assert (code, printed.splitlines()[-1]) == (1, "3 sessions · 3 warnings, 2 of them known")


def test_a_gate_that_got_worse_fails(session, capsys):
    gate = ("s.jsonl", "--max-result-bytes", "50000", "--ignore", "size")
    audited(capsys, *gate, "--write-baseline", "b.json")
    assert audited(capsys, *gate, "--baseline", "b.json")[0] == 0
    session.write_bytes(conversation(tool("c1", RESULT + "y")))
    assert audited(capsys, *gate, "--baseline", "b.json")[0] == 1


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"schema": "other", "version": "1", "sessions": []}'])
def test_what_is_no_baseline_is_wrong_usage(session, capsys, content):
    if content is not None:
        Path("b.json").write_bytes(content)
    assert audited(capsys, "s.jsonl", "--baseline", "b.json")[0] == 2


def test_a_baseline_hides_no_file_that_can_not_be_read(session, capsys):
    Path("other.jsonl").write_text("no session\n")
    both = ("s.jsonl", "other.jsonl")
    assert audited(capsys, *both, "--write-baseline", "b.json")[0] == 3
    assert audited(capsys, *both, "--baseline", "b.json", "--fail-on", "warning")[0] == 3


def test_an_empty_file_in_a_folder_is_a_finding(session, capsys):
    Path("empty.jsonl").touch()
    code, printed = audited(capsys, ".", "--select", "empty-file", "--fail-on", "warning")
    assert (code, printed.splitlines()[1]) == (1, "./empty.jsonl: warning empty-file: no bytes in it")
    assert audited(capsys, "empty.jsonl", "--fail-on", "never")[0] == 3


# git ---------------------------------------------------------------------------------------------


def git(*arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository with two sessions and a commit."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    for name in ("a", "ü b"):
        Path(f"runs/{name}.jsonl").write_bytes(conversation(BIG))
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    return tmp_path


def looked_at(capsys, *arguments):
    code, printed = audited(capsys, "runs", "-o", "json", *arguments)
    return code, [session["path"] for session in json.loads(printed)["sessions"]]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_only_files_that_differ_from_a_revision_are_looked_at(repository, capsys):
    assert looked_at(capsys, "--changed-since", "HEAD") == (0, [])
    with Path("runs/ü b.jsonl").open("ab") as file:
        file.write(lines(user("more")))
    Path("runs/new.jsonl").write_bytes(conversation(BIG))
    changed = ["runs/new.jsonl", "runs/ü b.jsonl"]
    assert looked_at(capsys, "--changed-since", "HEAD") == (0, changed)
    git("add", ".")
    git("commit", "-qm", "second")
    assert looked_at(capsys, "--changed-since", "HEAD~1") == (0, changed)
    assert looked_at(capsys, "--changed-since", "HEAD") == (0, [])


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("revision", ["nothing", "", "--output=x", "-h", "HEAD:runs/a.jsonl"])
def test_what_is_no_revision_is_wrong_usage(repository, capsys, revision):
    assert audited(capsys, "runs", f"--changed-since={revision}")[0] == 2
    assert not Path("x").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_file_in_no_repository_has_not_changed_since_anything(session, capsys):
    assert audited(capsys, "s.jsonl", "--changed-since", "HEAD")[0] == 2
