"""What can go wrong, as a tree; each class carries its exit code.

CompactctlError
├── UsageError            2   wrong options or settings
│   └── OutputCollision   2   two inputs would write the same output
├── ReadError             3   an input could not be read as a session
│   ├── NotFound          3   no such file or folder
│   ├── Unreadable        3   it exists, but the system will not let us read it
│   ├── UnknownFormat     3   no format recognises it
│   ├── EmptySession      3   nothing in it
│   ├── NoSession         3   no session among the inputs
│   └── NoReceipt         3   not something that compaction wrote
├── OverTarget            4   the smallest legal result is still over the threshold
├── WriteError            6   an output could not be written
│   ├── SpillFailed       6   a spill could not be written; its result stays where it was
│   ├── OutputChanged     6   an output exists and is not what our receipt says
│   └── SourceChanged     6   the source changed while it was read
├── VerifyError           7   a result failed its own verification
│   └── NotRestorable     7   what restore gives is not the original
├── Interrupted         130   stopped by the user
└── Bug                  70   a bug in compactctl
"""

import re


class CompactctlError(Exception):
    """An expected failure: one line for people, a code for machines, an exit code."""

    exit_code = 70

    @property
    def code(self) -> str:
        """The class name in snake case, as it stands in JSON under `error.code`."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()


class UsageError(CompactctlError):
    exit_code = 2


class OutputCollision(UsageError):
    pass


class ReadError(CompactctlError):
    exit_code = 3


class NotFound(ReadError):
    pass


class Unreadable(ReadError):
    pass


class UnknownFormat(ReadError):
    pass


class EmptySession(ReadError):
    pass


class NoSession(ReadError):
    pass


class NoReceipt(ReadError):
    pass


class OverTarget(CompactctlError):
    exit_code = 4


class WriteError(CompactctlError):
    exit_code = 6


class SpillFailed(WriteError):
    pass


class OutputChanged(WriteError):
    pass


class SourceChanged(WriteError):
    pass


class VerifyError(CompactctlError):
    exit_code = 7


class NotRestorable(VerifyError):
    pass


class Interrupted(CompactctlError):
    exit_code = 130


class Bug(CompactctlError):
    exit_code = 70
