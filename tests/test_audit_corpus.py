"""Real sessions, where they are there: an error is told of none that is not damaged."""

from pathlib import Path

import pytest

from compactctl import run
from compactctl.options import Audit, Options
from tests.conftest import CORPUS

FILES = sorted(path for folder in ("claude-code", "codex", "pi") for path in (CORPUS / folder).glob("*.jsonl"))
WRITTEN_BY_AGENTS = sorted((CORPUS.parent / "clients" / "samples").rglob("*.jsonl"))
NO_CORPUS = pytest.param(None, marks=pytest.mark.skip(reason="no corpus of real sessions beside the repository"))

DAMAGED = {
    "074": {"glued-records"},  # two records on line 172
    "166": {"glued-records"},
    "169": {"glued-records"},
    "167": {"call-without-result"},  # the session was compacted before the call was answered
    # cut down by hand, as fixtures of other projects' tests
    "100": {"bad-call-id"},
    "102": {"call-without-result"},
    **{key: {"empty-session"} for key in ("124", "125", "126", "127")},
    **{key: {"empty-session", "missing-header"} for key in ("130", "131", "132")},
    **{key: {"result-without-call"} for key in ("170", "172", "173", "174")},
}
"""By the number of a file: the errors in it, each looked at by hand and found to be right."""


def errors(path: Path) -> set[str]:
    """Return the rules of errors in a file; nothing for one that is no session that is read."""
    batch = run.audit([str(path)], Options(audit=Audit()))
    return {finding.rule for made in batch.outcomes for finding in made.findings if finding.severity == "error"}


@pytest.mark.corpus
@pytest.mark.parametrize("path", FILES or [NO_CORPUS], ids=lambda path: path and f"{path.parent.name}/{path.name[:24]}")
def test_a_real_session_has_no_error_but_what_is_wrong_with_it(path):
    assert errors(path) == DAMAGED.get(path.name[:3], set())


@pytest.mark.corpus
@pytest.mark.parametrize("path", WRITTEN_BY_AGENTS or [NO_CORPUS], ids=lambda path: path and path.parent.name)
def test_a_session_that_its_agent_wrote_and_resumes_has_no_error(path):
    assert errors(path) == set()
