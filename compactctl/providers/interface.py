"""What every provider is: something that answers one summary request."""

from typing import Literal, Protocol

from msgspec import Struct

from compactctl.story import Said

Kind = Literal["extract", "openai", "anthropic", "command"]

DEFAULT_TIMEOUT_S = 600.0
DEFAULT_MAX_RETRIES = 2
MOST_RETRIES = 10
"""The SDKs wait between tries, up to two minutes where a server asks for it: more tries than this are no bound."""


class ProviderConfig(Struct, frozen=True):
    """A provider as the settings name it."""

    name: str
    kind: Kind
    model: str | None = None
    base_url: str | None = None
    """None: the vendor's own address."""
    api_key_env: str | None = None
    """The environment variable that holds the key; a key stands nowhere else. None: no key is sent."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    max_retries: int = DEFAULT_MAX_RETRIES
    window: int | None = None
    command: tuple[str, ...] = ()


class SummaryRequest(Struct, frozen=True):
    """One request: a single user message, no tools, no images, and how long the answer may be.

    `said` and `previous` are what the prompt was made of, for a provider that needs no prompt.
    """

    prompt: str
    max_output_tokens: int
    said: tuple[Said, ...] = ()
    previous: str | None = None


class ProviderUsage(Struct, frozen=True):
    """What a provider counted for one request, or for several together."""

    input_tokens: int = 0
    """All that the request took in, cached or not."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def plus(self, other: "ProviderUsage | None") -> "ProviderUsage":
        """Return both together."""
        if other is None:
            return self
        return ProviderUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


class Answer(Struct, frozen=True):
    """What came back, as it came: whether it is a summary is for `summary.accept` to say."""

    text: str
    stop_reason: str | None
    """In the provider's own word."""
    has_tool_call: bool = False
    usage: ProviderUsage | None = None


class Provider(Protocol):
    """Answers summary requests, or raises a ProviderError that says why not."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def model(self) -> str | None: ...

    @property
    def window_tokens(self) -> int | None:
        """The window as configured, or None."""
        ...

    @property
    def is_remote(self) -> bool:
        """Whether what it is sent leaves this machine, as far as can be told: a command counts as if it did."""
        ...

    @property
    def address(self) -> str:
        """Where a request goes, for people."""
        ...

    def answer(self, request: SummaryRequest) -> Answer: ...
