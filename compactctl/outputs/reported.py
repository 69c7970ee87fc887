"""What the outputs for CI have in common: where a session lies in its repository, what is told of each.

A path that is told to a machine is the path itself, escaped as its format asks; text beside it is made safe to print.
"""

import os
from urllib.parse import quote

from msgspec import UNSET, Struct

from compactctl.outcome import SEVERITIES, FindingNote, Outcome
from compactctl.outputs import words
from compactctl.outputs.safe import visible

STANDARD_INPUT = "-"


class Told(Struct, frozen=True):
    """One thing to tell: a finding, or why a file could not be read."""

    rule: str
    severity: str
    line: int | None
    message: str
    is_known: bool | None = None
    """Whether a baseline has it; None without one."""
    fingerprint: str = ""
    is_failure: bool = False
    """It is no finding: the file could not be read."""


def told(outcome: Outcome) -> list[Told]:
    """Return what there is to tell of one outcome, what failed first; texts are safe to print."""
    found = [_finding(finding) for finding in outcome.findings]
    if outcome.error is None:
        return found
    message = visible(outcome.error.message.removeprefix(f"{outcome.path}: "))
    return [Told(visible(outcome.error.code), outcome.error_severity, None, message, is_failure=True), *found]


def mended(outcome: Outcome) -> list[Told]:
    """Return each edit of `audit --fix`, as notes under the rules that they mend; texts are safe to print."""
    return [
        Told(visible(rule), "note", line, f"{said}: {visible(text)}")
        for line, said, rule, text in words.mended(outcome)
    ]


def line(place: str, item: Told, severity: str) -> str:
    """Return what is told as a line, as compilers print it, its severity in these letters."""
    where = place if item.line is None else f"{place}:{item.line}"
    return f"{where}: {severity} {item.rule}: {item.message}{' (known)' if item.is_known else ''}"


def _finding(finding: FindingNote) -> Told:
    known = None if finding.known is UNSET else finding.known
    fingerprint = "" if finding.fingerprint is UNSET else finding.fingerprint
    return Told(visible(finding.rule), finding.severity, finding.line, visible(finding.message), known, fingerprint)


def fails(item: Told, fail_on: str) -> bool:
    """Return whether it is as bad as `--fail-on` says, and new; what could not be read always is."""
    if item.is_failure:
        return item.severity == "error"
    if item.is_known or fail_on not in SEVERITIES:
        return False
    return SEVERITIES.index(item.severity) <= SEVERITIES.index(fail_on)


def relative(path: str, root: str) -> str | None:
    """Return a path as seen from a folder, with slashes; None for one that lies outside, and for standard input."""
    if path == STANDARD_INPUT or not root:
        return None
    folder, name = os.path.split(os.path.abspath(path))
    try:
        whole, top = os.path.join(os.path.realpath(folder), name), os.path.realpath(root)
        inside = os.path.commonpath([whole, top]) == top
    except ValueError:  # another drive, or no name that a file can have
        return None
    return os.path.relpath(whole, top).replace(os.sep, "/") if inside else None


def uri(path: str) -> str:
    """Return a path as (part of) a URI: bytes that are no plain letters are written as %XX."""
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raw = path.encode("utf-8", "surrogatepass")
    return quote(raw, safe="/")
