"""The table of errors by model, as lines of text: what is new since the anchor, on steps that no fit saw."""

from collections.abc import Iterator

from tests.bench.fitting.data import Data
from tests.bench.fitting.figures import by_model, described, errors
from tests.bench.fitting.held_out import held_out
from tests.bench.fitting.targets import TARGETS


def lines(data: Data) -> Iterator[str]:
    """Yield a line for each model and each way to estimate, held out by session and then by repository."""
    yield f"{'':28}{'':13}{'n':>5}{'bias':>9}{'median':>9}{'p90':>9}   held out by"
    for target in TARGETS:
        for by in ("session", "repository"):
            for model, own in by_model(held_out(data, target, by)):
                columns = {
                    "bytes / 3.5": [(found.step.heuristic, found.step.actual) for found in own],
                    "o200k": [(found.step.tiktoken, found.step.actual) for found in own],
                    "o200k x one": [(found.one_factor, found.step.actual) for found in own],
                    "calibrated": [(found.calibrated, found.step.actual) for found in own],
                }
                if target.version is not None:
                    columns["ctok"] = [(found.exact, found.step.actual) for found in own]
                for name, pairs in columns.items():
                    n, bias, median, p90 = described(errors(pairs))
                    yield f"{model:28}{name:13}{n:>5}{bias:>+9.1%}{median:>9.1%}{p90:>9.1%}   {by}"
