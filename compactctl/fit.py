"""A calibration profile fitted to recorded usage, and its error on sessions that the fit never saw.

The fit starts from the profile that is in use: the weights of single tokens stay, their groups get scales, and frames
are fitted anew. It is a regression by least absolute deviations (iterated weighted least squares), so that the requests
which held what no file shows do not rule it; a ridge holds what little data says nothing about where it was. Folds of
the cross-validation are whole sessions, never requests of one session.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from compactctl import profiles
from compactctl.document import Document
from compactctl.errors import UsageError
from compactctl.estimators import encodings
from compactctl.estimators.calibrated import beside
from compactctl.estimators.heuristic import media_rule
from compactctl.framing import OPAQUE, framed, said
from compactctl.judge import Judgeable, has_media
from compactctl.model import Message, Transcript
from compactctl.predictions import Observed
from compactctl.profiles import GROUPS, WEIGHT_ONE, Family, Frames, HeldOut, Profile, Spread
from compactctl.scores import quantile
from compactctl.settings import Settings

FOLDS = 5
ROUNDS = 20

LEAST_STEPS = 30
LEAST_SESSIONS = 3
LEAST_OCCURRENCES = 8
"""A frame that is met less often keeps its figure."""

SCALE_RIDGE, FRAME_RIDGE = 50.0, 0.01
"""How hard scales and frames are held where they were: about as much as a step of a hundred tokens does."""

LEAST_RESIDUAL = 0.02
SMALLEST_STEP_TOKENS = 100.0


def observed(
    found: Judgeable, transcript: Transcript, document: Document, settings: Settings, session: str
) -> Iterator[Observed]:
    """Yield the steps that a profile can be fitted on: those without media, in which the context grew.

    `session` is the hash that they are known by.
    """
    profile = profiles.of(settings.estimator.profile)
    for step in found.steps.values():
        new = transcript.messages[step.first : step.end]
        if step.actual <= 0 or any(map(has_media, new)):
            continue
        model = step.usage.model or transcript.model or "unknown"
        family = profiles.match(profile, model, transcript.format).family
        rule = media_rule(settings, model)
        yield Observed(
            session,
            step.usage.request_id or f"{session} {step.usage.line} {step.usage.input_tokens}",
            family.name,
            model,
            step.new_bytes,
            step.actual,
            sum(beside(message, rule, family) for message in new),
            _parts(new, document, family),
        )


def _parts(messages: Sequence[Message], document: Document, family: Family) -> dict[str, float]:
    parts: Counter[str] = Counter()
    follows_result = False
    sums: dict[str, float] = defaultdict(float)
    for message in messages:
        parts.update(framed(message, follows_result=follows_result))
        for part in message.parts:
            found = said(part, document, values_alone=family.values_alone)
            if found.arguments:
                parts["argument"] += found.arguments
            for text in found.texts:
                _add(sums, text, family)
        follows_result = message.result is not None
    return dict(parts) | sums


def _add(sums: dict[str, float], text: str, family: Family) -> None:
    """Add the tokens of a text to the sums by group."""
    tokenizer, weights = encodings.bundled(family.encoding), profiles.weights(family)
    for ids in tokenizer.encoded(text):
        for token, count in Counter(ids or ()).items():
            worth = 1.0 if weights is None else weights[token] / WEIGHT_ONE
            sums[profiles.group(tokenizer.token(token))] += count * worth


# the fit -----------------------------------------------------------------------------------------


def fit(steps: Sequence[Observed], base: Profile, name: str) -> Profile:
    """Return the profile with every family refitted that there are enough steps of; the others stay as they are.

    Raises UsageError where there are enough of none.
    """
    by_family: dict[str, list[Observed]] = defaultdict(list)
    for step in once(steps):
        by_family[step.family].append(step)
    fitted = {family: found for family, found in by_family.items() if _is_enough(found)}
    if not fitted:
        most = max(map(len, by_family.values()), default=0)
        raise UsageError(
            f"too little to fit on: {most:,} steps of one family; it takes {LEAST_STEPS} of {LEAST_SESSIONS} sessions"
        )
    families = tuple(
        _family(family, fitted[family.name]) if family.name in fitted else family for family in base.families
    )
    return Profile(name=name, families=families)


def once(steps: Sequence[Observed]) -> list[Observed]:
    """Return every request once, and sessions that share any under one name: a fork repeats what it came from, and a
    fold that holds the one out must not learn from the other."""
    names = kin((step.session, step.request_id) for step in steps)
    kept: dict[object, Observed] = {}
    for index, step in enumerate(steps):
        kept.setdefault(step.request_id or index, msgspec.structs.replace(step, session=names[step.session]))
    return list(kept.values())


def kin(requests: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return for each session the first of those that it shares a request with, if only through others.

    `requests` are sessions with the ids of their requests.
    """
    parents: dict[str, str] = {}
    first: dict[str, str] = {}

    def root(session: str) -> str:
        while parents[session] != session:
            session = parents[session]
        return session

    for session, request_id in requests:
        parents.setdefault(session, session)
        if request_id:
            parents[root(session)] = root(first.setdefault(request_id, session))
    return {session: root(session) for session in parents}


def _is_enough(steps: Sequence[Observed]) -> bool:
    return len(steps) >= LEAST_STEPS and len({step.session for step in steps}) >= LEAST_SESSIONS


def _family(base: Family, steps: Sequence[Observed]) -> Family:
    sessions = sorted({step.session for step in steps})
    fold = {session: index % FOLDS for index, session in enumerate(sessions)}
    predicted: list[tuple[Observed, float]] = []
    for number in sorted(set(fold.values())):
        learnt = _solve(base, [step for step in steps if fold[step.session] != number])
        predicted += [(step, tokens(step, learnt)) for step in steps if fold[step.session] == number]
    found = _solve(base, steps)
    frames, scales = _frames(base, found), {group: round(found[group], 4) for group in GROUPS}
    source = f"{base.source}; refitted on {len(steps):,} steps of {len(sessions):,} sessions"
    return msgspec.structs.replace(
        base,
        scales={group: scale for group, scale in scales.items() if scale != 1},
        frames=frames,
        spreads={**base.spreads, "calibrated": spread(predicted)},
        held_out=tuple(_held_out(predicted)),
        source=source.removeprefix("; "),
    )


def _frames(base: Family, found: Mapping[str, float]) -> Frames:
    opaque = {name.removeprefix(OPAQUE): round(value, 1) for name, value in found.items() if name.startswith(OPAQUE)}
    plain = {name: round(found[name], 2) for name in Frames.__struct_fields__ if name != "opaque"}
    return Frames(**plain, opaque=opaque)


def start(base: Family) -> dict[str, float]:
    """Return every figure of a family by name, as it is before the fit."""
    own = msgspec.structs.asdict(base.frames)
    opaque = {OPAQUE + kind: tokens for kind, tokens in own.pop("opaque").items()}
    return {group: base.scales.get(group, 1.0) for group in GROUPS} | own | opaque


def tokens(step: Observed, figures: Mapping[str, float]) -> float:
    """Return what a step comes to by these figures."""
    return step.beside + sum(amount * figures.get(name, 0.0) for name, amount in step.parts.items())


def _solve(base: Family, steps: Sequence[Observed]) -> dict[str, float]:
    """Return the figures that are nearest to the steps, none below 0."""
    before = start(base)
    seen = Counter(name for step in steps for name in step.parts)
    free = [name for name in {**before, **seen} if name in GROUPS or seen[name] >= LEAST_OCCURRENCES]
    found = dict(before)
    for _ in range(ROUNDS):
        matrix = [[0.0] * len(free) for _ in free]
        right = [0.0] * len(free)
        place = {name: index for index, name in enumerate(free)}
        for step in steps:
            size = max(float(step.actual), SMALLEST_STEP_TOKENS)
            residual = abs(step.actual - tokens(step, found)) / size**0.5
            weight = 1 / (size * max(residual, LEAST_RESIDUAL))
            fixed = sum(amount * found.get(name, 0.0) for name, amount in step.parts.items() if name not in place)
            rest = step.actual - step.beside - fixed
            row = [(place[name], amount) for name, amount in step.parts.items() if name in place]
            for index, amount in row:
                right[index] += weight * amount * rest
                for other, other_amount in row:
                    matrix[index][other] += weight * amount * other_amount
        for name, index in place.items():
            ridge = SCALE_RIDGE if name in GROUPS else FRAME_RIDGE
            matrix[index][index] += ridge
            right[index] += ridge * before.get(name, 0.0)
        found |= {name: max(0.0, value) for name, value in zip(free, solved(matrix, right), strict=True)}
    return found


def solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Return the solution of a symmetric positive definite system, by elimination with pivots."""
    size = len(right)
    rows = [[*matrix[index], right[index]] for index in range(size)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda index: abs(rows[index][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for index in range(column + 1, size):
            factor = rows[index][column] / rows[column][column]
            if factor:
                rows[index] = [a - factor * b for a, b in zip(rows[index], rows[column], strict=True)]
    found = [0.0] * size
    for index in reversed(range(size)):
        known = sum(rows[index][other] * found[other] for other in range(index + 1, size))
        found[index] = (rows[index][size] - known) / rows[index][index]
    return found


# how far it is off -------------------------------------------------------------------------------


def spread(predicted: Sequence[tuple[Observed, float]]) -> Spread:
    """Return p5 and p95 of the errors: relative on big steps, in tokens on the others."""
    big = sorted((guess - step.actual) / step.actual for step, guess in predicted if step.is_big)
    small = sorted(guess - step.actual for step, guess in predicted if not step.is_big)
    low, high = (quantile(big, 0.05), quantile(big, 0.95)) if big else (-0.5, 0.5)
    tokens_low, tokens_high = (quantile(small, 0.05), quantile(small, 0.95)) if small else (0.0, 0.0)
    return Spread(round(low, 4), round(high, 4), round(tokens_low, 1), round(tokens_high, 1), len(predicted))


def _held_out(predicted: Sequence[tuple[Observed, float]]) -> Iterator[HeldOut]:
    by_model: dict[str, list[float]] = defaultdict(list)
    for step, guess in predicted:
        if step.is_big:
            by_model[re.sub(r"-20\d{6}$", "", step.model)].append((guess - step.actual) / step.actual)
    for model, errors in sorted(by_model.items()):
        sizes = sorted(map(abs, errors))
        figures = (quantile(sorted(errors), 0.5), quantile(sizes, 0.5), quantile(sizes, 0.9))
        yield HeldOut(model, "session", len(errors), *(round(figure, 4) for figure in figures))
