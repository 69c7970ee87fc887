"""Secrets: credentials in what is said, in results, arguments and summaries, in copies of them and in spilled files.

The promise: a finding says kind, place and fingerprint, and nothing from which the value could be had. A fingerprint
is stretched before it is cut short, so that trying out likely passwords is slow.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from compactctl import generations
from compactctl.checks.interface import Check, Subject
from compactctl.document import Document
from compactctl.findings import Finding
from compactctl.json_text import read_json
from compactctl.redact import VAGUE, Secret, redact, secrets
from compactctl.session import STANDARD_INPUT
from compactctl.spans import Key, Route

FINGERPRINT_CHARACTERS = 12
STRETCHING_ROUNDS = 10_000

SEALED_KEYS = frozenset(("signature", "thinkingSignature", "encrypted_content", "data", "image_url"))
"""What holds ciphertext or encoded media: no text, and chance finds the shape of a key in enough of it."""

ENVELOPE_KEYS = frozenset(
    ("uuid", "parentUuid", "sessionId", "requestId", "promptId", "timestamp", "type", "subtype", "version", "userType")
)
"""What agents themselves write around a message, on each line."""

REPEATED_LEAST_CHARACTERS = 200
"""A longer text is looked into once, however often it stands in the file: copies are as long as results."""

SHORTEST_CHARACTERS = 10
"""Nothing shorter is taken for a credential with what tells that it is one."""

LARGEST_FILE_BYTES = 64 << 20
"""A larger spilled file is passed over, and said to be."""


class _Sighting(Struct):
    """A secret: where it was first seen, and how often since."""

    line: int
    place: str
    times: int = 0
    last_line: int = 0


NAMED_KINDS = frozenset((*VAGUE, "password-in-url", "token-in-url", "bearer-token"))
"""Kinds that are told by what stands around the value, which may be any text: possible secrets."""

_STAND_IN = re.compile(
    r"[$%<{(*].*|.*[<>{}*$].*|[A-Z_]+|x{4,}.*|\.+|.*(?:example|changeme|placeholder|dummy|redacted|your[_-]?).*",
    re.IGNORECASE | re.DOTALL,
)
"""What stands where a secret would: the name of a variable, a hole to fill in, a word of an example."""

_CODE = re.compile(r"\W*[A-Za-z_$][A-Za-z_$]*(?:(?:\??\.|::|->)[A-Za-z_$][A-Za-z_$]*)*\W*")
"""An expression of a program: names without a digit, joined by dots."""

_EXAMPLE = re.compile(r".*EXAMPLE(?:KEY)?", re.DOTALL)
"""How keys end in documents of the services themselves (AKIAIOSFODNN7EXAMPLE)."""


def is_stand_in(secret: Secret) -> bool:
    """Return whether the value only stands where a secret would."""
    if secret.kind in NAMED_KINDS:
        return bool(_STAND_IN.fullmatch(secret.value) or _CODE.fullmatch(secret.value))
    return bool(_EXAMPLE.fullmatch(secret.value))


def found(subject: Subject) -> Iterator[Finding]:
    """Yield each secret of the file once, with its first place; where a file holds several sessions, with the first."""
    if not subject.is_first:
        return
    seen: dict[Secret, _Sighting] = {}
    for line, place, text in _texts(subject.session.document):
        for secret in secrets(text):
            if is_stand_in(secret):
                continue
            sighting = seen.get(secret)
            if sighting is None:
                sighting = seen[secret] = _Sighting(line, _way(place))
            sighting.times += 1
            sighting.last_line = line
    for secret, sighting in seen.items():
        again = f"; {sighting.times} times, the last at line {sighting.last_line}" if sighting.times > 1 else ""
        text = f"{secret.kind} in {sighting.place}{again} (fingerprint {fingerprint(secret.value)})"
        yield Finding(sighting.line, _rule(secret), text)
    yield from _in_files(subject)


def _rule(secret: Secret) -> str:
    return "possible-secret" if secret.kind in NAMED_KINDS else "secret"


@lru_cache(maxsize=1024)
def fingerprint(value: str) -> str:
    """Return what the same secret is known by elsewhere, and nobody can read it from."""
    raw = value.encode("utf-8", "surrogatepass")
    return hashlib.pbkdf2_hmac("sha256", raw, b"compactctl", STRETCHING_ROUNDS).hex()[:FINGERPRINT_CHARACTERS]


# texts of the session ----------------------------------------------------------------------------


_ANY = msgspec.json.Decoder()


def _texts(document: Document) -> Iterator[tuple[int, Route, str]]:
    """Yield every text of the file but sealed ones: its line, the way to it in its record, and itself.

    What no reader accepts is one text as it stands.
    """
    known: set[int] = set()
    for index in range(len(document)):
        for place, text in _strings(_said(_value(document.raw(index))), ()):
            if len(text) < SHORTEST_CHARACTERS:
                continue
            if len(text) >= REPEATED_LEAST_CHARACTERS:
                mark = hash(text)
                if mark in known:
                    continue
                known.add(mark)
            yield document.line(index), place, text
    for line, raw in document.unread():
        yield line, ("what is no record",), raw.decode("utf-8", "replace")


def _value(raw: bytes) -> Any:
    try:
        return _ANY.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return read_json(raw)


def _said(record: Any) -> Any:
    """Return a record without its envelope."""
    if not isinstance(record, dict):
        return record
    return {key: value for key, value in record.items() if key not in ENVELOPE_KEYS}


def _strings(value: Any, keys: Route) -> Iterator[tuple[Route, str]]:
    """Yield the strings in a value, in order. Without recursion: records may be nested deep."""
    waiting: list[tuple[Route, Any]] = [(keys, value)]
    while waiting:
        way, item = waiting.pop()
        if isinstance(item, str):
            yield way, item
        elif isinstance(item, dict):
            waiting += [((*way, key), item[key]) for key in reversed(item) if key not in SEALED_KEYS]
        elif isinstance(item, list):
            waiting += [((*way, position), item[position]) for position in reversed(range(len(item)))]


def _way(keys: Iterable[Key]) -> str:
    shown = ""
    for key in keys:
        shown += f"[{key}]" if isinstance(key, int) else f".{key[:40]}" if shown else key[:40]
    return redact(shown).text or "the record"


# spilled files -----------------------------------------------------------------------------------


def _in_files(subject: Subject) -> Iterator[Finding]:
    for line, path in _spilled_files(subject):
        try:
            if path.stat().st_size > LARGEST_FILE_BYTES:
                yield Finding(line, "possible-secret", f"{path.name} was not looked into: it is too large")
                continue
            text = path.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue  # `missing-spill` tells of it
        for secret in dict.fromkeys(secret for secret in secrets(text) if not is_stand_in(secret)):
            said = f"{secret.kind} in the file {path.parent.name}/{path.name} (fingerprint {fingerprint(secret.value)})"
            yield Finding(line, _rule(secret), said)


def _spilled_files(subject: Subject) -> Iterator[tuple[int | None, Path]]:
    """Yield the files that results of the session were moved to: by compactctl, and by Claude Code beside it."""
    session = subject.session
    if session.path == STANDARD_INPUT:
        return
    if session.own_receipt is not None:
        folder = generations.paths_of(session.path).spills
        decisions = [decision for note in session.own_receipt.sessions for decision in note.decisions]
        yield from sorted({(decision.line, folder / decision.file) for decision in decisions if decision.file})
    if session.read.format.name == "claude-code":
        own = generations.paths_of(session.path).session.with_suffix("") / "tool-results"
        if own.is_dir():
            yield from ((None, path) for path in sorted(own.iterdir()) if path.is_file())


CHECKS = (Check(("secret", "possible-secret"), found),)
