"""What the providers over HTTP share: where the key comes from, what is missing, what a reply says."""

import importlib.util
import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from compactctl.errors import AuthFailed, BadResponse, ProviderError, ProviderUnavailable
from compactctl.provider_errors import classify, short
from compactctl.providers.interface import MOST_RETRIES, ProviderConfig

NO_KEY = "none"
"""What is sent as the key where none is configured: local servers want something there and look at nothing."""

CONNECT_TIMEOUT_S = 10.0


def key_of(config: ProviderConfig, environment: Mapping[str, str]) -> str:
    """Return the key. Raises AuthFailed, with the variable's name, where it has none."""
    if config.api_key_env is None:
        return NO_KEY
    key = environment.get(config.api_key_env, "").strip()
    if not key:
        raise AuthFailed(f"{config.name}: the environment variable {config.api_key_env} holds no key")
    return key


def missing_parts(config: ProviderConfig, environment: Mapping[str, str]) -> list[str]:
    """Return what a provider of this configuration lacks, each with what to do."""
    lacks = []
    if not config.model:
        lacks.append(f"no model: set providers.{config.name}.model")
    if config.api_key_env is None and config.base_url is None:
        lacks.append(f"no key: set providers.{config.name}.api_key_env to the variable that holds it")
    elif config.api_key_env is not None and not environment.get(config.api_key_env, "").strip():
        lacks.append(f"no key: the environment variable {config.api_key_env} is not set")
    if not is_installed(config.kind):
        lacks.append(not_installed(config.kind))
    return lacks


def is_installed(sdk: str) -> bool:
    return importlib.util.find_spec(sdk) is not None


def not_installed(sdk: str) -> str:
    return f"the {sdk} SDK is not installed: pip install 'compactctl[{sdk}]'"


def require_ready(config: ProviderConfig, environment: Mapping[str, str]) -> None:
    """Raise what says what is missing, if anything is."""
    lacks = missing_parts(config, environment)
    if lacks:
        kind = AuthFailed if any(text.startswith("no key") for text in lacks) else ProviderUnavailable
        raise kind(f"{config.name}: {'; '.join(lacks)}")


def retries(config: ProviderConfig) -> int:
    """Return how often the SDK may try again."""
    return max(0, min(config.max_retries, MOST_RETRIES))


def is_loopback(address: str) -> bool:
    """Return whether an address is this machine."""
    host = urlsplit(address).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def without_secrets(address: str) -> str:
    """Return an address without user, password and query."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if parts.scheme else address.rpartition("@")[2]


def read_reply(where: str, status: int, headers: Mapping[str, str], body: str) -> dict[str, Any]:
    """Return the JSON object of a reply that may be an answer; else raise the error that it is."""
    problem = classify(status, headers, body)
    if problem is not None:
        raise problem.error(where)
    value: dict[str, Any] = msgspec.json.decode(body.encode("utf-8", "replace"))
    return value


def bad_response(where: str, what: str) -> BadResponse:
    return BadResponse(f"{where}: {what}")


def unreachable(where: str, address: str, error: BaseException, key: str) -> ProviderError:
    """Return the error of a request that got no reply."""
    cause = error.__cause__ or error.__context__ or error
    why = short(f"{error} ({type(cause).__name__}: {cause})".replace(key, "[key]"))
    return ProviderUnavailable(f"{where}: no reply from {without_secrets(address)}: {why}")


def sendable(text: str) -> str:
    """Return a text without halves of surrogate pairs, which no JSON of an SDK can carry."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def whole(value: object) -> int:
    """Return a number of tokens; anything else is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def stop_text(value: object) -> str | None:
    """Return a stop reason in the provider's own word."""
    return value if isinstance(value, str) or value is None else str(value)
