"""What a rule's page tells."""

from msgspec import Struct


class Page(Struct, frozen=True):
    """One rule in words, for people: each member is a text of whole sentences, but for the name and the meaning."""

    name: str
    """A short name, as a heading."""
    meaning: str
    """What is found, in half a sentence."""
    why: str
    """Why it matters: what an agent, a provider or a reader does with such a session."""
    example: str
    """What it looks like; lines of a session where that says most."""
    fix: str
    """What to do about it."""
