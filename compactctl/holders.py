"""Which other processes hold a file open, as far as the system tells."""

import glob
import os
import sys
from pathlib import Path


def pids(path: Path) -> list[int]:
    """Return the other processes that hold a file open, as far as the system tells (Linux; macOS by lsof)."""
    if sys.platform == "darwin":
        return _pids_by_lsof(path)
    target = os.path.realpath(path)
    found = []
    for process in glob.glob("/proc/[0-9]*"):
        pid = int(os.path.basename(process))
        if pid != os.getpid() and any(_link_target(link) == target for link in glob.glob(f"{process}/fd/*")):
            found.append(pid)
    return sorted(found)


def _link_target(link: str) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None


def _pids_by_lsof(path: Path) -> list[int]:
    import subprocess

    command = ["/usr/sbin/lsof", "-t", "--", str(path)]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return sorted(int(pid) for pid in told.stdout.split() if pid.isdigit() and int(pid) != os.getpid())
