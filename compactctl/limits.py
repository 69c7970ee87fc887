"""What stops a batch from asking on: too many failures in a row, or a ceiling on tokens or cost.

One value of each is shared by all sessions of a batch, whichever threads work on them.
"""

import contextlib
import threading
from collections.abc import Iterator

from compactctl.errors import BreakerOpen, OverBudget, ProviderError


class Breaker:
    """Lets nobody ask any more after so many failures in a row; a success starts the count again.

    Of requests that run at once never more are let through than would open it, were they all to fail.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._failures = 0
        self._running = 0
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Count what happens inside as one success or failure. Raises BreakerOpen, at once, where it is open."""
        self._enter()
        try:
            yield
        except OverBudget:
            self._leave(self._failures)
            raise
        except ProviderError:
            self._leave(self._failures + 1)
            raise
        except BaseException:
            self._leave(self._failures)
            raise
        self._leave(0)

    def _enter(self) -> None:
        with self._changed:
            while self._running and self._failures + self._running >= self._limit > self._failures:
                self._changed.wait()
            if self._failures >= self._limit:
                raise BreakerOpen(f"{self._failures} summaries failed in a row; no provider is asked any more")
            self._running += 1

    def _leave(self, failures: int) -> None:
        with self._changed:
            self._running -= 1
            self._failures = failures
            self._changed.notify_all()


class Spending:
    """Counts what goes to a provider, and refuses a request that would bring it over a ceiling."""

    def __init__(self, max_input_tokens: int | None = None, max_cost_usd: float | None = None) -> None:
        self.input_tokens = 0
        self.cost_usd = 0.0
        self._max_input_tokens = max_input_tokens
        self._max_cost_usd = max_cost_usd
        self._lock = threading.Lock()

    def words(self) -> str:
        """Return what was sent so far and what it costs, for a progress bar; "" where nothing was."""
        if not self.input_tokens:
            return ""
        cost = f", ${self.cost_usd:.2f}" if self.cost_usd else ""
        return f"{self.input_tokens:,} tokens{cost}  "

    def take(self, tokens: int, cost_usd: float | None) -> None:
        """Count one request. Raises OverBudget, having counted nothing, where it would go over a ceiling."""
        with self._lock:
            tokens_then, cost_then = self.input_tokens + tokens, self.cost_usd + (cost_usd or 0.0)
            if self._max_input_tokens is not None and tokens_then > self._max_input_tokens:
                raise OverBudget(
                    f"a request of about {tokens:,} tokens would bring the batch to {tokens_then:,}; "
                    f"--max-input-tokens is {self._max_input_tokens:,}"
                )
            if self._max_cost_usd is not None:
                if cost_usd is None:
                    raise OverBudget("--max-cost can't be kept: the price of this model is not known")
                if cost_then > self._max_cost_usd:
                    raise OverBudget(
                        f"a request of about ${cost_usd:.4f} would bring the batch to ${cost_then:.4f}; "
                        f"--max-cost is ${self._max_cost_usd:g}"
                    )
            self.input_tokens, self.cost_usd = tokens_then, cost_then
