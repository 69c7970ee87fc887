"""What can go wrong, as a tree; each class carries its exit code.

CompactctlError
├── UsageError            2   wrong options or settings
│   ├── OutputCollision   2   two inputs would write the same output
│   ├── NoNewId           2   a session without an id of its own, so none to give anew; in a folder it is skipped
│   └── NoEstimator       2   an estimator that can't count here: what it needs is missing
├── ReadError             3   an input could not be read as a session
│   ├── NotFound          3   no such file or folder
│   ├── Unreadable        3   it exists, but the system will not let us read it
│   ├── UnknownFormat     3   no format recognises it
│   ├── EmptySession      3   nothing in it
│   ├── NotCompactable    3   a log that an agent printed: it is read, never compacted
│   ├── NoSession         3   no session among the inputs
│   └── NoReceipt         3   not something that compaction wrote
├── OverTarget            4   the smallest legal result is still over the threshold
├── ProviderError         5   a provider gave no usable summary
│   ├── TooLong           5   the request was over the model's window
│   ├── TooLarge          5   the request was over a limit in bytes
│   ├── RateLimited       5   too many requests, also after the SDK's own tries
│   ├── AuthFailed        5   the key is missing, wrong, or not allowed to
│   ├── ContentFiltered   5   a filter of the provider refused the text
│   ├── RequestRejected   5   the provider does not take such a request (an unknown model, a wrong option)
│   ├── BadResponse       5   what came back is no answer: empty, a web page, cut off
│   ├── ProviderUnavailable 5 not reached, overloaded, too slow, not installed
│   ├── SummaryRefused    5   an answer that is no summary: cut off, refused, a tool call, blank
│   ├── BreakerOpen       5   too many failures in a row: nobody was asked
│   └── OverBudget        5   a ceiling on tokens or cost would be passed: nobody was asked
├── HookFailed            0   a hook said no: its session is skipped
├── WriteError            6   an output could not be written
│   ├── SpillFailed       6   a spill could not be written; its result stays where it was
│   ├── OutputChanged     6   an output exists and is not what our receipt says
│   └── SourceChanged     6   the source changed while it was read
├── VerifyError           7   a result failed its own verification
│   └── NotRestorable     7   what restore gives is not the original
├── Interrupted         130   stopped by the user
└── Bug                  70   a bug in compactctl
"""

import re


class CompactctlError(Exception):
    """An expected failure: one line for people, a code for machines, an exit code."""

    exit_code = 70

    @property
    def code(self) -> str:
        """The class name in snake case, as it stands in JSON under `error.code`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()


class UsageError(CompactctlError):
    exit_code = 2


class OutputCollision(UsageError):
    pass


class NoNewId(UsageError):
    pass


class NoEstimator(UsageError):
    pass


class ReadError(CompactctlError):
    exit_code = 3


class NotFound(ReadError):
    pass


class Unreadable(ReadError):
    pass


class UnknownFormat(ReadError):
    pass


class EmptySession(ReadError):
    pass


class NotCompactable(ReadError):
    pass


class NoSession(ReadError):
    pass


class NoReceipt(ReadError):
    pass


class OverTarget(CompactctlError):
    exit_code = 4


class ProviderError(CompactctlError):
    exit_code = 5


class TooLong(ProviderError):
    """Carries the numbers that the provider named, where it named any."""

    def __init__(
        self,
        message: str = "",
        *,
        limit_tokens: int | None = None,
        size_tokens: int | None = None,
        excess_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.limit_tokens = limit_tokens
        self.size_tokens = size_tokens
        self.excess_tokens = excess_tokens


class TooLarge(ProviderError):
    pass


class RateLimited(ProviderError):
    def __init__(self, message: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AuthFailed(ProviderError):
    pass


class ContentFiltered(ProviderError):
    pass


class RequestRejected(ProviderError):
    def __init__(self, message: str = "", *, output_limit_tokens: int | None = None) -> None:
        super().__init__(message)
        self.output_limit_tokens = output_limit_tokens


class BadResponse(ProviderError):
    pass


class ProviderUnavailable(ProviderError):
    pass


class SummaryRefused(ProviderError):
    """`reason` is one word for the report: truncated, refused, tool_call, unfinished, blank, scratchpad, echo."""

    def __init__(self, reason: str = "", message: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class BreakerOpen(ProviderError):
    pass


class OverBudget(ProviderError):
    pass


class HookFailed(CompactctlError):
    exit_code = 0


class WriteError(CompactctlError):
    exit_code = 6


class SpillFailed(WriteError):
    pass


class OutputChanged(WriteError):
    pass


class SourceChanged(WriteError):
    pass


class VerifyError(CompactctlError):
    exit_code = 7


class NotRestorable(VerifyError):
    pass


class Interrupted(CompactctlError):
    exit_code = 130


class Bug(CompactctlError):
    exit_code = 70


def reason_of(error: OSError) -> str:
    """Return why the system refused, in its own words."""
    return (error.strerror or str(error)).lower()
