"""An apply that dies, or meets a full disk, at every point where it touches the disk.

Each child process counts the calls that change the file system and stops at the n-th: killed at once, with no
clean-up (`os._exit`), or refused by the system. Whatever the point, the source is as it was, every file that is
there is whole, and the next run completes.
"""

import errno
import json
import os

import msgspec
import pytest
import zstandard

from compactctl import holders, run, store
from compactctl.options import Options
from compactctl.settings import Settings, with_changes
from tests.builders import chat, pi
from tests.builders.big_chat import big_chat, text

LIMIT = ["layer1.single_limit_bytes=5000"]
"""Small results are spilled: what is shown is the same, and hundreds of runs are done in less time."""
SPILLED_SIZES = (6_000, 7_000, 8_000)
BESIDE = Options(apply=True, settings=with_changes(Settings(), LIMIT))
IN_PLACE = msgspec.structs.replace(BESIDE, place="in place")
NEW_SESSION = msgspec.structs.replace(BESIDE, place="new session")
CUT = Options(
    apply=True,
    window_tokens=1_200,
    settings=with_changes(
        Settings(),
        [*LIMIT, "layer2.recent_keep_tokens=100", "layer2.recent_keep_messages=2", "layer2.facts_max_tokens=0"],
    ),
)
"""What is spilled still leaves more than a context of 1,200 tokens may hold; the newest result is kept."""

KILLED, RAN_THROUGH, FAILED_CLEARLY = 99, 98, 6
MOST_POINTS = 150


@pytest.fixture(autouse=True)
def nobody_holds_it(monkeypatch):
    """Who holds a file open is no matter of these tests, and each look goes through all processes there are."""
    monkeypatch.setattr(holders, "pids", lambda path: [])


def child(path, point, failure, options, command):
    """Run an apply in a forked child that fails at the `point`-th change; return its exit code."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        counter = fail_at(point, failure)
        batch = command([str(path)], options)
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


def every_file_is_whole(folder, sources):
    """Assert that what is there under a final name is what a run writes, never half of it."""
    for path in folder.rglob("*"):
        if not path.is_file() or path.name.startswith("."):
            continue
        data = path.read_bytes()
        if path.suffix == ".zst":
            assert zstandard.ZstdDecompressor().decompressobj().decompress(data) in sources
        elif path.parent.name == "tool-results":
            assert len(data) in SPILLED_SIZES
        else:
            assert data.endswith((b"\n", b"}"))
            assert all(json.loads(line) is not None for line in data.splitlines() if path.suffix == ".jsonl")


def completes(folder, path, source, options, command):
    """Assert that the next run completes, leaves nothing temporary, and can be undone."""
    batch = command([str(path)], options)
    assert batch.exit_code == 0, batch.outcomes[0].error
    assert list(folder.rglob("*.part")) == []
    assert run.verify([str(folder)], Options()).exit_code == 0
    out = folder / "out"
    if options.place == "in place":
        assert (folder / f"{path.stem}.compacted.report.json").exists()
        undone = 0
        while run.restore([str(path)], options).exit_code == 0:
            undone += 1
        assert path.read_bytes() == source
        assert undone in (1, 2)  # two where the first run spilled what it could
        return
    assert path.read_bytes() == source
    assert run.restore([batch.outcomes[0].output.session], Options(apply=True, out=str(out))).exit_code == 0
    assert [restored.read_bytes() for restored in out.iterdir()] == [source]


def points(tmp_path, prepare, failure, options, command):
    """Yield a fresh folder for each point until a run gets through without meeting it."""
    for point in range(1, MOST_POINTS):
        folder = tmp_path / str(point)
        folder.mkdir()
        path = prepare(folder)
        sources = [path.read_bytes(), *(kept.read_bytes() for kept in folder.glob("earlier"))]
        code = child(path, point, failure, options, command)
        if code == RAN_THROUGH:
            return
        yield folder, path, sources, code
    raise AssertionError("the run never got through: raise MOST_POINTS")


def fresh(folder):
    return write(folder, chat.lines(*big_chat(SPILLED_SIZES[:2])))


def compacted_before(folder):
    """A session that was compacted beside itself and has grown since: another generation is put there."""
    path = write(folder, chat.lines(*big_chat(SPILLED_SIZES[:2])))
    assert run.spill([str(path)], BESIDE).exit_code == 0
    return write(folder, chat.lines(*big_chat(SPILLED_SIZES)))


def compacted_in_place_before(folder):
    """A session that was compacted in place and has grown since."""
    path = write(folder, chat.lines(*big_chat(SPILLED_SIZES[:2])))
    (folder / "earlier").write_bytes(path.read_bytes())
    assert run.spill([str(path)], IN_PLACE).exit_code == 0
    later = big_chat(SPILLED_SIZES[2:], call_ids=["later"])[2:]
    return write(folder, path.read_bytes() + chat.lines(*later))


def with_an_id(folder):
    session = pi.Session().say("u0000001", pi.user("Look."))
    for number, size in enumerate(SPILLED_SIZES[:2]):
        session.say(f"a{number}", pi.assistant(pi.call(f"c{number}")))
        session.say(f"r{number}", pi.result(f"c{number}", text(size)))
    return write(folder, session.say("z0", pi.assistant("Done.")).jsonl())


def write(folder, data):
    path = folder / "s.jsonl"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("failure", ["kill", "full disk"])
@pytest.mark.parametrize(
    ("prepare", "options", "command"),
    [
        (fresh, BESIDE, run.spill),
        (compacted_before, BESIDE, run.spill),
        (fresh, IN_PLACE, run.spill),
        (compacted_in_place_before, IN_PLACE, run.spill),
        (with_an_id, NEW_SESSION, run.spill),
        (fresh, CUT, run.compact),
        (fresh, msgspec.structs.replace(CUT, place="in place"), run.compact),
        (with_an_id, msgspec.structs.replace(CUT, place="new session"), run.compact),
    ],
    ids=[
        *("beside", "beside again", "in place", "in place again", "new session"),
        *("cut beside", "cut in place", "cut as a new session"),
    ],
)
def test_a_crash_at_any_write_leaves_whole_files_and_the_next_run_completes(
    tmp_path, prepare, options, failure, command
):
    codes = []
    for folder, path, sources, code in points(tmp_path, prepare, failure, options, command):
        every_file_is_whole(folder, sources)
        if options.place != "in place":
            assert path.read_bytes() == sources[0]
        completes(folder, path, sources[0], options, command)
        codes.append(code)
    assert len(codes) > 20
    assert set(codes) == ({KILLED} if failure == "kill" else {FAILED_CLEARLY})


def test_a_large_folder_is_looked_through_once_and_what_a_killed_run_left_in_it_is_cleared(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_LARGE_FOLDER_ENTRIES", 3)
    dead = next(pid for pid in range(99_000, 2**22) if not store._is_alive(pid))
    left = [tmp_path / f".{name}.{dead}.part" for name in ("a", "b", "theirs")]
    for path in (*left, tmp_path / "other"):
        path.write_bytes(b"x")
    looks = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: looks.append(folder) or real(folder))
    for name in ("a", "b", "c"):
        store.write_whole(tmp_path / name, [b"new"])
    assert [path.exists() for path in left] == [False, False, True]
    assert looks == [tmp_path]
