"""What an audit found earlier, kept in a file, and which findings of now it has.

Two cases, told apart by the session. One that is in the baseline is compared finding by finding: a finding is known
where its fingerprint is there. One that is not, as where each run makes new transcripts, shares what the sessions that
are gone had: so many findings of a rule as they had together are known, and a gate that is not passed is known where
one of them was no better.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct

from compactctl import __version__
from compactctl.audit import GATES, exit_code, key_of
from compactctl.errors import UsageError
from compactctl.options import Audit
from compactctl.outcome import Figures, Outcome

SCHEMA = "compactctl.baseline/1"

LARGEST_FILE_BYTES = 1 << 30


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
        file = Path(path)
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise UsageError(f"--baseline {path}: too large to be one")
        made = msgspec.json.decode(file.read_bytes(), type=Baseline)
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
    present = {key_of(made) for made in outcomes}
    in_baseline = {known.session for known in baseline.sessions}
    gone = [known for known in baseline.sessions if known.session not in present]
    fingerprints = Counter[str]()
    for known in baseline.sessions:
        fingerprints.update(known.findings)
    shared = Counter[str]()
    for known in gone:
        shared.update(known.rules)
    for made in outcomes:
        if made.audit is UNSET:
            continue
        key = key_of(made)
        figures = [known.figures for known in baseline.sessions if known.session == key] or [g.figures for g in gone]
        worst = {gate.rule: _worst(figures, gate.figure) for gate in GATES}
        marked = []
        for finding in made.findings:
            if finding.rule in worst:
                gate = next(gate for gate in GATES if gate.rule == finding.rule)
                is_known = getattr(made.audit.figures, gate.figure) <= worst[finding.rule]
            elif key in in_baseline:
                is_known = _take(fingerprints, str(finding.fingerprint))
            else:
                is_known = _take(shared, finding.rule)
            marked.append(msgspec.structs.replace(finding, known=is_known))
        made.findings = tuple(marked)
        made.exit_code = exit_code(made.findings, asked)


def _worst(figures: Sequence[Figures], name: str) -> float:
    return max((value for each in figures if (value := getattr(each, name)) is not None), default=-1)


def _take(left: Counter[str], name: str) -> bool:
    """Return whether one of this name is left, and take it."""
    if left[name] <= 0:
        return False
    left[name] -= 1
    return True
