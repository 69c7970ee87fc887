"""Make the table of context windows that the package ships, from the data of the package `genai-prices`.

    python tests/scripts/make_windows.py [--as-of YYYY-MM]

A pattern is written as its kind and its text: `=name`, `^start`, `~part`, `$end`, `/regex`; `&` joins patterns that
must all match. The first pattern that matches decides, so the order is kept.
"""

import argparse
import importlib.metadata
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[2] / "compactctl" / "data" / "windows.json"

MAKERS = (
    "anthropic",
    "openai",
    "google",
    "deepseek",
    "mistral",
    "x-ai",
    "moonshotai",
    "zhipuai",
    "minimax",
    "meta",
)
"""Who makes the models: what resellers call them is the same name behind a prefix, which the look-up strips."""

RESELLER = "openrouter"
RESOLD = (
    "anthropic/",
    "openai/",
    "google/",
    "qwen/",
    "mistralai/",
    "z-ai/",
    "x-ai/",
    "deepseek/",
    "moonshotai/",
    "minimax/",
)
"""Makers whose other models are taken from what this reseller has, by the prefix that it gives them."""


def version() -> str:
    """Return the version of the data that is installed."""
    return importlib.metadata.version("genai-prices")


def rows() -> list[list[Any]]:
    """Return window and patterns of each model, in order of precedence."""
    from genai_prices.data import providers

    by_id = {provider.id: provider for provider in providers}
    own = [model for maker in MAKERS for model in by_id[maker].models if model.context_window]
    found = [_row(model, "") for model in own]
    for model in by_id[RESELLER].models:
        maker, _, name = model.id.rpartition("/")
        is_known = any(listed.is_match(name) for listed in own)
        if model.context_window and f"{maker}/" in RESOLD and not is_known:
            found.append(_row(model, f"{maker}/"))
    return found


def _row(model: Any, prefix: str) -> list[Any]:
    patterns = dict.fromkeys(pattern.replace(prefix, "", 1) for pattern in _patterns(model.match))
    return [model.context_window, list(patterns)]


def _patterns(clause: Any) -> Iterator[str]:
    kinds = {"equals": "=", "starts_with": "^", "contains": "~", "ends_with": "$"}
    for field, mark in kinds.items():
        if hasattr(clause, field):
            yield mark + getattr(clause, field).lower()
            return
    if hasattr(clause, "regex"):
        yield "/" + clause.regex
    elif hasattr(clause, "or_"):
        for part in clause.or_:
            yield from _patterns(part)
    else:
        yield "&".join(pattern for part in clause.and_ for pattern in _patterns(part))


def table(as_of: str) -> str:
    """Return the whole table as the file holds it: one model a line."""
    head = json.dumps({"source": f"genai-prices {version()}", "licence": "MIT", "as_of": as_of})
    models = ",\n".join(json.dumps(row) for row in rows())
    return f'{head[:-1]}, "windows": [\n{models}\n]}}\n'


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--as-of", default="2026-11", help="the month in which the data was released")
    TABLE.write_text(table(parser.parse_args().as_of), encoding="utf-8")
