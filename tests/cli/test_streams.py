"""Exit codes, and what goes to which stream: to pipes, terminals, full disks and consoles of other encodings."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from compactctl.__main__ import exit_code
from compactctl.errors import OutputCollision
from tests.builders.outcomes import HOSTILE, batch, failed, finding, outcome, spilled
from tests.cli.running import PATH_COMMANDS, SAMPLES, process


@pytest.mark.parametrize("command", PATH_COMMANDS)
@pytest.mark.parametrize("code", [0, 1, 3, 6, 7, 70])
def test_the_exit_code_is_the_batch_s(command, code, fake):
    fake(batch(outcome(), exit_code=code))
    assert exit_code([command, "x"]) == code


@pytest.mark.parametrize(
    "error, code, said",
    [
        (OutputCollision("a and b would both write c"), 2, "a and b would both write c"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ValueError("oh\x1b no"), 70, r"a bug: ValueError: oh\x1b no"),
    ],
)
def test_a_way_out_without_a_result(error, code, said, fake, capsys):
    fake(error)
    assert exit_code(["spill", "x", "-o", "json"]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert "Traceback" not in printed.err


def test_a_bug_shows_its_traceback_only_when_asked(fake, capsys):
    fake(batch(failed(exit_code=70, traceback="Traceback (most recent call last):\n  in x\n")))
    exit_code(["inspect", "x"])
    assert "Traceback" not in capsys.readouterr().err
    exit_code(["inspect", "x", "--debug"])
    assert "Traceback (most recent call last):\n  in x\n" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_standard_output_is_the_document_alone(output, fake, capsys):
    fake(batch(outcome(findings=(finding(),)), failed(), not_sessions=["x"], problems=["a folder that loops"]))
    exit_code(["inspect", "x", "-o", output, "-v"])
    printed = capsys.readouterr()
    assert [json.loads(text) for text in ([printed.out] if output == "json" else printed.out.splitlines())]
    assert "warning: a folder that loops" not in printed.out
    assert printed.err.splitlines()[0] == "error: notes.txt: no format recognises it: plain text"


def test_quiet_leaves_errors_only(fake, capsys):
    fake(batch(outcome(), failed(), not_sessions=["x"], problems=["a folder that loops"]))
    exit_code(["inspect", "x", "-q", "-v"])
    assert capsys.readouterr().err == "error: notes.txt: no format recognises it: plain text\n"


def test_a_batch_that_found_nothing_says_so_even_when_quiet(fake, capsys):
    fake(batch(problems=["no session found"], exit_code=3))
    assert exit_code(["inspect", "x", "-q"]) == 3
    assert capsys.readouterr().err == "error: no session found\n"


def test_verbose_names_the_files_that_are_no_sessions(fake, capsys):
    fake(batch(outcome(), not_sessions=["x\x1b"]))
    exit_code(["inspect", "x", "-v"])
    assert capsys.readouterr().err == "not a session: x\\x1b\n"


def test_a_dry_run_prints_the_command_that_writes(fake, capsys, monkeypatch):
    arguments = ["spill", "a b.jsonl", "--dry-run", "--set", "layer1.single_limit_bytes=7"]
    monkeypatch.setattr(sys, "argv", ["compactctl", *arguments])
    fake(batch(spilled(), command="spill"))
    exit_code(arguments)
    said = "to write it: compactctl spill 'a b.jsonl' --set layer1.single_limit_bytes=7 --apply\n"
    assert capsys.readouterr().out.endswith(said)


@pytest.mark.parametrize("path", ["::error::x", "##vso[x]", "a\x1b[2Jb", "a\u202eb", HOSTILE])
def test_standard_error_is_safe_to_read(path, fake, capsys):
    fake(batch(failed(path), problems=[path], not_sessions=[path]))
    exit_code(["inspect", path, "-v", "--from", path])
    exit_code(["inspect", path, "-v"])
    exit_code([path])
    said = capsys.readouterr().err
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]", said)
    assert not re.search(r"^\s*::|##\w*\[", said, re.MULTILINE)


# as a process -------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv", "markdown"])
def test_a_closed_pipe_ends_the_program_quietly(output, unbuffered):
    command = [sys.executable, "-m", "compactctl", "inspect", str(SAMPLES / "chat.jsonl"), "-o", output]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            command, stdout=write_end, stderr=subprocess.PIPE, env=environment, text=True, check=False
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_what_is_to_be_written_is_written_though_nobody_reads(output, jobs, tmp_path):
    for name in ("a", "b", "d"):
        shutil.copy(SAMPLES / "long.jsonl", tmp_path / f"{name}.jsonl")
    (tmp_path / "c.jsonl").write_text("no session")
    named = sorted(str(path) for path in tmp_path.iterdir())
    done = unread("spill", *named, "--apply", "-o", output, "-j", str(jobs))
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert done.stderr.startswith(f"error: {tmp_path / 'c.jsonl'}: no format recognises it")
    assert sorted(path.name for path in tmp_path.glob("*.compacted.jsonl")) == [
        f"{name}.compacted.jsonl" for name in "abd"
    ]


def test_reports_are_written_though_nobody_reads_the_printed_one(tmp_path):
    files = [str(SAMPLES / "chat.jsonl"), str(SAMPLES / "long.jsonl")]
    report, baseline = tmp_path / "report.json", tmp_path / "baseline.json"
    unread("audit", *files, "-o", "jsonl", "--save", f"json={report}", "--write-baseline", str(baseline))
    assert len(json.loads(report.read_bytes())["sessions"]) == 2
    assert baseline.exists()


def unread(*arguments):
    """Run compactctl with a standard output that nobody reads any more, and return what came of it."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "compactctl", *arguments]
    try:
        return subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write_end)


@pytest.mark.skipif(shutil.which("head") is None, reason="needs head")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_head_gets_its_line_and_no_traceback(unbuffered):
    command = f"{sys.executable} -m compactctl rules | head -n1; {sys.executable} -m compactctl --help | head -n1"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment, check=True)
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["rule", "severity", "group", "meaning"],
        ["Usage:", "compactctl", "COMMAND", "[OPTIONS]", "PATH..."],
    ]
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_a_full_disk_under_standard_output_is_said(output):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "compactctl", "inspect", str(SAMPLES / "chat.jsonl"), "-o", output]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 6
    assert done.stderr == "compactctl: standard output: No space left on device\n"


@pytest.mark.parametrize("output", ["table", "json", "markdown"])
def test_a_console_of_another_encoding_is_no_crash(output, tmp_path):
    path = tmp_path / "測試 👩.jsonl"
    shutil.copy(SAMPLES / "chat.jsonl", path)
    command = [sys.executable, "-m", "compactctl", "inspect", str(path), "-o", output]
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert done.stderr == b""
    if output == "table":
        assert rb"\u6e2c\u8a66" in done.stdout
    else:
        assert "測試 👩" in done.stdout.decode()


@pytest.mark.parametrize(
    "arguments, environment, colored",
    [
        ([], {}, False),
        (["--color", "always"], {}, True),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_a_pipe_has_colour_only_on_request(arguments, environment, colored):
    done = process("inspect", SAMPLES / "damaged.jsonl", *arguments, **environment)
    assert ("\x1b[" in done.stdout) is colored
    assert "\x1b" not in done.stderr


def test_a_terminal_has_colour_and_a_bar_unless_no_color_or_quiet():
    pty = pytest.importorskip("pty")

    def seen(*arguments, **environment):
        main_end, child_end = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "compactctl", "inspect", "-j", "1", str(SAMPLES), *arguments],
            stdout=child_end,
            stderr=child_end,
            env={**os.environ, "TERM": "xterm", **environment},
        )
        os.close(child_end)
        text = b""
        try:
            while piece := os.read(main_end, 4096):
                text += piece
        except OSError:  # how a terminal says that nobody writes any more
            pass
        process.wait()
        os.close(main_end)
        return text.decode()

    everything = seen()
    assert "\x1b[1m" in everything or "\x1b[3" in everything
    assert "[####" in everything
    assert "[####" not in seen("-q")
    assert "\x1b[3" not in seen("-q", NO_COLOR="1")
