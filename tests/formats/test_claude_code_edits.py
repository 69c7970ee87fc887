"""How results of a Claude Code session are replaced, and what stays as it is."""

import json

from compactctl.formats.claude_code import FORMAT
from tests.builders.claude import Session, call, image, result, text, thinking
from tests.builders.images import encoded, png
from tests.formats import reading
from tests.formats.conversations import conversation, read


def spilled(session):
    """Return the lines after every result gave way to `PREVIEW`."""
    return reading.spilled(FORMAT, session.bytes(), "PREVIEW").splitlines()


def test_a_preview_takes_the_place_of_a_result_and_its_copy_is_slimmed():
    s = Session()
    s.user("Go.")
    s.assistant(thinking("Hm."), call("toolu_1"))
    copy = {"stdout": "x" * 1000, "stderr": "", "interrupted": False, "lines": ["y" * 300] * 20}
    s.results(result("toolu_1", "x" * 1000, is_error=True), copy=copy)
    s.assistant("Done.")
    after = spilled(s)
    line = json.loads(after[2])
    assert line["message"]["content"] == [result("toolu_1", "PREVIEW", is_error=True)]
    assert line["toolUseResult"] == {"stdout": "moved", "stderr": "", "interrupted": False, "lines": ["moved"] * 20}
    assert [after[i] for i in (0, 1, 3)] == [s.raw_lines[i] for i in (0, 1, 3)]


def test_images_beside_a_spilled_text_stay_as_they_are():
    s = Session()
    picture = image(encoded(png(10, 10)))
    s.user("Go.")
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", [text("a" * 50), picture, text("b" * 50)]))
    line = json.loads(spilled(s)[2])
    assert line["message"]["content"] == [result("toolu_1", [text("PREVIEW"), picture])]


def test_of_a_record_written_twice_the_one_that_the_client_reads_is_edited():
    s = conversation()
    s.again(2)
    after = spilled(s)
    assert after[2] == s.raw_lines[2]
    assert json.loads(after[4])["message"]["content"] == [result("toolu_1", "PREVIEW")]


def test_no_recorded_usage_is_rewritten():
    s = conversation()
    assert FORMAT.usage_edits(s.document(), read(s), 100) == []
