"""Who writes summaries in a run, and what all its sessions share: the provider, the breaker and the ceilings."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from compactctl import providers
from compactctl.errors import UsageError
from compactctl.limits import Breaker, Spending
from compactctl.options import Options
from compactctl.providers.interface import Provider, ProviderConfig
from compactctl.settings import ProviderSettings, Settings

NO_MODEL = "extract (no model)"
"""How summaries are spoken of that no model writes."""


class Desk(Struct):
    """What the sessions of one run share."""

    provider: Provider
    breaker: Breaker
    spending: Spending
    template: str | None
    """The user's own prompt; None: ours."""

    @property
    def label(self) -> str:
        """Return what the provider is called wherever it is mentioned."""
        return NO_MODEL if self.provider.kind == "extract" else self.provider.name

    @property
    def writer(self) -> str:
        """Return who writes, with the model."""
        model = self.provider.model
        return f"{self.label} ({model})" if model and self.label != NO_MODEL else self.label

    @property
    def asks_nobody(self) -> bool:
        return self.provider.kind == "extract"


def make(options: Options, environment: Mapping[str, str] = os.environ) -> Desk:
    """Return the desk of a run. Raises UsageError where no such provider is configured or the prompt can't be read."""
    settings = options.settings
    config = choose(settings, options.provider)
    return Desk(
        providers.make(config, environment),
        Breaker(settings.layer2.auto_failure_limit),
        Spending(options.max_input_tokens, options.max_cost_usd),
        _template(settings),
    )


def choose(settings: Settings, asked: str | None) -> ProviderConfig:
    """Return the provider that is asked for, else the one that is set, else the only one there is, else `extract`.

    Raises UsageError, naming those there are, where that says nothing.
    """
    name = asked or settings.layer2.provider
    known = settings.providers
    if name is None and len(known) > 1:
        raise UsageError(f"several providers are configured ({', '.join(known)}): choose with --provider NAME")
    name = name or next(iter(known), providers.DEFAULT.name)
    if name in known:
        return config_of(name, known[name])
    if name == providers.DEFAULT.name:
        return providers.DEFAULT
    there = ", ".join([*known, providers.DEFAULT.name])
    raise UsageError(f"no provider {name} is configured; there are: {there} (compactctl providers lists them)")


def config_of(name: str, given: ProviderSettings) -> ProviderConfig:
    """Return a provider of the settings as providers take it."""
    command = tuple(shlex.split(given.command)) if isinstance(given.command, str) else given.command
    return ProviderConfig(
        name=name,
        kind=given.kind,
        model=given.model,
        base_url=given.base_url,
        api_key_env=given.api_key_env,
        timeout_s=given.timeout_s,
        max_retries=given.max_retries,
        window=given.window,
        command=command,
    )


def _template(settings: Settings) -> str | None:
    path = settings.layer2.prompt
    if path is None:
        return None
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"layer2.prompt: {path}: {getattr(error, 'strerror', None) or error}") from None
