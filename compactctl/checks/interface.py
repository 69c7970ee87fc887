"""What a check is, and what it looks at."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from compactctl.findings import Finding
from compactctl.options import Options
from compactctl.session import Session
from compactctl.settings import Settings
from compactctl.survival import Loss
from compactctl.views import Sized


class Subject(Struct, frozen=True):
    """One session of an open file, measured. Nothing of it is written to."""

    session: Session
    sized: Sized
    options: Options
    is_first: bool
    """Whether it is the first session of its file: what is true of the file is said with that one."""
    losses: tuple[Loss, ...] = ()
    """What the compactions in it lost; none where no rule asks for that."""

    @property
    def settings(self) -> Settings:
        return self.options.settings


class Check(Struct, frozen=True):
    """A function that yields findings of these rules and no others. It is not called where none of them is wanted."""

    rules: tuple[str, ...]
    find: Callable[[Subject], Iterable[Finding]]
