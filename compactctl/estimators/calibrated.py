"""Tokens by a calibration profile: each token of an encoding by what the model's family makes of it, and frames.

What is counted of a message is in `framing`; what the figures are, and how they were found, in `profiles`.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import msgspec

from compactctl import profiles
from compactctl.document import Document
from compactctl.errors import UsageError
from compactctl.estimators import encodings
from compactctl.estimators.bound import Bound
from compactctl.estimators.encodings import Tokenizer
from compactctl.estimators.heuristic import media_rule, media_tokens, tokens_beside
from compactctl.estimators.interface import Subject
from compactctl.estimators.remembered import Remembered
from compactctl.framing import OPAQUE, framed, said
from compactctl.media import Rule
from compactctl.model import Message, Part, Reasoning
from compactctl.profiles import WEIGHT_ONE, Family, Match, Profile
from compactctl.settings import Settings

NAME = "calibrated"

Scale = Remembered[float | None]
"""What texts come to in one family; None where the tokenizer gives no tokens."""


def _scale(family: Family) -> Scale:
    tokenizer = encodings.bundled(family.encoding)
    worth = _worth(tokenizer, family)

    def weighed(text: str) -> float | None:
        total = 0.0
        for ids in tokenizer.encoded(text):
            if ids is None:
                return None
            total += len(ids) if worth is None else sum(map(worth, ids))
        return total

    return Remembered(weighed)


def _worth(tokenizer: Tokenizer, family: Family) -> Callable[[int], float] | None:
    """Return what gives the worth of a token; None where each is one."""
    found = profiles.weights(family)
    scales = {name: scale for name, scale in family.scales.items() if scale != 1}
    if found is None and not scales:
        return None
    if not scales and found is not None:
        return [weight / WEIGHT_ONE for weight in found].__getitem__
    weights = None if found is None else list(found)

    class Worths(dict[int, float]):
        def __missing__(self, token: int) -> float:
            own = 1.0 if weights is None else weights[token] / WEIGHT_ONE
            self[token] = worth = own * scales.get(profiles.group(tokenizer.token(token)), 1.0)
            return worth

    return Worths().__getitem__


_SCALES: dict[bytes, Scale] = {}
"""By what they depend on, as JSON; shared by all sessions of a process."""


def scale(family: Family) -> Scale:
    """Return what texts come to in a family."""
    key = msgspec.json.encode((family.encoding, family.weights, family.scales))
    if key not in _SCALES:
        _SCALES[key] = _scale(family)
    return _SCALES[key]


class Calibrated(Bound):
    """The estimator with one family of a profile, bound to one document."""

    def __init__(
        self, match: Match, scale: Scale, document: Document, bytes_per_token: float, rule: Rule, kind: str = NAME
    ) -> None:
        family = match.family
        assumed = (match.assumed,) if match.assumed else ()
        super().__init__(f"{kind}:{family.name}", assumed, document, bytes_per_token, rule)
        self._family = family
        self._kind = kind
        self._match = match
        self._scale = scale
        own = msgspec.structs.asdict(family.frames)
        self._frames: dict[str, float] = {OPAQUE + kind: tokens for kind, tokens in own.pop("opaque").items()} | own

    def tokens(self, messages: Iterable[Message]) -> int:
        """Return the tokens of these messages together, frames included, rounded up once."""
        return math.ceil(sum(self.each(messages)))

    def each(self, messages: Iterable[Message]) -> Iterator[float]:
        """Yield the tokens of each message where it stands: a result costs more behind another one."""
        follows_result = False
        for message in messages:
            frame = sum(self._frames.get(name, 0.0) for name in framed(message, follows_result=follows_result))
            yield frame + self._of_parts(message.parts) + beside(message, self._rule, self._family)
            follows_result = message.result is not None

    def of(self, document: Document) -> "Calibrated":
        """Return the estimator for another document."""
        return Calibrated(self._match, self._scale, document, self._bytes_per_token, self._rule, self._kind)

    def _read(self, part: Part) -> float:
        found = said(part, self._document, values_alone=self._family.values_alone)
        return found.arguments * self._family.frames.argument + sum(map(self._text, found.texts))

    def _text(self, text: str) -> float:
        found = self._scale.of(text)
        return self._by_bytes(text) if found is None else found


def beside(message: Message, rule: Rule, family: Family) -> float:
    """Return the tokens of what is no text: media by their rule, sealed reasoning by what the family knows of it."""
    if family.sealed is None:
        return tokens_beside(message, rule)
    sealed = (part.sealed_bytes for part in message.parts if isinstance(part, Reasoning))
    return media_tokens(message, rule) + sum(map(family.sealed.tokens, sealed))


def make(settings: Settings, subject: Subject, family: str) -> Calibrated:
    """Return the estimator for a session's model by the profile of the settings; `family`, where given, decides.

    Raises UsageError where there is no such profile or family.
    """
    profile = profiles.of(settings.estimator.profile)
    found = Match(_named(profile, family)) if family else profiles.match(profile, subject.model, subject.format)
    ratio = float(settings.estimator.bytes_per_token)
    return Calibrated(found, scale(found.family), subject.document, ratio, media_rule(settings, subject.model))


def check(settings: Settings, family: str) -> None:
    """Raise UsageError where there is no such profile or family."""
    profile = profiles.of(settings.estimator.profile)
    if family:
        _named(profile, family)


def _named(profile: Profile, name: str) -> Family:
    for family in profile.families:
        if family.name == name:
            return family
    known = ", ".join(family.name for family in profile.families)
    raise UsageError(f"no family {name} in profile {profile.name}; known: {known}")
