"""The table of providers: what can be asked for a summary."""

import importlib
import os
from collections.abc import Mapping
from typing import Protocol, cast

from compactctl.providers.interface import Answer as Answer
from compactctl.providers.interface import Kind, Provider
from compactctl.providers.interface import ProviderConfig as ProviderConfig
from compactctl.providers.interface import ProviderUsage as ProviderUsage
from compactctl.providers.interface import SummaryRequest as SummaryRequest

KINDS: dict[Kind, str] = {
    "extract": "no model and no network: what the session itself says",
    "openai": "Chat Completions, at OpenAI or any compatible base_url",
    "anthropic": "the Messages API, at Anthropic or any compatible base_url",
    "command": "any program: prompt on standard input, answer on standard output",
}
"""Every kind of provider; each is the module of its name."""

DEFAULT = ProviderConfig("extract", "extract")
"""What is asked where no provider is configured."""


class _Module(Protocol):
    def make(self, config: ProviderConfig, environment: Mapping[str, str]) -> Provider: ...

    def missing(self, config: ProviderConfig, environment: Mapping[str, str]) -> list[str]: ...


def make(config: ProviderConfig, environment: Mapping[str, str] = os.environ) -> Provider:
    """Return the provider of a configuration. Nothing is asked or imported yet; what it lacks, `missing` says."""
    return _module(config.kind).make(config, environment)


def missing(config: ProviderConfig, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return what a provider lacks before it can be asked, each with what to do; a key is never in it."""
    return _module(config.kind).missing(config, environment)


def _module(kind: Kind) -> _Module:
    return cast(_Module, importlib.import_module(f"{__name__}.{kind}"))
