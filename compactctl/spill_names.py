"""Names of spill files: short, safe on every system, and never two for one.

A call id is text that a model or an attacker chose. One that is already a short safe name is used as it is; any
other, and any that is taken, gets a cleaned prefix and a hash.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cached_property

SUFFIX = ".txt"

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,79}")
_UNSAFE_RUN = re.compile(r"[^A-Za-z0-9_-]+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|conin|conout|com[0-9]|lpt[0-9])")
_PREFIX_CHARACTERS = 40
_HASH_CHARACTERS = 16


class SpillNames:
    """Gives each spilled text its file name. `existing` tells the files already there, once a name is asked for: name
    to sha256 of the content, or to "" for what can't be a spill of ours (a link, a folder)."""

    def __init__(self, existing: Callable[[], Mapping[str, str]]) -> None:
        self._existing = existing

    @cached_property
    def _taken(self) -> dict[str, tuple[str, str]]:
        return {name.casefold(): (name, sha256) for name, sha256 in self._existing().items()}

    def assign(self, call_id: str, sha256: str) -> str:
        """Return the name for this text and take it. The same id and text always get the same name."""
        for name in candidates(call_id, sha256):
            holder = self._taken.setdefault(name.casefold(), (name, sha256))
            if holder == (name, sha256):
                return name
        return name


def candidates(call_id: str, sha256: str) -> list[str]:
    """Return the names that may be tried for a call id, best first; the last ones are hashed."""
    digest = hashlib.sha256(f"{call_id}\0{sha256}".encode("utf-8", "surrogatepass")).hexdigest()
    prefix = _UNSAFE_RUN.sub("-", call_id).strip("-_")[:_PREFIX_CHARACTERS].lower() or "call"
    if _RESERVED.fullmatch(prefix):
        prefix = f"call-{prefix}"
    hashed = [f"{prefix}-{digest[:length]}{SUFFIX}" for length in (_HASH_CHARACTERS, len(digest) // 2)]
    plain = f"{call_id}{SUFFIX}"
    return [plain, *hashed] if _SAFE.fullmatch(call_id) and not _RESERVED.fullmatch(call_id) else hashed
