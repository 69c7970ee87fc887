"""Make the ranks of tiktoken's encodings that the package ships, from a wheel that carries tiktoken's own files.

    pip download --no-deps llama-index-core==0.14.25
    python -m tests.scripts.make_ranks llama_index_core-0.14.25-py3-none-any.whl

In the wheel (or a folder with the files of `npm pack gpt-tokenizer`, unpacked) a file is known by its hash: the one
that the installed tiktoken expects. Ranks count from 0 in the order of the file, so what is kept of each token is its
length in one byte and its bytes.
"""

import base64
import gzip
import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tiktoken_ext import openai_public

DATA = Path(__file__).parents[2] / "compactctl" / "data"

NAMES = ("o200k_base", "cl100k_base")


class _Loaded(Exception):
    """What an encoding of tiktoken would load: stopped before it does."""

    def __init__(self, expected_hash: str) -> None:
        self.expected_hash = expected_hash


def expected_sha256(name: str) -> str:
    """Return the hash that the installed tiktoken expects of an encoding's file. Nothing is loaded."""

    def stopped(url: str, expected_hash: str) -> dict[bytes, int]:
        raise _Loaded(expected_hash)

    try:
        _with_loader(name, stopped)
    except _Loaded as loaded:
        return loaded.expected_hash
    raise AssertionError(f"tiktoken's {name} loads nothing")


def pattern(name: str) -> str:
    """Return the pattern by which the installed tiktoken splits text for an encoding. Nothing is loaded."""
    return str(_with_loader(name, lambda url, expected_hash: {})["pat_str"])


def _with_loader(name: str, loader: Any) -> dict[str, Any]:
    kept = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = loader
    try:
        return dict(getattr(openai_public, name)())
    finally:
        openai_public.load_tiktoken_bpe = kept


def packed(upstream: bytes) -> bytes:
    """Return tiktoken's file as the package ships it. Raises ValueError where its ranks do not count from 0."""
    made = bytearray()
    for rank, line in enumerate(upstream.splitlines()):
        token, number = line.split()
        if int(number) != rank:
            raise ValueError(f"rank {rank} is {int(number)}")
        raw = base64.b64decode(token)
        made += bytes([len(raw)]) + raw
    return gzip.compress(bytes(made), mtime=0)


def _files(source: Path) -> Iterator[bytes]:
    if source.is_dir():
        yield from (path.read_bytes() for path in sorted(source.rglob("*")) if path.is_file())
        return
    with zipfile.ZipFile(source) as wheel:
        yield from (wheel.read(name) for name in wheel.namelist())


def main(source: Path) -> None:
    """Write the data files."""
    wanted = {expected_sha256(name): name for name in NAMES}
    for data in _files(source):
        name = wanted.pop(hashlib.sha256(data).hexdigest(), None)
        if name is not None:
            (DATA / f"{name}.ranks.gz").write_bytes(packed(data))
    if wanted:
        sys.exit(f"{source}: no file with the ranks of {', '.join(wanted.values())}")
    table = {"source": f"tiktoken {version('tiktoken')}", "licence": "MIT", "patterns": {n: pattern(n) for n in NAMES}}
    (DATA / "encodings.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
