"""Ids for a session under another id: derived from its source, so that the same source gives the same ids.

They look like the agent's own: UUIDs of version 4, or of version 7, which begins with a time in milliseconds. That
time is some minutes or hours after the source's, since people and agents call a session by its first eight characters.
"""

import re
from datetime import UTC, datetime
from hashlib import sha256

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:-\d{3}Z)?")
"""A time as agents write it into file names."""

NO_STAMP = "1970-01-01T00-00-00"
"""For the name of a session that tells no time."""

_VERSION_AT = 14
_PREFIX_MS = 1 << 16
"""How long the first eight characters of a version 7 id stay the same."""


def derived_id(seed: str, old: str) -> str:
    """Return the id that takes the place of `old` in the copy of a source with this digest: a version 4 UUID."""
    digits = sha256(f"{seed} {old}".encode("utf-8", "replace")).hexdigest()
    return _uuid(digits, "4")


def derived_session_id(seed: str, old: str, version: str, stamp: object) -> str:
    """Return the session id for the copy, of the same version as the old one where that is a UUID, else of `version`.

    `stamp` is the session's own time, for a version 7 id whose source's id tells none; without any it is of version 4.
    """
    if UUID.fullmatch(old):
        version = old[_VERSION_AT]
    started_ms = int(old[:8] + old[9:13], 16) if UUID.fullmatch(old) else _milliseconds(stamp)
    if version != "7" or started_ms is None:
        return derived_id(seed, old)
    digits = sha256(f"{seed} {old}".encode("utf-8", "replace")).hexdigest()
    started_ms += _PREFIX_MS * (1 + int(digits[-2:], 16))
    return _uuid(f"{started_ms:012x}"[-12:] + digits[12:], "7")


def _uuid(digits: str, version: str) -> str:
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def _milliseconds(stamp: object) -> int | None:
    try:
        time = datetime.fromisoformat(stamp) if isinstance(stamp, str) else None
    except ValueError:
        return None
    return int(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1000) if time else None


def file_stamp(name: str, *stamps: object) -> str:
    """Return the time for a file's name: as the source's name has it, else the first of these times that is one."""
    for text in (name, *(stamp.replace(":", "-").replace(".", "-") for stamp in stamps if isinstance(stamp, str))):
        if match := STAMP.search(text):
            return match.group()
    return NO_STAMP
