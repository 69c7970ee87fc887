"""The rules in words, a file a group. Loaded by what tells of rules, never by what only checks them.

Ids and severities are in `findings`; a test sees to it that each rule there has its page here.
"""

import importlib

from compactctl.findings import GROUPS, Group
from compactctl.rules.interface import Page

GROUP_WORDS: dict[Group, str] = {
    "reading": "damage of the file itself",
    "resume": "what an agent or a provider stumbles over when the session goes on",
    "size": "what is too large, or about to be",
    "usage": "recorded usage that is missing or can't be right",
    "loss": "what a compaction lost that was needed again",
    "secrets": "credentials in the session or beside it",
    "gates": "limits from the command line",
}
"""What the rules of a group are about."""


def page(rule: str) -> Page:
    """Return the page of a rule."""
    pages: dict[str, Page] = importlib.import_module(f"compactctl.rules.{GROUPS[rule]}").PAGES
    return pages[rule]
