"""What `formats` and `rules` print."""

from collections.abc import Sequence

from compactctl import __version__
from compactctl.cli import options as opt

LIST_OUTPUTS = ("table", "json")

Printed = tuple[str, str | None]
"""A text, and what it is encoded as (None: as the terminal has it)."""


def formats_list(output: str) -> Printed:
    """Return the formats: name, and what it is."""
    from compactctl.formats import FORMATS

    return _printed(
        "formats", output, ("name", "sessions"), [(name, _first_line(item)) for name, item in FORMATS.items()]
    )


def rules_list(output: str) -> Printed:
    """Return the rules: name, severity, meaning."""
    from compactctl.findings import MEANINGS, RULES

    rows = [(rule, severity, MEANINGS[rule]) for rule, severity in RULES.items()]
    return _printed("rules", output, ("rule", "severity", "meaning"), rows)


def _printed(command: str, output: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Printed:
    if opt.one_of(output, LIST_OUTPUTS, "output") == "json":
        from compactctl.outputs.json import dumps

        items = [dict(zip(headers, row, strict=True)) for row in rows]
        return dumps({"schema": f"compactctl.{command}/1", "version": __version__, command: items}), "utf-8"
    from compactctl.outputs.pages import table

    return "".join(f"{line}\n" for line in table(headers, rows, ["left"] * len(headers))), None


def _first_line(value: object) -> str:
    """Return what something is: the first line of its class's docstring."""
    return (type(value).__doc__ or "").strip().partition("\n")[0].rstrip(".")
