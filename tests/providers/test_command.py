"""Any program as a provider: a small script stands for it."""

import os
import sys
from pathlib import Path

import pytest

from compactctl import errors
from compactctl.providers import DEFAULT, ProviderConfig, SummaryRequest, make, missing
from compactctl.providers.interface import Answer


def provider(script, **more):
    return make(ProviderConfig("mine", "command", command=(sys.executable, "-c", script), **more), os.environ)


def test_the_prompt_is_its_input_and_its_output_the_answer():
    script = "import sys; sys.stdout.buffer.write(b'<summary>' + sys.stdin.buffer.read() + b'</summary>')"
    assert provider(script).answer(SummaryRequest("Sum up: ü", 512)) == Answer("<summary>Sum up: ü</summary>", "stop")


def test_a_program_that_reads_nothing_is_heard():
    assert provider("print('note')").answer(SummaryRequest("x" * 1_000_000, 512)).text == "note\n"


@pytest.mark.parametrize(
    "script, error, message",
    [
        ("import sys; sys.exit('no quota\\nsee the page')", errors.RateLimited, "no quota see the page"),
        ("import sys; sys.exit('prompt is too long: 9 tokens > 8 maximum')", errors.TooLong, "too long"),
        ("import sys; print('Overloaded'); sys.exit(3)", errors.ProviderUnavailable, "Overloaded"),
        ("import sys; sys.exit('bad key sk-abcdefgh')", errors.ProviderUnavailable, r"status 1: bad key \[key\]"),
        ("import sys; sys.exit(3)", errors.ProviderUnavailable, "status 3: it said nothing"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", errors.BadResponse, "not UTF-8"),
    ],
)
def test_a_program_that_fails_says_why(script, error, message):
    with pytest.raises(error, match=message):
        provider(script).answer(SummaryRequest("Sum up.", 512))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to look a process up in")
def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path):
    script = f"sleep 600 & echo $! > {tmp_path}/pid; wait"
    slow = make(ProviderConfig("mine", "command", command=("sh", "-c", script), timeout_s=0.5), os.environ)
    with pytest.raises(errors.ProviderUnavailable, match=r"mine: no answer within 0\.5 s"):
        slow.answer(SummaryRequest("Sum up.", 512))
    state = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    assert not state.exists() or state.read_text().split()[2] == "Z"


@pytest.mark.parametrize(
    "command, lacks",
    [
        ((), ["no command: set providers.mine.command to a list of words"]),
        (("no-such-program-here",), ["no program no-such-program-here on the PATH"]),
        ((sys.executable,), []),
    ],
)
def test_what_it_lacks_is_said_with_what_to_do(command, lacks):
    config = ProviderConfig("mine", "command", command=command)
    assert missing(config) == lacks


def test_it_is_not_run_where_something_is_missing():
    with pytest.raises(errors.ProviderUnavailable, match="no program"):
        make(ProviderConfig("mine", "command", command=("no-such-program-here",))).answer(SummaryRequest("", 1))


def test_whether_it_sends_anything_can_not_be_told_and_it_counts_as_if():
    made = make(ProviderConfig("mine", "command", command=("llm", "-m", "a b")))
    assert (made.is_remote, made.address) == (True, "llm -m 'a b'")


def test_without_a_provider_it_is_extract():
    assert (DEFAULT.kind, missing(DEFAULT)) == ("extract", [])
