"""What `rules` prints: all rules, or the page of one, in any output."""

import csv
import io
import textwrap
from collections.abc import Sequence

from compactctl import __version__, rules
from compactctl.cli import options as opt
from compactctl.findings import GROUPS, RULES
from compactctl.outputs import OUTPUTS
from compactctl.outputs.json import dumps
from compactctl.outputs.markdown import cell, code, fenced
from compactctl.outputs.pages import labelled, table

WIDTH = 100
"""Of the texts of a page."""

Printed = tuple[str, str | None]
"""A text, and what it is encoded as (None: as the terminal has it)."""

Row = dict[str, str]


def rules_list(output: str) -> Printed:
    """Return the rules: name, severity, group, meaning."""
    rows = [
        {"rule": rule, "severity": severity, "group": GROUPS[rule], "meaning": rules.page(rule).meaning}
        for rule, severity in RULES.items()
    ]
    match opt.one_of(output, OUTPUTS, "output"):
        case "table":
            cells = [list(row.values()) for row in rows]
            return _lines(table(list(rows[0]), cells, ["left"] * len(rows[0]))), None
        case "markdown":
            return _lines(_markdown_table(rows)), "utf-8"
        case name:
            return _records(name, rows), "utf-8"


def rule_page(rule: str, output: str) -> Printed:
    """Return the page of one rule. Raises UsageError, with the nearest name, where there is none."""
    opt.one_of(rule, RULES, "rule")
    page = rules.page(rule)
    about = {
        "severity": f"{RULES[rule]}; --set audit.severity.{rule}=error|warning|note|off",
        "group": f"{GROUPS[rule]}: {rules.GROUP_WORDS[GROUPS[rule]]}",
        "what": page.meaning,
        "why": page.why,
        "fix": page.fix,
    }
    match opt.one_of(output, OUTPUTS, "output"):
        case "table":
            told = [line for label, text in about.items() for line in labelled(label, textwrap.wrap(text, WIDTH))]
            example = [f"  {line}" for line in page.example.split("\n")]
            return _lines([f"{rule}   {page.name}", "", *told, "", *example]), None
        case "markdown":
            about["severity"] = code(about["severity"])
            told = [line for label, text in about.items() for line in (f"**{label}**: {text}", "")]
            return _lines([f"# {code(rule)}: {page.name}", "", *told, *fenced(page.example)]), "utf-8"
        case name:
            texts = {member: str(getattr(page, member)) for member in page.__struct_fields__}
            row = {"rule": rule, "severity": str(RULES[rule]), "group": str(GROUPS[rule]), **texts}
            return _records(name, [row]), "utf-8"


def _records(output: str, rows: Sequence[Row]) -> str:
    """Return rows for programs: one JSON object, an object a line, or CSV."""
    if output == "json":
        return dumps({"schema": "compactctl.rules/1", "version": __version__, "rules": rows})
    if output == "jsonl":
        return "".join(dumps(row) for row in rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _markdown_table(rows: Sequence[Row]) -> list[str]:
    lines = [" | ".join(rows[0]), " | ".join("---" for _ in rows[0])]
    lines += [" | ".join(cell(text) for text in row.values()) for row in rows]
    return [f"| {line} |" for line in lines]


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
