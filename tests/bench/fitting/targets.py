"""The families that a profile is fitted for. A model belongs to one at most: the first that knows its name."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A family to fit: which models it takes, and which of ctok's vocabularies counts its texts; None: o200k itself."""

    name: str
    models: str
    version: str | None


TARGETS = (
    Target(
        "claude-3",
        r"claude-(?:instant|[23](?![0-9]))|claude-(?:opus|sonnet|haiku)-4(?:[-.][0-6])?(?![-.]?[0-9]\b)",
        "3.0",
    ),
    Target("claude-4.8", r"claude|anthropic", "4.8"),
    Target("openai", r"gpt|codex|(?:^|/)o[1-9]", None),
)
"""In the order in which a name is looked up; the last Claude takes every later one."""


def target_of(model: str) -> Target | None:
    """Return the family of a model."""
    return next((target for target in TARGETS if re.search(target.models, model)), None)
