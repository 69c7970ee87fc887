"""What a command was asked for, apart from the paths: one frozen value that every step gets."""

from msgspec import Struct

from compactctl.settings import Settings


class Options(Struct, frozen=True, kw_only=True):
    """The options of a run. Defaults belong to the command line; these are for tests and steps that need none."""

    format: str | None = None
    """Input format; None: recognised from content."""
    estimator: str = "heuristic"
    anchored: bool = True
    window_tokens: int | None = None
    model: str | None = None
    """The model that the window is looked up for, whatever the session says."""
    settings: Settings = Settings()
    apply: bool = False
    out: str | None = None
    allow_empty: bool = False
    debug: bool = False
