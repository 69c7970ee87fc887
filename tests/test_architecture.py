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

OF_OS = {
    *("chmod", "chown", "link", "makedirs", "mkdir", "open", "remove", "removedirs", "rename", "renames", "replace"),
    *("rmdir", "symlink", "truncate", "unlink", "utime"),
}
OF_PATHS = {"hardlink_to", "mkdir", "rename", "rmdir", "symlink_to", "touch", "unlink", "write_bytes", "write_text"}
WRITING = re.compile("[wax+]")

NO_SESSION_FILES = {
    "cli/help.py": "formatter.write_text",
    "cli/streams.py": "os.open",
    "disk.py": "os.open",
}
"""Calls outside the store that look like writes: a formatter's, the null device, and the flags of reading."""


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


TESTS = sorted((ROOT / "tests").rglob("test_*.py"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT / "tests")))
def test_no_test_imports_another_one(path):
    modules = {imported for imported in _imports([path]) if imported.startswith("tests.")}
    assert [module for module in modules if ".test_" in module] == []


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


def _writes(path: Path) -> list[str]:
    """Return the calls in a file that write to a disk, or look so."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return [ast.unparse(call.func) for call in calls if _is_write(call)]


def _is_write(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="os"), attr=name):
            return name in OF_OS
        case ast.Attribute(value=ast.Name(id="shutil"), attr=name):
            return name.startswith(("copy", "move", "rmtree")) and name != "copyfileobj"
        case ast.Name(id="open") | ast.Attribute(attr="open"):
            modes = call.args[1:] if isinstance(call.func, ast.Name) else call.args
            given = [*modes, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
            return any(isinstance(mode, ast.Constant) and WRITING.search(str(mode.value)) for mode in given)
        case ast.Attribute(value=ast.Name(id="store")):
            return False
        case ast.Attribute(attr=name):
            return name in OF_PATHS
    return False


def test_only_the_store_writes():
    found = {str(path.relative_to(PACKAGE)): _writes(path) for path in PACKAGE.rglob("*.py")}
    assert "os.replace" in found.pop("store.py")
    assert {name: ", ".join(calls) for name, calls in found.items() if calls} == NO_SESSION_FILES
