"""One summary of a story: requests that fit, answers that are taken, and what is done when one is too long.

A story that is longer than the summariser takes is folded: the oldest whole rounds are summed up, and that summary
goes before the next. No request is ever sent twice; each one after a refusal for length is shorter than the one before.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from compactctl import profiles, prompt
from compactctl.answer import accept as accept
from compactctl.answer import doubts
from compactctl.errors import RequestRejected, TooLarge, TooLong
from compactctl.model import utf8_size
from compactctl.prompt import Limits, Unit
from compactctl.providers.interface import Answer, Provider, ProviderUsage, SummaryRequest
from compactctl.settings import Settings
from compactctl.story import Said
from compactctl.windows import ANTHROPIC_FALLBACK_TOKENS, FALLBACK_TOKENS, listed_tokens

Rule = Literal["fold", "drop"]
Trigger = Literal["auto", "manual"]


class Budget(Struct, frozen=True):
    """What one request may hold, in estimated tokens. Without a window everything fits."""

    window_tokens: int | None
    reserve_tokens: int = 20_000
    margin_tokens: int = 3_000
    bytes_per_token: float = 3.5
    retry_limit: int = 3
    safety: float = 1.0
    """What the model may count for one token that we estimate, in 95 of 100 cases."""

    @property
    def output_tokens(self) -> int:
        """The longest answer: the reserve, at most a quarter of the window."""
        return self._within(self.reserve_tokens, 4)

    @property
    def input_tokens(self) -> int:
        """The longest request, in tokens as we estimate them: the window without the reserve and without the margin (at
        most an eighth of it), and so much less as the model may count more than we do."""
        room = (self.window_tokens or 0) - self.output_tokens - self._within(self.margin_tokens, 8)
        return int(room / self.safety)

    def _within(self, tokens: int, share: int) -> int:
        return tokens if self.window_tokens is None else max(1, min(tokens, self.window_tokens // share))


def make_budget(provider: Provider, settings: Settings, trigger: Trigger) -> Budget:
    """Return what a request to this provider may hold: by its own window, not the session's."""
    layer2 = settings.layer2
    return Budget(
        _window_tokens(provider, settings),
        layer2.summary_reserve_tokens,
        layer2.auto_safety_margin_tokens if trigger == "auto" else layer2.manual_safety_margin_tokens,
        settings.estimator.bytes_per_token,
        layer2.summary_retry_limit,
        profiles.upper_factor(profiles.of(settings.estimator.profile), provider.model, "heuristic"),
    )


def _window_tokens(provider: Provider, settings: Settings) -> int | None:
    if provider.kind == "extract":
        return None
    usual = ANTHROPIC_FALLBACK_TOKENS if provider.kind == "anthropic" else FALLBACK_TOKENS
    known = provider.window_tokens or listed_tokens(provider.model or "")
    return known or settings.window.fallback_tokens or usual


class Asked(Struct, frozen=True):
    """One request that is about to be sent."""

    number: int
    tokens: int
    """What it takes in, estimated."""
    output_tokens: int
    """What it may give out at most."""


class Summary(Struct, frozen=True):
    """A summary and what it took."""

    text: str
    attempts: int
    """How many requests were sent, refused ones too."""
    usage: ProviderUsage | None = None
    dropped: tuple[int, ...] = ()
    """Indexes of the messages that no request held (rule `drop`)."""
    folds: int = 0
    """How many summaries went before the last."""
    doubts: tuple[str, ...] = ()


def summarize(
    provider: Provider,
    said: Sequence[Said],
    previous: str | None,
    budget: Budget,
    rule: Rule,
    *,
    template: str | None = None,
    on_request: Callable[[Asked], None] | None = None,
) -> Summary:
    """Return the summary of a story. Raises the ProviderError that stood in the way; nothing partial comes back.

    `on_request` hears of every request before it is sent, and may raise to stop.
    """
    if previous is None:
        previous = next((each.text for each in reversed(said) if each.is_summary and each.text.strip()), None)
    story = tuple(each for each in said if not each.is_summary)
    work = _Work(provider, budget, rule, template, on_request)
    if budget.window_tokens is None:
        return work.in_one(story, previous)
    return work.folded(story, previous)


class _Room(Struct, frozen=True):
    """How much a request may hold, as far as is known by now."""

    budget: Budget
    most_tokens: int
    """By estimate."""
    output_tokens: int
    factor: float = 1.0
    """Tokens that the provider counts for one that we estimate, where it counts more."""

    @property
    def most_bytes(self) -> int:
        return int(self.most_tokens * self.budget.bytes_per_token)

    def tokens(self, text: str) -> int:
        return math.ceil(utf8_size(text) / self.budget.bytes_per_token)

    def shrunk(self, sent_tokens: int, error: TooLong | TooLarge) -> "_Room":
        """Return less room after a request of so many estimated tokens was refused, by the numbers in the error."""
        size = error.size_tokens if isinstance(error, TooLong) else None
        limit = _limit(error, sent_tokens)
        factor = max(self.factor, size / sent_tokens) if size and sent_tokens else self.factor
        if limit is None:
            return self._with(self.budget, sent_tokens // 2, factor)
        window = min(limit, self.budget.window_tokens or limit)
        budget = msgspec.structs.replace(self.budget, window_tokens=window)
        share = 0.9 if size else 0.7
        return self._with(budget, min(int(budget.input_tokens / factor), int(sent_tokens * share)), factor)

    def _with(self, budget: Budget, most_tokens: int, factor: float) -> "_Room":
        output = min(self.output_tokens, budget.output_tokens)
        return _Room(budget, min(self.most_tokens, most_tokens), output, factor)


def _limit(error: TooLong | TooLarge, sent_tokens: int) -> int | None:
    if not isinstance(error, TooLong):
        return None
    if error.limit_tokens:
        return error.limit_tokens
    over = error.excess_tokens
    return sent_tokens - over if over and over < sent_tokens else None


WORDS_PER_TOKEN = 0.4
MOST_WORDS = 1_800
"""What is asked for: well under the limit of an answer, which has to hold the analysis too."""

LEAST_HISTORY_BYTES = 300
LEAST_HISTORY_SHARE = 6
"""A request holds at least this much of the story, or there is no point in it."""


class _Work:
    """The requests of one summary."""

    def __init__(
        self,
        provider: Provider,
        budget: Budget,
        rule: Rule,
        template: str | None,
        on_request: Callable[[Asked], None] | None,
    ) -> None:
        self.provider = provider
        self.room = _Room(budget, budget.input_tokens, budget.output_tokens)
        self.retry_limit = budget.retry_limit
        self.rule = rule
        self.template = template
        self.on_request = on_request
        self.limits = Limits().within(max(1, self.room.most_bytes // 4)) if budget.window_tokens else Limits()
        self.attempts = 0
        self.folds = 0
        self.usage: ProviderUsage | None = None
        self.dropped: list[int] = []
        self.doubts: dict[str, None] = {}

    # without a window

    def in_one(self, story: tuple[Said, ...], previous: str | None) -> Summary:
        """Return the summary by a single request that needs no prompt."""
        answer = self._send(SummaryRequest("", self.room.output_tokens, story, previous), 0)
        return self._summary(accept(answer), ())

    # by requests that fit

    def folded(self, story: tuple[Said, ...], previous: str | None) -> Summary:
        """Return the summary of the last request; each before it holds the oldest rounds that fit."""
        previous, units = self._start(previous, prompt.units(story, self.limits))
        odd: tuple[str, ...] = ()
        while True:
            previous, units, odd = self._step(previous, units)
            if not units:
                return self._summary(previous, odd)
            self.folds += 1

    def _summary(self, text: str, odd: tuple[str, ...]) -> Summary:
        return Summary(text, self.attempts, self.usage, tuple(self.dropped), self.folds, (*self.doubts, *odd))

    def _start(self, previous: str | None, units: list[Unit]) -> tuple[str | None, list[Unit]]:
        """Return an earlier summary as what goes before; one that leaves too little room becomes units itself."""
        space = self._space(None)
        if previous is None or self.rule == "drop" or utf8_size(prompt.quoted(previous)) <= space // 2:
            return previous, units
        return None, [*prompt.pieces(previous, max(1, space // 2)), *units]

    def _step(self, previous: str | None, units: list[Unit]) -> tuple[str, list[Unit], tuple[str, ...]]:
        """Return the summary of as many of the oldest units as one request holds, and the units after them."""
        refusals = 0
        while True:
            text_before, chunk, rest = self._chosen(previous, units)
            request = self._request(text_before, chunk)
            sent_tokens = self.room.tokens(request.prompt)
            try:
                answer = self._ask(request, sent_tokens)
            except (TooLong, TooLarge) as error:
                refusals += 1
                if refusals > self.retry_limit:
                    raise
                self.room = self.room.shrunk(sent_tokens, error)
                self._require_space(error)
                continue
            return accept(answer, request.prompt), rest, doubts(answer, () if self.template else prompt.SECTIONS)

    def _chosen(self, previous: str | None, units: list[Unit]) -> tuple[str | None, list[Unit], list[Unit]]:
        """Return what the next request holds, and what is left for later ones (rule `fold`)."""
        previous = self._fitting(previous)
        space = self._space(previous)
        if self.rule == "drop":
            return previous, self._newest(units, space), []
        count = _count_within(units, space)
        if count == 0 and units:
            return previous, [prompt.fitted(units[0], space, self.limits)], units[1:]
        return previous, units[:count], units[count:]

    def _newest(self, units: list[Unit], space: int) -> list[Unit]:
        """Return the newest units that fit, at least one; the older ones are dropped for good, and listed."""
        count = max(1, _count_within(list(reversed(units)), space))
        left_out = units[: max(0, len(units) - count)]
        self.dropped = sorted({*self.dropped, *(said.index for unit in left_out for said in unit.said)})
        return [prompt.fitted(unit, space, self.limits) if count == 1 else unit for unit in units[-count:]]

    def _fitting(self, previous: str | None) -> str | None:
        """Return the summary that goes before, shortened where it would leave no room for the story."""
        if previous is None or self._space(previous) >= self._least_space():
            return previous
        self.doubts["an earlier summary was shortened to fit the window"] = None
        quote_share = utf8_size(previous) / max(1, utf8_size(prompt.quoted(previous)))
        return prompt.shortened(previous, max(1, int((self._space(None) - self._least_space()) * quote_share * 0.9)))

    def _least_space(self) -> int:
        return max(LEAST_HISTORY_BYTES, self.room.most_bytes // LEAST_HISTORY_SHARE)

    def _space(self, previous: str | None) -> int:
        """Return how many bytes of the story fit beside the prompt's own text and what goes before."""
        return self.room.most_bytes - utf8_size(prompt.compose((), previous, self.template, self._words()))

    def _require_space(self, error: TooLong | TooLarge) -> None:
        """Raise the error itself where the room that it leaves is none."""
        if self._space(None) < LEAST_HISTORY_BYTES:
            raise error

    def _words(self) -> int:
        return max(60, min(MOST_WORDS, int(self.room.output_tokens * WORDS_PER_TOKEN)))

    def _request(self, previous: str | None, chunk: list[Unit]) -> SummaryRequest:
        text = prompt.compose(chunk, previous, self.template, self._words())
        said = tuple(said for unit in chunk for said in unit.said)
        return SummaryRequest(text, self.room.output_tokens, said, previous)

    # sending

    def _ask(self, request: SummaryRequest, sent_tokens: int) -> Answer:
        """Return the answer; a model that gives shorter ones only is asked for one of its length."""
        if self._space(None) < LEAST_HISTORY_BYTES:
            raise TooLong(f"{self.provider.name}: a window of {self.room.budget.window_tokens} tokens holds no request")
        try:
            answer = self._send(request, sent_tokens)
        except RequestRejected as error:
            most = error.output_limit_tokens
            if most is None or most >= request.max_output_tokens:
                raise
            self.room = msgspec.structs.replace(self.room, output_tokens=most)
            answer = self._send(msgspec.structs.replace(request, max_output_tokens=most), sent_tokens)
        self._require_read_whole(request.prompt, answer)
        return answer

    def _send(self, request: SummaryRequest, sent_tokens: int) -> Answer:
        self.attempts += 1
        if self.on_request is not None:
            self.on_request(Asked(self.attempts, sent_tokens, request.max_output_tokens))
        answer = self.provider.answer(request)
        if answer.usage is not None:
            self.usage = answer.usage.plus(self.usage)
        return answer

    def _require_read_whole(self, text: str, answer: Answer) -> None:
        """Raise TooLong where the provider took in far less than was sent: it had shortened the prompt in silence."""
        read = answer.usage.input_tokens if answer.usage else 0
        if read and read < least_tokens(text):
            raise TooLong(
                f"{self.provider.name}: only {read} tokens of the request were read, of at least {least_tokens(text)}: "
                "the prompt was cut in silence; set the window that the server really has",
                limit_tokens=read,
            )


def _count_within(units: Sequence[Unit], space: int) -> int:
    for count, unit in enumerate(units):
        space -= unit.size_bytes + len("\n\n")
        if space < 0:
            return count
    return len(units)


_WORD = re.compile(r"[^\W\d_]+")


def least_tokens(text: str) -> int:
    """Return how many tokens a text surely is for any tokenizer in use: hardly one of them joins two words.

    Letters beyond ASCII are counted by fours, for scripts without spaces between words.
    """
    words = sum(1 for _ in _WORD.finditer(text)) if text.isascii() else sum(map(_least_of_word, _WORD.findall(text)))
    return words * 8 // 10


def _least_of_word(word: str) -> int:
    return 1 if word.isascii() else max(1, len(word) // 4)
