"""What `make bench` prints: CPU time and peak memory of `inspect`, `audit` and `spill` beside bare loops over the same
files, what two jobs gain, and start-up.

    python -m tests.bench [PROGRAM]

PROGRAM is compactctl as it is installed for a user; loops run on the Python beside it. Each figure is the median of
several runs of a process of its own. All are run in turn, and a ratio is the median of the ratios within each turn: a
machine's own speed changes from one second to the next.
"""

import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.generate import generate

RUNS = 7
FOLDER = Path(__file__).parents[2] / ".cache" / "bench"
OUT = str(FOLDER / "out")
SMALL = str(Path(__file__).parents[2] / "sample_sessions" / "chat.jsonl")
COPIES = 4, 12
"""How often the files stand in the folders that two jobs share: start-up, which is not shared, weighs less in a larger
one."""

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

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


def cost(command: Sequence[str], environment: Mapping[str, str] = ENVIRONMENT) -> Cost:
    """Run a command and return what it took, or leave where it failed."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
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
    lines = sum(map(line_count, paths))
    print(f"{len(paths)} sessions, {size / 1e6:.0f} MB, {lines:,} lines, {size / lines / 1e3:.1f} kB a line; "
          f"Python {platform.python_version()}, median of {RUNS}")  # fmt: skip
    compactctl, python = program()

    def on(command: str, files: Sequence[str], *options: str) -> list[str]:
        return [*compactctl, command, "-q", "-o", "json", *options, *files]

    measured = runs({
        LOOP: [python, "-c", _LOOP.format(module="json"), *paths],
        START_UP: on("inspect", [SMALL]),
        "compactctl inspect -j 1": on("inspect", paths, "-j", "1"),
        "compactctl spill -j 1": on("spill", paths, "-j", "1"),
        "  --apply, fresh folder": on("spill", paths, "-j", "1", "--apply", "--out", OUT),
        "orjson.loads, every line": [python, "-c", _LOOP.format(module="orjson"), *paths],
        "compactctl audit -j 1, without secrets": on("audit", paths, "-j", "1", "--fail-on", "never", "--no-secrets"),
        "compactctl audit -j 1": on("audit", paths, "-j", "1", "--fail-on", "never"),
    })  # fmt: skip
    bases = [loop.cpu_s + start_up.cpu_s for loop, start_up in zip(measured[LOOP], measured[START_UP], strict=True)]
    print(f"\n{'':40}{'CPU':>9}{'of json.loads + start-up':>26}{'wall':>9}{'peak memory':>14}")
    for name, costs in measured.items():
        middle = median(costs)
        ratio = statistics.median(each.cpu_s / base for each, base in zip(costs, bases, strict=True))
        print(f"{name:40}{middle.cpu_s:>7.2f} s{ratio:>26.2f}{middle.wall_s:>7.2f} s"
              f"{middle.peak_bytes / 1e6:>11.0f} MB")  # fmt: skip

    print()
    for times in COPIES:
        many = copies(paths, times)
        jobs = runs({f"inspect -j {count}": on("inspect", many, "-j", str(count)) for count in (1, 2)})
        one, two = (median(costs).wall_s for costs in jobs.values())
        gains = sorted(alone.wall_s / both.wall_s for alone, both in zip(*jobs.values(), strict=True))
        print(f"{len(many)} files, {times * size / 1e6:.0f} MB: inspect -j 1 {one:.2f} s, -j 2 {two:.2f} s, "
              f"{statistics.median(gains):.2f} times the throughput "
              f"({gains[0]:.2f} to {gains[-1]:.2f}; {os.cpu_count()} cores)")  # fmt: skip
    for words in (["--help"], ["inspect", "--help"]):
        started = median([cost([*compactctl, *words]) for _ in range(RUNS * 2)])
        name = "compactctl " + " ".join(words)
        print(f"{name:40}{started.cpu_s * 1000:>6.0f} ms of CPU, {started.wall_s * 1000:.0f} ms until it has ended")


def program() -> tuple[list[str], str]:
    """Return how compactctl is called, and the Python that it runs on: installed, or from where this module is."""
    if len(sys.argv) < 2:
        return [sys.executable, "-m", "compactctl"], sys.executable
    installed = Path(sys.argv[1]).absolute()
    return [str(installed)], str(installed.with_name("python"))


def line_count(path: str) -> int:
    """Return the lines of a file. It is not held: what this process holds, its children are charged with."""
    with open(path, "rb") as file:
        return sum(1 for _ in file)


LOOP = "json.loads, every line"
START_UP = "start-up: compactctl inspect, 5 lines"


def runs(commands: Mapping[str, Sequence[str]]) -> dict[str, list[Cost]]:
    """Return what each command took each time, all run in turn.

    What is written goes to another folder in each turn, and all of it is removed at the end: ext4 may take its time to
    find an inode where many were freed within the last minute, which is nothing that a user would see. But it is
    emptied at once, so that the next turn writes into memory that was in use: the first touch of a page that a host has
    not given its virtual machine yet is charged to whoever touches it, and may double the system's share.
    """
    shutil.rmtree(OUT, ignore_errors=True)
    measured: dict[str, list[Cost]] = {name: [] for name in commands}
    for turn in range(RUNS):
        for name, command in commands.items():
            measured[name].append(cost([f"{OUT}/{turn}" if word == OUT else word for word in command]))
        for written in Path(OUT, str(turn)).rglob("*"):
            if written.is_file():
                os.truncate(written, 0)
    shutil.rmtree(OUT, ignore_errors=True)
    return measured


def copies(paths: Sequence[str], times: int) -> list[str]:
    """Return the files so many times over, under names of their own."""
    folder = FOLDER / "many"
    shutil.rmtree(folder, ignore_errors=True)
    made = []
    for index in range(times):
        (folder / str(index)).mkdir(parents=True)
        for path in paths:
            name = folder / str(index) / Path(path).name
            os.link(path, name)
            made.append(str(name))
    return made


if __name__ == "__main__":
    main()
