"""Chat Completions by the official SDK: OpenAI and all that is compatible (vLLM, llama.cpp, Ollama, OpenRouter, Azure).

The reply is read as it came over the wire, not as the SDK models it, because a proxy or a local server may answer 200
with an error, a web page or nothing.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from compactctl.providers import remote
from compactctl.providers.interface import Answer, Kind, ProviderConfig, ProviderUsage, SummaryRequest

ADDRESS = "https://api.openai.com/v1"

_NEW_NAME_HOSTS = ("api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
"""Where the limit of an answer is called `max_completion_tokens`; elsewhere `max_tokens` is what all know."""


def make(config: ProviderConfig, environment: Mapping[str, str]) -> "OpenAI":
    return OpenAI(config, environment)


missing = remote.missing_parts


class OpenAI:
    """Asks one Chat Completions address."""

    kind: Kind = "openai"

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
        import openai

        try:
            raw = self._client.chat.completions.with_raw_response.create(**self._body(request))
            status, headers, text = raw.status_code, raw.headers, raw.http_response.text
        except openai.APIStatusError as error:
            status, headers, text = error.status_code, error.response.headers, error.response.text
        except openai.OpenAIError as error:
            key = remote.key_of(self._config, self._environment)
            raise remote.unreachable(self.name, self._base_url, error, key) from error
        return remote.read_reply(self.name, status, headers, text)

    @cached_property
    def _client(self) -> Any:
        import openai

        config = self._config
        client = openai.OpenAI(
            api_key=remote.key_of(config, self._environment),
            base_url=self._base_url,
            max_retries=remote.retries(config),
            timeout=openai.Timeout(config.timeout_s, connect=min(config.timeout_s, remote.CONNECT_TIMEOUT_S)),
            http_client=None if self.is_remote else openai.DefaultHttpxClient(trust_env=False),
        )
        if config.base_url is not None:
            client.organization = client.project = None
        return client

    def _body(self, request: SummaryRequest) -> dict[str, Any]:
        host = urlsplit(self._base_url).hostname or ""
        limit = "max_completion_tokens" if host.endswith(_NEW_NAME_HOSTS) else "max_tokens"
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": remote.sendable(request.prompt)}],
            limit: request.max_output_tokens,
        }


def _answer(where: str, reply: dict[str, Any]) -> Answer:
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise remote.bad_response(where, "the reply has no choices; is base_url a Chat Completions address?")
    stop_reason = "refusal" if message.get("refusal") else remote.stop_text(choice.get("finish_reason"))
    has_tool_call = bool(message.get("tool_calls") or message.get("function_call"))
    return Answer(_text(message.get("content")), stop_reason, has_tool_call, _usage(reply.get("usage")))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _usage(usage: object) -> ProviderUsage | None:
    """Return what was counted; the prompt's tokens include what came from a cache."""
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return ProviderUsage(
        remote.whole(usage.get("prompt_tokens")), remote.whole(usage.get("completion_tokens")), remote.whole(cached)
    )
