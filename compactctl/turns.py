"""Rounds and exchanges, and the one place that says whether calls and results pair up.

An *exchange* is an assistant message and everything up to the next one. A result is matched by call id within
its exchange, so an id that comes again later is another call.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from compactctl.findings import Finding
from compactctl.model import Message, ToolCall, ToolResult


class Paired(Struct, frozen=True, gc=False):
    """A tool result of the context and the exchange it belongs to.

    `exchange` is what the ledger knows the exchange by: the format's key of the assistant message, else its
    ordinal among the exchanges.
    """

    message_index: int
    exchange: str
    call_index: int | None
    """The index of the message whose call it answers; None for a result without a call."""
    result: ToolResult


class Round(Struct, frozen=True, gc=False):
    """An assistant message with calls, and the results that answer them within its exchange."""

    message_index: int
    exchange: str
    results: tuple[Paired, ...]


def exchanges(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Return the exchanges as (first, past the last) message indexes; what stands before the first answer is none."""
    starts = [index for index, message in enumerate(messages) if message.role == "assistant"]
    ends = [*starts[1:], len(messages)] if starts else []
    return list(zip(starts, ends, strict=True))


def pair(messages: Sequence[Message]) -> list[Paired]:
    """Return every result of the context, in order, each with its exchange and whether a call there asked for it."""
    paired: list[Paired] = []
    exchange, ordinal, call_index = "", 0, None
    open_ids: set[str] = set()
    for index, message in enumerate(messages):
        if message.role == "assistant":
            ordinal += 1
            exchange = message.key or f"#{ordinal}"
            call_index = index
            open_ids = {call.call_id for call in message.calls()}
            continue
        result = message.result
        if result is not None:
            answers = call_index if result.call_id in open_ids else None
            paired.append(Paired(index, exchange, answers, result))
    return paired


def count_rounds(messages: Iterable[Message]) -> int:
    """Return how many rounds there are."""
    return sum(1 for message in messages if message.role == "assistant" and _calls_tools(message))


def rounds(messages: Sequence[Message], paired: Iterable[Paired] | None = None) -> list[Round]:
    """Return every assistant message that calls tools, with the results that answer it.

    `paired` is what `pair` said of these messages, where that is known already.
    """
    found = [
        (index, message.key or f"#{ordinal}")
        for ordinal, (index, message) in enumerate(
            ((i, m) for i, m in enumerate(messages) if m.role == "assistant"), start=1
        )
        if _calls_tools(message)
    ]
    answers: dict[int, list[Paired]] = {index: [] for index, _ in found}
    for item in pair(messages) if paired is None else paired:
        if item.call_index is not None:
            answers[item.call_index].append(item)
    return [Round(index, exchange, tuple(answers[index])) for index, exchange in found]


def _calls_tools(message: Message) -> bool:
    return any(isinstance(part, ToolCall) for part in message.parts)


def pairing_findings(messages: Sequence[Message], *, order_matters: bool = True) -> list[Finding]:
    """Return what is wrong with calls and results in the context.

    `order_matters` is False for formats whose agent puts results right behind their calls on resume.
    """
    bounds = exchanges(messages)
    first = bounds[0][0] if bounds else len(messages)
    findings = [_orphan(message) for message in messages[:first] if message.result is not None]
    for start, end in bounds:
        findings += _exchange_findings(messages, start, end, order_matters)
    return findings


def _exchange_findings(messages: Sequence[Message], start: int, end: int, order_matters: bool) -> list[Finding]:
    call_ids = [call.call_id for call in messages[start].calls()]
    answers = [result.call_id if (result := message.result) else None for message in messages[start + 1 : end]]
    if _is_sound(call_ids, answers):
        return []
    findings: list[Finding] = []
    calls = Counter(call_ids)
    line = messages[start].line
    if "" in calls:
        findings.append(Finding(line, "bad-call-id", "a tool call has no id"))
    for call_id, count in calls.items():
        if call_id and count > 1:
            findings.append(Finding(line, "bad-call-id", f"{count} calls of one answer have the id {call_id}"))
    answered: Counter[str] = Counter()
    interrupted = False
    for message in messages[start + 1 : end]:
        result = message.result
        if result is None:
            interrupted = True
            continue
        if not result.call_id or result.call_id not in calls:
            findings.append(_orphan(message))
        elif answered[result.call_id] >= calls[result.call_id]:
            text = f"call {result.call_id} was answered before"
            findings.append(Finding(message.line, "duplicate-result", text))
        elif interrupted and order_matters:
            text = f"the result of call {result.call_id} stands after another message"
            findings.append(Finding(message.line, "result-out-of-place", text))
        answered[result.call_id] += 1
    missing = [call_id for call_id in calls if call_id and answered[call_id] < calls[call_id]]
    at_end = end == len(messages) and all(message.result is not None for message in messages[start + 1 : end])
    rule = "unfinished-call" if at_end else "call-without-result"
    findings += [Finding(line, rule, f"call {call_id} has no result") for call_id in missing]
    return findings


def _is_sound(call_ids: list[str], answers: list[str | None]) -> bool:
    """Return whether each call has one answer, right behind it; the common case, told at once."""
    ids = set(call_ids)
    if len(ids) < len(call_ids) or "" in ids:
        return False
    return ids == set(answers[: len(ids)]) and all(answer is None for answer in answers[len(ids) :])


def _orphan(message: Message) -> Finding:
    call_id = message.result.call_id if message.result else ""
    if not call_id:
        return Finding(message.line, "bad-call-id", "a tool result names no call")
    return Finding(message.line, "result-without-call", f"the result names call {call_id}, which is not in context")
