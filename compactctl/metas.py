"""What stands in place of the summarised messages, in our words, and how it is known again by a later compaction.

Logs of messages take three (a summary, its acknowledgement, a reminder); an agent's own record of a compaction is the
summary alone, with the reminder in it.
"""

import re
from collections.abc import Sequence

import msgspec

from compactctl.formats.interface import Metas
from compactctl.story import Said

HEAD = (
    "The older part of this session gave way to the summary below; what comes after it stands in its own words.\n"
    "Summary by {writer} of {count} messages:\n\n"
)
DROPPED = "The summary knows nothing of the oldest {count} messages: no request had room for them.\n\n"
ACKNOWLEDGED = "Understood. I go on from this summary of the older part of our session."
REMINDER = (
    "The summary is not the original. The original lines of the older part are in {path} (JSON lines, as the session "
    "had them): search there, or read a file or run a command again, before you rely on a detail."
)

_HEAD = re.compile(re.escape(HEAD).replace(r"\{writer\}", r"[^\n]*").replace(r"\{count\}", r"[\d,]+"))
_DROPPED = re.compile(re.escape(DROPPED).replace(r"\{count\}", r"[\d,]+"))
_REMINDER = re.compile(re.escape(REMINDER).replace(r"\{path\}", r"[^\n]*"))


def compose(text: str, writer: str, count: int, path: str, dropped: int, *, has_own_record: bool) -> Metas:
    """Return the messages for a summary (facts included) that `writer` made of so many messages.

    `path` is where their lines are; `dropped` so many of them were in no request.
    """
    head = HEAD.format(writer=writer, count=f"{count:,}") + (DROPPED.format(count=f"{dropped:,}") if dropped else "")
    reminder = REMINDER.format(path=path)
    if has_own_record:
        return Metas(f"{head}{text}\n\n{reminder}")
    return Metas(head + text, ACKNOWLEDGED, reminder)


def split(said: Sequence[Said]) -> tuple[Said, ...]:
    """Return the messages as they were said: of an earlier summary of ours its text alone, and nothing else of it."""
    return tuple(_own(each) for each in said if each.calls or each.result or not is_ours(each.text))


def is_ours(text: str) -> bool:
    """Return whether a message says nothing but what stands behind every summary of ours."""
    return text.strip() == ACKNOWLEDGED or bool(_REMINDER.fullmatch(text.strip()))


def _own(said: Said) -> Said:
    if not said.is_summary:
        return said
    return msgspec.structs.replace(said, text=inner(said.text))


def inner(text: str) -> str:
    """Return the summary in a message of ours; any other text as it is."""
    head = _HEAD.search(text)
    if head is None:
        return text
    text = text[head.end() :]
    dropped = _DROPPED.match(text)
    text = text[dropped.end() :] if dropped else text
    reminder = list(_REMINDER.finditer(text))
    return (text[: reminder[-1].start()] if reminder else text).strip()
