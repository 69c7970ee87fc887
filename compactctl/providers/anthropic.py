"""The Messages API by the official SDK: Anthropic, and whatever is compatible.

The reply is read as it came over the wire, like that of `openai`.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from compactctl.providers import remote
from compactctl.providers.interface import Answer, Kind, ProviderConfig, ProviderUsage, SummaryRequest

ADDRESS = "https://api.anthropic.com"


def make(config: ProviderConfig, environment: Mapping[str, str]) -> "Anthropic":
    return Anthropic(config, environment)


missing = remote.missing_parts


class Anthropic:
    """Asks one Messages address."""

    kind: Kind = "anthropic"

    def __init__(self, config: ProviderConfig, environment: Mapping[str, str]) -> None:
        self._config = config
        self._environment = environment
        self.name = config.name
        self.model = config.model
        self.window_tokens = config.window
        self._base_url = config.base_url or ADDRESS
        self.address = remote.without_secrets(self._base_url)
        self.is_remote = not remote.is_loopback(self._base_url)

    def answer(self, request: SummaryRequest) -> Answer:
        """Return what the model says; transient errors are tried again by the SDK, within the bound that is set."""
        return _answer(self.name, self._reply(request))

    def _reply(self, request: SummaryRequest) -> dict[str, Any]:
        remote.require_ready(self._config, self._environment)
        import anthropic

        try:
            raw = self._client.messages.with_raw_response.create(
                model=self.model,
                max_tokens=request.max_output_tokens,
                messages=[{"role": "user", "content": remote.sendable(request.prompt)}],
            )
            status, headers, text = raw.status_code, raw.headers, raw.http_response.text
        except anthropic.APIStatusError as error:
            status, headers, text = error.status_code, error.response.headers, error.response.text
        except anthropic.AnthropicError as error:
            key = remote.key_of(self._config, self._environment)
            raise remote.unreachable(self.name, self._base_url, error, key) from error
        return remote.read_reply(self.name, status, headers, text)

    @cached_property
    def _client(self) -> Any:
        import anthropic

        config = self._config
        return anthropic.Anthropic(
            api_key=remote.key_of(config, self._environment),
            base_url=self._base_url,
            max_retries=remote.retries(config),
            timeout=anthropic.Timeout(config.timeout_s, connect=min(config.timeout_s, remote.CONNECT_TIMEOUT_S)),
            http_client=None if self.is_remote else anthropic.DefaultHttpxClient(trust_env=False),
        )


def _answer(where: str, reply: dict[str, Any]) -> Answer:
    content = reply.get("content")
    if not isinstance(content, list | str):
        raise remote.bad_response(where, "the reply has no content; is base_url a Messages address?")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    has_tool_call = any(block.get("type") in ("tool_use", "server_tool_use") for block in blocks)
    text = content if isinstance(content, str) else "".join(texts)
    return Answer(text, remote.stop_text(reply.get("stop_reason")), has_tool_call, _usage(reply.get("usage")))


def _usage(usage: object) -> ProviderUsage | None:
    """Return what was counted; what came from a cache or went into one is counted beside the input here."""
    if not isinstance(usage, dict):
        return None
    read = remote.whole(usage.get("cache_read_input_tokens"))
    written = remote.whole(usage.get("cache_creation_input_tokens"))
    taken_in = remote.whole(usage.get("input_tokens")) + read + written
    return ProviderUsage(taken_in, remote.whole(usage.get("output_tokens")), read, written)
