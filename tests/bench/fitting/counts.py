"""What `ctok` makes of texts, in each of Claude's vocabularies, exactly.

No text is left out: what ctok fails over ends the run. A count is made once and remembered, also from one run to the
next.
"""

import hashlib
import multiprocessing
import pickle
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ctok
import numpy as np

CACHE = Path(__file__).parents[3] / ".cache" / "accuracy"

CTOK_FRAMES = {"3.0": 7, "4.8": 6}
"""The tokens that ctok counts around the one message it is given, by vocabulary."""

VERSIONS = tuple(CTOK_FRAMES)

Exact = tuple[int, int]
"""The tokens in each of `VERSIONS`."""


def exact(texts: Iterable[str]) -> list[Exact]:
    """Return the tokens of each text, nothing around it counted."""
    known, wanted = _remembered(), list(texts)
    missing = [text for text in dict.fromkeys(wanted) if _digest(text) not in known]
    if missing:
        with multiprocessing.Pool() as pool:
            known.update(zip(map(_digest, missing), pool.map(_count, missing, chunksize=100), strict=True))
        _keep("counts", known)
    return [known[_digest(text)] for text in wanted]


def alone(vocabulary: Sequence[bytes]) -> np.ndarray:
    """Return what each token of a vocabulary comes to that stands alone in its line: a row a token."""
    found = _kept("alone")
    if found is None:
        with multiprocessing.Pool() as pool:
            found = np.array(pool.map(_count_alone, vocabulary, chunksize=2000), dtype=float)
        _keep("alone", found)
    return found


def _count(text: str) -> Exact:
    text = text.encode("utf-8", "replace").decode()
    older, newer = (ctok.token_count(text, version) - frame for version, frame in CTOK_FRAMES.items())
    return older, newer


def _count_alone(token: bytes) -> Exact:
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return 1, 1
    found, around = _count(f"x\n{text}\nx"), _count("x\n\nx")
    return max(0, found[0] - around[0]), max(0, found[1] - around[1])


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


@cache
def _remembered() -> dict[bytes, Exact]:
    return _kept("counts") or {}


def _kept(name: str) -> Any:
    path = CACHE / f"{name}.pickle"
    return pickle.loads(path.read_bytes()) if path.exists() else None


def _keep(name: str, value: Any) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / f"{name}.pickle").write_bytes(pickle.dumps(value))
