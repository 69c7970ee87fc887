"""Calibration profiles: what a provider's model family makes of a text, as figures that were fitted on real sessions.

A family has a weight for every token of a tiktoken encoding (how many of its own tokens that comes to, on average),
scales on groups of tokens, and frames: the tokens that a provider adds around messages, calls and results. `spreads`
say how far estimates were off on sessions that the fit never saw.
"""

import math
import re
import sys
from array import array
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from compactctl.errors import UsageError, reason_of
from compactctl.model import ANTHROPIC_FORMATS

SCHEMA = "compactctl.profile/1"

LARGEST_FILE_BYTES = 1 << 24

ENCODINGS = ("o200k_base", "cl100k_base", "o200k_harmony")
"""What the weights of a family can be of."""

WEIGHT_ONE = 4096
"""What stands in a file of weights for one token."""


class Frames(Struct, frozen=True, kw_only=True):
    """The tokens that stand around what is said. Never negative, so that adding a message never makes it less."""

    user: float = 0.0
    """For each text of a person."""
    assistant: float = 0.0
    call: float = 0.0
    argument: float = 0.0
    """For each argument of a call, where they are counted one by one."""
    result: float = 0.0
    next_result: float = 0.0
    """For a result that follows another one directly."""
    error: float = 0.0
    """Besides, for a result that is an error."""
    reasoning: float = 0.0
    opaque: dict[str, float] = {}
    """For what we do not look into, by its kind: the words that an agent puts around an attachment."""


class Sealed(Struct, frozen=True):
    """What signed or encrypted reasoning costs: so many tokens for each byte beyond those that every seal has."""

    tokens_per_byte: float
    free_bytes: int

    def tokens(self, sealed_bytes: int) -> float:
        return self.tokens_per_byte * max(0, sealed_bytes - self.free_bytes)


LEAST_ERROR = -0.9
"""No spread is taken for wider below: an estimate of a tenth says nothing any more."""


class Spread(Struct, frozen=True):
    """How far an estimator was off: the p5 and p95 of its relative error on what was new in a context, where that was
    some thousand bytes and more, and of its error in tokens where it was less. Errors are positive where too much was
    estimated."""

    low: float
    high: float
    tokens_low: float
    tokens_high: float
    steps: int
    """How many steps these figures are of."""

    @property
    def least_share(self) -> float:
        """The least part of what is counted that an estimate is taken to be, in 95 of 100 cases."""
        return 1 + max(min(self.low, 0.0), LEAST_ERROR)


class HeldOut(Struct, frozen=True):
    """The error of a fit on sessions that it never saw, on steps of some thousand bytes and more."""

    model: str
    by: str
    """What was held out: `session` or `repository`."""
    n: int
    bias: float
    median: float
    p90: float


class Family(Struct, frozen=True, kw_only=True):
    """Models that share a tokenizer and a frame."""

    name: str
    models: str
    """A regular expression that finds their names."""
    encoding: str = "o200k_base"
    weights: str | None = None
    """The file of weights; None: each token of the encoding is one."""
    ctok: str | None = None
    """The version by which the package ctok counts its texts exactly; None: it does not know them."""
    values_alone: bool = False
    """Whether arguments are counted by name and value, as Claude is sent them, rather than as their JSON stands."""
    scales: dict[str, float] = {}
    """Factors on groups of tokens (see `group`); one that is not there is 1."""
    frames: Frames = Frames()
    sealed: Sealed | None = None
    """None: by the rule that every estimator has (`media.sealed_tokens`)."""
    spreads: dict[str, Spread] = {}
    """By estimator."""
    source: str = ""
    """What this was fitted on, in words."""
    held_out: tuple[HeldOut, ...] = ()


class Profile(Struct, frozen=True, kw_only=True):
    """Families in the order in which they are asked; the last one of a maker takes all of its models."""

    schema: str = SCHEMA
    name: str
    families: tuple[Family, ...]


class Match(Struct, frozen=True):
    """The family that a model is taken for, and in words where that was only the nearest."""

    family: Family
    assumed: str = ""


@cache
def shipped() -> Profile:
    """Return the profile that comes with the package."""
    return msgspec.json.decode(_data("profile.json"), type=Profile)


@cache
def read(path: str) -> Profile:
    """Return the profile in a file. Raises UsageError where it is none."""
    try:
        with open(path, "rb") as source:
            raw = source.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: the profile can't be read: {reason_of(error)}") from None
    if len(raw) > LARGEST_FILE_BYTES:
        raise UsageError(f"{path}: over {LARGEST_FILE_BYTES:,} bytes: no profile")
    try:
        found = msgspec.json.decode(raw, type=Profile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not a profile: {error}") from None
    if found.schema != SCHEMA:
        raise UsageError(f"{path}: not a profile of schema {SCHEMA}")
    if not found.families:
        raise UsageError(f"{path}: no family in it")
    for family in found.families:
        _require_sound(path, family)
    return found


def of(path: str | None) -> Profile:
    """Return the profile in a file; the one that comes with the package where there is none."""
    return shipped() if path is None else read(path)


def _require_sound(path: str, family: Family) -> None:
    try:
        re.compile(family.models)
    except re.error as error:
        raise UsageError(f"{path}: {family.name}: models: {error}") from None
    if family.weights is not None and family.weights not in (known.weights for known in shipped().families):
        raise UsageError(f"{path}: {family.name}: no weights named {family.weights} come with this version")
    own = next((known.encoding for known in shipped().families if known.weights == family.weights), None)
    if family.encoding not in ENCODINGS or (family.weights is not None and family.encoding != own):
        known = own if family.weights is not None else ", ".join(ENCODINGS)
        raise UsageError(f"{path}: {family.name}: the encoding {family.encoding} is not {known}")
    frames = msgspec.structs.asdict(family.frames)
    figures = [*family.scales.values(), *frames.pop("opaque").values(), *frames.values()]
    figures += msgspec.structs.astuple(family.sealed) if family.sealed else ()
    if any(not 0 <= figure < 1e6 for figure in figures):
        raise UsageError(f"{path}: {family.name}: a scale or frame below 0, or beyond all sense")
    if any(abs(figure) > 1e9 for spread in family.spreads.values() for figure in msgspec.structs.astuple(spread)):
        raise UsageError(f"{path}: {family.name}: a spread beyond all sense")


def match(profile: Profile, model: str | None, format_name: str | None) -> Match:
    """Return the family of a model; the nearest one, said so, where none knows it."""
    name = (model or "").lower()
    for family in profile.families:
        if name and re.search(family.models, name):
            return Match(family)
    if not profile.families:
        raise UsageError(f"profile {profile.name}: no family in it")
    is_anthropic = "claude" in name or (not name and format_name in ANTHROPIC_FORMATS)
    own = [family for family in profile.families if ("claude" in family.name) == is_anthropic]
    nearest = (own or list(profile.families))[-1]
    return Match(nearest, f"no family for {model or 'a session that names no model'}: counted as {nearest.name}")


def known(profile: Profile, model: str | None) -> Family | None:
    """Return the family that a model is of; None where no family knows it."""
    found = match(profile, model, None) if model and profile.families else None
    return None if found is None or found.assumed else found.family


def weights(family: Family) -> "array[int] | None":
    """Return the weight of each token by its rank, in `WEIGHT_ONE`ths; None where each is one token."""
    return None if family.weights is None else _weights(family.weights)


@cache
def _weights(name: str) -> "array[int]":
    import gzip  # most runs weigh no token

    found = array("H", gzip.decompress(_data(f"{name}.weights.gz")))
    if sys.byteorder == "big":
        found.byteswap()
    return found


def _data(name: str) -> bytes:
    return Path(__file__).with_name("data").joinpath(name).read_bytes()


# groups of tokens --------------------------------------------------------------------------------

GROUPS = ("words", "cased", "digits", "signs", "blanks", "beyond-ascii")
"""What `scales` may be on."""


def group(token: bytes) -> str:
    """Return the group of a token of the encoding."""
    if not token.isascii():
        return "beyond-ascii"
    text = token.strip()
    if not text:
        return "blanks"
    if text.isdigit():
        return "digits"
    if not any(65 <= byte <= 90 or 97 <= byte <= 122 for byte in text):
        return "signs"
    return "words" if text == text.lower() else "cased"


# how far estimates are off -----------------------------------------------------------------------


def upper_factor(profile: Profile, model: str | None, estimator: str) -> float:
    """Return by what an estimate has to be multiplied to hold what a model counts, in 95 of 100 cases.

    1 where no family knows the model. A request sized by a foreign tokenizer may be 1.6 times too long
    (mindroom-ai/mindroom#1575).
    """
    family = known(profile, model)
    found = family.spreads.get(estimator) if family else None
    return 1.0 if found is None else 1 / found.least_share


class Interval(Struct, frozen=True):
    """The tokens that are between p5 and p95, by the errors on sessions that no fit saw."""

    low: int
    high: int


def interval(known: int, estimated: float, spread: Spread) -> Interval:
    """Return the interval of a context of which `known` tokens were counted and the rest is estimated."""
    if estimated <= 0:
        return Interval(known, known)
    low = min(estimated / (1 + max(spread.high, 0.0)), estimated - max(spread.tokens_high, 0.0))
    high = max(estimated / spread.least_share, estimated - min(spread.tokens_low, 0.0))
    return Interval(known + max(0, int(low)), known + math.ceil(high))
