"""Any program: the prompt on its standard input, the answer on its standard output, exit status 0 when it is whole.

The program has the environment of whoever runs compactctl, so it finds its own keys. Whether it sends the prompt
anywhere can't be told from here; it is taken as if it did.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping

from compactctl.errors import BadResponse, ProviderUnavailable
from compactctl.provider_errors import classify_text, short
from compactctl.providers.interface import Answer, Kind, ProviderConfig, SummaryRequest


def make(config: ProviderConfig, environment: Mapping[str, str]) -> "Command":
    return Command(config, environment)


def missing(config: ProviderConfig, environment: Mapping[str, str]) -> list[str]:
    """Return what is missing: the command, or its program."""
    if not config.command:
        return [f"no command: set providers.{config.name}.command to a list of words"]
    program = config.command[0]
    if shutil.which(program, path=environment.get("PATH")) is None:
        return [f"no program {program} on the PATH"]
    return []


class Command:
    """Runs one program for each request."""

    kind: Kind = "command"
    is_remote = True

    def __init__(self, config: ProviderConfig, environment: Mapping[str, str]) -> None:
        self._config = config
        self._environment = dict(environment)
        self.name = config.name
        self.model = config.model
        self.window_tokens = config.window
        self.address = shlex.join(config.command)

    def answer(self, request: SummaryRequest) -> Answer:
        """Return what the program printed. Raises what its error output says where its exit status is not 0."""
        lacks = missing(self._config, self._environment)
        if lacks:
            raise ProviderUnavailable(f"{self.name}: {'; '.join(lacks)}")
        status, out, err = self._run(request.prompt.encode("utf-8", "replace"))
        if status != 0:
            raise self._failed(status, err or out)
        try:
            text = out.decode("utf-8")
        except UnicodeDecodeError:
            raise BadResponse(f"{self.name}: the program's output is not UTF-8 text") from None
        return Answer(text, "stop")

    def _run(self, prompt: bytes) -> tuple[int, bytes, bytes]:
        try:
            process = subprocess.Popen(
                self._config.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as error:
            raise ProviderUnavailable(
                f"{self.name}: {self._config.command[0]} can't be run: {error.strerror}"
            ) from None
        with process:
            try:
                out, err = process.communicate(prompt, timeout=self._config.timeout_s)
            except subprocess.TimeoutExpired:
                _end(process)
                raise ProviderUnavailable(f"{self.name}: no answer within {self._config.timeout_s:g} s") from None
            except BaseException:
                _end(process)
                raise
        return process.returncode, out, err

    def _failed(self, status: int, output: bytes) -> Exception:
        text = output.decode("utf-8", "replace").strip()
        problem = classify_text(text)
        if problem is not None:
            return problem.error(self.name)
        last = short(" ".join(text.splitlines()[-3:])) or "it said nothing"
        return ProviderUnavailable(f"{self.name}: the program ended with status {status}: {last}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the program and what it started: they are a group of their own."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate()
