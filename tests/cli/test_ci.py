"""Which CI a run is in, and what that CI is told besides."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from compactctl.__main__ import exit_code
from compactctl.cli import ci
from compactctl.errors import WriteError
from compactctl.outputs import REPORTS
from compactctl.store import append
from tests.builders.chat import assistant, lines, tool, user
from tests.outputs.reported import ATTACKS, COMMAND


@pytest.mark.parametrize(
    "choice, environment, system",
    [
        ("auto", {}, "none"),
        ("auto", {"GITHUB_ACTIONS": "true"}, "github"),
        ("auto", {"GITHUB_ACTIONS": "false"}, "none"),
        ("auto", {"GITLAB_CI": "true"}, "gitlab"),
        ("none", {"GITHUB_ACTIONS": "true"}, "none"),
        ("github", {}, "github"),
        ("gitlab", {"GITHUB_ACTIONS": "true"}, "gitlab"),
    ],
)
def test_the_ci_is_told_from_its_own_variables(choice, environment, system):
    assert ci.system(choice, environment) == system


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository with one session in a folder, in which there is one error and one warning."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "logs"
    folder.mkdir()
    large = [user(), assistant("", [("c1", "Read", "{}")]), tool("c1", "x" * 60_000), assistant()]
    (folder / "s.jsonl").write_bytes(lines(*large) + b'{"role": "us')
    monkeypatch.chdir(folder)
    return tmp_path


ANNOTATED = [
    "::error file=logs/s.jsonl,line=5,title=torn-tail::the last line is cut off: 12 bytes are no record",
    "::warning file=logs/s.jsonl,line=3,title=large-result::60,000 bytes by Read, over the limit of 50,000",
]


def test_on_github_annotations_go_to_standard_error_and_the_summary_to_its_file(repository, monkeypatch, capsys):
    summary = repository / "summary.md"
    summary.write_text("before")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert exit_code(["audit", "s.jsonl", "-o", "json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["totals"]["exit_code"] == 1
    assert printed.err.splitlines() == ANNOTATED
    assert summary.read_text().startswith("before\n## compactctl audit\n\n1 session · 1 error, 1 warning\n")


@pytest.mark.parametrize("arguments", [[], ["--ci", "none"], ["--ci", "gitlab"]])
def test_elsewhere_nobody_is_told_besides(arguments, repository, monkeypatch, capsys):
    summary = repository / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert exit_code(["audit", "s.jsonl", *arguments]) == 1
    assert (capsys.readouterr().err, summary.exists()) == ("", False)


def test_annotations_are_not_told_twice(repository, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    exit_code(["audit", "s.jsonl", "-o", "github"])
    printed = capsys.readouterr()
    assert (printed.out.splitlines(), printed.err) == (ANNOTATED, "")


def test_an_unknown_ci_is_wrong_usage(repository, capsys):
    assert exit_code(["audit", "s.jsonl", "--ci", "gihub"]) == 2
    assert "did you mean github?" in capsys.readouterr().err


def test_a_summary_that_can_not_be_written_is_said(repository, monkeypatch):
    with pytest.raises(WriteError):
        append(repository / "no" / "such.md", b"x")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(repository / "no" / "such.md"))
    assert exit_code(["audit", "s.jsonl"]) == 6


def test_several_reports_come_of_one_run(repository, capsys):
    saves = [word for kind in REPORTS for word in ("--save", f"{kind}=out.{kind}")]
    assert exit_code(["audit", "s.jsonl", *saves, "-o", "jsonl"]) == 1
    found = {kind: Path(f"out.{kind}").read_text() for kind in REPORTS}
    (run,) = json.loads(found["sarif"])["runs"]
    places = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert [unquote(place) for place in places] == ["logs/s.jsonl"] * 2
    assert [issue["location"]["path"] for issue in json.loads(found["gitlab"])] == ["logs/s.jsonl"] * 2
    assert found["github"].splitlines() == ANNOTATED


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if "\ud800" not in attack])
def test_a_hostile_session_steers_no_runner(attack, repository, monkeypatch, capsys):
    """Its name, its tool, its call's id and its text are attacks; all that a run prints is looked at."""
    name = f"{attack.translate({0: None, ord('/'): '_'})}.jsonl"
    called = assistant(attack, [(attack, attack, "{}")], id=attack, model=attack)
    Path(name).write_bytes(lines(user(attack), called, tool(attack, attack + "x" * 60_000), assistant()) + b'{"role')
    Path(f"not {name}").write_text(attack)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert exit_code(["audit", name, f"not {name}", "-v", "-j", "1"]) == 3
    printed = capsys.readouterr()
    commands = [line for line in printed.err.splitlines() if line.startswith("::")]
    others = [*printed.out.splitlines(), *(line for line in printed.err.splitlines() if line not in commands)]
    assert [COMMAND.fullmatch(line)[1] for line in commands] == ["error", "error", "warning"]
    assert [line for line in others if re.match(r"\s*::", line) or re.search(r"##\w*\[", line)] == []
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", printed.out + printed.err)
    assert len(others) == 5


def test_fingerprints_stay_when_a_session_goes_on(repository):
    def fingerprints():
        exit_code(["audit", "s.jsonl", "--save", "sarif=out.sarif"])
        (run,) = json.loads(Path("out.sarif").read_text())["runs"]
        return {
            result["partialFingerprints"]["compactctl/v1"] for result in run["results"] if result["level"] == "warning"
        }

    before = fingerprints()
    path = Path("s.jsonl")
    path.write_bytes(b"\n" + path.read_bytes().removesuffix(b'{"role": "us') + lines(user("More.")))
    assert fingerprints() == before != set()
