"""Where a session is cut: what a summary will stand for, and what stays word for word.

Select recent (contract: rules of counting): from the end, each message's own estimate is added until both figures are
reached; then back to a boundary. How large the kept part may be is not looked at here: one round that is over the
threshold alone stays whole, and whoever cuts makes its results smaller.
"""

from collections.abc import Callable, Sequence

from compactctl.document import Place
from compactctl.estimators import Estimator
from compactctl.measure import threshold
from compactctl.model import Message, Text, Window
from compactctl.plan import Cut
from compactctl.settings import Layer2

__all__ = ["Cut", "boundaries", "choose_cut", "is_said_by_user", "leading_count", "recent_start", "summarised"]


def is_said_by_user(message: Message) -> bool:
    """Return whether a message is text of a user's own line: no result, no summary."""
    return message.role == "user" and not message.is_summary and any(isinstance(part, Text) for part in message.parts)


def choose_cut(
    messages: Sequence[Message],
    estimator: Estimator,
    layer2: Layer2,
    window_tokens: int,
    is_request: Callable[[Message], bool] = is_said_by_user,
) -> Cut | None:
    """Return where to cut; None where nothing is older than the kept part, or only an earlier summary is.

    `is_request` tells a person's request from what a client writes in a user's name.
    """
    leading = leading_count(messages)
    start = recent_start(messages, leading, estimator, layer2, window_tokens)
    limit = min(start, _open_round(messages))
    first_kept = max((index for index in boundaries(messages) if index <= limit), default=leading)
    if first_kept <= leading:
        return None
    cut = Cut(leading, first_kept, _pinned(messages, leading, first_kept, is_request))
    return cut if any(not messages[index].is_summary for index in summarised(cut)) else None


def summarised(cut: Cut) -> tuple[int, ...]:
    """Return the indexes of the messages that the summary stands for."""
    return tuple(index for index in range(cut.leading, cut.first_kept) if index != cut.pinned)


def leading_count(messages: Sequence[Message]) -> int:
    """Return how many messages stay in front of any cut."""
    return next((index for index, message in enumerate(messages) if not message.is_leading), len(messages))


def recent_start(
    messages: Sequence[Message], leading: int, estimator: Estimator, layer2: Layer2, window_tokens: int
) -> int:
    """Return the index from which the messages reach both what is asked of the recent part, else `leading`.

    In a small window it asks for at most half the threshold.
    """
    wanted_tokens = min(layer2.recent_keep_tokens, threshold(Window(window_tokens, "given"), layer2) // 2)
    tokens, start = 0, len(messages)
    while start > leading and (tokens < wanted_tokens or len(messages) - start < layer2.recent_keep_messages):
        start -= 1
        tokens += estimator.tokens((messages[start],))
    return start


# boundaries --------------------------------------------------------------------------------------


def boundaries(messages: Sequence[Message]) -> list[int]:
    """Return the indexes a session may be cut at.

    A cut before message `i` is legal when no call made before `i` is answered at or after it, and `i` does not stand
    on a line with results that come before it. A call never answered, as when a turn was aborted, holds nothing
    together.
    """
    held_until = list(range(len(messages)))
    for call_index, result_index in _answers(messages):
        held_until[call_index] = max(held_until[call_index], result_index)
    legal, reach = [], -1
    for index, until in enumerate(held_until):
        if reach < index and not (index and _is_one_line(messages[index - 1], messages[index])):
            legal.append(index)
        reach = max(reach, until)
    return [*legal, len(messages)]


def _answers(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Return which message's call each result answers: a call of its exchange, else an older one still open."""
    found: list[tuple[int, int]] = []
    open_calls: dict[str, int] = {}
    exchange, own = -1, frozenset[str]()
    for index, message in enumerate(messages):
        if message.role == "assistant":
            exchange, own = index, frozenset(call.call_id for call in message.calls())
            open_calls |= dict.fromkeys(own, index)
        elif (result := message.result) is not None:
            still_open = open_calls.pop(result.call_id, -1)
            call_index = exchange if result.call_id in own else still_open
            if call_index >= 0:
                found.append((call_index, index))
    return found


def _is_one_line(before: Message, message: Message) -> bool:
    """Return whether two messages are parts of one user line, as results and the text behind them are."""
    if before.result is None or not message.parts:
        return False
    first, second = before.parts[0].place, message.parts[0].place
    return first.record == second.record and "content" in _common(first, second)


def _common(first: Place, second: Place) -> tuple[str | int, ...]:
    """Return how far two routes are the same."""
    length = min(len(first.route), len(second.route))
    parted = next((at for at in range(length) if first.route[at] != second.route[at]), length)
    return first.route[:parted]


def _open_round(messages: Sequence[Message]) -> int:
    """Return the index of the last answer where a call of it is still open; past the last message where none is."""
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].role == "assistant"), None)
    if last is None:
        return len(messages)
    answered = {result.call_id for message in messages[last + 1 :] if (result := message.result) is not None}
    is_open = any(call.call_id not in answered for call in messages[last].calls())
    return last if is_open else len(messages)


def _pinned(
    messages: Sequence[Message], leading: int, first_kept: int, is_request: Callable[[Message], bool]
) -> int | None:
    """Return the newest request, where it lies before the cut; None where a newer one is kept anyway."""
    newest = next((i for i in range(len(messages) - 1, leading - 1, -1) if is_request(messages[i])), None)
    return newest if newest is not None and newest < first_kept else None
