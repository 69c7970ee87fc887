"""What an audit found earlier, kept in a file, and which findings of now it has.

Two cases, told apart by the session. One that is in the baseline is compared finding by finding: a finding is known
where its fingerprint is there. One that is not, as where each run makes new transcripts, shares what the sessions that
are gone had: so many findings of a rule as they had together are known, and a gate that is not passed is known where
one of them was no better.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec import UNSET, Struct

from compactctl import __version__
from compactctl.audit import GATES, exit_code, key_of
from compactctl.errors import UsageError
from compactctl.options import Audit
from compactctl.outcome import Figures, FindingNote, Outcome

SCHEMA = "compactctl.baseline/1"

LARGEST_FILE_BYTES = 1 << 28


class Known(Struct, frozen=True):
    """One session as it was: its findings by fingerprint and by rule, and the figures of the gates."""

    session: str
    findings: dict[str, int]
    rules: dict[str, int]
    figures: Figures


class Baseline(Struct, frozen=True):
    schema: str
    version: str
    sessions: tuple[Known, ...]


def read(path: str) -> Baseline:
    """Return the baseline in a file. Raises UsageError where there is none."""
    try:
        with open(path, "rb") as source:
            raw = source.read(LARGEST_FILE_BYTES + 1)
        if len(raw) > LARGEST_FILE_BYTES:
            raise UsageError(f"--baseline {path}: too large to be one")
        made = msgspec.json.decode(raw, type=Baseline)
    except OSError as error:
        raise UsageError(f"--baseline {path}: {error.strerror or error}; --write-baseline makes one") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError(f"--baseline {path}: no baseline; --write-baseline makes one") from None
    if made.schema != SCHEMA:
        raise UsageError(f"--baseline {path}: {made.schema[:80]} is not {SCHEMA}, which this version reads")
    return made


def dumped(outcomes: Iterable[Outcome]) -> bytes:
    """Return the file for what was found, in order of the sessions' names, so that a diff of two files says much."""
    sessions = sorted((_known(made) for made in outcomes if made.audit is not UNSET), key=lambda known: known.session)
    raw = msgspec.json.encode(Baseline(SCHEMA, __version__, tuple(sessions)))
    return msgspec.json.format(raw, indent=1) + b"\n"


def _known(made: Outcome) -> Known:
    assert made.audit is not UNSET
    fingerprints = Counter(str(finding.fingerprint) for finding in made.findings)
    rules = Counter(finding.rule for finding in made.findings)
    return Known(key_of(made), dict(sorted(fingerprints.items())), dict(sorted(rules.items())), made.audit.figures)


def compare(outcomes: Sequence[Outcome], baseline: Baseline, asked: Audit) -> None:
    """Mark in each outcome the findings that the baseline has, and set its exit code by the others."""
    left = _Left(baseline, {key_of(made) for made in outcomes})
    for made in outcomes:
        if made.audit is not UNSET:
            known = [left.has(finding, key_of(made), made.audit.figures) for finding in made.findings]
            marked = zip(made.findings, known, strict=True)
            made.findings = tuple(msgspec.structs.replace(finding, known=is_known) for finding, is_known in marked)
            made.exit_code = exit_code(made.findings, asked)


class _Left:
    """What a baseline has that no finding of now was matched with yet."""

    def __init__(self, baseline: Baseline, present: Collection[str]) -> None:
        self._own_figures: dict[str, list[Figures]] = {}
        self._fingerprints = Counter[str]()
        self._shared_rules = Counter[str]()
        self._shared_figures: list[Figures] = []
        for known in baseline.sessions:
            self._own_figures.setdefault(known.session, []).append(known.figures)
            self._fingerprints.update(known.findings)
            if known.session not in present:
                self._shared_rules.update(known.rules)
                self._shared_figures.append(known.figures)

    def has(self, finding: FindingNote, session: str, figures: Figures) -> bool:
        """Return whether the baseline has a finding of a session, and take it."""
        if finding.rule in _FIGURE:
            name = _FIGURE[finding.rule]
            before = self._own_figures.get(session, self._shared_figures)
            worst = [value for each in before if (value := getattr(each, name)) is not None]
            return bool(worst) and bool(getattr(figures, name) <= max(worst))
        if session in self._own_figures:
            return _take(self._fingerprints, str(finding.fingerprint))
        return _take(self._shared_rules, finding.rule)


_FIGURE = {gate.rule: gate.figure for gate in GATES}
"""By the rule of a gate the figure that it compares."""


def _take(left: Counter[str], name: str) -> bool:
    """Return whether one of this name is left, and take it."""
    if left[name] <= 0:
        return False
    left[name] -= 1
    return True
