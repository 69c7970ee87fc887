"""What `make bench` prints: CPU time and peak memory of `inspect` and `spill` beside bare loops over the same files,
what two jobs gain, and start-up.

    python -m tests.bench

Each figure is the median of several runs of a process of its own; all are measured in the same session, so that the
ratios hold on any machine.
"""

import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.generate import generate

RUNS = 5
FOLDER = Path(__file__).parents[2] / ".cache" / "bench"
OUT = str(FOLDER / "out")
SMALL = str(Path(__file__).parents[2] / "sample_sessions" / "chat.jsonl")

_LOOP = """
import sys, {module}
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        for line in file:
            {module}.loads(line)
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a process took."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


def cost(command: Sequence[str]) -> Cost:
    """Run a command and return what it took, or leave where it failed."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command[:6])} … ended with {process.returncode}")
    peak = usage.ru_maxrss if platform.system() == "Darwin" else usage.ru_maxrss * 1024
    return Cost(usage.ru_utime + usage.ru_stime, wall, peak)


def median(costs: Sequence[Cost]) -> Cost:
    """Return the medians of each figure."""
    return Cost(
        statistics.median(item.cpu_s for item in costs),
        statistics.median(item.wall_s for item in costs),
        int(statistics.median(item.peak_bytes for item in costs)),
    )


def main() -> None:
    paths = [str(path) for path in generate(FOLDER)]
    size = sum(os.path.getsize(path) for path in paths)
    lines = sum(Path(path).read_bytes().count(b"\n") for path in paths)
    print(f"{len(paths)} sessions, {size / 1e6:.0f} MB, {lines:,} lines, {size / lines / 1e3:.1f} kB a line; "
          f"Python {platform.python_version()}, median of {RUNS}")  # fmt: skip
    compactctl = [sys.executable, "-m", "compactctl"]
    commands = {
        "json.loads, every line": [sys.executable, "-c", _LOOP.format(module="json"), *paths],
        "orjson.loads, every line": [sys.executable, "-c", _LOOP.format(module="orjson"), *paths],
        "compactctl inspect -j 1": [*compactctl, "inspect", "-j", "1", "-q", "-o", "json", *paths],
        "compactctl inspect -j 2": [*compactctl, "inspect", "-j", "2", "-q", "-o", "json", *paths],
        "compactctl spill -j 1": [*compactctl, "spill", "-j", "1", "-q", "-o", "json", *paths],
        "  --apply, fresh folder": [
            *compactctl,
            "spill",
            "-j",
            "1",
            "-q",
            "-o",
            "json",
            "--apply",
            "--out",
            OUT,
            *paths,
        ],
    }
    measured: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            shutil.rmtree(OUT, ignore_errors=True)
            measured[name].append(cost(command))
    shutil.rmtree(OUT, ignore_errors=True)
    base = median(measured["json.loads, every line"]).cpu_s
    print(f"\n{'':26}{'CPU':>9}{'of json.loads':>15}{'wall':>9}{'peak memory':>14}")
    for name, costs in measured.items():
        middle = median(costs)
        print(f"{name:26}{middle.cpu_s:>7.2f} s{middle.cpu_s / base:>15.2f}{middle.wall_s:>7.2f} s"
              f"{middle.peak_bytes / 1e6:>11.0f} MB")  # fmt: skip
    one, two = (median(measured[f"compactctl inspect -j {jobs}"]).wall_s for jobs in (1, 2))
    print(f"\ntwo jobs: {one / two:.2f} times the throughput of one ({os.cpu_count()} cores)")
    for words in (["--help"], ["inspect", "--help"], ["inspect", SMALL]):
        started = median([cost([*compactctl, *words]) for _ in range(RUNS * 2)])
        name = "compactctl " + " ".join(words).replace(SMALL, "(5 lines)")
        print(f"{name:26}{started.cpu_s * 1000:>6.0f} ms of CPU, {started.wall_s * 1000:.0f} ms until it has ended")


if __name__ == "__main__":
    main()
