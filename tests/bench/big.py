"""What `make bench-big` prints: peak memory and CPU time over one session of 2 GB, beside the bound that is aimed at.

    python -m tests.bench.big [BYTES]

The session is generated into a temporary folder and removed afterwards; six times its size must be free there.
"""

import json
import random
import sys
import tempfile
from pathlib import Path

from tests.bench.__main__ import cost
from tests.bench.generate import SEED, Session

SIZE_BYTES = 2_000_000_000
BASE_BYTES, LINES_HELD, BYTES_A_LINE = 300_000_000, 3, 200
"""The bound: so much, three times the largest line, and so much for each line."""


def write(path: Path, size_bytes: int) -> tuple[int, int]:
    """Write a session of about this size; return its lines and its largest one."""
    written = count = largest = 0
    with path.open("wb") as file:
        for line in Session(random.Random(SEED), 0).lines():
            raw = json.dumps(line).encode() + b"\n"
            file.write(raw)
            written, count, largest = written + len(raw), count + 1, max(largest, len(raw))
            if written >= size_bytes:
                return count, largest
    raise AssertionError("a session has lines without end")


def main() -> None:
    size_bytes = int(sys.argv[1]) if len(sys.argv) > 1 else SIZE_BYTES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.jsonl"
        lines, largest = write(path, size_bytes)
        bound = BASE_BYTES + LINES_HELD * largest + BYTES_A_LINE * lines
        print(f"{path.stat().st_size / 1e6:,.0f} MB, {lines:,} lines, the largest {largest / 1e6:.1f} MB; "
              f"bound {bound / 1e6:,.0f} MB")  # fmt: skip
        compactctl = [sys.executable, "-m", "compactctl"]
        loop = "import sys, json\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
        spilled = path.with_name("big.compacted.jsonl")
        commands = {"json.loads, every line": [sys.executable, "-c", loop, str(path)]}
        for name, words in {
            "compactctl inspect": ["inspect", path],
            "compactctl spill": ["spill", path],
            "  --apply": ["spill", "--apply", path],
            "  verify of that": ["verify", spilled],
            "  restore of that": ["restore", "--out", Path(folder) / "restored", spilled],
            "  --apply --new-session": ["spill", "--apply", "--new-session", path],
        }.items():
            commands[name] = [*compactctl, *map(str, words), "-q", "-o", "json"]
        for name, command in commands.items():
            once = cost(command)
            print(f"{name:26}{once.cpu_s:>8.1f} s of CPU{once.peak_bytes / 1e6:>8,.0f} MB at its peak")


if __name__ == "__main__":
    main()
