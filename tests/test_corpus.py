"""Real sessions, where they are there: spilled at the default limit and at a low one, verified and given back."""

import hashlib
import shutil

import pytest

from compactctl import run
from compactctl.options import Options
from compactctl.settings import Settings, with_changes
from tests.conftest import CORPUS_SESSIONS

NO_CORPUS = pytest.param(None, marks=pytest.mark.skip(reason="no corpus of real sessions beside the repository"))
LIMITS = {"default": [], "low": ["layer1.single_limit_bytes=2000", "layer1.round_limit_bytes=8000"]}


@pytest.mark.corpus
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(
    "path", CORPUS_SESSIONS or [NO_CORPUS], ids=lambda path: path and f"{path.parent.name}/{path.name[:24]}"
)
def test_a_real_session_is_spilled_verified_and_given_back_to_the_byte(path, limits, tmp_path):
    copied = tmp_path / path.name
    shutil.copy(path, copied)
    source = hashlib.sha256(copied.read_bytes()).hexdigest()
    batch = run.spill([str(copied)], Options(apply=True, settings=with_changes(Settings(), LIMITS[limits])))
    if batch.exit_code == 3:
        assert [outcome.error.code for outcome in batch.outcomes] == ["unknown_format"]
        return
    assert batch.exit_code == 0, batch.outcomes[0].error
    if all(outcome.status == "unchanged" for outcome in batch.outcomes):
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
        return
    checked = run.verify([str(tmp_path)], Options())
    assert checked.exit_code == 0, checked.outcomes[0].notes
    assert hashlib.sha256(copied.read_bytes()).hexdigest() == source
    copied.unlink()
    assert run.restore([str(tmp_path)], Options(apply=True)).exit_code == 0
    [restored] = tmp_path.glob("*.restored.jsonl")
    assert hashlib.sha256(restored.read_bytes()).hexdigest() == source
