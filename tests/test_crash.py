"""An apply that dies, or meets a full disk, at every point where it touches the disk.

Each child process counts the calls that change the file system and stops at the n-th: killed at once, with no
clean-up (`os._exit`), or refused by the system. Whatever the point, the source is as it was, every file that is
there is whole, and the next run completes.
"""

import errno
import json
import os

import pytest

from compactctl import run
from compactctl.options import Options
from tests.builders.big_chat import big_chat

APPLY = Options(apply=True)
KILLED, RAN_THROUGH, FAILED_CLEARLY = 99, 98, 6
MOST_POINTS = 150


def child(path, point, failure):
    """Run an apply in a forked child that fails at the `point`-th change; return its exit code."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        counter = fail_at(point, failure)
        batch = run.spill([str(path)], APPLY)
        os._exit(batch.exit_code if counter["changes"] >= point else RAN_THROUGH)
    except BaseException:
        os._exit(70)


def fail_at(point, failure):
    """Make the `point`-th change to the file system fail in this process; return the counter of changes."""
    counter = {"changes": 0}

    def count():
        counter["changes"] += 1
        if counter["changes"] == point:
            if failure == "kill":
                os._exit(KILLED)
            raise OSError(errno.ENOSPC, "No space left on device")

    def counted(real):
        def changing(*args, **kwargs):
            if real is not os_open or args[1] & os.O_WRONLY:
                count()
            return real(*args, **kwargs)

        return changing

    class Counted:
        """A file whose writes count; half of what was to be written is there when one fails."""

        def __init__(self, file):
            self._file = file

        def write(self, data):
            self._file.write(data[: len(data) // 2])
            self._file.flush()
            count()
            self._file.write(data[len(data) // 2 :])

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self._file.close()

        def __getattr__(self, name):
            return getattr(self._file, name)

    os_open, os_fdopen = os.open, os.fdopen
    for name in ("open", "mkdir", "replace", "rename", "link", "fsync", *(["unlink"] if failure == "kill" else [])):
        setattr(os, name, counted(getattr(os, name)))
    os.fdopen = lambda descriptor, mode: (
        Counted(os_fdopen(descriptor, mode)) if "w" in mode else os_fdopen(descriptor, mode)
    )
    return counter


def every_file_is_whole(folder, source):
    """Assert that what is there under a final name is what a run writes, never half of it."""
    assert (folder / "s.jsonl").read_bytes() == source
    compacted = folder / "s.compacted.jsonl"
    if compacted.exists():
        assert compacted.read_bytes().endswith(b"\n")
        assert (folder / "s.compacted" / "originals.jsonl").exists()
    report = folder / "s.compacted.report.json"
    if report.exists():
        json.loads(report.read_bytes())
        assert compacted.exists()
    spills = folder / "s.compacted" / "tool-results"
    for spilled in spills.glob("call*.txt") if spills.exists() else []:
        assert spilled.stat().st_size in (60_000, 70_000, 80_000)


def completes(folder, path, source):
    """Assert that the next run completes, leaves nothing temporary, and can be undone."""
    batch = run.spill([str(path)], APPLY)
    assert batch.exit_code == 0, batch.outcomes[0].error
    assert list(folder.rglob("*.part")) == []
    assert run.verify([str(folder)], Options()).exit_code == 0
    run.restore([str(folder)], APPLY)
    restored = folder / "s.restored.jsonl"
    assert restored.read_bytes() == source
    restored.unlink()


def points(tmp_path, prepare, failure):
    """Yield a fresh folder for each point until a run gets through without meeting it."""
    for point in range(1, MOST_POINTS):
        folder = tmp_path / str(point)
        folder.mkdir()
        path = prepare(folder)
        code = child(path, point, failure)
        if code == RAN_THROUGH:
            return
        yield folder, path, code
    raise AssertionError("the run never got through: raise MOST_POINTS")


def fresh(write_session):
    return lambda folder: write_session(big_chat(), folder=folder)


def already_compacted(write_session):
    """A session that was compacted once and has grown since: the apply puts a second generation in place."""

    def prepare(folder):
        path = write_session(big_chat((60_000, 70_000)), folder=folder)
        assert run.spill([str(path)], APPLY).exit_code == 0
        return write_session(big_chat((60_000, 70_000, 80_000)), folder=folder)

    return prepare


@pytest.mark.parametrize("prepared", [fresh, already_compacted])
@pytest.mark.parametrize("failure", ["kill", "full disk"])
def test_a_crash_at_any_write_leaves_whole_files_and_the_next_run_completes(tmp_path, write_session, prepared, failure):
    codes = []
    for folder, path, code in points(tmp_path, prepared(write_session), failure):
        source = path.read_bytes()
        every_file_is_whole(folder, source)
        completes(folder, path, source)
        codes.append(code)
    assert len(codes) > 20
    assert set(codes) == ({KILLED} if failure == "kill" else {FAILED_CLEARLY})
