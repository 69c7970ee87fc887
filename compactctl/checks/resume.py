"""Resume: what an agent or a provider stumbles over when the session goes on.

What a format alone can know stands beside its code, and is asked of the format.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath, PureWindowsPath

from compactctl.checks.interface import Check, Subject
from compactctl.findings import Finding
from compactctl.formats import FORMATS
from compactctl.preview import saved_path
from compactctl.session import STANDARD_INPUT
from compactctl.texts import result_text

_FORMAT_RULES = tuple(
    dict.fromkeys(rule for format_ in FORMATS.values() if format_.check for rule in format_.check.rules)
)

DEEPEST = 4
"""So many of the last parts of a path are looked for beside a session that was moved."""


def by_format(subject: Subject) -> Iterable[Finding]:
    """Return what the session's format knows to be wrong."""
    check = subject.session.read.format.check
    return check.find(subject.session.document, subject.sized.transcript) if check else ()


def nobody_asks(subject: Subject) -> Iterator[Finding]:
    """Yield whether nothing in the context is a person's: a provider has nothing to answer."""
    if subject.session.read.format.printed_by:  # a log has no prompt in it, and nobody sends it
        return
    messages = subject.sized.transcript.messages
    if messages and not any(message.role == "user" and message.result is None for message in messages):
        roles = ", ".join(sorted({message.role for message in messages}))
        yield Finding(None, "refused-role", f"no message of role user in context, only {roles}")


def unreachable_outputs(subject: Subject) -> Iterator[Finding]:
    """Yield each preview in context whose file is neither where it says nor beside the session."""
    session = subject.session
    if session.path == STANDARD_INPUT or session.own_receipt is not None:
        return
    for message in subject.sized.transcript.messages:
        result = message.result
        if result is not None and result.is_preview:
            path = saved_path(result_text(session.document, result))
            if path is not None and not _is_there(path, session.path):
                yield Finding(message.line, "unreachable-output", f"{path} is not there")


def _is_there(path: str, session_path: str) -> bool:
    pure = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    folder = os.path.dirname(os.path.abspath(session_path))
    folders = (folder, os.path.dirname(folder), os.path.splitext(os.path.abspath(session_path))[0])
    tails = [pure.parts[-depth:] for depth in range(1, DEEPEST + 1) if depth < len(pure.parts)]
    if any(part == ".." for part in pure.parts):
        tails = []
    places = [path, *(os.path.join(base, *tail) for base in folders for tail in tails)]
    return any(map(_is_file, places))


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # a zero byte in it
        return False


CHECKS = (
    Check(_FORMAT_RULES, by_format),
    Check(("refused-role",), nobody_asks),
    Check(("unreachable-output",), unreachable_outputs),
)
