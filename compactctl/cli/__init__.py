"""The command line: options in, one call of `run`, a printed result and an exit code out.

Nothing heavy is imported before a command runs, so that `--help` answers at once. Standard output carries the
result and nothing else; all that is said besides goes to standard error.
"""

from compactctl.cli.commands import app

__all__ = ["app"]
