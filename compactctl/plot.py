"""Errors as a picture: by estimator, and by the length of the context. Needs matplotlib, which is an extra."""

import io
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from compactctl.errors import UsageError
from compactctl.predictions import Row

KINDS = (".svg", ".png")

MOST_POINTS = 5_000


def require(path: str) -> None:
    """Raise UsageError where no picture can be made for a file of this name."""
    if not path.endswith(KINDS):
        raise UsageError(f"--plot {path}: write a name that ends in {' or '.join(KINDS)}")
    _figure_class()


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("--plot needs matplotlib: pip install 'compactctl[plot]'") from None
    return Figure


def plotted(rows: Sequence[Row], path: str) -> bytes:
    """Return the picture: boxes of the error on what is new, and the error of the next request by context length."""
    import matplotlib

    figure = _figure_class()(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    new: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.way == "new":
            new[row.estimator].append(100 * row.error)
    if new:
        left.boxplot(list(new.values()), whis=(5, 95), showfliers=False)
        left.set_xticks(range(1, len(new) + 1), list(new))
    left.axhline(0, linewidth=0.5)
    left.set_ylabel("error on what is new, % (box: quartiles; whiskers: p5, p95)")
    for name in new:
        points = [row for row in rows if row.way == "next" and row.estimator == name]
        points = points[:: max(1, len(points) // MOST_POINTS)]
        right.plot([row.context_tokens for row in points], [100 * row.error for row in points], ".", ms=2, label=name)
    right.set_yscale("symlog", linthresh=0.1)
    right.set_xlabel("context, tokens")
    right.set_ylabel("error of the next request, %")
    if new:
        right.legend()
    held = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "compactctl"}):
        figure.savefig(held, format=path[-3:], metadata={"Date": None} if path.endswith(".svg") else None)
    return held.getvalue()
