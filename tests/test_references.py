import pytest

from compactctl.references import (
    Reference,
    Survival,
    calls_text,
    commands_in,
    find_references,
    named,
    script_of,
    shell_commands,
    stands,
    survival,
    whole_command,
)


def found(text, kind):
    return {reference.text for reference in find_references(text) if reference.kind == kind}


@pytest.mark.parametrize(
    "text, paths",
    [
        ("see src/engine/cache.py and ./run.sh", {"src/engine/cache.py", "./run.sh"}),
        ("in /var/log/app/today.log, line 3", {"/var/log/app/today.log"}),
        ("~/notes/plan.md.", {"~/notes/plan.md"}),
        (r"C:\work\tool\main.go", {r"C:\work\tool\main.go"}),
        ("only README.md", {"README.md"}),
        ("src/engine/cache.py:41: late", {"src/engine/cache.py"}),
        ("src/engine/cache.go-41-  late", {"src/engine/cache.go"}),
        ("docs/issue-12-notes/index.md", {"docs/issue-12-notes/index.md"}),
        ("and/or, 3/4, 2026/01/02, n/a, TW000/2026-03-01T18, /compact, <b>x</b>, +12/-3", set()),
        ("https://example.org/a/b.html", set()),
    ],
)
def test_paths(text, paths):
    assert found(text, "path") == paths


@pytest.mark.parametrize(
    "text, ids",
    [
        (
            "commit 3f2a9c1 and 0123456789abcdef0123456789abcdef01234567",
            {"3f2a9c1", "0123456789abcdef0123456789abcdef01234567"},
        ),
        ("1b4e28ba-2fa1-11d2-883f-0016d3cca427", {"1b4e28ba-2fa1-11d2-883f-0016d3cca427"}),
        ("1234567 facade defaced 12ab", set()),
    ],
)
def test_hex_ids_have_digits_and_letters(text, ids):
    assert found(text, "hex") == ids


@pytest.mark.parametrize(
    "text, names",
    [
        ("call loadTable or MAX_ROWS_KEPT in row_cache", {"loadTable", "MAX_ROWS_KEPT", "row_cache"}),
        ("The quick brown fox, Monday", set()),
        ("in src/row_cache.py", set()),
    ],
)
def test_identifiers_are_words_that_nobody_writes_in_prose(text, names):
    assert found(text, "identifier") == names


def test_urls_end_before_punctuation():
    assert found("(see https://example.org/a?b=1).", "url") == {"https://example.org/a?b=1"}


@pytest.mark.parametrize(
    "text",
    ["KeyError: 'rows'", "error[E0308]: mismatched types", "FAILED tests/test_rows.py", "fatal: not a git repository"],
)
def test_error_lines(text):
    assert found(f"start\n  {text}\nend", "error") == {text}


@pytest.mark.parametrize(
    "script, commands",
    [
        ("cd /w && make test 2>&1 | tail -5", ["make test"]),
        ("git status; git diff --stat", ["git status", "git diff --stat"]),
        ('git commit -m "one; two"', ['git commit -m "one; two"']),
        ("cat <<'END' > x.txt\nrm -rf /\nEND\nls x.txt", ["ls x.txt"]),
        ("echo done # nothing", []),
        ("npm run build > log.txt || exit 1", ["npm run build", "exit 1"]),
    ],
)
def test_commands_of_a_script(script, commands):
    assert commands_in(script) == commands


@pytest.mark.parametrize(
    "arguments, script",
    [
        ('{"command": "make"}', "make"),
        ('{"cmd": "make", "workdir": "/w"}', "make"),
        ('{"command": ["bash", "-lc", "make test"]}', "make test"),
        ('{"command": ["git", "status"]}', "git status"),
        ('{"command": "view", "path": "/w/a.py"}', None),
        ('{"pattern": "x"}', None),
        ("make", None),
        ("{broken", None),
    ],
)
def test_the_script_of_a_call(arguments, script):
    assert script_of(arguments) == script


def test_a_whole_command_is_one_short_line_as_it_was_typed():
    assert whole_command('{"command": "cd /w && make 2>&1 | tail"}') == "cd /w && make 2>&1 | tail"
    assert whole_command('{"command": "make\\nmake"}') is None


def test_texts_of_a_call_come_without_the_json_around_them():
    assert calls_text('{"a": "x\\ny", "b": [{"c": "z"}], "d": 3}') == "x\ny\nz"
    assert calls_text("plain words") == "plain words"


def test_commands_of_a_call_are_references():
    assert shell_commands('{"command": "make test"}') == {Reference("command", "make test")}


def test_named_are_the_references_of_texts_and_the_commands_of_scripts():
    assert named(["src/rows.py", "loadTable"], ["make test | tail"]) == {
        Reference("path", "src/rows.py"),
        Reference("identifier", "loadTable"),
        Reference("command", "make test"),
    }


@pytest.mark.parametrize("characters, is_found", [(400, True), (401, False)])
def test_what_is_too_long_for_a_name_is_data(characters, is_found):
    url, path = ("https://example.org/".ljust(characters, "a"), "/src/".ljust(characters, "a"))
    assert found(f"see {url}", "url") == ({url} if is_found else set())
    assert found(f"see {path}", "path") == ({path} if is_found else set())


def test_of_a_long_error_line_its_beginning_is_kept():
    assert found("fatal: ".ljust(300, "x"), "error") == {"fatal: ".ljust(240, "x")}


def test_survival_is_literal_presence_by_kind():
    before = named(["src/rows.py and src/late.py, id 3f2a9c1", "loadTable"], ["make test"])
    assert survival(before, "look at src/rows.py", "loadTable src/late.py") == {
        "path": Survival(2, 1, 2),
        "hex": Survival(1, 0, 0),
        "identifier": Survival(1, 0, 1),
        "command": Survival(1, 0, 0),
    }


@pytest.mark.parametrize(
    "path, text, folder, found",
    [
        ("/w/app/src/rows.py", "in src/rows.py", "/w/app", True),
        ("/w/app/src/rows.py", "in src/rows.py", "/w/app/", True),
        ("/w/app/src/rows.py", "in src/rows.py", "/w/ap", False),
        ("/w/app/src/rows.py", "in src/rows.py", None, False),
        ("/w/app/src", "the src", "/w/app", False),
        ("./run.sh", "run.sh", None, True),
        ("src/rows.py", "/w/app/src/rows.py", "/w/app", True),
    ],
)
def test_a_path_stands_where_it_reads_from_the_sessions_folder(path, text, folder, found):
    assert stands(Reference("path", path), text, folder) is found
