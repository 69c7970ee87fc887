"""What the tests of the command line may use."""

import pytest

from compactctl import run
from compactctl.cli import streams
from compactctl.totals import Batch
from tests.cli.running import PATH_COMMANDS, FakeRun


@pytest.fixture
def fake(monkeypatch):
    """Let every command find this batch (or this error)."""

    def install(made: Batch | BaseException) -> FakeRun:
        stand_in = FakeRun(made)
        for command in PATH_COMMANDS:
            monkeypatch.setattr(run, command, stand_in)
        return stand_in

    return install


@pytest.fixture
def terminal(monkeypatch):
    """Let both streams be terminals."""
    monkeypatch.setattr(streams, "is_terminal", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", "1")
