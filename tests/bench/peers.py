"""What `make bench-peers` prints: other tools over the files of `make bench`, beside ours and a bare loop, in one run.

    python -m tests.bench.peers FOLDER

FOLDER is where `tests/bench/install_peers` has put them; one that is not there is left out, and said so.
"""

import os
import sys
from pathlib import Path

from tests.bench.__main__ import FOLDER, RUNS, cost, median
from tests.bench.generate import generate


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


def main() -> None:
    peers = Path(sys.argv[1])
    paths = generate(FOLDER)
    home = home_of(paths)
    os.environ |= {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")}
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
        try:
            middle = median([cost(command) for _ in range(RUNS)])
        except SystemExit as error:
            print(f"{name:28}left out: {error}")
            continue
        print(f"{name:28}{middle.cpu_s:>7.2f} s of CPU{middle.peak_bytes / 1e6:>8,.0f} MB at its peak")


if __name__ == "__main__":
    main()
