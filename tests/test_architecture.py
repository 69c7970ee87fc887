"""The module map of the README: every module is in it, and imports go one way."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "compactctl"
README = (ROOT / "README.md").read_text(encoding="utf-8")

MAP = re.findall(r"^\| `(\w+)(?:\.py|/)` \|", README, re.MULTILINE)
"""The modules and folders of the map, in order: each may import what stands above it."""

OWNERS = {
    "typer": {"cli", "__main__"},
    "tabulate": {"outputs"},
    "orjson": {"outputs"},
    "tiktoken": {"estimators"},
    "zstandard": {"packing"},
    "imagesize": {"media"},
    "openai": {"providers"},
    "anthropic": {"providers"},
}
"""Where a library may be imported, so that it can be replaced in one place and loaded late."""


def _units() -> dict[str, list[Path]]:
    """Return the modules and folders of the package by name, each with its files."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name != "__init__":
            found.setdefault(name, []).append(path)
    return found


UNITS = _units()


def _imports(paths: list[Path]) -> set[str]:
    """Return the dotted names of all that these files import, wherever in them."""
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import(names=names):
                    found |= {name.name for name in names}
                case ast.ImportFrom(module=str(module), names=names, level=0):
                    found |= {f"{module}.{name.name}" for name in names}
    return found


def test_every_module_is_in_the_map():
    assert sorted(MAP) == sorted(UNITS)


@pytest.mark.parametrize("name", UNITS)
def test_imports_go_up_the_map(name):
    above = {*MAP[: MAP.index(name)], name} if name in MAP else set()
    ours = {imported.split(".")[1] for imported in _imports(UNITS[name]) if imported.startswith("compactctl.")}
    assert sorted((ours & set(UNITS)) - above) == []


@pytest.mark.parametrize("library", OWNERS)
def test_a_library_is_imported_in_its_place_only(library):
    users = {name for name, paths in UNITS.items() if library in {i.split(".")[0] for i in _imports(paths)}}
    assert users <= OWNERS[library]
