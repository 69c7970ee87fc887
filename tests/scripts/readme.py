"""The examples in the README, as commands that run.

    python -m tests.scripts.readme            runs them all on a copy of the sample sessions and prints what they print
    python -m tests.scripts.readme --write    puts what they print into the README, where that has changed

A ```console block holds commands after
`$ ` and what each prints below it; a line `…` there stands for any lines, and `…` in a line for any text.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ANY = "…"

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Example:
    """A command of the README and what it is said to print."""

    command: str
    expected: str

    def matches(self, printed: str) -> bool:
        """Return whether what was printed is what the README says."""
        pattern = ""
        for line in self.expected.splitlines():
            if line.strip() == ANY:
                pattern += r"(?:.*\n)*?"
            else:
                pattern += ".*?".join(re.escape(piece) for piece in line.split(ANY)) + r"\n"
        return re.fullmatch(pattern, printed) is not None


def examples(text: str) -> list[Example]:
    """Return the examples of a Markdown text, in order."""
    found = []
    for block in _BLOCK.findall(text):
        for part in ("\n" + block).split("\n$ ")[1:]:
            command, _, expected = part.partition("\n")
            found.append(Example(command, expected.rstrip("\n")))
    return found


def playground(folder: Path) -> dict[str, str]:
    """Put a copy of the sample sessions into the folder; return the environment in which examples run there."""
    shutil.copytree(ROOT / "sample_sessions", folder / "sample_sessions")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    plain = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("PYTEST", "COMPACTCTL", "GITHUB_", "GITLAB_"))
    }
    nobody = {"HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "home" / ".config")}
    return {**plain, **nobody, "PATH": path, "NO_COLOR": "1", "PYTHONUTF8": "1"}


def run(example: Example, folder: Path, environment: dict[str, str]) -> str:
    """Run an example in the folder and return what it prints on both streams, and its exit code unless that is 0."""
    done = subprocess.run(
        example.command,
        shell=True,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode() + (f"exit code {done.returncode}\n" if done.returncode else "")


def show(text: str) -> None:
    """Run the examples of a text and print each with what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        environment = playground(Path(folder))
        for example in examples(text):
            print(f"$ {example.command}\n{run(example, Path(folder), environment)}", flush=True)


def rewritten(text: str) -> str:
    """Return the text with what its examples print now; one that still matches keeps its wording."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        environment = playground(folder)
        for example in examples(text):
            printed = run(example, folder, environment)
            if not example.matches(printed):
                old = f"$ {example.command}\n{example.expected}".rstrip("\n")
                new = f"$ {example.command}\n{printed.replace(f'{folder}/', ANY)}".rstrip("\n")
                text = text.replace(f"{old}\n", f"{new}\n", 1)
    return text


def main(arguments: Sequence[str]) -> None:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    if "--write" in arguments:
        readme.write_text(rewritten(text), encoding="utf-8")
    else:
        show(text)


if __name__ == "__main__":
    main(sys.argv[1:])
