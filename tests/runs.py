"""Commands run on one file, for the tests that look at whole files."""

import msgspec

from compactctl import run
from compactctl.options import Options

APPLY = Options(apply=True)


def only(batch):
    """Return the one outcome of a batch."""
    assert len(batch.outcomes) == 1
    return batch.outcomes[0]


def spill(path, options=APPLY, **more):
    """Return the outcome of `spill` on a file; `more` are changes to the options."""
    return only(run.spill([str(path)], msgspec.structs.replace(options, **more)))


def restore(path, options=APPLY, **more):
    """Return the outcome of `restore` on a file; `more` are changes to the options."""
    return only(run.restore([str(path)], msgspec.structs.replace(options, **more)))


def files_in(folder):
    """Return the files below a folder, by their paths from there."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
