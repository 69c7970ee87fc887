"""The README says what is so: its examples are run, its tables are compared with the code."""

import json
import re
from pathlib import Path

import pytest

from compactctl import errors
from compactctl.__main__ import exit_code
from compactctl.findings import RULES
from compactctl.formats import FORMATS
from compactctl.outcome import Outcome
from compactctl.settings import Settings, known_keys, value_of, written
from tests.scripts import make_samples
from tests.scripts.readme import ROOT, Example, examples, playground, run

README = (ROOT / "README.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading, cells without their backticks."""
    section = re.split(r"^#+ ", README, flags=re.MULTILINE)
    body = next(part for part in section if part.startswith(f"{heading}\n"))
    rows = [line for line in body.splitlines() if line.startswith("| ")]
    return [[cell.strip().strip("`") for cell in row.strip("| ").split(" | ")] for row in rows[2:]]


def test_every_example_prints_what_the_readme_says(tmp_path):
    environment = playground(tmp_path)
    found = examples(README)
    assert found
    printed = [run(example, tmp_path, environment) for example in found]
    wrong = [(e.command, e.expected, p) for e, p in zip(found, printed, strict=True) if not e.matches(p)]
    assert wrong == []


@pytest.mark.parametrize(
    "expected, printed, matches",
    [
        ("a", "a\n", True),
        ("a", "ab\n", False),
        ("a…c", "abbc\n", True),
        ("a\n…\nz", "a\nb\nc\nz\n", True),
        ("a\n…\nz", "a\nz\n", True),
        ("a\n…", "b\n", False),
        ("", "", True),
        ("", "a\n", False),
    ],
)
def test_an_ellipsis_stands_for_any_text_or_lines(expected, printed, matches):
    assert Example("x", expected).matches(printed) is matches


def test_the_samples_are_what_their_script_makes():
    folder = ROOT / "sample_sessions"
    on_disk = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert on_disk == dict(make_samples.samples())


def test_the_settings_table_is_the_settings():
    shown = {key: default for key, default, _ in table("Settings")}
    assert shown == {key: written(value_of(Settings(), key)) for key in known_keys()}


def test_the_formats_table_is_the_formats():
    assert [row[0] for row in table("Formats")] == list(FORMATS)


def test_every_link_within_the_readme_leads_to_a_heading():
    text = re.sub("^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall("^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    linked = set(re.findall(r"\]\(#([^)]+)\)", text))
    assert linked
    assert linked - anchors == set()


def test_every_command_is_in_an_example():
    said = " ".join(example.command for example in examples(README))
    assert [command for command in table("Commands") if f"compactctl {command[0].split()[0]}" not in said] == []


def test_the_keys_of_a_session_in_json_are_those_of_an_outcome():
    assert {key for row in table("JSON") for key in re.findall(r"\w+", row[0])} == set(Outcome.__struct_fields__)


def test_the_error_codes_are_the_errors():
    def below(kind: type[errors.CompactctlError]) -> list[type[errors.CompactctlError]]:
        return [each for sub in kind.__subclasses__() for each in (sub, *below(sub))]

    known = {kind().code: str(kind.exit_code) for kind in below(errors.CompactctlError)}
    assert {code: exit_code for code, exit_code, _ in table("Error codes")} == known


def test_the_exit_codes_are_those_of_the_errors():
    shown = {int(row[0]) for row in table("Exit codes")}
    known = {int(row[1]) for row in table("Error codes")}
    assert shown == known | {0, 1}


# bad input ---------------------------------------------------------------------------------------

USER = {"role": "user", "content": "Is the gate open?"}
ANSWER = {"role": "assistant", "content": "It is."}
CALLED = {"id": "c1", "type": "function", "function": {"name": "gate", "arguments": "{}"}}
CALL = {"role": "assistant", "content": None, "tool_calls": [CALLED]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "open"}
NO_ID = {"role": "assistant", "content": None, "tool_calls": [{**CALLED, "id": ""}]}


def _lines(*rows: object, end: bytes = b"\n", between: bytes = b"\n") -> bytes:
    raw = [row if isinstance(row, bytes) else json.dumps(row, ensure_ascii=False).encode() for row in rows]
    return between.join(raw) + end


def _chained(first_parent: str | None, *between: object) -> bytes:
    def line(own: str, parent: str | None, role: str, content: object) -> dict[str, object]:
        message = {"role": role, "content": content, "id": f"msg_{own}"}
        envelope = {
            "isSidechain": False,
            "sessionId": "s",
            "version": "2.1.29",
            "timestamp": "2026-03-02T09:00:00.000Z",
        }
        return {**envelope, "type": role, "uuid": own, "parentUuid": parent, "message": message}

    answer = [{"type": "text", "text": "It is."}]
    return _lines(line("a", first_parent, "user", "Is it?"), *between, line("b", "a", "assistant", answer))


def _said(text: bytes) -> bytes:
    return b'{"role":"assistant","content":"' + text + b'"}'


DEEP = b'{"role":"assistant","content":"x","more":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

BAD: dict[str, bytes | None] = {
    "an empty file": b"",
    "text that is no JSON": b"just words\n",
    "JSON that is no session": b'{"a": 1}\n',
    "a binary file": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    "a file that is not there": None,
    "a `.zst` that is cut off": b"\x28\xb5\x2f\xfd\x04",
    "a line that is no JSON": _lines(USER, b'{"role": nope}', ANSWER),
    "a line nested a hundred thousand deep": _lines(USER, DEEP, ANSWER),
    "a torn last line": _lines(USER, ANSWER, b'{"role":"us', end=b""),
    "two records on one line": _lines(USER, json.dumps(ANSWER).encode() + json.dumps(USER).encode()),
    "zero bytes after a crash": _lines(USER, b"\x00" * 64, ANSWER),
    "a byte order mark": b"\xef\xbb\xbf" + _lines(USER, ANSWER),
    "no newline at the end": _lines(USER, ANSWER, end=b""),
    "CRLF line ends": _lines(USER, ANSWER, between=b"\r\n", end=b"\r\n"),
    "U+2028 in a text": _lines(USER, _said("a\u2028b".encode())),
    "bytes that are not UTF-8": _lines(USER, _said(b"caf\xe9")),
    "half of a surrogate pair": _lines(USER, _said(rb"\ud83d")),
    "NaN": _lines(USER, b'{"role":"assistant","content":"x","n":NaN}'),
    "an array or a number as a line": _lines(USER, b"[1]", b"7", ANSWER),
    "a result without its call": _lines(USER, RESULT, ANSWER),
    "a call that nothing answers": _lines(USER, CALL, USER, ANSWER),
    "a call that the end leaves open": _lines(USER, CALL),
    "two results for one call": _lines(USER, CALL, RESULT, RESULT, ANSWER),
    "a message between call and result": _lines(USER, CALL, USER, RESULT, ANSWER),
    "a call without an id": _lines(USER, NO_ID, ANSWER),
    "a parent that is not in the file": _chained("gone"),
    "parents that lead in a circle": _chained("b"),
    "a record of an unknown kind": _chained(None, {"type": "brand-new", "x": 1}),
    "a session without a message": _lines({"role": "system", "content": ""}),
}
"""An input for each row of the README's table; None: no file at all."""


def test_the_bad_input_table_has_a_row_for_each_that_is_tried():
    assert [row[0] for row in table("Bad input")] == [name.strip("`") for name in BAD]


@pytest.mark.parametrize("name, said, code", table("Bad input"))
def test_bad_input_gives_what_the_readme_says(name, said, code, tmp_path, capsys):
    path: Path = tmp_path / ("s.jsonl.zst" if ".zst" in name else "s.jsonl")
    content = BAD[name]
    if content is not None:
        path.write_bytes(content)
    assert exit_code(["inspect", str(path), "-o", "json"]) == int(code)
    [session] = json.loads(capsys.readouterr().out)["sessions"]
    found = {finding["rule"] for finding in session["findings"]} - {"no-usage"}
    if session["error"] is not None:
        found.add(session["error"]["code"])
    assert found == (set() if said == "none" else {said})
    assert said in {"none", *RULES} or session["status"] == "failed"
