"""Ctrl-C: what is done is shown and stays, and the next run goes on."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests.cli.running import SAMPLES, process


def test_an_interrupt_ends_with_130_and_no_traceback(tmp_path):
    script = tmp_path / "interrupted.py"
    script.write_text(
        "import os, signal, sys\n"
        "from compactctl import __main__, run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run.inspect = lambda *arguments: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['compactctl', 'inspect', 'x']\n"
        "__main__.main()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (130, "interrupted\n", "")


@pytest.fixture
def interrupted(tmp_path):
    """Run compactctl on 12 sessions that have a result to spill; Ctrl-C comes while the one in `place` is worked on.

    With two workers it waits until the other one has begun what comes next: what stands before is done by then.
    """
    folder = tmp_path / "sessions"
    folder.mkdir()
    for number in range(12):
        shutil.copy(SAMPLES / "long.jsonl", folder / f"{number:02}.jsonl")

    meeting = tmp_path / "meeting"
    if hasattr(os, "mkfifo"):
        os.mkfifo(meeting)

    def run_it(*arguments, jobs, place="06", to_all=True, sent="SIGINT"):
        script = tmp_path / "interrupted.py"
        script.write_text(
            "import os, signal, sys, time\n"
            "from compactctl import __main__, run, workers\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "real = run._spill_one\n"
            "def work(item, options):\n"
            f"    if {jobs > 1} and item.path.endswith('{int(place) + 1:02}.jsonl'):\n"
            f"        open({str(meeting)!r}, 'wb').close()\n"
            f"    if item.path.endswith('{place}.jsonl'):\n"
            f"        {jobs > 1} and open({str(meeting)!r}, 'rb').close()\n"
            f"        {'os.killpg(0' if to_all else 'os.kill(START'}, signal.{sent})\n"
            "        time.sleep(30)\n"
            "    return real(item, options)\n"
            "if os.environ.get('START'):\n"
            "    START = int(os.environ['START'])\n"
            "else:\n"
            "    START = os.getpid()\n"
            "    os.environ['START'] = str(START)\n"
            "run._spill_one = work\n"
            "workers.STOPPING_S = 0.2\n"
            f"sys.argv = ['compactctl', 'spill', '-j', '{jobs}', {str(folder)!r}, *{list(arguments)!r}]\n"
            "if __name__ == '__main__':\n"
            "    __main__.main()\n"
        )
        return subprocess.run(
            [sys.executable, script], capture_output=True, text=True, check=False, start_new_session=True, timeout=25
        )

    run_it.folder = folder
    return run_it


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("to_all", [True, False], ids=["the terminal's group", "the main process alone"])
@pytest.mark.parametrize("output", ["json", "table"])
def test_an_interrupt_shows_what_is_done_and_no_traceback(output, to_all, jobs, interrupted):
    done = interrupted("-o", output, jobs=jobs, to_all=to_all)
    assert done.returncode == 130
    far = re.fullmatch(r"error: stopped after (\d+) of 12 files; .*\ninterrupted\n", done.stderr)
    assert far, done.stderr
    assert 6 <= int(far[1]) < 12
    if output == "json":
        totals = json.loads(done.stdout)["totals"]
        assert (totals["sessions"], totals["exit_code"]) == (int(far[1]), 130)
    else:
        assert f"{far[1]} sessions" in done.stdout


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_after_an_interrupt_goes_on_and_leaves_what_is_right(jobs, interrupted):
    first = json.loads(interrupted("--apply", "-o", "json", jobs=jobs).stdout)
    applied = {session["path"] for session in first["sessions"] if session["status"] == "applied"}
    written = {path: path.read_bytes() for path in interrupted.folder.rglob("*") if path.is_file()}
    assert not [path for path in written if path.name.endswith(".part")]
    again = json.loads(process("spill", interrupted.folder, "--apply", "-o", "json").stdout)
    assert again["totals"]["exit_code"] == 0
    unchanged = {session["path"] for session in again["sessions"] if session["status"] == "unchanged"}
    assert len(applied) >= 6
    assert applied <= unchanged
    assert {session["status"] for session in again["sessions"]} == {"applied", "unchanged"}
    assert {path: path.read_bytes() for path in written} == written


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("to_all", [True, False], ids=["the group", "the main process alone"])
@pytest.mark.parametrize("sent", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_end_stops_as_ctrl_c_does_and_is_told_by_the_exit_code(sent, to_all, jobs, interrupted):
    done = interrupted("-o", "json", jobs=jobs, to_all=to_all, sent=sent)
    code = 128 + getattr(signal, sent)
    assert done.returncode == code
    assert re.fullmatch(r"error: stopped after (\d+) of 12 files; .*\ninterrupted\n", done.stderr), done.stderr
    totals = json.loads(done.stdout)["totals"]
    assert totals["exit_code"] == code
    assert 6 <= totals["sessions"] < 12


def four_sessions(folder):
    """Write four sessions into a folder of their own, and return that."""
    sessions = folder / "sessions"
    sessions.mkdir()
    for number in range(4):
        shutil.copy(SAMPLES / "chat.jsonl", sessions / f"{number}.jsonl")
    return sessions


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_a_worker_ends_when_the_main_process_was_killed(tmp_path):
    folder = four_sessions(tmp_path)
    script = tmp_path / "orphaned.py"
    script.write_text(
        "import os, signal, sys, threading\n"
        "from compactctl import __main__, run\n"
        "def work(item, options):\n"
        "    os.kill(int(os.environ['START']), signal.SIGKILL)\n"
        "    threading.Event().wait()\n"
        "os.environ.setdefault('START', str(os.getpid()))\n"
        "run._inspect_one = work\n"
        f"sys.argv = ['compactctl', 'inspect', '-j', '2', {str(folder)!r}]\n"
        "if __name__ == '__main__':\n"
        "    __main__.main()\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, start_new_session=True) as started:
        try:
            out, _ = started.communicate(timeout=20)  # ends when no process has the pipe open any more
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            raise
    assert (started.returncode, out) == (-signal.SIGKILL, b"")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_was_started_to_ignore_interrupts_goes_on(jobs, tmp_path):
    folder = four_sessions(tmp_path)
    script = tmp_path / "ignoring.py"
    script.write_text(
        "import os, signal, sys\n"
        "from compactctl import __main__, run\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "real = run._inspect_one\n"
        "def work(item, options):\n"
        "    os.killpg(0, signal.SIGINT)\n"
        "    return real(item, options)\n"
        "run._inspect_one = work\n"
        f"sys.argv = ['compactctl', 'inspect', '-j', '{jobs}', {str(folder)!r}, '-o', 'json']\n"
        "if __name__ == '__main__':\n"
        "    __main__.main()\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, start_new_session=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["totals"]["sessions"] == 4
