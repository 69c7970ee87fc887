"""What `settings`, `providers` and `formats` print."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compactctl import __version__
from compactctl.cli import options as opt

if TYPE_CHECKING:
    from compactctl.config import Config
    from compactctl.settings import Origin

LIST_OUTPUTS = ("table", "json")

Printed = tuple[str, str | None]
"""A text, and what it is encoded as (None: as the terminal has it)."""


def formats_list(output: str) -> Printed:
    """Return the formats: name, and what it is."""
    from compactctl.formats import FORMATS

    return _printed(
        "formats",
        output,
        ("name", "sessions"),
        [(name, _first_line(item).removeprefix("The format of ")) for name, item in FORMATS.items()],
    )


def settings_list(config: "Config", output: str) -> Printed:
    """Return the settings: key, value, default, and where the value comes from; then the files they were read from."""
    from compactctl import settings
    from compactctl.outputs.pages import labelled
    from compactctl.outputs.safe import visible

    resolved, defaults = config.resolved, settings.Settings()
    rows: list[tuple[str, object, object, settings.Origin]] = [
        (key, settings.value_of(resolved.settings, key), settings.value_of(defaults, key), resolved.origin(key))
        for key in dict.fromkeys((*settings.known_keys(), *resolved.origins))
    ]
    if opt.one_of(output, LIST_OUTPUTS, "output") == "json":
        items = [
            {
                "key": key,
                "value": value,
                "default": default,
                "source": _code(origin.source),
                "place": origin.place,
                "limit": settings.is_limit(key),
                "environment": settings.environment_name(key),
            }
            for key, value, default, origin in rows
        ]
        files = [{"source": _code(file.source), "path": file.path} for file in config.files]
        return _document("settings", settings=items, files=files, user_file=config.user_file)
    shown = [
        (key, visible(settings.written(value)), settings.written(default), visible(_where(origin)))
        for key, value, default, origin in rows
    ]
    text, encoding = _printed("settings", output, ("setting", "value", "default", "from"), shown)
    own = f"{config.user_file} ({'read' if any(f.source == 'user file' for f in config.files) else 'not there'})"
    return text + "".join(f"{line}\n" for line in ["", *labelled("your file", [visible(own)])]), encoding


def providers_list(config: "Config", output: str) -> Printed:
    """Return the providers: what each is, where its key is, what is missing, and which one is asked."""
    from compactctl import desk, providers
    from compactctl.errors import UsageError
    from compactctl.outputs.safe import visible
    from compactctl.redact import redact

    settings = config.resolved.settings
    known = [desk.config_of(name, given) for name, given in settings.providers.items()]
    if providers.DEFAULT.name not in settings.providers:
        known.append(providers.DEFAULT)
    try:
        chosen = desk.choose(settings, None).name
    except UsageError:
        chosen = ""
    rows = []
    for each in known:
        name = desk.NO_MODEL if each.kind == "extract" else each.name
        address = "" if each.kind == "extract" else redact(providers.make(each).address).text
        lacks = "; ".join(providers.missing(each)) or "nothing"
        window = "" if each.window is None else f"{each.window:,}"
        key = each.api_key_env or ""
        shown = (name, each.kind, each.model or "", address, window, key, lacks, "yes" if each.name == chosen else "")
        rows.append(tuple(visible(cell) for cell in shown))
    headers = ("provider", "kind", "model", "address", "window", "key in", "missing", "asked")
    return _printed("providers", output, headers, rows)


def _where(origin: "Origin") -> str:
    """Return where a value comes from: a place says it already, but not what kind of file it is."""
    if origin.place is None:
        return origin.source
    return f"{origin.source}, {origin.place}" if origin.source.endswith("file") else origin.place


def _code(source: str) -> str:
    return source.replace(" ", "_")


def _document(command: str, **content: object) -> Printed:
    from compactctl.outputs.json import dumps

    return dumps({"schema": f"compactctl.{command}/1", "version": __version__, **content}), "utf-8"


def _printed(command: str, output: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Printed:
    if opt.one_of(output, LIST_OUTPUTS, "output") == "json":
        return _document(command, **{command: [dict(zip(headers, row, strict=True)) for row in rows]})
    from compactctl.outputs.pages import table

    return "".join(f"{line}\n" for line in table(headers, rows, ["left"] * len(headers))), None


def _first_line(value: object) -> str:
    """Return what something is: the first line of its class's docstring."""
    return (type(value).__doc__ or "").strip().partition("\n")[0].rstrip(".")
