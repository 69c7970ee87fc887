"""Where the program starts and ends: every way out has an exit code, and no traceback unless one is asked for."""

import contextlib
import gc
import sys
from typing import cast

CONTAINERS_BETWEEN_COLLECTIONS = 200_000
"""How often garbage is looked for. A session is read into values that make no circles; by default, one in twenty
seconds goes into finding that out."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    from compactctl import signals

    gc.set_threshold(CONTAINERS_BETWEEN_COLLECTIONS)
    signals.prepare()
    code = exit_code(sys.argv[1:])
    gc.freeze()  # all that is left goes with the process: to look for circles in it takes as long as a small session
    sys.exit(code)


def exit_code(arguments: list[str]) -> int:
    """Run the command line on these arguments and return its exit code."""
    from compactctl import signals

    try:
        from compactctl.cli import streams

        streams.prepare()
        code = _run(arguments)
    except KeyboardInterrupt:
        code = signals.exit_code()
    if code == signals.exit_code():
        with contextlib.suppress(OSError):  # the terminal that went away
            print("interrupted", file=sys.stderr)
    return code


def _run(arguments: list[str]) -> int:
    import typer

    from compactctl.cli import app, streams
    from compactctl.errors import CompactctlError
    from compactctl.outputs.safe import visible

    usage_error = cast(type[Exception], typer.BadParameter.__mro__[1])  # where its module is depends on typer's version
    try:
        return app(args=arguments, prog_name="compactctl", standalone_mode=False) or 0
    except streams.ClosedPipe:
        streams.abandon()
        return 0
    except CompactctlError as error:
        streams.say(f"compactctl: {visible(str(error))}")
        return error.exit_code
    except usage_error as error:
        streams.say(f"compactctl: {visible(_usage(error))}")
        return 2
    except Exception as error:
        if "--debug" in arguments:
            raise
        streams.say(f"compactctl: a bug: {type(error).__name__}: {visible(str(error))} (--debug shows where)")
        return 70


def _usage(error: Exception) -> str:
    """Return the parser's complaint as one line, with the nearest name where there is one."""
    near = getattr(error, "possibilities", None)
    name = getattr(error, "option_name", None)
    if near and name:
        return f"no such option {name}; did you mean {near[0]}?"
    said = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    where = f" ({context.command_path} --help)" if context is not None else ""
    return said[:1].lower() + said[1:].rstrip(".") + where


if __name__ == "__main__":
    main()
