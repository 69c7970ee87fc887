"""What the store does where something other than a plain file is found, or a file is gone or changes."""

import os
import socket
import sys

import pytest

from compactctl import disk, inputs, run, session, store
from compactctl.errors import Unreadable, WriteError
from compactctl.options import Options
from tests.builders.big_chat import big_chat

APPLY = Options(apply=True)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes, sockets and modes are of POSIX")


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    """Bind a socket by a short relative name, since the system allows no long one."""
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(before)


def make_folder(path):
    path.mkdir()


def make_link_to_nothing(path):
    path.symlink_to("nothing")


ODD = [make_pipe, make_socket, make_folder, make_link_to_nothing]
BESIDE = [
    "s.compacted.jsonl",
    "s.compacted.report.json",
    "s.compacted/originals.jsonl",
    "s.compacted/tool-results/call_0.txt",
]


@pytest.mark.parametrize("make", ODD[:2])
def test_what_is_no_plain_file_is_not_waited_for(tmp_path, make):
    make(tmp_path / "s.jsonl")
    with pytest.raises(Unreadable), disk.reading(str(tmp_path / "s.jsonl")):
        pass


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/urandom"])
def test_a_device_is_no_session(path):
    batch = run.inspect([path], Options())
    assert (batch.exit_code, batch.outcomes[0].error.code) == (3, "unreadable")


@pytest.mark.parametrize(("make", "said"), [(make_pipe, "no plain file"), (make_link_to_nothing, "a link to nothing")])
def test_what_is_no_plain_file_in_a_folder_is_told(tmp_path, make, said):
    make(tmp_path / "odd.jsonl")
    assert inputs.find([str(tmp_path)]).problems == (f"{tmp_path}/odd.jsonl: {said}; skipped",)


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("name", BESIDE)
def test_odd_things_where_outputs_were_are_errors_and_no_traceback(tmp_path, write_session, make, name):
    path = write_session(big_chat())
    assert run.spill([str(path)], APPLY).exit_code == 0
    (tmp_path / name).unlink()
    make(tmp_path / name)
    output = str(tmp_path / "s.compacted.jsonl")
    for command in (run.inspect, run.verify, run.restore, run.spill):
        assert command([output], APPLY).exit_code in (0, 1, 3, 6)
    assert run.spill([str(path)], APPLY).exit_code in (0, 6)


@pytest.mark.parametrize("make", [make_pipe, make_folder])
@pytest.mark.parametrize("name", BESIDE[:3])
def test_nothing_is_written_where_something_odd_has_an_outputs_name(tmp_path, write_session, make, name):
    path = write_session(big_chat())
    (tmp_path / name).parent.mkdir(exist_ok=True)
    make(tmp_path / name)
    batch = run.spill([str(path)], APPLY)
    assert (batch.exit_code, batch.outcomes[0].error.code) == (6, "output_changed")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]


@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: path.write_bytes(b"{}\n")])
def test_a_file_that_goes_or_changes_while_it_is_read_is_said_to(tmp_path, write_session, monkeypatch, change):
    path = write_session(big_chat())
    real = session.read_document

    def meanwhile(name, document, format_name):
        found = real(name, document, format_name)
        change(path)
        return found

    monkeypatch.setattr(session, "read_document", meanwhile)
    outcome = run.spill([str(path)], APPLY).outcomes[0]
    assert (outcome.exit_code, outcome.error.code) == (6, "source_changed")
    assert not (tmp_path / "s.compacted.jsonl").exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take no such name")
@pytest.mark.parametrize("command", [run.spill, run.estimate])
@pytest.mark.parametrize("options", [APPLY, Options(apply=True, place="in place"), Options(apply=True, slim=True)])
@pytest.mark.parametrize("name", [b"\xff.jsonl", b"\xff/s.jsonl"])
def test_a_name_that_is_no_unicode_is_read_and_nothing_is_written_by_it(
    tmp_path, write_session, command, options, name
):
    path = os.path.join(os.fsencode(tmp_path), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.rename(write_session(big_chat()), path)
    assert run.inspect([os.fsdecode(path)], Options()).exit_code == 0
    batch = command([os.fsdecode(path)], options)
    assert (batch.exit_code, batch.outcomes[0].error.code) == (6, "write_error")
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [tmp_path / os.fsdecode(name)]


def test_a_file_that_a_person_named_is_written_where_a_link_leads_to(tmp_path):
    (tmp_path / "report.json").write_bytes(b"old")
    (tmp_path / "link.json").symlink_to("report.json")
    store.write_named(str(tmp_path / "link.json"), [b"new"])
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "report.json").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_a_person_named_is_written_to_and_stays_one(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    store.write_named(str(pipe), [b"new"])
    assert (os.read(reader, 10), pipe.is_fifo()) == (b"new", True)
    os.close(reader)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_device_that_is_full_is_an_error_and_stays_a_device(tmp_path):
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(WriteError):
        store.write_named(str(tmp_path / "full"), [b"new"])
    assert (tmp_path / "full").is_symlink()
    assert not os.path.isfile("/dev/full")
