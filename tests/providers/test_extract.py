import json

import pytest
from hypothesis import given, settings

from compactctl.providers import DEFAULT, SummaryRequest, make, missing
from compactctl.providers.extract import SHARES
from compactctl.providers.extract_sections import sentences, tasks
from compactctl.providers.fitting import clip
from compactctl.story import read_story
from compactctl.summary import accept
from tests.builders.generated import WRITERS, stories, write
from tests.builders.said import assistant, call, result, story, summary, user
from tests.laws import read

PROVIDER = make(DEFAULT)


def shell(command, call_id="a"):
    return call(call_id, "Bash", json.dumps({"command": command}))


def edit(path, text, call_id="a"):
    return call(call_id, "Edit", json.dumps({"file_path": path, "old_string": "", "new_string": text}))


def sections(said, previous=None, tokens=20_000):
    """Return the summary by the numbers of its sections."""
    text = accept(PROVIDER.answer(SummaryRequest("", tokens, said, previous)))
    parts = text.split("\n\n")
    assert [part.partition("\n")[0] for part in parts] == list(SHARES)
    return {number: part.partition("\n")[2] for number, part in enumerate(parts, 1)}


WORK = story(
    user("Make the import of rows twice as fast."),
    assistant("The import is slow because load_rows in src/rows.py reads the file twice.", shell("make bench")),
    result("a", "Exit code 2\nmake: *** No rule to make target 'bench'", "Bash", is_error=True),
    assistant("There is no bench target, so I use pytest for it.", shell("pytest -q bench")),
    result("a", "4 passed", "Bash"),
    assistant("It takes 3.1 seconds now; most of it is in src/rows.py."),
    user("Use a buffer, and never touch the schema."),
    assistant(
        "I'll use a buffer of 64 kB instead of reading src/rows.py line by line.",
        edit("/w/src/rows.py", "def read_rows(): ..."),
    ),
    result("a", "ok", "Edit"),
    user("Then run the whole suite."),
    assistant(
        "Let me run the whole suite now.",
        call(
            "t",
            "TodoWrite",
            json.dumps(
                {
                    "todos": [
                        {"content": "Buffer the import", "status": "completed"},
                        {"content": "Run the suite", "status": "in_progress"},
                        {"content": "Write the note", "status": "pending"},
                    ]
                }
            ),
        ),
    ),
)


def test_a_summary_says_what_one_resumes_from():
    made = sections(WORK)
    assert made[1] == 'First: "Make the import of rows twice as fast."\nLast: "Then run the whole suite."'
    assert made[2].startswith("- The import is slow because load_rows in src/rows.py reads the file twice.")
    assert made[3] == "- /w/src/rows.py: 1 change; read_rows"
    assert "make bench: make: *** No rule to make target 'bench'" in made[4]
    assert "There is no bench target" in made[4]
    assert made[5].startswith('- On "Make the import of rows twice as fast.": It takes 3.1 seconds now')
    assert "- I'll use a buffer of 64 kB" in made[5]
    assert made[6] == '- "Use a buffer, and never touch the schema."'
    assert made[7] == "- [in_progress] Run the suite\n- [pending] Write the note\n- 1 of 3 tasks of the list are done"
    assert made[8].startswith("Said last: Let me run the whole suite now.")
    assert made[9] == "Run the suite"


def test_empty_sections_say_none():
    made = sections(story(user("Hello.")))
    assert made[1] == 'First: "Hello."'
    assert [made[number] for number in (2, 3, 4, 5, 6, 7, 8)] == ["none"] * 7
    assert made[9] == 'Answer what was asked last: "Hello."'


def test_an_earlier_summary_is_updated_section_by_section():
    first = PROVIDER.answer(SummaryRequest("", 20_000, WORK)).text
    made = sections(story(user("Now the docs."), assistant("Writing docs/import.md.")), accept_text(first))
    assert made[1].startswith('First: "Make the import of rows twice as fast."')
    assert made[1].endswith('Last: "Now the docs."')
    assert "load_rows" in made[2]
    assert "never touch the schema" in made[6]


def accept_text(text):
    return text.removeprefix("<summary>\n").removesuffix("\n</summary>")


def test_another_ones_summary_is_taken_as_facts():
    made = sections(story(summary("The import was halved by a buffer."), user("Now the docs.")))
    assert "The import was halved by a buffer." in made[2]


def test_what_the_user_answered_and_why_a_call_was_refused_are_the_users_words():
    said = story(
        user("Start."),
        result("q", 'User has answered: "Which?"="The second"', "AskUserQuestion"),
        result("b", "The tool use was rejected. The user said: not on the main branch", is_error=True),
        user("Go on."),
    )
    assert "The second" in sections(said)[6]
    assert "not on the main branch" in sections(said)[6]


def test_tags_in_the_session_are_never_the_summarys_own():
    said = story(
        user("Print </summary> and <summary>none</summary>, <analysis>."), assistant("<summary>Fine</summary>.")
    )
    made = sections(said)
    assert "Print ‹/summary> and ‹summary>none‹/summary>" in made[1]


@pytest.mark.parametrize("tokens", [256, 512, 2_000])
def test_an_answer_is_no_longer_than_it_may_be(tokens):
    long = story(
        *(each for number in range(60) for each in (user(f"Ask {number} " * 40), assistant("Because so. " * 60)))
    )
    assert len(PROVIDER.answer(SummaryRequest("", tokens, long)).text.encode()) <= tokens * 3.5 + 400


def test_it_is_deterministic_and_needs_nothing():
    request = SummaryRequest("", 20_000, WORK)
    assert PROVIDER.answer(request) == PROVIDER.answer(request)
    assert missing(DEFAULT, {}) == []
    assert not PROVIDER.is_remote


@pytest.mark.parametrize(
    "calls, left",
    [
        (
            [("update_plan", {"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "pending"}]})],
            ["a completed", "b pending"],
        ),
        (
            [
                ("TaskCreate", {"subject": "a"}),
                ("TaskCreate", {"subject": "b"}),
                ("TaskUpdate", {"taskId": "1", "status": "completed"}),
            ],
            ["a completed", "b pending"],
        ),
        ([("Bash", {"command": "ls"})], []),
        ([("TodoWrite", {"todos": []})], []),
    ],
)
def test_the_tasks_of_an_agents_own_list(calls, left):
    said = story(*(assistant("", call(str(at), name, json.dumps(given))) for at, (name, given) in enumerate(calls)))
    assert [f"{task.words} {task.status}" for task in tasks(said)] == left


@pytest.mark.parametrize(
    "text, size, clipped",
    [("short", 10, "short"), ("é" * 10, 20, "é" * 10), ("abcdefghij" * 3, 20, "abcdefghijabc […]"), ("", 5, "")],
)
def test_a_clip_stays_within_its_bytes(text, size, clipped):
    assert clip(text, size) == clipped
    assert len(clip(text, size).encode()) <= size


def test_sentences_are_prose_without_code_tables_and_marks():
    lines = ["# The reader is slow here today", "- It opens the whole file twice. And then?", "```py\nx = 1\n```"]
    text = "\n".join([*lines, "| a | b |", "Now this:"])
    assert sentences(text) == ["The reader is slow here today", "It opens the whole file twice."]


@pytest.mark.parametrize("name", list(WRITERS))
@settings(max_examples=25, deadline=None, derandomize=True)
@given(story=stories)
def test_every_session_has_a_summary_that_is_accepted(name, story):
    document, _, [transcript] = read(write(story, name))
    sections(read_story(document, transcript, {}))
