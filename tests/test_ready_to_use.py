"""The jobs and the hook of the README: what they run is run here, on the sample sessions."""

import json
import re
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.scripts.readme import ROOT, playground

YAML = dict(
    re.findall(
        r"^```yaml\n# (\S+)\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
)
"""The files that the README shows, by name."""

INSTALL = "pip install ."


@pytest.fixture
def repository(tmp_path):
    """Return a git repository with the sample sessions in it, and the environment of a job there."""
    environment = playground(tmp_path)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True, env=environment)
    return tmp_path, environment


def run(command: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        shlex.split(command, comments=True), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_github_job_annotates_summarises_and_saves_what_it_uploads(repository):
    folder, environment = repository
    workflow = YAML[".github/workflows/transcripts.yml"]
    install, audit = re.findall(r"- run: (.*)", workflow)
    summary = folder / "summary.md"
    done = run(audit, folder, {**environment, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)})
    uploaded = re.search(r"sarif_file: (\S+)", workflow)[1]
    (log,) = json.loads((folder / uploaded).read_text())["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in log["results"]]
    errors = [line for line in done.stderr.splitlines() if line.startswith("::error ")]
    assert install.startswith(INSTALL)
    assert done.returncode == 1
    assert {place["artifactLocation"]["uri"] for place in places} >= {"sample_sessions/damaged.jsonl"}
    assert all(place["artifactLocation"]["uriBaseId"] == "%SRCROOT%" for place in places)
    assert [re.search(r"file=([^,]+),", line)[1] for line in errors] == ["sample_sessions/damaged.jsonl"] * 2
    assert "`sample_sessions/damaged.jsonl:4`" in summary.read_text()


def test_the_gitlab_job_writes_the_reports_it_keeps(repository):
    folder, environment = repository
    job = YAML[".gitlab-ci.yml"]
    install, audit = re.findall(r"^    - (.*)", job, re.MULTILINE)
    done = run(audit, folder, {**environment, "GITLAB_CI": "true"})
    issues = json.loads((folder / re.search(r"codequality: (\S+)", job)[1]).read_text())
    tree = ElementTree.parse(folder / re.search(r"junit: (\S+)", job)[1]).getroot()
    assert (install, done.returncode, done.stderr) == (INSTALL, 1, "")
    assert [issue["location"] for issue in issues if issue["severity"] == "critical"] == [
        {"path": "sample_sessions/damaged.jsonl", "lines": {"begin": 2}},
        {"path": "sample_sessions/damaged.jsonl", "lines": {"begin": 4}},
    ]
    assert tree.get("failures") == "2"


def test_the_hook_audits_the_files_that_a_commit_changes(repository):
    folder, environment = repository
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    config = YAML[".pre-commit-config.yaml"]
    assert re.search(r"- id: (\S+)", config)[1] == re.search(r"- id: (\S+)", hook)[1]
    entry = re.search(r"entry: (.*)", hook)[1]
    arguments = re.search(r"args: \[(.*)\]", config)[1].replace(",", "")
    files = [str(path.relative_to(folder)) for path in sorted((folder / "sample_sessions").rglob("*"))]
    changed = [file for file in files if re.search(re.search(r"files: (.*)", config)[1], file)]
    usual = re.search(r"files: '(.*)'", hook)[1]
    assert "sample_sessions/damaged.jsonl" in changed
    assert [file for file in changed if not re.search(usual, file)] == []
    bad = run(f"{entry} {arguments} {shlex.join(changed)}", folder, environment)
    good = run(f"{entry} {arguments} sample_sessions/chat.jsonl", folder, environment)
    assert (bad.returncode, good.returncode) == (1, 0)
    assert "sample_sessions/damaged.jsonl:4: error torn-tail" in bad.stdout
