"""Commands of the user's before and after a compaction; each gets what is known as JSON on standard input."""

import os
import subprocess
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from compactctl.errors import HookFailed
from compactctl.json_text import write_json
from compactctl.redact import redact

Event = Literal["pre_compact", "post_compact"]

SAID_CHARACTERS = 300
"""How much of what a failing hook says is repeated."""


class Payload(Struct, frozen=True, omit_defaults=False):
    """What a hook is told."""

    event: Event
    trigger: str
    """`auto` (compact) or `manual` (summarize)."""
    path: str
    session_id: str | None
    before_tokens: int
    after_tokens: int | None = None
    output: str | None = None
    report: str | None = None
    history: str | None = None
    status: str | None = None
    error: Mapping[str, Any] | None = None


def run(command: str | None, payload: Payload, timeout_s: float) -> None:
    """Run a hook through the shell and wait for it. Raises HookFailed where it fails or takes too long."""
    if not command:
        return
    name = payload.event
    try:
        done = subprocess.run(
            command,
            shell=True,
            input=write_json(payload) + b"\n",
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env={**os.environ, "COMPACTCTL_EVENT": name},
        )
    except subprocess.TimeoutExpired:
        raise HookFailed(f"{payload.path}: the hook {name} took longer than {timeout_s:g} s") from None
    except OSError as error:
        raise HookFailed(f"{payload.path}: the hook {name} can't be run: {error.strerror or error}") from None
    if done.returncode != 0:
        said = redact(" ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())).text
        reason = f": {said[:SAID_CHARACTERS]}" if said else ""
        raise HookFailed(f"{payload.path}: the hook {name} failed with exit code {done.returncode}{reason}")
