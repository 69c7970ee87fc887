"""What `make bench-peers` prints: other tools over the files of `make bench`, beside ours and a bare loop, in one run.

    python -m tests.bench.peers FOLDER

FOLDER is where `tests/bench/install_peers` has put them; one that is not there is left out, and said so, as is one that
does not find the sessions. All run in a home of their own: some change what they find there.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.__main__ import ENVIRONMENT, FOLDER, RUNS, cost, median
from tests.bench.generate import generate

SESSIONS = {"compactctl inspect -j 1": "sessions", "ccusage": "sessions", "claude-context-cost": "transcripts"}
"""Where the output of a tool that looks for the sessions itself lists them."""


def home_of(paths: list[Path]) -> Path:
    """Return a home whose Claude Code folder holds the sessions, as links: the peers look there."""
    home = FOLDER / "home"
    project = home / ".claude" / "projects" / "-home-dev-tidewatch"
    project.mkdir(parents=True, exist_ok=True)
    for path in paths:
        link = project / path.name
        if not link.exists():
            os.link(path, link)
    return home


def sessions_found(command: Sequence[str], key: str, environment: Mapping[str, str]) -> int:
    """Return how many sessions a tool's JSON lists: one that looks where none are is fast."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False)
    return len(json.loads(ended.stdout)[key]) if ended.returncode == 0 else 0


def main() -> None:
    peers = Path(sys.argv[1])
    paths = generate(FOLDER)
    home = home_of(paths)
    environment = ENVIRONMENT | {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")}
    project = str(home / ".claude" / "projects")
    loop = "import sys, json\nfor path in sys.argv[1:]:\n for line in open(path, 'rb'): json.loads(line)"
    commands = {
        "json.loads, every line": [sys.executable, "-c", loop, *map(str, paths)],
        "compactctl inspect -j 1": [sys.executable, "-m", "compactctl", "inspect", "-j1", "-q", "-ojson", project],
        "ccusage": [str(peers / "node_modules" / ".bin" / "ccusage"), "claude", "session", "--json", "--offline"],
        "claude-context-cost": [str(peers / "venv" / "bin" / "claude-context-cost"), project, "--json"],
        "cozempic (largest session)": [
            str(peers / "venv" / "bin" / "cozempic"), "diagnose", str(max(paths, key=lambda path: path.stat().st_size))
        ],
    }  # fmt: skip
    for name, command in commands.items():
        if not Path(command[0]).exists():
            print(f"{name:28}left out: not installed in {peers}")
            continue
        if name in SESSIONS and (found := sessions_found(command, SESSIONS[name], environment)) != len(paths):
            print(f"{name:28}left out: found {found} of {len(paths)} sessions")
            continue
        try:
            middle = median([cost(command, environment) for _ in range(RUNS)])
        except SystemExit as error:
            print(f"{name:28}left out: {error}")
            continue
        print(f"{name:28}{middle.cpu_s:>7.2f} s of CPU{middle.peak_bytes / 1e6:>8,.0f} MB at its peak")


if __name__ == "__main__":
    main()
