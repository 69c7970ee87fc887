"""Which results move to files, and why: the described system's Layer 1 by the contract's rules of counting.

Pure: the texts come through a function, the file names from `SpillNames`, failures from an earlier attempt.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct

from compactctl.document import Place
from compactctl.model import Message, ToolResult
from compactctl.plan import KEPT_UNDER_LIMITS, Plan, Spill, SpillReason
from compactctl.preview import make_preview
from compactctl.settings import Layer1
from compactctl.spill_names import SpillNames
from compactctl.turns import Paired, Pairs, pairs

KEPT_FOR_ITS_PREVIEW = "its preview would not be smaller"
"""The reason of a keep that binds a later run where previews are made alike, too: how long a path is may differ."""

STARTS_CHARACTERS = 200
"""How much of a spilled text a plan keeps to show to people."""

DecisionKey = tuple[str, str]
"""Exchange and call id."""


class Decided(Struct, frozen=True):
    """What an earlier run decided about one result. Hashes are of texts, "" where there is none."""

    replaced: bool
    sha256: str = ""
    preview_sha256: str = ""
    reason: SpillReason = "single"
    kept: str = KEPT_UNDER_LIMITS
    """Why it was kept, if it was."""


_JUST_KEPT = (Decided(False),)
"""What nearly all earlier decisions are."""

Ledger = Mapping[DecisionKey, Sequence[Decided]]
"""Earlier decisions: more than one where an exchange has two results of one call id. Keeps are in it only where the
limits were the same; replaces always."""


class Texts(Struct, frozen=True):
    """How the policy gets at what it does not hold: a result's text, and the path of a spill file by its name."""

    text: Callable[[ToolResult], str]
    path: Callable[[str], str]
    style: str
    """`seed` or `native`."""


class Target(Struct, frozen=True):
    """What the context is to be brought down to, beyond the limits, and how to tell where it stands."""

    tokens: int
    tokens_after: Callable[[Collection[Spill]], int]
    """The context's tokens once these spills are made, exactly."""
    bytes_per_token: float
    """Roughly what a token takes, to know when an exact figure is worth its cost."""
    may_spill: Callable[[ToolResult], bool] = lambda result: True
    """Which results may be spilled for it."""


def make_plan(
    messages: tuple[Message, ...],
    settings: Layer1,
    ledger: Ledger,
    texts: Texts,
    names: SpillNames,
    failed: Collection[DecisionKey] = (),
    target: Target | None = None,
    found: Pairs | None = None,
) -> Plan:
    """Return a decision for every result of the context.

    First each result over the single limit, then each round over its limit, largest first; then, where there is
    a target, further over the whole context, largest first, until it is not above it. `failed` are results whose
    spill was tried and did not work: they stay, and count in their round. `found` is what `pairs` says of the
    messages, where that is known already.
    """
    maker = _Maker(settings, ledger, texts, names, failed)
    found = found or pairs(messages)
    paired = found.results
    for item in paired:
        if ledger or item.result.is_preview or item.result.size_bytes > settings.single_limit_bytes:
            maker.consider_single(item)
    for turn in found.rounds:
        maker.consider_round(turn.results)
    if target is not None:
        maker.consider_target(paired, target)
    return maker.plan(paired)


def _key(item: Paired) -> DecisionKey:
    return item.exchange, item.result.call_id


class Forecast(Struct, frozen=True):
    """What a lower limit would do, by sizes alone: how many results, and their bytes."""

    results: int
    size_bytes: int


def forecasts(paired: Pairs, settings: Layer1, limits_bytes: Sequence[int]) -> list[Forecast]:
    """Return what Layer 1 would spill at each of these single-result limits.

    Told from sizes alone: no text is read, no earlier decision honoured.
    """
    results = [item.result for item in paired.results if not item.result.is_preview]
    rounds = [[item.result for item in turn.results if not item.result.is_preview] for turn in paired.rounds]
    large = [answers for answers in rounds if _total_bytes(answers) > settings.round_limit_bytes]
    return [_forecast(results, large, limit, settings.round_limit_bytes) for limit in limits_bytes]


def _total_bytes(results: Iterable[ToolResult]) -> int:
    return sum(result.size_bytes for result in results)


def _forecast(
    results: list[ToolResult], in_rounds: list[list[ToolResult]], single_limit: int, round_limit: int
) -> Forecast:
    chosen = {result.place: result.size_bytes for result in results if result.size_bytes > single_limit}
    for answers in in_rounds:
        total = _total_bytes(result for result in answers if result.place not in chosen)
        for result in sorted(answers, key=lambda result: -result.size_bytes):
            if result.place not in chosen and total > round_limit:
                chosen[result.place] = result.size_bytes
                total -= result.size_bytes
    return Forecast(len(chosen), sum(chosen.values()))


class _Maker:
    """The state of one planning: what is chosen so far, and why the rest stays."""

    def __init__(
        self,
        settings: Layer1,
        ledger: Ledger,
        texts: Texts,
        names: SpillNames,
        failed: Collection[DecisionKey],
    ) -> None:
        self.spills: dict[Place, Spill] = {}
        self._reasons: dict[Place, str] = {}
        self._unbound: set[Place] = set()
        """Results that an earlier run replaced, so that no keep is about them."""
        self._previews: set[Place] = set()
        self._settings = settings
        self._ledger = ledger
        self._texts = texts
        self._names = names
        self._failed = failed

    def plan(self, paired: Sequence[Paired]) -> Plan:
        """Return what was decided of every result."""
        if not self.spills:
            return Plan((), tuple(paired), self._reasons)
        spills = tuple(self.spills[item.result.place] for item in paired if item.result.place in self.spills)
        keeps = tuple(item for item in paired if item.result.place not in self.spills)
        return Plan(spills, keeps, self._reasons)

    def consider_single(self, item: Paired) -> None:
        result = item.result
        if result.is_preview:
            self._set_aside(result, "already spilled")
            return
        decisions = self._ledger.get(_key(item)) if self._ledger else None
        if decisions and self._is_honoured(item, decisions):
            return
        if result.size_bytes > self._settings.single_limit_bytes:
            self._try(item, "single", 0)

    def _is_honoured(self, item: Paired, decisions: Sequence[Decided]) -> bool:
        """Act on an earlier decision; return False where all are about other texts."""
        if decisions == _JUST_KEPT:
            return True
        replaced = [decided for decided in decisions if decided.replaced]
        digest = _sha256(self._texts.text(item.result)) if replaced else ""
        for decided in replaced:
            if digest == decided.preview_sha256:
                self._set_aside(item.result, "already spilled")
                return True
            if digest == decided.sha256:
                self._unbound.add(item.result.place)
                self._try(item, decided.reason, 0)
                return True
        kept = next((decided.kept for decided in decisions if not decided.replaced), None)
        if kept is None:
            return False
        if kept != KEPT_UNDER_LIMITS:
            self._reasons[item.result.place] = kept
        return True

    def _is_bound(self, item: Paired) -> bool:
        """Return whether an earlier run decided to keep a result."""
        decisions = self._ledger.get(_key(item), ())
        return item.result.place not in self._unbound and any(not decided.replaced for decided in decisions)

    def _set_aside(self, result: ToolResult, reason: str) -> None:
        self._reasons[result.place] = reason
        self._previews.add(result.place)

    def consider_round(self, results: tuple[Paired, ...]) -> None:
        size_bytes = 0
        for item in results:
            size_bytes += item.result.size_bytes
        if size_bytes <= self._settings.round_limit_bytes:
            return
        open_items = [
            item for item in results if item.result.place not in self.spills and item.result.place not in self._previews
        ]
        total = _total_bytes(item.result for item in open_items)
        for item in sorted(open_items, key=lambda item: -item.result.size_bytes):
            if total <= self._settings.round_limit_bytes:
                return
            if self._is_bound(item):
                continue
            if self._try(item, "round", total):
                total -= item.result.size_bytes

    def consider_target(self, paired: list[Paired], target: Target) -> None:
        """Spill on, whatever an earlier run kept, until the target is met or nothing is left that would help."""
        tokens = target.tokens_after(self.spills.values())
        saved_bytes = 0
        for item in sorted(paired, key=lambda item: -item.result.size_bytes):
            if tokens - saved_bytes / target.bytes_per_token <= target.tokens:
                tokens, saved_bytes = target.tokens_after(self.spills.values()), 0
                if tokens <= target.tokens:
                    return
            place = item.result.place
            if place in self.spills or place in self._previews or not target.may_spill(item.result):
                continue
            if self._try(item, "target", 0):
                saved_bytes += item.result.size_bytes - len(self.spills[place].preview.encode())

    def _try(self, item: Paired, reason: SpillReason, round_bytes: int) -> bool:
        """Plan one spill; return False, with the reason noted, where it failed before or would save nothing."""
        result = item.result
        if _key(item) in self._failed:
            self._reasons[result.place] = "its spill failed"
            return False
        text = self._texts.text(result)
        encoded = text.encode()
        digest, size_bytes = sha256(encoded).hexdigest(), len(encoded)
        name = self._names.assign(result.call_id, digest)
        preview = make_preview(text, size_bytes, self._texts.path(name), self._texts.style, self._settings)
        if len(preview.encode()) >= size_bytes:
            self._reasons[result.place] = KEPT_FOR_ITS_PREVIEW
            return False
        self.spills[result.place] = Spill(
            result, item.exchange, item.line, reason, round_bytes, digest, name, preview, text[:STARTS_CHARACTERS]
        )
        return True


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()
