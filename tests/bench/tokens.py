"""What `make bench-tokens` prints: what `estimate --estimator tiktoken` takes beside a plain loop over the same texts.

    python -m tests.bench.tokens [FOLDER]

The loop has the texts of the effective contexts ready in memory, repeats included, and does nothing but
`encode_ordinary`; its CPU time is that of the loop alone. Somebody who writes such a loop has to read the sessions as
well: the baseline has `json.loads` of every line in it. What `estimate` takes has all in it: starting, reading the
sessions, fetching the texts. Both are the median of several runs of processes of their own, taken in turn.
"""

import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from compactctl.session import opened
from compactctl.texts import counted
from tests.bench.__main__ import ENVIRONMENT, FOLDER, Cost, cost, median
from tests.bench.generate import generate

RUNS = 5

_LOOP = """
import sys, time, msgspec
from compactctl.estimators.encodings import bundled
encode = bundled("o200k_base")._encoding.encode_ordinary
texts = [text for path in sys.argv[1:] for text in msgspec.json.decode(open(path, "rb").read(), type=list[str])]
began = time.process_time()
print(sum(len(encode(text)) for text in texts), time.process_time() - began)
"""

_PARSE = """
import sys, json
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        for line in file:
            json.loads(line)
"""


def main(paths: Sequence[str]) -> None:
    dumped = FOLDER / "texts"
    shutil.rmtree(dumped, ignore_errors=True)
    dumped.mkdir(parents=True)
    size = sum(os.path.getsize(path) for path in paths)
    texts, files = [], []
    for index, path in enumerate(paths):
        own = _texts(path)
        texts += own
        files.append(str(dumped / f"{index}.json"))
        Path(files[-1]).write_bytes(msgspec.json.encode(own))
    counted_bytes = sum(len(text.encode()) for text in texts)
    once = sum(len(text.encode()) for text in set(texts))
    print(f"{len(paths)} sessions, {size / 1e6:.0f} MB; {counted_bytes / 1e6:.1f} MB of text in context, "
          f"{100 * once / counted_bytes:.0f} % of it once; "
          f"Python {platform.python_version()}, median of {RUNS}")  # fmt: skip
    loops: list[tuple[int, float]] = []
    parses: list[Cost] = []
    estimates: dict[int, list[Cost]] = {1: [], 2: []}
    start_ups: list[Cost] = []
    small = str(dumped / "small.jsonl")
    Path(small).write_bytes(b'{"role": "user", "content": "hello"}\n')
    for _ in range(RUNS):
        loops.append(_loop(files))
        parses.append(cost([sys.executable, "-c", _PARSE, *paths]))
        for jobs, costs in estimates.items():
            costs.append(cost(_estimate(paths, "-j", str(jobs))))
        start_ups.append(cost(_estimate([small])))
    tokens, loop_s = loops[0][0], statistics.median(taken for _, taken in loops)
    base_s = loop_s + median(parses).cpu_s
    print(f"\n{'':34}{'CPU':>9}{'MB/s of text':>14}{'of the loops':>13}{'wall':>10}{'peak memory':>13}")
    print(
        f"{'encode_ordinary in a loop':34}{loop_s:>7.2f} s{counted_bytes / 1e6 / loop_s:>14.1f}{loop_s / base_s:>13.2f}"
    )
    print(f"{'  and json.loads of the sessions':34}{base_s:>7.2f} s{counted_bytes / 1e6 / base_s:>14.1f}{1:>13.2f}")
    for jobs, costs in estimates.items():
        middle = median(costs)
        print(f"{f'estimate --estimator tiktoken -j {jobs}':34}{middle.cpu_s:>7.2f} s"
              f"{counted_bytes / 1e6 / middle.cpu_s:>14.1f}{middle.cpu_s / base_s:>13.2f}{middle.wall_s:>8.2f} s"
              f"{middle.peak_bytes / 1e6:>10.0f} MB")  # fmt: skip
    start_up = median(start_ups)
    print(f"{'  of which to start (one line)':34}{start_up.cpu_s:>7.2f} s{'':>14}{start_up.cpu_s / base_s:>13.2f}"
          f"{start_up.wall_s:>8.2f} s{start_up.peak_bytes / 1e6:>10.0f} MB")  # fmt: skip
    print(f"\n{tokens:,} tokens in the loop, {_total(paths) - tokens:+,} in estimate (media and sealed reasoning)")


def _texts(path: str) -> list[str]:
    """Return every text that counts in a session file, in order."""
    with opened(path, None) as session:
        messages = [message for transcript in session.read.transcripts for message in transcript.messages]
        return [text for message in messages for _, text in counted(message, session.document)]


def _estimate(paths: Sequence[str], *options: str) -> list[str]:
    command = [sys.executable, "-m", "compactctl", "estimate", "--estimator", "tiktoken:o200k_base", "--no-anchor"]
    return [*command, "-q", "-o", "jsonl", *options, *paths]


def _loop(files: Sequence[str]) -> tuple[int, float]:
    done = subprocess.run(
        [sys.executable, "-c", _LOOP, *files], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    tokens, taken = done.stdout.split()
    return int(tokens), float(taken)


def _total(paths: Sequence[str]) -> int:
    done = subprocess.run(_estimate(paths), capture_output=True, check=True, env=ENVIRONMENT)
    rows = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    return sum(row["estimates"]["tiktoken:o200k_base"] for row in rows if "estimates" in row)


if __name__ == "__main__":
    folder = sys.argv[1:]
    main([str(path) for path in (sorted(Path(folder[0]).glob("*.jsonl")) if folder else generate(FOLDER))])
