"""What compactions in a session kept, on sessions small enough to be counted by hand."""

import io
import json

import pytest

from compactctl import formats
from compactctl.__main__ import exit_code
from compactctl.document import Document
from compactctl.references import Reference, Survival
from compactctl.survival import Missed, Rereads, Text, after_rounds, instructions, loss, moments, read_paths
from tests.builders import claude, codex
from tests.builders.said import assistant, call, result, story, user

FOLDER = "/home/dev/project"
BUSY = 3
"""Rounds after a compaction that do not count."""


def moments_of(raw: bytes, name: str = "claude-code"):
    document = Document(io.BytesIO(raw))
    format_ = formats.get(name)
    return list(moments(document, format_, format_.read(document)[0]).found)


def rounds(session: claude.Session, *commands: str) -> None:
    for command in commands:
        number = len(session.raw_lines)
        session.assistant(claude.call(f"t{number}", command=command))
        session.results(claude.result(f"t{number}", "fine"))


def compacted(summary: str, before=(), after=()) -> claude.Session:
    """Return a session of commands with one compaction among them."""
    session = claude.Session()
    session.user("Go.")
    rounds(session, *before)
    session.boundary()
    session.summary(summary)
    rounds(session, *[f"true {number}" for number in range(BUSY)], *after)
    session.assistant("Done.")
    return session


def test_what_is_used_again_is_counted_where_it_stands_right_after_the_compaction():
    session = compacted(
        "We looked at src/rows.py.",
        before=["make src/rows.py", "make src/late.py", "make src/never.py"],
        after=["make src/late.py", "make src/rows.py", "make src/new.py"],
    )
    [moment] = moments_of(session.bytes())
    found = loss(moment)
    assert found.line == 8
    assert found.survival == {"path": Survival(2, 1, 1), "command": Survival(2, 0, 0)}
    assert found.missed == (
        Missed(16, Reference("command", "make src/late.py"), False),
        Missed(16, Reference("path", "src/late.py"), False),
        Missed(18, Reference("command", "make src/rows.py"), False),
    )


def test_what_came_after_the_first_answer_was_not_there_right_after_the_compaction():
    session = compacted("Go on.", before=["make src/rows.py"], after=["cat src/rows.py", "cat src/rows.py"])
    [moment] = moments_of(session.bytes())
    assert "src/rows.py" not in " ".join(said.text for said in moment.after)
    assert loss(moment).survival == {"path": Survival(1, 0, 0)}


def test_the_next_rounds_do_not_count():
    session = compacted("Go on.", before=["make src/rows.py"])
    [moment] = moments_of(session.bytes())
    assert loss(moment).survival == {}
    later = story(assistant("", call("a")), result("a", "x"), assistant("", call("b")), result("b", "y"))
    assert [said.index for said in after_rounds(later, 0)] == [0, 1, 2, 3]
    assert [said.index for said in after_rounds(later, 1)] == [1, 2, 3]
    assert after_rounds(later, 3) == ()


@pytest.mark.parametrize("between, counted", [(2, 0), (3, 1)])
def test_what_is_used_in_the_three_rounds_after_a_compaction_is_the_work_that_was_going_on(between, counted):
    session = claude.Session()
    session.user("Go.")
    rounds(session, "make src/rows.py")
    session.boundary()
    session.summary("Go on.")
    rounds(session, *[f"true {number}" for number in range(between)], "cat src/rows.py", "true again")
    [moment] = moments_of(session.bytes())
    assert len(loss(moment).missed) == counted


def test_no_file_is_nowhere_to_be_lost():
    session = compacted("Go on.", before=["make >x; cat /dev/null"], after=["wc /dev/null"])
    [moment] = moments_of(session.bytes())
    assert loss(moment).survival == {}


def test_each_compaction_is_measured_by_itself():
    session = claude.Session()
    session.user("Go.")
    rounds(session, "make src/one.py")
    for summary in ("One was src/one.py.", "Nothing of it."):
        session.boundary()
        session.summary(summary)
        rounds(session, "true 1", "true 2", "true 3", "make src/one.py")
    first, second = moments_of(session.bytes())
    assert [loss(first).survival["path"], loss(second).survival["path"]] == [Survival(1, 1, 1), Survival(1, 0, 0)]
    assert (first.next_line, second.next_line) == (second.line, None)


def test_earlier_compactions_are_left_out_where_too_much_would_be_read_again_the_newest_never(tmp_path, capsys):
    session = claude.Session()
    session.user("Go.")
    for number in range(3):
        rounds(session, f"make src/part{number}.py")
        session.boundary()
        session.summary("So far.")
    session.assistant("Done.")
    document = Document(io.BytesIO(session.bytes()))
    format_ = formats.get("claude-code")
    transcript = format_.read(document)[0]
    last, second = (2 * document.offset(document.record_at(c.line)) for c in transcript.compactions[:0:-1])
    told = [moments(document, format_, transcript, read_bytes=limit) for limit in (0, last + second - 1, 1 << 20)]
    assert [(len(made.found), made.left_out) for made in told] == [(1, 2), (1, 2), (3, 0)]
    assert [(made.line, made.after, made.later) for made in told[0].found] == [
        (made.line, made.after, made.later) for made in told[2].found[2:]
    ]
    found = audited(tmp_path, capsys, session, "--set", "audit.loss_read_bytes=1")
    assert (len(found["audit"]["losses"]), found["audit"]["losses_left_out"]) == (1, 2)


def test_what_a_file_named_in_the_context_holds_can_be_reached():
    session = compacted("The rest is in w/history.jsonl.", after=['make "src/late.py"'])
    [moment] = moments_of(session.bytes())
    history = json.dumps({"command": 'make "src/late.py"'})

    def files(text):
        return [history] if "w/history.jsonl" in text else []

    found = loss(moment, files=files)
    assert found.survival == {"path": Survival(1, 0, 1), "command": Survival(1, 0, 1)}
    assert all(missed.is_reachable for missed in found.missed)
    assert loss(moment).survival == {}


def test_a_context_that_names_its_own_file_reaches_all_that_stood_in_it():
    session = compacted("Read the full transcript at: /w/s1.jsonl", before=["make x.py"], after=["ls x.py"])
    [moment] = moments_of(session.bytes())
    assert loss(moment, {"s1.jsonl"}).survival == {"path": Survival(1, 0, 1)}
    assert loss(moment, {"s2.jsonl"}).survival == {"path": Survival(1, 0, 0)}


def test_a_path_stands_where_it_does_from_the_sessions_folder():
    session = compacted("See src/rows.py.", before=[f"make {FOLDER}/src/rows.py"], after=[f"ls {FOLDER}/src/rows.py"])
    [moment] = moments_of(session.bytes())
    assert loss(moment).survival == {"path": Survival(1, 1, 1)}


def test_of_a_compaction_that_is_encrypted_only_what_is_read_again_is_told():
    calls = [
        row
        for name in ("a", "b", "c", "d", "e")
        for row in (codex.call(name, arguments='{"cmd":"cat src/rows.py"}'), codex.output(name, "rows"))
    ]
    sealed = {"type": "compaction", "encrypted_content": "Zm9v" * 20}
    raw = codex.rollout(codex.user("Go."), *calls, codex.compacted(codex.user("Go."), sealed), *calls)
    [moment] = moments_of(raw, "codex")
    found = loss(moment)
    assert (found.is_sealed, found.survival, found.missed) == (True, {}, ())
    assert found.rereads == Rereads(5, 5, 20, 20, ("src/rows.py",))
    [moment] = moments_of(codex.rollout(codex.user("Go."), *calls, codex.compacted(codex.user("Go.")), *calls), "codex")
    assert loss(moment).survival == {"path": Survival(1, 0, 0), "command": Survival(1, 0, 0)}


@pytest.mark.parametrize("cut", ["boundary", "summary", "answer"])
def test_where_no_answer_came_or_nothing_was_there_nothing_is_measured(cut):
    session = claude.Session()
    if cut != "boundary":
        session.user("Go.")
    session.boundary()
    if cut != "summary":
        session.summary("So far.")
    assert moments_of(session.bytes()) == []


# files that are read again -----------------------------------------------------------------------


def test_reads_until_the_next_compaction_are_compared_with_what_was_read_before():
    session = claude.Session()
    session.user("Go.")

    def read(path, text):
        number = len(session.raw_lines)
        session.assistant(claude.call(f"t{number}", "Read", file_path=path))
        session.results(claude.result(f"t{number}", text))

    read(f"{FOLDER}/a.py", "x" * 10)
    session.boundary()
    session.summary("So far.")
    read("a.py", "y" * 20)
    read("b.py", "z" * 30)
    session.boundary()
    session.summary("So far.")
    read("b.py", "z" * 40)
    first, second = moments_of(session.bytes())
    assert loss(first).rereads == Rereads(2, 1, 50, 20, ("a.py",))
    assert loss(second).rereads == Rereads(1, 1, 40, 40, ("b.py",))


@pytest.mark.parametrize(
    "made, paths",
    [
        (call("a", "Read", '{"file_path": "/w/a.py"}'), ["/w/a.py"]),
        (call("a", "str_replace_editor", '{"command": "view", "path": "/w/a.py"}'), ["/w/a.py"]),
        (call("a", "Edit", '{"file_path": "/w/a.py"}'), []),
        (call("a", "Bash", '{"command": "cd /w && cat a.py | head -3; sed -n 1,20p src/b.py"}'), ["a.py", "src/b.py"]),
        (call("a", "Bash", '{"command": "sed -i s/a/b/ a.py"}'), []),
        (call("a", "Read", "{broken"), []),
    ],
)
def test_files_that_a_call_reads(made, paths):
    assert read_paths(made) == paths


# what a person asked for -------------------------------------------------------------------------

RULE = "Never edit the generated files under build."


def told(summary, later):
    session = claude.Session()
    session.user(f"Mend the rows. {RULE}")
    session.assistant("Yes.")
    session.boundary()
    session.summary(summary)
    session.assistant("Going on.")
    session.user(later)
    session.assistant("Sorry.")
    [moment] = moments_of(session.bytes())
    return [(each.line, each.text) for each in loss(moment).instructions]


def test_an_instruction_that_is_gone_and_is_given_again_was_lost():
    assert told("We mend the rows.", "I told you: never edit the generated files under build!") == [(6, RULE)]


@pytest.mark.parametrize(
    "summary, later",
    [
        (f"The user said: {RULE}", RULE),  # it is there
        ("Do not: edit the generated files under build; never.", RULE),  # in other words
        ("We mend the rows.", "Fine, now the tables."),  # nobody needed it
        ("We mend the rows.", "Why are the files edited under tables?"),  # half of its words
    ],
)
def test_an_instruction_that_is_there_or_that_nobody_needed_was_not(summary, later):
    assert told(summary, later) == []


def test_instructions_are_sentences_of_persons():
    said = story(
        user(
            "Look at it. Always run the tests first. OK?\n<system-reminder>Never say this to anybody.</system-reminder>"
        ),
        assistant("I must never do that again."),
    )
    assert instructions(said) == ["Always run the tests first."]


@pytest.mark.parametrize("words, is_one", [(2, False), (3, True), (40, True), (41, False)])
def test_an_instruction_is_a_sentence_of_some_words_no_outcry_and_no_paste(words, is_one):
    sentence = " ".join(["Never", *["touch"] * (words - 1)])
    assert instructions(story(user(sentence))) == ([sentence] if is_one else [])


def test_a_text_is_looked_for_as_it_is_and_as_json_lines_have_it():
    held = Text("plain", ('{"a": "say \\"x\\"\\n"}',))
    assert "lai" in held
    assert 'say "x"' in held
    assert "nothing" not in held


# in an audit -------------------------------------------------------------------------------------


def audited(tmp_path, capsys, session, *more):
    path = tmp_path / "s.jsonl"
    path.write_bytes(session.bytes())
    exit_code(["audit", str(path), "-o", "json", "--select", "loss", *more])
    [found] = json.loads(capsys.readouterr().out)["sessions"]
    return found


def test_an_audit_tells_of_losses_over_the_limits_and_has_all_figures(tmp_path, capsys):
    files = [f"make src/part{number}.py" for number in range(12)]
    session = compacted("So far.", before=files, after=files)
    found = audited(tmp_path, capsys, session)
    [finding] = found["findings"]
    assert (finding["rule"], finding["severity"], finding["line"]) == ("lost-after-compaction", "note", 26)
    assert finding["message"].startswith(
        "24 of 24 things used again are not in the context after it (path 12 of 12, command 12 of 12): "
        "make src/part0.py (line 34), src/part0.py (line 34), make src/part1.py (line 36), ..."
    )
    [noted] = found["audit"]["losses"]
    assert noted["survival"]["path"] == {"total": 12, "present": 0, "reachable": 0}
    assert noted["missed"][1] == {"type": "path", "text": "src/part0.py", "line": 34, "reachable": False}
    quiet = audited(tmp_path, capsys, session, "--set", "audit.lost_count=25")
    assert quiet["findings"] == []
    assert len(quiet["audit"]["losses"]) == 1


def test_an_audit_tells_of_files_read_again_and_of_lost_instructions(tmp_path, capsys):
    session = claude.Session()
    session.user(f"Mend the rows. {RULE}")
    for phase in range(2):
        for number in range(10):
            session.assistant(claude.call(f"t{phase}{number}", "Read", file_path=f"src/part{number}.py"))
            session.results(claude.result(f"t{phase}{number}", "x" * 100))
        if not phase:
            session.boundary()
            session.summary("So far.")
    session.user(RULE)
    session.assistant("Sorry.")
    found = audited(tmp_path, capsys, session, "--ignore", "lost-after-compaction")
    assert [(each["rule"], each["severity"], each["line"], each["message"]) for each in found["findings"]] == [
        ("lost-instruction", "warning", 22, f"not in the context after it, and said again at line 44: {RULE}"),
        (
            "read-again",
            "note",
            22,
            "10 of 10 reads until the next compaction read a file again (1,000 bytes): "
            "src/part0.py, src/part1.py, src/part2.py, ...",
        ),
    ]
    fewer = audited(tmp_path, capsys, session, "--set", "audit.read_again_count=11")
    assert "read-again" not in {each["rule"] for each in fewer["findings"]}


def test_a_secret_is_told_nowhere(tmp_path, capsys):
    key = "sk-ant-" + "a1B2" * 10
    commands = [f"deploy --key {key} part{number}" for number in range(12)]
    path = tmp_path / "s.jsonl"
    path.write_bytes(compacted("So far.", before=commands, after=commands).bytes())
    exit_code(["audit", str(path), "-o", "json", "--select", "loss"])
    out = capsys.readouterr().out
    assert "lost-after-compaction" in out
    assert key not in out


def test_an_audit_without_rules_of_loss_measures_nothing(tmp_path, capsys):
    session = compacted("So far.", before=["make a.py"], after=["make a.py"])
    assert audited(tmp_path, capsys, session, "--ignore", "loss")["audit"]["losses"] == []


def test_what_our_own_compaction_took_out_is_reached_through_its_history(tmp_path, capsys):
    session = claude.Session()
    session.user("Go.")
    rounds(session, *[f"make src/part{number}.py" for number in range(40)])
    path = tmp_path / "s.jsonl"
    path.write_bytes(session.bytes())
    small = ["--set", "layer2.recent_keep_tokens=200", "--set", "layer2.facts_max_tokens=0"]
    assert exit_code(["summarize", str(path), "--provider", "extract", "-q", *small]) == 0
    capsys.readouterr()
    written = tmp_path / "s.compacted.jsonl"
    more = claude.Session()
    more._count = 900
    last = json.loads(written.read_bytes().splitlines()[-1])["uuid"]
    more.user("Go on.", parent=last)
    rounds(more, "true 1", "true 2", "true 3", "ls src/part3.py")
    written.write_bytes(written.read_bytes() + more.bytes())
    exit_code(["audit", str(written), "-o", "json", "--select", "loss"])
    [found] = json.loads(capsys.readouterr().out)["sessions"]
    assert [each["survival"]["path"] for each in found["audit"]["losses"]] == [
        {"total": 1, "present": 0, "reachable": 1}
    ]
