"""The audit of one file: what reading found, what the checks find, and whether that makes it fail.

The promise: it reads, and says of a secret its kind, its place and a fingerprint, never its value.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import msgspec
from msgspec import Struct

from compactctl import views
from compactctl.checks import CHECKS, loss
from compactctl.checks.interface import Subject
from compactctl.checks.usage import estimator_errors, median_error_percent
from compactctl.document import Document
from compactctl.errors import UsageError
from compactctl.findings import BY_GROUP, GROUPS, RULES, Finding, sort
from compactctl.model import Transcript
from compactctl.options import Audit, Options
from compactctl.outcome import SEVERITIES, AuditNote, Figures, FindingNote, Outcome
from compactctl.session import Session
from compactctl.settings import Settings

OFF = "off"

FAILING_EXIT_CODE = 1

FINGERPRINT_CHARACTERS = 32


def audit(session: Session, options: Options) -> list[Outcome]:
    """Return what is found in each session of a file. Its exit code says whether that is bad enough to fail."""
    outcomes = []
    wanted = wanted_rules(options.audit, options.settings)
    for transcript in session.read.transcripts:
        sized = views.size(session, transcript, options)
        made = views.outcome(session, sized, options)
        losses = _losses(session, transcript, options) if wanted.intersection(loss.RULES) else loss.Losses()
        subject = Subject(session, sized, options, transcript is session.read.transcripts[0], losses.found)
        made.audit = AuditNote(figures(subject), tuple(map(loss.note, losses.found)), losses.left_out)
        found = [*session.read.findings_of(transcript), *sized.measured.findings, *_checked(subject, wanted)]
        kept = [*(f for f in found if f.rule in wanted), *broken_gates(made.audit.figures, options.audit)]
        made.findings = _judged(kept, made, session.document, options.settings)
        made.exit_code = exit_code(made.findings, options.audit)
        outcomes.append(made)
    return outcomes


def _losses(session: Session, transcript: Transcript, options: Options) -> loss.Losses:
    return loss.losses(session, transcript, options.settings.audit.loss_read_bytes)


def with_empty_file(made: Outcome, options: Options) -> Outcome:
    """Return the outcome of a file of no bytes with the finding that it is one."""
    if "empty-file" in wanted_rules(options.audit, options.settings):
        made.findings = _judged([Finding(None, "empty-file", "no bytes in it")], made, None, options.settings)
        made.exit_code = max(made.exit_code, exit_code(made.findings, options.audit))
    return made


def _checked(subject: Subject, wanted: Collection[str]) -> Iterator[Finding]:
    for check in CHECKS:
        if any(rule in wanted for rule in check.rules):
            yield from check.find(subject)


# which rules -------------------------------------------------------------------------------------


def wanted_rules(asked: Audit, settings: Settings) -> frozenset[str]:
    """Return the rules that are looked at, gates apart. Raises UsageError for a name that is no rule and no group."""
    selected = _named(asked.selected, "--select") if asked.selected else set(RULES)
    ignored = _named(asked.ignored, "--ignore")
    off = {rule for rule, severity in settings.audit.severity.items() if severity == OFF}
    if not asked.secrets:
        ignored |= set(BY_GROUP["secrets"])
    return frozenset(rule for rule in selected - ignored - off if GROUPS[rule] != "gates")


def _named(names: Iterable[str], option: str) -> set[str]:
    rules: set[str] = set()
    for name in names:
        if name in RULES:
            rules.add(name)
        elif name in BY_GROUP:
            rules |= {rule for rule, group in GROUPS.items() if group == name}
        else:
            raise UsageError(
                f"{option} {name}: no rule and no group of rules{_near(name)}; compactctl rules lists them"
            )
    return rules


def _near(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, [*RULES, *BY_GROUP], n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


# the gates ---------------------------------------------------------------------------------------


def figures(subject: Subject) -> Figures:
    """Return the figures that gates compare."""
    transcript, measured = subject.sized.transcript, subject.sized.measured
    peak = max(transcript.peak_tokens, measured.tokens)
    window = measured.window.tokens
    sizes = [item.result.size_bytes for item in subject.sized.paired.results]
    sizes += [result.size_bytes for result in transcript.outside]
    return Figures(
        peak_tokens=peak,
        context_percent=round(100 * peak / window, 1) if window else 0.0,
        compactions=len(transcript.compactions),
        largest_result_bytes=max(sizes, default=0),
        estimator_error_percent=median_error_percent(estimator_errors(subject)),
    )


class Gate(Struct, frozen=True):
    """One gate: its rule, which member of `Figures` it compares, which member of the options is its limit."""

    rule: str
    figure: str
    limit: str
    words: str


GATES = (
    Gate("max-tokens", "peak_tokens", "max_tokens", "a context of {:,} tokens, and {:,} are allowed"),
    Gate("max-context", "context_percent", "max_context_percent", "{:g} % of the window, and {:g} % are allowed"),
    Gate("max-compactions", "compactions", "max_compactions", "{:,} compactions, and {:,} are allowed"),
    Gate("max-result-bytes", "largest_result_bytes", "max_result_bytes", "{:,} bytes in one result, {:,} are allowed"),
    Gate(
        "max-estimator-error",
        "estimator_error_percent",
        "max_estimator_error_percent",
        "estimates are off by {:g} %, and {:g} % are allowed",
    ),
)


def broken_gates(found: Figures, asked: Audit) -> Iterator[Finding]:
    """Yield the gates that the figures do not pass."""
    for gate in GATES:
        figure, limit = getattr(found, gate.figure), getattr(asked, gate.limit)
        if figure is not None and limit is not None and figure > limit:
            yield Finding(None, gate.rule, gate.words.format(figure, limit))


# what becomes of findings ------------------------------------------------------------------------


def _judged(
    found: Iterable[Finding], made: Outcome, document: Document | None, settings: Settings
) -> tuple[FindingNote, ...]:
    """Return findings as they stand in JSON, by the severity of the settings, each with its fingerprint."""
    session_key = key_of(made)
    seen: Counter[tuple[str, str]] = Counter()
    notes = []
    for finding in sort(found):
        severity = settings.audit.severity.get(finding.rule, finding.severity)
        if severity == OFF:
            continue
        place = _place(document, finding)
        seen[finding.rule, place] += 1
        fingerprint = _fingerprint(finding.rule, session_key, place, str(seen[finding.rule, place]))
        notes.append(FindingNote(finding.rule, severity, finding.line, finding.message, fingerprint))
    return tuple(notes)


def key_of(outcome: Outcome) -> str:
    """Return what a session is known by in a later run: its id, else its file's name."""
    name = outcome.path.replace("\\", "/").rpartition("/")[2]
    own = outcome.session_id or name
    return own if outcome.index is msgspec.UNSET else f"{own}#{outcome.index}"


class _Keyed(Struct):
    uuid: object = None
    id: object = None


_KEYED = msgspec.json.Decoder(_Keyed)


ONCE_A_SESSION = frozenset({"stale-usage", "repeated-usage", "placeholder-output"})
"""Rules that point at the newest or the first of many lines: what they find is known by the session alone."""


def _place(document: Document | None, finding: Finding) -> str:
    """Return what a finding's line is known by, wherever it stands: the id of its record, else a digest of its bytes.

    Empty where it is about the whole session.
    """
    line = finding.line
    if line is None or document is None or finding.rule in ONCE_A_SESSION:
        return ""
    record = document.record_at(line)
    if record is None:
        return f"line {line}"
    raw = document.raw(record)
    try:
        keyed = _KEYED.decode(raw)
    except msgspec.DecodeError:
        keyed = _Keyed()
    for key in (keyed.uuid, keyed.id):
        if isinstance(key, str) and key:
            return key
    return hashlib.sha256(raw).hexdigest()


def _fingerprint(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:FINGERPRINT_CHARACTERS]


def exit_code(findings: Iterable[FindingNote], asked: Audit) -> int:
    """Return 1 where a finding that is not known from the baseline is as bad as `--fail-on` says, else 0."""
    if asked.fail_on == "never":
        return 0
    failing = SEVERITIES[: SEVERITIES.index(asked.fail_on) + 1]
    is_bad = any(finding.severity in failing and finding.known is not True for finding in findings)
    return FAILING_EXIT_CODE if is_bad else 0
