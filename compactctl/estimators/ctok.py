"""Claude's tokens as the package ctok counts them offline, with the frames of a calibration profile.

ctok rebuilds the counts of Anthropic's own tokenizers, exactly on nearly every text, at about half a megabyte a second.
It is an extra (`pip install 'compactctl[claude]'`) and needs Python 3.12.
"""

from functools import cache

from compactctl import profiles
from compactctl.errors import NoEstimator
from compactctl.estimators.calibrated import Calibrated, Scale
from compactctl.estimators.heuristic import media_rule
from compactctl.estimators.interface import Subject
from compactctl.estimators.remembered import Remembered
from compactctl.settings import Settings

NAME = "ctok"


@cache
def scale(version: str) -> Scale:
    """Return what texts come to in one of ctok's vocabularies. Raises NoEstimator where it is not installed."""
    try:
        from ctok import token_count
    except ImportError:
        raise NoEstimator("ctok is not installed: pip install 'compactctl[claude]' (Python 3.12 or newer)") from None
    frame = token_count("a", version) - 1

    def counted(text: str) -> float | None:
        return float(token_count(text.encode("utf-8", "replace").decode(), version) - frame)

    return Remembered(counted)


def make(settings: Settings, subject: Subject, _: str) -> Calibrated:
    """Return the estimator for a session of a Claude model. Raises NoEstimator for any other, and without ctok."""
    profile = profiles.of(settings.estimator.profile)
    found = profiles.match(profile, subject.model, subject.format)
    version = found.family.ctok
    if version is None:
        raise NoEstimator(f"ctok counts for Claude only, not for {subject.model or 'a session that names no model'}")
    ratio = float(settings.estimator.bytes_per_token)
    return Calibrated(found, scale(version), subject.document, ratio, media_rule(settings, subject.model), NAME)
