"""Make the calibration profile that the package ships, from a corpus of real sessions.

    python -m tests.scripts.make_profile CORPUS

Needs Python 3.12 or newer with the packages ctok and numpy (`make profile` sets that up).
"""

import importlib.metadata
import sys
from pathlib import Path

import msgspec

from compactctl.profiles import Profile
from tests.bench.fitting.data import Data, load, own_steps
from tests.bench.fitting.family import family
from tests.bench.fitting.targets import TARGETS, Target
from tests.bench.fitting.weights import packed

DATA = Path(__file__).parents[2] / "compactctl" / "data"

NAME = "shipped-1"


def source(data: Data, target: Target) -> str:
    """Return in words what a family was fitted on."""
    own = [step for step in own_steps(data, target) if not step.has_answer]
    texts = (
        ""
        if target.version is None
        else (
            f"{len(data.texts.texts):,} texts counted by ctok {importlib.metadata.version('ctok')} ({target.version}); "
        )
    )
    return (
        f"{texts}{len(own):,} steps of {len({step.session for step in own})} sessions of "
        f"{len({step.repository for step in own})} repositories"
    )


def main() -> None:
    data = load(Path(sys.argv[1]))
    families = []
    for target in TARGETS:
        made, weights = family(data, target, source(data, target))
        families.append(made)
        if weights is not None:
            DATA.joinpath(f"{target.name}.weights.gz").write_bytes(packed(weights))
    raw = msgspec.json.format(msgspec.json.encode(Profile(name=NAME, families=tuple(families))), indent=2)
    DATA.joinpath("profile.json").write_bytes(raw + b"\n")


if __name__ == "__main__":
    main()
