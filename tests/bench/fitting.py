"""Fit the figures of a calibration profile on real sessions, and hold them against sessions that the fit never saw.

Two sources, each for what it knows best. What a text comes to is learnt from `ctok`, which counts Claude's tokens
offline (Python 3.12 and newer): every token of o200k_base has a class (its kind of letters, its length, whether a blank
leads) and a count of its own as it stands alone, and a ridge regression finds what these are worth. What stands around
texts is learnt from recorded usage: the steps between two requests, less their texts, by least absolute deviations.

    make accuracy                             prints the errors by model, held out by session and by repository
    python -m tests.bench.fitting CORPUS      the same, in an environment that has ctok and numpy
"""

import csv
import gzip
import hashlib
import multiprocessing
import pickle
import random
import re
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import ctok
import numpy as np

from compactctl import estimators, formats, judge
from compactctl.estimators import encodings
from compactctl.estimators.interface import Subject
from compactctl.fit import kin
from compactctl.framing import OPAQUE, framed, said
from compactctl.model import Message, Reasoning, ToolCall
from compactctl.profiles import WEIGHT_ONE, Family, Frames, HeldOut, Sealed, Spread
from compactctl.session import opened
from compactctl.settings import Settings

CACHE = Path(__file__).parents[2] / ".cache" / "accuracy"

FOLDS = 5
SEED = 1

BIG_BYTES = judge.NEW_BYTES

CTOK_FRAMES = {"3.0": 7, "4.8": 6}
"""The tokens that ctok counts around the one message it is given."""


@dataclass(frozen=True)
class Target:
    """A family to fit: which models it takes, and which of ctok's vocabularies counts its texts; None: o200k itself."""

    name: str
    models: str
    version: str | None


TARGETS = (
    Target(
        "claude-3",
        r"claude-(?:instant|[23](?![0-9]))|claude-(?:opus|sonnet|haiku)-4(?:[-.][0-6])?(?![-.]?[0-9]\b)",
        "3.0",
    ),
    Target("claude-4.8", r"claude|anthropic", "4.8"),
    Target("openai", r"gpt|codex|(?:^|/)o[1-9]", None),
)
"""In the order in which a name is looked up; the last Claude takes every later one."""


# texts -------------------------------------------------------------------------------------------


@dataclass
class Texts:
    """The texts to learn from: the tokens of each, its exact counts, and where it comes from."""

    texts: list[str]
    session: list[str]
    repository: list[str]


@dataclass(frozen=True)
class Row:
    """A session file of the corpus."""

    path: Path
    repository: str
    format: str
    has_usage: bool


def corpus(folder: Path) -> list[Row]:
    with (folder / "INDEX.tsv").open(encoding="utf-8") as index:
        return [
            Row(folder / row["path"], row["repo"], row["format"], row["has_usage"] == "yes")
            for row in csv.DictReader(index, delimiter="\t")
        ]


TEXT_CHARACTERS = 60_000
LEAST_CHARACTERS = 40
REPOSITORY_CHARACTERS = 900_000
"""So much at most of a repository whose sessions we have no usage of, so that no single one rules."""


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= LEAST_CHARACTERS:
            yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def foreign_texts(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield strings of sessions whatever their format, some of each repository, the same on every run."""
    import msgspec

    by_repository: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_repository[row.repository].append(row)
    chance = random.Random(SEED)
    for own in by_repository.values():
        left = REPOSITORY_CHARACTERS
        share = max(TEXT_CHARACTERS, left // len(own))
        for row in own:
            raw = row.path.read_bytes()
            found: set[str] = set()
            for part in [raw] if row.format.endswith("json") else raw.splitlines():
                try:
                    found.update(strings(msgspec.json.decode(part)))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
            taken = 0
            for text in chance.sample(sorted(found), len(found)):
                if taken > min(share, left):
                    break
                taken += len(text)
                yield text[:TEXT_CHARACTERS], row
            left -= taken
            if left <= 0:
                break


# exact counts --------------------------------------------------------------------------------------

Exact = tuple[int, int]


def exact(text: str) -> Exact:
    """Return the tokens of a text in both of Claude's vocabularies; what ctok fails over ends the run."""
    text = text.encode("utf-8", "replace").decode()
    older, newer = (ctok.token_count(text, version) - frame for version, frame in CTOK_FRAMES.items())
    return older, newer


def alone(token: bytes) -> tuple[int, int]:
    """Return Claude's tokens of one token of o200k that stands alone in its line."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return 1, 1
    found, around = exact(f"x\n{text}\nx"), exact("x\n\nx")
    return max(0, found[0] - around[0]), max(0, found[1] - around[1])


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def exact_counts(texts: Iterable[str]) -> list[Exact]:
    """Return the exact counts of texts; they are remembered, also from one run to the next."""
    known, wanted = _remembered(), list(texts)
    missing = [text for text in dict.fromkeys(wanted) if _digest(text) not in known]
    if missing:
        with multiprocessing.Pool() as pool:
            known.update(zip(map(_digest, missing), pool.map(exact, missing, chunksize=100), strict=True))
        _keep("counts", known)
    return [known[_digest(text)] for text in wanted]


@cache
def _remembered() -> dict[bytes, Exact]:
    return dict(_cached("counts", dict))


def _cached(name: str, make: Callable[[], Any]) -> Any:
    path = CACHE / f"{name}.pickle"
    if path.exists():
        return pickle.loads(path.read_bytes())
    return make()


def _keep(name: str, value: Any) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / f"{name}.pickle").write_bytes(pickle.dumps(value))


# tokens of o200k and their classes -------------------------------------------------------------------


def token_class(token: bytes) -> str:
    """Return what kind of token this is, in a short name."""
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return "bytes"
    if text.isspace():
        return _blank_class(text)
    if not text.isascii():
        return _foreign_class(text)
    lead, body = ("s", text[1:]) if text[0] == " " else ("", text)
    if body.isdigit():
        return f"digits{len(body)}{lead}"
    if body.isalpha():
        return f"word{lead}{_case(body)}{_bucket(len(body), (1, 2, 3, 4, 6, 9))}"
    if not any(character.isalnum() for character in body):
        signs = body.rstrip("\r\n")
        same = "=" if len(signs) > 1 and len(set(signs)) == 1 else ""
        return f"signs{lead}{min(len(signs), 4)}{'n' if signs != body else ''}{same}"
    letters = "".join(character for character in body if character.isalpha())
    return f"mixed{lead}{_case(letters)}{_bucket(len(body), (2, 4, 7))}"


def _blank_class(text: str) -> str:
    breaks = text.count("\n")
    if breaks:
        return f"breaks{min(breaks, 3)}{'+' if len(text) > breaks else ''}"
    if "\t" in text:
        return f"tabs{min(len(text), 3)}"
    return f"blanks{_bucket(len(text), (1, 2, 3, 4, 8, 16))}"


_SCRIPTS = (("han", "\u3400", "\u9fff"), ("kana", "\u3040", "\u30ff"), ("hangul", "\uac00", "\ud7af"),
            ("cyrillic", "\u0400", "\u052f"), ("latin", "\u0080", "\u024f"))  # fmt: skip


def _foreign_class(text: str) -> str:
    found = Counter(_script(character) for character in text if ord(character) > 127)
    has_letters = any(character.isalpha() for character in text)
    return f"beyond-{found.most_common(1)[0][0] if has_letters else 'sign'}{min(len(text.strip()), 3)}"


def _script(character: str) -> str:
    return next((name for name, first, last in _SCRIPTS if first <= character <= last), "other")


def _case(text: str) -> str:
    if text == text.lower():
        return "l"
    if len(text) > 1 and text[0].isupper() and text[1:] == text[1:].lower():
        return "t"
    return "u" if text == text.upper() else "m"


def _bucket(size: int, limits: Sequence[int]) -> int:
    return next((limit for limit in limits if size <= limit), limits[-1] + 1)


class Vocabulary:
    """o200k_base: the class of each token, and what each comes to alone in Claude's vocabularies."""

    def __init__(self) -> None:
        own = list(encodings.tokens("o200k_base"))
        names: dict[str, int] = {}
        self.classes = np.array([names.setdefault(token_class(token), len(names)) for token in own])
        self.class_count = len(names)
        self.alone = _cached("alone", lambda: self._alone(own))
        self._tokenizer = encodings.bundled("o200k_base")
        self._seen: dict[bytes, np.ndarray] = {}

    def _alone(self, own: Sequence[bytes]) -> np.ndarray:
        with multiprocessing.Pool() as pool:
            found = np.array(pool.map(alone, own, chunksize=2000), dtype=float)
        _keep("alone", found)
        return found

    def ids(self, text: str) -> np.ndarray:
        key = _digest(text)
        if key not in self._seen:
            found = [i for ids in self._tokenizer.encoded(text) for i in ids or ()]
            self._seen[key] = np.array(found, dtype=np.int32)
        return self._seen[key]

    def features(self, text: str) -> np.ndarray:
        """Return the tokens of each class, and the sums of what they come to alone."""
        ids = self.ids(text)
        counts = np.bincount(self.classes[ids], minlength=self.class_count) if len(ids) else np.zeros(self.class_count)
        return np.concatenate([counts, self.alone[ids].sum(axis=0)])


CLASS_RIDGE, ALONE_RIDGE = 3.0, 0.1


def fit_texts(features: np.ndarray, exact_tokens: np.ndarray, column: int, vocabulary: Vocabulary) -> np.ndarray:
    """Return what each token of the vocabulary is worth, by a ridge regression towards what it comes to alone."""
    count = vocabulary.class_count
    own = np.column_stack([features[:, :count], features[:, count + column]])
    scale = 1 / np.sqrt(exact_tokens + 20)
    weighted = own * scale[:, None]
    ridge = np.r_[np.full(count, CLASS_RIDGE), ALONE_RIDGE]
    start = np.r_[np.zeros(count), 0.9]
    solved = np.linalg.solve(
        weighted.T @ weighted + np.diag(ridge), weighted.T @ (exact_tokens * scale) + ridge * start
    )
    return np.maximum(solved[vocabulary.classes] + solved[count] * vocabulary.alone[:, column], 0.0)


# steps -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """What was new between two requests, and how many tokens the provider counted for it."""

    session: str
    """The session, or the first of those that share requests: copies and forks are one."""
    repository: str
    model: str
    texts: tuple[str, ...]
    frames: Counter[str]
    size_bytes: int
    has_media: bool
    actual: int
    heuristic: float
    tiktoken: float
    request_id: str | None = None
    has_answer: bool = False
    """Whether the answer before is in it, though its output was recorded: what a call costs is seen in no other way."""


def steps(rows: Sequence[Row], values_alone: Callable[[str], bool]) -> Iterator[Step]:
    """Yield the judgeable steps of all sessions that a format of ours reads."""
    settings = Settings()
    for row in rows:
        if not row.has_usage or row.format not in formats.FORMATS:
            continue
        with opened(str(row.path), None) as session:
            for transcript in session.read.transcripts:
                subject = Subject(session.document, transcript.model, transcript.format)
                bytes_, tokens = (
                    estimators.get(name, settings, subject) for name in ("heuristic", "tiktoken:o200k_base")
                )
                for step in judge.judgeable(transcript, settings).steps.values():
                    for first in starts(transcript.messages, step):
                        new = transcript.messages[first : step.end]
                        model = step.usage.model or transcript.model or ""
                        texts, frames = counted(new, session.document, values_alone=values_alone(model))
                        yield Step(
                            row.path.name,
                            row.repository,
                            model,
                            texts,
                            frames,
                            sum(map(judge.content_bytes, new)),
                            judge.kind_of(new, session.document) == "images",
                            step.actual if first == step.first else _with_answer(step, transcript.messages[first]),
                            sum(bytes_.each(new)),
                            sum(tokens.each(new)),
                            step.usage.request_id
                            or f"{transcript.session_id or row.path.name} {step.usage.line} {step.usage.input_tokens}",
                            first != step.first,
                        )


def once(found: Iterable[Step]) -> list[Step]:
    """Return every request once, and sessions that share any under one name (as `compactctl.fit.once`)."""
    taken = list(found)
    names = kin((step.session, step.request_id) for step in taken)
    kept: dict[object, Step] = {}
    for index, step in enumerate(taken):
        key = (step.request_id, step.has_answer) if step.request_id else index
        kept.setdefault(key, replace(step, session=names[step.session]))
    return list(kept.values())


def starts(messages: Sequence[Message], step: judge.Step) -> Iterator[int]:
    """Yield from which message on a step is looked at: also with the answer before it, where that hid no thought."""
    yield step.first
    before = step.first - 1
    if before < 0 or messages[before].usage is None:
        return
    parts = messages[before].parts
    if any(isinstance(part, ToolCall) for part in parts) and not any(isinstance(part, Reasoning) for part in parts):
        yield before


def _with_answer(step: judge.Step, answer: Message) -> int:
    return step.usage.input_tokens - (answer.usage.input_tokens if answer.usage else 0)


def counted(messages: Sequence[Message], document: Any, *, values_alone: bool) -> tuple[tuple[str, ...], Counter[str]]:
    """Return the texts of messages and their frames, counted by name."""
    texts: list[str] = []
    frames: Counter[str] = Counter()
    follows_result = False
    for message in messages:
        frames.update(framed(message, follows_result=follows_result))
        for part in message.parts:
            found = said(part, document, values_alone=values_alone)
            texts += found.texts
            frames["argument"] += found.arguments
        follows_result = message.result is not None
    return tuple(texts), frames


LEAST_OCCURRENCES = 8
"""A frame that is met less often is not fitted."""

ROUNDS = 60


def fit_frames(counts: np.ndarray, rest: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Return the tokens of each frame, none negative, by least absolute deviations relative to the step's size."""
    base = 1 / np.sqrt(np.maximum(actual, 100.0))
    weights = base.copy()
    free = np.ones(counts.shape[1], dtype=bool)
    solved = np.zeros(counts.shape[1])
    for _ in range(ROUNDS):
        weighted = counts[:, free] * weights[:, None]
        ridge = 1e-6 * len(rest) * np.eye(int(free.sum()))
        solved[:] = 0.0
        solved[free] = np.linalg.solve(weighted.T @ weighted + ridge, weighted.T @ (rest * weights))
        if (solved < 0).any():
            free &= solved >= 0
            solved = np.maximum(solved, 0.0)
        weights = base / np.sqrt(np.maximum(np.abs(rest - counts @ solved) * base, 0.02))
    return solved


@dataclass(frozen=True)
class Thought:
    """An answer whose reasoning is sealed: its output, what of it is readable, and the seal's size."""

    session: str
    model: str
    output: int
    texts: tuple[str, ...]
    frames: Counter[str]
    sealed_bytes: int


def thoughts(rows: Sequence[Row]) -> Iterator[Thought]:
    """Yield the answers with sealed reasoning alone whose output was recorded."""
    for row in rows:
        if not row.has_usage or row.format not in formats.FORMATS:
            continue
        with opened(str(row.path), None) as session:
            for transcript in session.read.transcripts:
                for message in transcript.messages:
                    found = [part for part in message.parts if isinstance(part, Reasoning)]
                    sealed = sum(part.sealed_bytes for part in found)
                    usage = message.usage
                    if usage is None or not usage.is_output_known or not sealed or any(p.size_bytes for p in found):
                        continue
                    model = usage.model or transcript.model or ""
                    texts, frames = counted([message], session.document, values_alone="claude" in model)
                    yield Thought(row.path.name, model, usage.output_tokens, texts, frames, sealed)


# a family, fitted and held out -------------------------------------------------------------------------


@dataclass
class Learnt:
    """What one fit found."""

    weights: np.ndarray | None
    frames: dict[str, float]


@dataclass
class Data:
    """All that is learnt from, read once."""

    vocabulary: Vocabulary
    texts: Texts
    features: np.ndarray
    exact: np.ndarray
    steps: list[Step] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)


def load(folder: Path) -> Data:
    """Return the texts and steps of a corpus."""
    vocabulary = Vocabulary()
    rows = corpus(folder)
    found = once(steps(rows, lambda model: "claude" in model))
    from_steps = [
        (text, step.session, step.repository) for step in found for text in step.texts if len(text) > LEAST_CHARACTERS
    ]
    foreign = [(text, row.path.name, row.repository) for text, row in foreign_texts(rows)]
    origins = {text: (session, repository) for text, session, repository in reversed([*from_steps, *foreign])}
    exact_counts(text for step in found for text in step.texts)  # all at once, so that none has to be counted alone
    exact_tokens = np.array(exact_counts(origins), dtype=float)
    texts = Texts(list(origins), *map(list, zip(*origins.values(), strict=True)))
    features = np.array([vocabulary.features(text) for text in texts.texts])
    return Data(vocabulary, texts, features, exact_tokens, found, list(thoughts(rows)))


def learn(data: Data, target: Target, own: Sequence[Step], use_text: np.ndarray) -> Learnt:
    """Return a fit on these steps and the texts that `use_text` lets through."""
    weights = None
    if target.version is not None:
        column = list(CTOK_FRAMES).index(target.version)
        weights = fit_texts(data.features[use_text], data.exact[use_text, column], column, data.vocabulary)
    usable = [step for step in own if is_usable(step)]
    if target.version is None:  # OpenAI's answers hold reasoning that no file shows
        usable = [step for step in usable if not step.has_answer]
    seen = Counter(name for step in usable for name in step.frames if step.frames[name])
    names = sorted(name for name, count in seen.items() if count >= LEAST_OCCURRENCES)
    counts = np.array([[step.frames[name] for name in names] for step in usable], dtype=float)
    actual = np.array([step.actual for step in usable], dtype=float)
    rest = actual - np.array([text_tokens(data.vocabulary, weights, step.texts) for step in usable])
    return Learnt(weights, dict(zip(names, fit_frames(counts, rest, actual).tolist(), strict=True)))


LEAST_THOUGHTS = 100
LEAST_SEAL_BYTES = 64
"""A smaller seal was taken out of the file by somebody."""


def fit_sealed(data: Data, target: Target, learnt: Learnt) -> Sealed | None:
    """Return what a byte of a seal is worth, by least absolute deviations; None for too few."""
    own = [t for t in data.thoughts if target_of(t.model) is target and t.sealed_bytes >= LEAST_SEAL_BYTES]
    if len(own) < LEAST_THOUGHTS:
        return None
    size = np.array([thought.sealed_bytes for thought in own], dtype=float)
    rest = np.array(
        [
            thought.output
            - text_tokens(data.vocabulary, learnt.weights, thought.texts)
            - sum(count * learnt.frames.get(name, 0.0) for name, count in thought.frames.items())
            for thought in own
        ]
    )
    design = np.column_stack([size, np.ones(len(size))])
    weights = np.ones(len(size))
    for _ in range(ROUNDS):
        weighted = design * weights[:, None]
        slope, shift = np.linalg.solve(weighted.T @ weighted, weighted.T @ (rest * weights))
        weights = 1 / np.sqrt(np.maximum(np.abs(rest - design @ [slope, shift]), 1.0))
    return Sealed(round(float(slope), 4), max(0, round(float(-shift / slope))))


def text_tokens(vocabulary: Vocabulary, weights: np.ndarray | None, texts: Iterable[str]) -> float:
    ids = [vocabulary.ids(text) for text in texts]
    return float(sum(len(i) if weights is None else weights[i].sum() for i in ids))


def predicted(data: Data, learnt: Learnt, step: Step) -> float:
    """Return what a fit makes of a step."""
    frames = sum(count * learnt.frames.get(name, 0.0) for name, count in step.frames.items())
    return text_tokens(data.vocabulary, learnt.weights, step.texts) + frames


@dataclass(frozen=True)
class Prediction:
    """A step, and what is made of it without having seen it: by the fit, by one factor on o200k, and by ctok's exact
    count of its texts with the frames of the fit (what is off then is no matter of the tokenizer)."""

    step: Step
    calibrated: float
    one_factor: float
    exact: float


def held_out(data: Data, target: Target, by: str) -> list[Prediction]:
    """Return each step with what fits make of it that saw nothing of its session, or of its repository."""
    own = own_steps(data, target)
    sessions = sorted({step.session for step in own})
    random.Random(SEED).shuffle(sessions)
    fold = {session: str(index % FOLDS) for index, session in enumerate(sessions)}

    def part(step: Step) -> str:
        return fold[step.session] if by == "session" else step.repository

    found: list[Prediction] = []
    for name in sorted({part(step) for step in own}):
        out = [step for step in own if part(step) == name]
        rest = [step for step in own if part(step) != name]
        seen = {text for step in out for text in step.texts}
        use = np.array([text not in seen for text in data.texts.texts])
        if by == "repository":
            use &= np.array([where != name for where in data.texts.repository])
        found += _predictions(data, target, out, rest, use)
    return found


def _predictions(
    data: Data, target: Target, out: Sequence[Step], rest: Sequence[Step], use: np.ndarray
) -> Iterator[Prediction]:
    if len(rest) >= LEAST_OCCURRENCES:
        learnt, factor = learn(data, target, rest, use), one_factor(rest)
        for step in out:
            guess = predicted(data, learnt, step)
            yield Prediction(step, guess, factor * step.tiktoken, _exactly(data, target, learnt, step, guess))
        return
    # No other repository has usage: its texts stay unseen, and frames come from the other half of its sessions.
    sessions = sorted({step.session for step in out})
    for half in (set(sessions[::2]), set(sessions[1::2])):
        others = [step for step in out if step.session not in half]
        if len(others) >= LEAST_OCCURRENCES:
            inside = [step for step in out if step.session in half]
            yield from _predictions(data, target, inside, others, use)


def _exactly(data: Data, target: Target, learnt: Learnt, step: Step, guess: float) -> float:
    if target.version is None:
        return guess
    column = list(CTOK_FRAMES).index(target.version)
    counts = sum(count[column] for count in exact_counts(step.texts))
    return guess - text_tokens(data.vocabulary, learnt.weights, step.texts) + counts


def one_factor(own: Sequence[Step]) -> float:
    """Return the factor on o200k that has no bias, in the median, on the big steps of these."""
    ratios = [step.actual / step.tiktoken for step in own if is_judged(step) and step.tiktoken]
    return float(np.median(ratios)) if ratios else 1.0


def own_steps(data: Data, target: Target) -> list[Step]:
    """Return the steps of a family's models."""
    return [step for step in data.steps if target_of(step.model) is target]


def target_of(model: str) -> Target | None:
    """Return the family of a model."""
    return next((target for target in TARGETS if re.search(target.models, model)), None)


def is_judged(step: Step) -> bool:
    """Return whether a step counts for the table: big, without media, and the context grew."""
    return step.size_bytes >= BIG_BYTES and is_usable(step) and not step.has_answer


def is_usable(step: Step) -> bool:
    return not step.has_media and step.actual > 0


# figures -------------------------------------------------------------------------------------------


def errors(pairs: Iterable[tuple[float, int]]) -> np.ndarray:
    return np.array([(guess - actual) / actual for guess, actual in pairs])


def described(found: np.ndarray) -> tuple[int, float, float, float]:
    """Return n, bias (the median error), and median and p90 of the error's size."""
    size = np.abs(found)
    return len(found), float(np.median(found)), float(np.median(size)), float(np.quantile(size, 0.9))


def spread(pairs: Sequence[tuple[Step, float]]) -> Spread:
    """Return p5 and p95 of an estimator's errors: relative on big steps, in tokens on small ones."""
    usable = [(step, guess) for step, guess in pairs if is_usable(step) and not step.has_answer]
    big = errors((guess, step.actual) for step, guess in usable if step.size_bytes >= BIG_BYTES)
    small = np.array([guess - step.actual for step, guess in usable if step.size_bytes < BIG_BYTES])
    low, high = np.quantile(big, [0.05, 0.95]) if len(big) else (-0.5, 0.5)
    tokens_low, tokens_high = np.quantile(small, [0.05, 0.95]) if len(small) else (0.0, 0.0)
    shares, whole = (round(float(x), 4) for x in (low, high)), (round(float(x), 1) for x in (tokens_low, tokens_high))
    return Spread(*shares, *whole, len(usable))


LEAST_JUDGED = 10


def model_name(model: str) -> str:
    """Return a model's name without its date."""
    return re.sub(r"-20\d{6}$", "", model)


def family(data: Data, target: Target, source: str) -> tuple[Family, np.ndarray | None]:
    """Return a family fitted on everything, with its errors on what fits did not see, and its weights."""
    by_session, by_repository = held_out(data, target, "session"), held_out(data, target, "repository")
    lines = []
    for by, predictions in (("session", by_session), ("repository", by_repository)):
        judged = [found for found in predictions if is_judged(found.step)]
        for model in sorted({model_name(found.step.model) for found in judged}):
            whose = [found for found in judged if model_name(found.step.model) == model]
            own = errors((found.calibrated, found.step.actual) for found in whose)
            if len(own) >= LEAST_JUDGED:
                n, *figures = described(own)
                lines.append(HeldOut(model, by, n, *(round(figure, 4) for figure in figures)))
    learnt = learn(data, target, own_steps(data, target), np.ones(len(data.texts.texts), dtype=bool))
    found = learnt.frames.items()
    opaque = {name.removeprefix(OPAQUE): round(tokens, 1) for name, tokens in found if name.startswith(OPAQUE)}
    plain = {name: round(tokens, 2) for name, tokens in found if not name.startswith(OPAQUE)}
    frames = Frames(**plain, opaque=opaque)
    spreads = {
        "calibrated": spread([(found.step, found.calibrated) for found in by_session]),
        "heuristic": spread([(step, step.heuristic) for step in own_steps(data, target)]),
        "tiktoken": spread([(step, step.tiktoken) for step in own_steps(data, target)]),
    }
    made = Family(
        name=target.name,
        models=target.models,
        weights=None if learnt.weights is None else target.name,
        ctok=target.version,
        values_alone=target.version is not None,
        frames=frames,
        sealed=fit_sealed(data, target, learnt),
        spreads=spreads,
        source=source,
        held_out=tuple(lines),
    )
    return made, learnt.weights


def packed(weights: np.ndarray) -> bytes:
    """Return weights as the package keeps them: two bytes a token, least significant first, compressed."""
    fixed = array("H", np.minimum(np.round(weights * WEIGHT_ONE), 65535).astype(int).tolist())
    if sys.byteorder == "big":
        fixed.byteswap()
    return gzip.compress(fixed.tobytes(), 9, mtime=0)


def table(data: Data) -> Iterator[str]:
    """Yield the lines of the table of errors by model: what is new since the anchor, on steps no fit saw."""
    yield f"{'':28}{'':13}{'n':>5}{'bias':>9}{'median':>9}{'p90':>9}   held out by"
    for target in TARGETS:
        for by in ("session", "repository"):
            predictions = [found for found in held_out(data, target, by) if is_judged(found.step)]
            for model in sorted({model_name(found.step.model) for found in predictions}):
                own = [found for found in predictions if model_name(found.step.model) == model]
                if len(own) < LEAST_JUDGED:
                    continue
                columns = {
                    "bytes / 3.5": [(found.step.heuristic, found.step.actual) for found in own],
                    "o200k": [(found.step.tiktoken, found.step.actual) for found in own],
                    "o200k x one": [(found.one_factor, found.step.actual) for found in own],
                    "calibrated": [(found.calibrated, found.step.actual) for found in own],
                }
                if target.version is not None:
                    columns["ctok"] = [(found.exact, found.step.actual) for found in own]
                for name, pairs in columns.items():
                    n, bias, median, p90 = described(errors(pairs))
                    yield f"{model:28}{name:13}{n:>5}{bias:>+9.1%}{median:>9.1%}{p90:>9.1%}   {by}"


def main() -> None:
    data = load(Path(sys.argv[1]))
    size = sum(map(len, data.texts.texts))
    plain = sum(not step.has_answer for step in data.steps)
    print(f"{len(data.texts.texts):,} texts, {size / 1e6:.1f} M characters; {plain:,} steps")
    for line in table(data):
        print(line)


if __name__ == "__main__":
    main()
