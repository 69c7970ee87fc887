"""The help pages: the first screen, with commands grouped by what they do to files, and a page a command."""

from typing import Any

from typer.core import TyperCommand, TyperGroup, TyperOption

LOOK = "Look (read only)"
SMALLER = "Make smaller (shows a plan; --apply writes)"
AT_ONCE = "Make smaller (writes a new file; --dry-run shows the plan)"
UNDO = "Undo"
ALSO = "Also"
"""The groups, in the order of the page. A command names its own."""

_PAGE = """\
Usage: compactctl COMMAND [OPTIONS] PATH...

Look into saved LLM-agent sessions and make them smaller without losing anything.
Reads Claude Code, Codex, pi, plain chat and Messages-API logs. Your files are never
changed unless you say --in-place: results go beside them. Nothing leaves this machine,
unless you configure a provider for summaries.

{groups}
Also: {also}

  compactctl inspect ~/.claude/projects
  compactctl spill SESSION.jsonl
  compactctl spill SESSION.jsonl --apply

-h, --help on every command; -V, --version.
"""


class GroupedHelp(TyperGroup):
    """The root of the commands, with a help page of its own (typer groups commands only where rich is on)."""

    def get_help(self, ctx: Any) -> str:
        """Return the first screen."""
        width = max(len(name) for name in self.commands)
        groups = ""
        for title in (LOOK, SMALLER, AT_ONCE, UNDO):
            groups += f"{title}\n"
            for name in self._names(title):
                said = self.commands[name].short_help
                groups += f"  {name:<{width}}  {said}\n"
            groups += "\n"
        return _PAGE.format(groups=groups.rstrip("\n") + "\n", also=", ".join(self._names(ALSO)))

    def _names(self, title: str) -> list[str]:
        return [name for name, command in self.commands.items() if getattr(command, "rich_help_panel", None) == title]


class CommandHelp(TyperCommand):
    """A command whose page has one usage line and its options; what PATH may be is said in words."""

    def get_help(self, ctx: Any) -> str:
        """Return the page of this command."""
        formatter: Any = ctx.make_formatter()
        taken = [param.make_metavar(ctx) for param in self.params if param.param_type_name == "argument"]
        formatter.write_usage(ctx.command_path, " ".join(["[OPTIONS]", *taken]))
        for paragraph in (self.help or "").split("\n\n"):
            formatter.write_paragraph()
            formatter.write_text(" ".join(paragraph.split()))
        options = [param for param in self.get_params(ctx) if isinstance(param, TyperOption)]
        with formatter.section("Options"):
            formatter.write_dl([record for option in options if (record := option.get_help_record(ctx))])
        return str(formatter.getvalue()).rstrip("\n")
