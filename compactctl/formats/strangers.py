"""Records that a format does not know: counted, and told once a kind, so that none is passed over in silence."""

from collections.abc import Callable

from compactctl.findings import Finding


def counted(kind: str, count: int) -> str:
    """Return how many records of a kind there are."""
    return f"one {kind}" if count == 1 else f"{count:,} {kind}"


def not_read(kind: str, count: int) -> str:
    """Return that records of a kind are not read, where their finding stands at the first of them."""
    which = "not read" if count == 1 else f"{count:,} of them, the first here; not read"
    return f"{kind}: {which}"


class Strangers:
    """The records that are not known, by what each is, in words."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[int, int]] = {}

    def note(self, kind: str, line: int) -> None:
        """Count one."""
        first, count = self._kinds.get(kind, (line, 0))
        self._kinds[kind] = first, count + 1

    def findings(self, words: Callable[[str, int], str] = counted) -> list[Finding]:
        """Return a finding for each kind, at its first line: `words` of the kind and of how many there are."""
        return [Finding(line, "unknown-record", words(kind, count)) for kind, (line, count) in self._kinds.items()]
