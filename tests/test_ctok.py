"""The estimator that counts Claude's texts exactly, where its package is there."""

import sys

import pytest

from compactctl import estimators, profiles
from compactctl.errors import NoEstimator
from compactctl.estimators import Subject, ctok
from compactctl.formats.claude_code import FORMAT
from compactctl.settings import Settings
from tests.builders.claude import Session


def test_ctok_counts_for_claude_only_and_says_what_is_missing(monkeypatch):
    with pytest.raises(NoEstimator, match="for Claude only, not for gpt-5"):
        estimators.get("ctok", Settings(), Subject(Session().document(), "gpt-5", "codex"))
    monkeypatch.setitem(sys.modules, "ctok", None)
    ctok.scale.cache_clear()
    with pytest.raises(NoEstimator, match=r"pip install 'compactctl\[claude\]'"):
        estimators.get("ctok", Settings(), Subject(Session().document(), "claude-opus-4-5", "claude-code"))


def test_ctok_counts_what_its_package_does_and_the_profiles_frames():
    pytest.importorskip("ctok", reason="ctok needs Python 3.12: pip install 'compactctl[claude]'")
    s = Session()
    s.user("Hello, world")
    document = s.document()
    [transcript] = FORMAT.read(document)
    estimator = estimators.get("ctok", Settings(), Subject(document, "claude-opus-4-5", "claude-code"))
    frame = next(f for f in profiles.shipped().families if f.name == "claude-3").frames.user
    assert list(estimator.each(transcript.messages)) == [pytest.approx(3 + frame)]
