"""Rounds and exchanges, and the one place that says whether calls and results pair up.

An *exchange* is an assistant message and everything up to the next one. A result is matched by call id within
its exchange, so an id that comes again later is another call.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from compactctl.findings import Finding
from compactctl.model import Message, Opaque, ToolCall, ToolResult


class Paired(Struct, frozen=True, gc=False):
    """A tool result of the context and the exchange it belongs to.

    `exchange` is what the ledger knows the exchange by: the format's key of the assistant message, else its
    ordinal among the exchanges.
    """

    message_index: int
    line: int
    exchange: str
    call_index: int | None
    """The index of the message whose call it answers; None for a result without a call."""
    result: ToolResult


class Round(Struct, frozen=True, gc=False):
    """An assistant message with calls, and the results that answer them within its exchange."""

    message_index: int
    exchange: str
    results: tuple[Paired, ...]


def pair(messages: Iterable[Message]) -> list[Paired]:
    """Return every result of the context, in order, each with its exchange and whether a call there asked for it."""
    return pairs(messages).results


def rounds(messages: Iterable[Message]) -> list[Round]:
    """Return every assistant message that calls tools, with the results that answer it."""
    return pairs(messages).rounds


class Pairs(Struct, frozen=True):
    """The results of a context, and the rounds they make up."""

    results: list[Paired]
    rounds: list[Round]


def pairs(messages: Iterable[Message]) -> Pairs:
    """Return what `pair` and `rounds` do, from one walk."""
    results: list[Paired] = []
    rounds: list[Round] = []
    exchange, ordinal, call_index = "", 0, None
    open_ids: set[str] = set()
    answers: list[Paired] = []
    for index, message in enumerate(messages):
        if message.role == "assistant":
            if call_index is not None and open_ids:
                rounds.append(Round(call_index, exchange, tuple(answers)))
            ordinal += 1
            exchange, call_index = message.key or f"#{ordinal}", index
            open_ids = {part.call_id for part in message.parts if isinstance(part, ToolCall)}
            answers = []
        elif (result := message.result) is not None:
            is_answer = result.call_id in open_ids
            item = Paired(index, message.line, exchange, call_index if is_answer else None, result)
            results.append(item)
            if is_answer:
                answers.append(item)
    if call_index is not None and open_ids:
        rounds.append(Round(call_index, exchange, tuple(answers)))
    return Pairs(results, rounds)


def pairing_findings(messages: Sequence[Message], *, order_matters: bool = True) -> list[Finding]:
    """Return what is wrong with calls and results in the context.

    `order_matters` is False for formats whose agent puts results right behind their calls on resume.
    """
    first = next((index for index, message in enumerate(messages) if message.role == "assistant"), len(messages))
    findings = [_orphan(message) for message in messages[:first] if message.result is not None]
    for start, end in _doubtful_exchanges(messages):
        findings += _exchange_findings(messages, start, end, order_matters)
    return findings


def _doubtful_exchanges(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """Yield the exchanges (first and past the last index) in which not each call has one answer, right behind it."""
    start: int | None = None
    open_ids: set[str] = set()
    is_sound = True
    for index, message in enumerate(messages):
        if message.role == "assistant":
            if start is not None and (open_ids or not is_sound):
                yield start, index
            call_ids = [part.call_id for part in message.parts if isinstance(part, ToolCall)]
            start, open_ids = index, set(call_ids)
            is_sound = len(open_ids) == len(call_ids) and "" not in open_ids
        elif (result := message.result) is None:
            is_sound = is_sound and not open_ids
        elif result.call_id in open_ids:
            open_ids.remove(result.call_id)
        else:
            is_sound = False
    if start is not None and (open_ids or not is_sound):
        yield start, len(messages)


def _exchange_findings(messages: Sequence[Message], start: int, end: int, order_matters: bool) -> list[Finding]:
    call_ids = [call.call_id for call in messages[start].calls()]
    findings: list[Finding] = []
    calls = Counter(call_ids)
    line = messages[start].line
    if "" in calls:
        findings.append(Finding(line, "bad-call-id", "a tool call has no id"))
    for call_id, count in calls.items():
        if call_id and count > 1:
            findings.append(Finding(line, "bad-call-id", f"{count} calls of one answer have the id {call_id}"))
    answered: Counter[str] = Counter()
    between: Message | None = None
    late: list[Message] = []
    for message in messages[start + 1 : end]:
        result = message.result
        if result is None:
            between = between or message
            continue
        if not result.call_id or result.call_id not in calls:
            findings.append(_orphan(message))
        elif answered[result.call_id] >= calls[result.call_id]:
            text = f"call {result.call_id} was answered before"
            findings.append(Finding(message.line, "duplicate-result", text))
        elif between is not None and order_matters:
            late.append(message)
        answered[result.call_id] += 1
    if between is not None and late:
        findings.append(Finding(between.line, "result-out-of-place", _stands_between(late)))
    missing = [call_id for call_id in calls if call_id and answered[call_id] < calls[call_id]]
    at_end = end == len(messages) and all(message.result is not None for message in messages[start + 1 : end])
    rule = "unfinished-call" if at_end else "call-without-result"
    findings += [Finding(line, rule, f"call {call_id} has no result") for call_id in missing]
    return findings


def _stands_between(late: Sequence[Message]) -> str:
    call_id = late[0].result.call_id if late[0].result else ""
    more = f"; {len(late) - 1:,} more results come after it" if len(late) > 1 else ""
    return f"this message stands between call {call_id} and its result, which comes at line {late[0].line}{more}"


def _orphan(message: Message) -> Finding:
    call_id = message.result.call_id if message.result else ""
    if not call_id:
        return Finding(message.line, "bad-call-id", "a tool result names no call")
    return Finding(message.line, "result-without-call", f"the result names call {call_id}, which is not in context")


# what can be mended ------------------------------------------------------------------------------


class Surplus(Struct, frozen=True):
    """A result that answers no call of its exchange, or one that was answered before."""

    index: int
    rule: str


class Gap(Struct, frozen=True):
    """Calls of one answer that have no result. `after` is the index of what their results belong right behind."""

    index: int
    after: int
    calls: tuple[ToolCall, ...]
    rule: str


def misfits(messages: Sequence[Message]) -> tuple[list[Surplus], list[Gap]]:
    """Return the results that are too many and the calls that lack one: what `pairing_findings` tells of, by index.

    A call without an id, or one of several that share it, is nothing that a result could be given to.
    """
    gaps: list[Gap] = []
    indexes = [i for i, m in enumerate(messages) if m.role == "assistant" or not _is_aside(m)]
    starts = [at for at, index in enumerate(indexes) if messages[index].role == "assistant"]
    before = indexes[: starts[0] if starts else None]
    surplus = [_surplus(messages[i], i, "result-without-call") for i in before if messages[i].result is not None]
    for start, end in itertools.pairwise([*starts, len(indexes)]):
        index, behind = indexes[start], indexes[start + 1 : end]
        calls = {call.call_id: call for call in messages[index].calls() if call.call_id}
        made = Counter(call.call_id for call in messages[index].calls())
        answered: Counter[str] = Counter()
        after, is_direct = index, True
        for other in behind:
            result = messages[other].result
            if result is None:
                is_direct = False
            elif result.call_id not in calls:
                surplus.append(_surplus(messages[other], other, "result-without-call"))
            elif answered[result.call_id] >= made[result.call_id]:
                surplus.append(Surplus(other, "duplicate-result"))
            else:
                answered[result.call_id] += 1
                after = other if is_direct else after
        missing = tuple(call for call_id, call in calls.items() if made[call_id] == 1 and not answered[call_id])
        if missing:
            at_end = end == len(indexes) and is_direct
            gaps.append(Gap(index, after, missing, "unfinished-call" if at_end else "call-without-result"))
    return surplus, gaps


def _is_aside(message: Message) -> bool:
    """Return whether a message is what a client attached, which stands between a call and its result as if it did
    not."""
    return isinstance(message.parts[0], Opaque) if message.parts else False


def _surplus(message: Message, index: int, rule: str) -> Surplus:
    return Surplus(index, rule if message.result and message.result.call_id else "bad-call-id")
