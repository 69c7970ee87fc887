"""What is said, and at a terminal asked, before anything goes to a provider."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from compactctl.cli import streams

if TYPE_CHECKING:
    from compactctl.errand import Errand


def approver(*, yes: bool) -> "Callable[[Errand], bool]":
    """Return what tells a person what is about to be sent, and says whether to send it.

    At a terminal more than one session over the network is asked about first, unless `yes`.
    """

    def approve(errand: "Errand") -> bool:
        streams.say(told(errand))
        is_asked = errand.is_remote and errand.sessions > 1 and not yes
        if not is_asked or not (streams.is_terminal(sys.stdin) and streams.is_terminal(sys.stderr)):
            return True
        print("Send it? [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return approve


def told(errand: "Errand") -> str:
    """Return in one line what goes where, and about what it costs."""
    from compactctl.outputs import words
    from compactctl.outputs.safe import visible

    amount = f"{words.count(errand.sessions, 'session')}, about {errand.tokens:,} tokens"
    price = (
        f"about ${errand.price.usd:.4f} (list prices of {errand.price.as_of})" if errand.price else "price not known"
    )
    return visible(f"to be summarised: {amount}, by {errand.writer} at {errand.address}; {price}")
