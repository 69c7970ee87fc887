"""Where agents keep their sessions, and a session found there by its id.

Claude Code names a file `<id>.jsonl` and moves its folder with CLAUDE_CONFIG_DIR; Codex `rollout-<time>-<id>.jsonl`,
with CODEX_HOME; pi `<time>_<id>.jsonl`, with PI_CODING_AGENT_DIR. So the id is the UUID that a name ends in, and
where there is none (subagents of Claude Code: `agent-<id>`) the name as a whole.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from compactctl.layout import COMPACTED, stem

LEAST_CHARACTERS = 8
"""How much of an id has to be written: what agents themselves show of it."""

_ID = re.compile(r"[0-9A-Za-z][\w-]*")
_UUID_AT_END = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def folders(environment: Mapping[str, str], home: str) -> list[Path]:
    """Return the folders that agents keep sessions in, in this environment."""
    claude = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(home, ".claude"))
    codex = Path(environment.get("CODEX_HOME") or Path(home, ".codex"))
    pi = Path(environment.get("PI_CODING_AGENT_DIR") or Path(home, ".pi", "agent"))
    return [claude / "projects", codex / "sessions", codex / "archived_sessions", pi / "sessions"]


def may_be_id(text: str) -> bool:
    """Return whether a text may be (the start of) a session's id: long enough, and no path."""
    return len(text) >= LEAST_CHARACTERS and _ID.fullmatch(text) is not None


def session_id(file_name: str) -> str:
    """Return the id in the name of a session's file, in small letters; of what compaction wrote, its source's."""
    name = stem(file_name).removesuffix(COMPACTED).lower()
    found = _UUID_AT_END.search(name)
    return found[0] if found else name


def sessions(start: str, places: Sequence[Path]) -> list[str]:
    """Return the files whose session's id starts so, each once; a packed one only where it is not there unpacked."""
    found = {os.path.realpath(path): path for folder in places for path in _starting(start.lower(), folder)}
    paths = sorted(found.values())
    return [path for path in paths if path.removesuffix(".zst") not in paths or not path.endswith(".zst")]


def _starting(start: str, folder: Path) -> Iterator[str]:
    for top, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.endswith(COMPACTED)]
        for name in names:
            if session_id(name).startswith(start):
                yield os.path.join(top, name)
