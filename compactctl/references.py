"""What a text refers to literally: paths, hex ids, identifiers, commands, URLs, error lines; and how much survives.

Survival is literal presence. It is not recall: what stands in a context may still be overlooked.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

Kind = Literal["path", "hex", "identifier", "command", "url", "error"]

KINDS: tuple[Kind, ...] = ("path", "hex", "identifier", "command", "url", "error")


class Reference(Struct, frozen=True, order=True):
    """One thing that a text names, as it stands there."""

    kind: Kind
    text: str


class Survival(Struct, frozen=True):
    """Of `total` things, how many are literally present, and how many can be reached: present or in a named file."""

    total: int
    present: int
    reachable: int


LONGEST = 400
"""A longer match is data rather than a name."""

_URL = re.compile(r"\b(?:https?|ssh|git|file|wss?|postgres(?:ql)?|redis|mongodb|s3)://[^\s\"'<>`|\\^{}\[\]()]+")
_PATH = re.compile(
    r"""(?<![\w/\\.~@$%+:<-])
    (?: (?:~|\.{1,2})?(?:/[\w.@+~%=-]+)+/?                    # /a/b, ./a, ~/a
      | [A-Za-z]:(?:[/\\]{1,2}[\w.@+~%=-]+)+                  # C:\a
      | [\w.@~-]+(?:/[\w.@+~=-]+)+/?                          # a/b.c
      | [\w-]+(?:\.[\w-]+)*\.(?:EXT)\b )                     # name.py
    """.replace(
        "EXT",
        "py|pyi|rs|go|ts|tsx|js|jsx|mjs|cjs|json|jsonl|toml|yaml|yml|md|mdx|txt|sh|bash|zsh|c|h|cc|cpp|hpp|cs|java|kt|"
        "swift|rb|php|lua|sql|html|css|scss|vue|svelte|xml|csv|tsv|lock|cfg|ini|conf|env|log|proto|gradle|tf|ipynb|"
        "svg|png|jpg|pdf|zst|gz|zip|db|sqlite|diff|patch|omp|ps1|bat|mod|sum|nix|ex|exs|erl|hs|ml|zig|dart|scala|r|R",
    ),
    re.VERBOSE,
)
_HEX = re.compile(
    r"(?<![\w-])(?:0x)?(?=[0-9a-f-]*\d)(?=[0-9a-f-]*[a-f])"
    r"(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{7,64})(?![\w-])"
)
_IDENTIFIER = re.compile(
    r"""(?<![\w/\\.-])
    (?: [A-Za-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+               # camelCase, PascalCase
      | _*[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+              # snake_case, UPPER_CASE
    )(?![\w/\\])""",
    re.VERBOSE,
)
_ERROR = re.compile(
    r"^.*?(?:\b[A-Za-z_.]*(?:Error|Exception|Panic)\b\s*[:(]|\berror(?:\[[A-Z]\d+\])?:|\bfatal:|\bpanic:|"
    r"\bFAILED?\b|--- FAIL|\bTraceback \(most recent|\bcommand not found|No such file or directory|"
    r"\bPermission denied|\bundefined reference|\bcannot find|\bERR!|✗|✘).*$",
    re.MULTILINE,
)
ERROR_CHARACTERS = 240

_LINE_NUMBER = re.compile(r"(\.[A-Za-z]{1,4})-\d+-.*$")
"""What a search puts behind a path, before the line it shows."""

_NO_PATH = re.compile(
    r"[\d./:+-]+|[\w-]+/\d{4}-\d\d-\d\dT[\d:]*|[A-Za-z]+/[A-Za-z]+|/[\w-]{1,20}|[A-Z]\w*(?:/[A-Z]\w*)+|n/a"
)
"""What looks like a path and is mostly not: fractions, dates, keys with a time, `and/or`, commands of a chat, tags."""


def find_references(text: str) -> frozenset[Reference]:
    """Return what the text names, commands excepted: only a call says what is a command (`commands_in`)."""
    return frozenset(_found(text))


def _found(text: str) -> Iterator[Reference]:
    rest = text
    urls = [match.group().rstrip(".,;:!?*_") for match in _URL.finditer(text)]
    if urls:
        yield from (Reference("url", url) for url in urls if len(url) <= LONGEST)
        rest = _URL.sub(" ", text)
    for match in _PATH.finditer(rest):
        path = _LINE_NUMBER.sub(r"\1", match.group()).rstrip(".,:;/\\")
        if 2 < len(path) <= LONGEST and not _NO_PATH.fullmatch(path):
            yield Reference("path", path)
    yield from (Reference("hex", match.group()) for match in _HEX.finditer(rest))
    for match in _IDENTIFIER.finditer(rest):
        if 4 < len(match.group()) <= 80:
            yield Reference("identifier", match.group())
    for match in _ERROR.finditer(text):
        yield Reference("error", match.group().strip()[:ERROR_CHARACTERS])


# commands ----------------------------------------------------------------------------------------

_SEPARATORS = re.compile(r"\s*(&&|\|\||;|\||\n)\s*")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_HERE_DOCUMENT = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?.*?^\s*\1\s*$", re.DOTALL | re.MULTILINE)
_REDIRECTION = re.compile(r"\s*(?:\d?>&\d|&?\d?>>?\s*\S+|<\s*\S+)")
_QUIET = re.compile(
    r"\s*(?:cd|echo|printf|export|set|true|false|then|else|fi|do|done|for|if|while|#|\{|\}|\()\b.*|[^\w./~$-].*"
)
_FILTER = re.compile(r"(?:head|tail|wc|sort|uniq|cut|tr|tee|less|more|cat|grep|egrep|rg|sed|awk|jq|xargs|column)\b")
"""What stands behind a pipe only makes an output smaller."""

COMMAND_CHARACTERS = 200


def commands_in(script: str) -> list[str]:
    """Return the commands of a shell script that name a program, in order, without redirections.

    `cd`, `echo` and the words of control are no commands here; a quoted text is not torn.
    """
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match.group())
        return f"\x00{len(held) - 1}\x00"

    flat = _QUOTED.sub(hold, _HERE_DOCUMENT.sub("", script.replace("\x00", "")))
    found = []
    pieces = _SEPARATORS.split(flat)
    for mark, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        if mark == "|" and _FILTER.match(piece):
            continue
        bare = _REDIRECTION.sub("", piece).strip()
        whole = re.sub(r"\x00(\d+)\x00", lambda match: held[int(match[1])], bare)
        if 3 < len(whole) <= COMMAND_CHARACTERS and not _QUIET.fullmatch(whole) and "\n" not in whole:
            found.append(whole)
    return found


def find_commands(script: str) -> frozenset[Reference]:
    """Return the commands of a shell script as references."""
    return frozenset(Reference("command", command) for command in commands_in(script))


# calls -------------------------------------------------------------------------------------------

_SHELL_KEYS = ("command", "cmd", "script")
_EDITOR_KEYS = frozenset({"path", "file_path"})
"""An editor's `command` is one of its own (`view`), not the shell's."""


def arguments_of(arguments: str) -> Any:
    """Return a call's arguments decoded where they are JSON, else the text itself."""
    if not arguments.lstrip().startswith(("{", "[")):
        return arguments
    try:
        return msgspec.json.decode(arguments.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return arguments


def calls_text(arguments: str) -> str:
    """Return all texts in a call's arguments, a line each, without the JSON around them."""
    return "\n".join(_strings(arguments_of(arguments)))


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _strings(item)
        case list():
            for item in value:
                yield from _strings(item)


def script_of(arguments: str) -> str | None:
    """Return the shell script that a call runs; None where it runs none."""
    value = arguments_of(arguments)
    if not isinstance(value, dict) or _EDITOR_KEYS & value.keys():
        return None
    given = next((value[key] for key in _SHELL_KEYS if key in value), None)
    if isinstance(given, list) and given and all(isinstance(word, str) for word in given):
        return str(given[-1]) if given[0].endswith("sh") else " ".join(given)
    return given if isinstance(given, str) else None


def whole_command(arguments: str) -> str | None:
    """Return the shell script of a call where it is one short line, as it was typed."""
    script = (script_of(arguments) or "").strip()
    return script if 3 < len(script) <= COMMAND_CHARACTERS and "\n" not in script else None


def shell_commands(arguments: str) -> frozenset[Reference]:
    """Return the commands that a call runs in a shell."""
    script = script_of(arguments)
    return frozenset() if script is None else find_commands(script)


# survival ----------------------------------------------------------------------------------------


class Holds(Protocol):
    """A text, or several, that literals are looked for in."""

    def __contains__(self, text: str, /) -> bool: ...


def named(texts: Iterable[str], scripts: Iterable[str] = ()) -> set[Reference]:
    """Return what these texts name, and the commands of these shell scripts."""
    return set().union(*map(find_references, texts), *map(find_commands, scripts))


def stands(reference: Reference, text: Holds, folder: str | None) -> bool:
    """Return whether a text has a reference: literally, or for a path in the session's folder relative to that."""
    if reference.text in text:
        return True
    short = relative(reference.text, folder) if reference.kind == "path" else reference.text
    return short != reference.text and ("/" in short or "." in short) and short in text


def relative(path: str, folder: str | None) -> str:
    """Return a path as it reads from the session's folder; one that leads elsewhere as it is."""
    base = (folder or "").rstrip("/\\")
    inside = bool(base) and path.startswith((f"{base}/", f"{base}\\"))
    return path[len(base) + 1 :] if inside else path.removeprefix("./")


def survival(
    wanted: Iterable[Reference], present: Holds, reachable: Holds, folder: str | None = None
) -> dict[Kind, Survival]:
    """Return by kind how many of the references stand in `present`, the new context, and in that or in `reachable`.

    `folder` is where the session was at work.
    """
    tallies: dict[Kind, list[int]] = {kind: [0, 0, 0] for kind in KINDS}
    for reference in wanted:
        tally = tallies[reference.kind]
        is_present = stands(reference, present, folder)
        tally[0] += 1
        tally[1] += is_present
        tally[2] += is_present or stands(reference, reachable, folder)
    return {kind: Survival(*tally) for kind, tally in tallies.items() if tally[0]}
