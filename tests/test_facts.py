import json
import re

import pytest

from compactctl.facts import HEADING, changed_files, exit_status, facts_section
from compactctl.story import Answered, Called
from tests.builders.said import assistant, call, result, story, summary, user

RATIO = 3.5


def shell(command, call_id="a"):
    return call(call_id, "Bash", json.dumps({"command": command}))


def edit(path, call_id="a", name="Edit", **more):
    return call(call_id, name, json.dumps({"file_path": path, "old_string": "x", "new_string": "y"} | more))


WORK = story(
    user("See https://example.org/spec for loadTable."),
    assistant("", call("a", "Read", '{"file_path": "/w/src/rows.py"}')),
    result("a", "def load_rows(): ...", "Read"),
    assistant("", edit("/w/src/table.py", "b", new_string="def keep_rows(): return load_rows()")),
    result("b", "ok", "Edit"),
    assistant("", shell("make test", "c")),
    result("c", "Exit code 2\nKeyError: 'rows'\n", "Bash", is_error=True),
    assistant("", shell("make test", "d")),
    result("d", "passed at 3f2a9c1b in /w/src/other.py", "Bash", spilled_to="/w/s.compacted/d.txt"),
)


def facts(said=WORK, tokens=1_500, present=""):
    return facts_section(said, tokens, RATIO, present)


def test_the_facts_of_a_piece_of_work():
    assert facts() == "\n".join(
        [
            HEADING,
            "Files changed: /w/src/table.py",
            "Files read or named in calls: /w/src/rows.py",
            "Outputs saved to files:",
            "- /w/s.compacted/d.txt (Bash, 37 characters)",
            "Commands, with exit status:",
            "- make test",
            "Error lines:",
            "- KeyError: 'rows'",
            "Ids: 3f2a9c1b",
            "URLs: https://example.org/spec",
            "Identifiers: keep_rows, load_rows, loadTable",
            "Other paths: /w/src/other.py",
        ]
    )


def test_what_is_present_is_not_repeated():
    made = facts(present="/w/src/table.py loadTable make test")
    assert "table.py" not in made
    assert "loadTable" not in made
    assert "make test" not in made
    assert "/w/src/rows.py" in made


@pytest.mark.parametrize("tokens", [0, 5, 20, 40, 80, 200])
def test_facts_stay_within_their_bound(tokens):
    assert len(facts(tokens=tokens).encode()) <= tokens * RATIO


def test_without_room_or_anything_to_say_there_are_no_facts():
    assert facts(tokens=0) == ""
    assert facts(story(user("Hello there."))) == ""
    assert facts(()) == ""


def test_newest_first():
    said = story(*(assistant("", edit(f"/w/{name}.py", name)) for name in ("one", "two", "six")))
    assert "Files changed: /w/six.py, /w/two.py, /w/one.py" in facts(said)


def test_where_room_is_short_the_work_itself_goes_before_what_only_stood_in_outputs():
    seen = " ".join(f"lib/part{number}/mod{number}.py" for number in range(200))
    said = story(
        assistant("", edit("/w/main.py")), result("a", "ok"), assistant("", shell("ls -R", "b")), result("b", seen)
    )
    made = facts(said, 60)
    assert "/w/main.py" in made
    assert "ls -R" in made


def test_a_long_command_that_came_again_stands_whole_and_its_pieces_not_besides():
    again = [assistant("", shell("cd /w && make lint types", call_id)) for call_id in "ab"]
    assert facts(story(*again)).count("make lint types") == 1
    assert "- cd /w && make lint types" in facts(story(*again))


def test_the_facts_of_an_earlier_summary_are_carried_over():
    first = facts()
    second = facts(story(summary(f"1. Request\nRows.\n\n{first}"), user("Go on.")))
    assert sorted(re.split(r"[\n,:] ?", first)) == sorted(re.split(r"[\n,:] ?", second))


def test_a_command_has_the_status_of_its_newest_run():
    runs = [("Exit code 2", True), ("fine", False), ("Exit code 1", True)]
    made = [
        facts(
            story(
                *(
                    each
                    for text, failed in runs[:count]
                    for each in (assistant("", shell("make test")), result("a", text, is_error=failed))
                )
            )
        )
        for count in (1, 2, 3)
    ]
    assert [text.splitlines()[2] for text in made] == ["- make test -> 2", "- make test", "- make test -> 1"]


def test_facts_are_deterministic():
    assert facts() == facts()


@pytest.mark.parametrize(
    "made, files",
    [
        (edit("/w/a.py"), ["/w/a.py"]),
        (edit("/w/a.py", name="Read"), []),
        (
            call("a", "apply_patch", "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n*** End Patch"),
            ["a.py", "b.py"],
        ),
        (call("a", "str_replace_editor", '{"command": "view", "path": "/w/a.py"}'), []),
        (call("a", "str_replace_editor", '{"command": "insert", "path": "/w/a.py"}'), ["/w/a.py"]),
        (Called("a", "write", "{broken"), []),
    ],
)
def test_files_that_a_call_changes(made, files):
    assert changed_files(made) == files


@pytest.mark.parametrize(
    "text, is_error, status",
    [
        ("Exit code 2\nno rule", True, "2"),
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nfine", False, "0"),
        ('{"exit_code": 1}', False, "1"),
        ("no such file", True, "failed"),
        ("fine", False, ""),
    ],
)
def test_the_exit_status_that_a_result_tells(text, is_error, status):
    assert exit_status(Answered("a", "Bash", text, is_error)) == status
