"""What a batch will send to a provider, told before the first request from the sessions themselves."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from compactctl import prices
from compactctl.desk import Desk
from compactctl.outcome import PriceNote
from compactctl.providers.interface import ProviderUsage
from compactctl.redact import redact

ANSWER_TOKENS = 4_000
"""What an answer is taken to have, for its price."""


class Errand(Struct, frozen=True):
    """What is about to be sent."""

    sessions: int
    tokens: int
    """About, by our own estimate."""
    writer: str
    address: str
    is_remote: bool
    price: PriceNote | None
    """About."""


Approve = Callable[[Errand], bool]
"""Told before the first request; what it returns says whether to go on."""


def make(amounts: Sequence[int], desk: Desk) -> Errand:
    """Return the errand of sessions that will send so many tokens each."""
    due = [amount for amount in amounts if amount]
    usage = ProviderUsage(sum(due), ANSWER_TOKENS * len(due))
    return Errand(
        sessions=len(due),
        tokens=sum(due),
        writer=desk.writer,
        address=redact(desk.provider.address).text,
        is_remote=desk.provider.is_remote,
        price=prices.price(desk.provider.model, usage),
    )
