"""What became of a batch: the sums over its sessions, taken as they come, in the contract's JSON shape."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from compactctl import __version__
from compactctl.outcome import SEVERITIES, STATUSES, Bytes, Disk, Outcome, ScoresNote, WouldSpill, forecasts


class Totals(Struct, kw_only=True):
    """The batch in figures."""

    sessions: int
    status: dict[str, int]
    bytes: Bytes
    disk: Disk | UnsetType = UNSET
    """Only of an apply: all its sessions with what lies beside them."""
    tokens: dict[str, int]
    spills: int
    findings: dict[str, int]
    known: int | UnsetType = UNSET
    """(`audit`) findings that the baseline has."""
    not_sessions: int
    exit_codes: dict[str, int]
    exit_code: int
    accuracy: ScoresNote | UnsetType = UNSET


class Forecast(Struct):
    """What a lower limit would spill, over all sessions."""

    sessions: int = 0
    results: int = 0
    tokens_saved: int = 0


class Tally(Struct):
    """The sums over the outcomes of a batch, taken as they come, so that none of them has to be kept."""

    sessions: int = 0
    unread: int = 0
    """Those that were passed over without a look at what is in them."""
    spills: int = 0
    bytes: Bytes = Bytes(0, 0)
    disk: Disk | UnsetType = UNSET
    tokens_before: int = 0
    tokens_after: int = 0
    statuses: Counter[str] = msgspec.field(default_factory=Counter)
    formats: Counter[str] = msgspec.field(default_factory=Counter)
    exit_codes: Counter[int] = msgspec.field(default_factory=Counter)
    findings: Counter[str] = msgspec.field(default_factory=Counter)
    troubled: Counter[str] = msgspec.field(default_factory=Counter)
    """Sessions that have a finding of a severity."""
    known: int = 0
    """Findings that the baseline has."""
    forecasts: dict[int, Forecast] = msgspec.field(default_factory=dict)
    """By limit."""

    def add(self, outcome: Outcome) -> None:
        self.sessions += 1
        self.unread += outcome.status == "skipped" and outcome.layer2 is UNSET
        self.statuses[outcome.status] += 1
        self.formats[outcome.format or "unknown"] += 1
        self.exit_codes[outcome.exit_code] += 1
        severities = [finding.severity for finding in outcome.findings]
        self.findings.update(severities)
        self.troubled.update(set(severities))
        self.known += sum(finding.known is True for finding in outcome.findings)
        if outcome.tokens is not UNSET:
            self.tokens_before += outcome.tokens.before
            self.tokens_after += outcome.tokens.after
        if outcome.bytes is not UNSET and outcome.index in (UNSET, 0):  # a file that holds several counts once
            own, more = self.bytes, outcome.bytes
            self.bytes = Bytes(own.before + more.before, own.after + more.after, own.beside + more.beside)
        if outcome.disk is not UNSET:
            known = Disk(0, 0) if self.disk is UNSET else self.disk
            self.disk = Disk(known.before + outcome.disk.before, known.after + outcome.disk.after)
        if outcome.layer1 is not UNSET:
            self.spills += len(outcome.layer1.spills)
        for choice in forecasts(outcome):
            self._add_forecast(choice)

    def _add_forecast(self, choice: WouldSpill) -> None:
        total = self.forecasts.setdefault(choice.limit_bytes, Forecast())
        total.sessions += choice.results > 0
        total.results += choice.results
        total.tokens_saved += choice.tokens_saved


class Batch(Struct, kw_only=True):
    """What a command found out about all its inputs. `exit_code` is the highest met."""

    command: str
    outcomes: list[Outcome] = []
    """Those that nobody was given as they came."""
    not_sessions: list[str] = []
    """Files in folders that are no sessions; they do not touch the exit code."""
    problems: list[str] = []
    """Folders that could not be read, links that loop: said on standard error."""
    notes: list[str] = []
    """Which session an id stood for: said there, too."""
    exit_code: int = 0
    tally: Tally = msgspec.field(default_factory=Tally)
    accuracy: ScoresNote | UnsetType = UNSET

    @classmethod
    def of(cls, command: str, outcomes: Iterable[Outcome]) -> "Batch":
        """Return a batch of these outcomes, kept."""
        batch = cls(command=command)
        for outcome in outcomes:
            batch.tally.add(outcome)
            batch.outcomes.append(outcome)
        return batch

    def totals(self) -> Totals:
        """Return the sums over all outcomes."""
        tally = self.tally
        return Totals(
            sessions=tally.sessions,
            status={status: tally.statuses[status] for status in STATUSES},
            bytes=tally.bytes,
            disk=tally.disk,
            tokens={"before": tally.tokens_before, "after": tally.tokens_after},
            spills=tally.spills,
            findings={severity: tally.findings[severity] for severity in SEVERITIES},
            known=tally.known if self.command == "audit" else UNSET,
            not_sessions=len(self.not_sessions),
            exit_codes={str(code): count for code, count in sorted(tally.exit_codes.items())},
            exit_code=self.exit_code,
            accuracy=self.accuracy,
        )

    def document(self) -> dict[str, Any]:
        """Return the object that `-o json` prints."""
        return {
            "schema": f"compactctl.{self.command}/1",
            "version": __version__,
            "sessions": msgspec.to_builtins(self.outcomes),
            "totals": msgspec.to_builtins(self.totals()),
        }
