"""`audit --fix`: what is mended, what stays, and that a mended session has nothing left to mend."""

import json
from pathlib import Path

import pytest

from compactctl import fix, run
from compactctl.__main__ import exit_code
from compactctl.document import Place
from compactctl.fix import MENDED
from compactctl.formats.interface import Mend
from compactctl.formats.mending import UNKNOWN_RESULT
from compactctl.formats.pi import FORMAT as PI
from compactctl.json_text import write_json
from compactctl.options import Audit, Options
from compactctl.session import opened
from compactctl.splicing import Drop, Insert, Replace
from tests.builders import chat, claude, codex, pi
from tests.builders.healthy import ASKED, CALL, HEALTHY, LAST, LINES, RESULT, at, healthy, inserted, jsonl, unlinked
from tests.builders.planted import PLANTS, Fault

MENDABLE = [
    pytest.param(name, plants, id=f"{title}-{name}")
    for title, names, plants in PLANTS
    for name in names
    if plants(name, healthy(name)).rule in MENDED
]


def fixed(path: Path, *, apply: bool = True):
    """Return the outcome of mending one file, and the file that was written."""
    options = Options(audit=Audit(fix=True, secrets=False), apply=apply)
    [made] = run.audit([str(path)], options).outcomes
    return made, path.with_name("s.fixed.jsonl")


def written(tmp_path: Path, raw: bytes) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_bytes(raw)
    return path


def mended(tmp_path: Path, records):
    """Return the edits that mend these records, and the records then."""
    raw = records if isinstance(records, bytes) else jsonl(records)
    made, target = fixed(written(tmp_path, raw))
    assert made.error is None, made.error
    lines = [json.loads(line) for line in target.read_bytes().splitlines()]
    return [(edit.line, edit.rule) for edit in made.fix.edits], lines


# the planted faults ------------------------------------------------------------------------------


@pytest.mark.parametrize("name, plants", MENDABLE)
def test_a_mended_session_is_clean_and_a_second_run_changes_nothing(name, plants, tmp_path):
    fault: Fault = plants(name, healthy(name))
    path = written(tmp_path, fault.file)
    made, target = fixed(path)
    assert made.status == "applied", made.error
    assert fault.rule in {edit.rule for edit in made.fix.edits}
    assert path.read_bytes() == fault.file
    assert not {finding.rule for finding in made.findings} & (MENDED | fault.also - {"no-usage"})
    again, nowhere = fixed(target)
    assert (again.status, again.findings) == ("read", made.findings)
    assert again.fix is not made.fix
    assert not hasattr(again.fix, "edits")
    assert not nowhere.with_name("s.fixed.fixed.jsonl").exists()


@pytest.mark.parametrize("name, plants", MENDABLE)
def test_what_is_not_mended_keeps_its_bytes(name, plants, tmp_path):
    fault: Fault = plants(name, healthy(name))
    _, target = fixed(written(tmp_path, fault.file))
    before, after = fault.file.splitlines(), target.read_bytes().splitlines()
    touched = [line for line in before if line not in after]
    assert len(touched) <= 2
    assert len([line for line in after if line not in before]) <= 2


def test_every_rule_that_is_mended_is_planted():
    assert {plants(name, healthy(name)).rule for _, names, plants in PLANTS for name in names} >= MENDED


@pytest.mark.parametrize("name", HEALTHY)
def test_of_a_healthy_session_nothing_is_mended(name, tmp_path):
    made, target = fixed(written(tmp_path, jsonl(healthy(name))))
    assert (made.status, made.findings) == ("read", ())
    assert not target.exists()


# what is written ---------------------------------------------------------------------------------


def test_a_call_without_a_result_gets_one_in_the_chain_of_claude_code(tmp_path):
    records = unlinked(healthy("claude-code"), LINES["claude-code"][RESULT])
    edits, lines = mended(tmp_path, records)
    assert edits == [(2, "call-without-result")]
    asked, added, after = lines[1:4]
    assert added["parentUuid"] == asked["uuid"]
    assert after["parentUuid"] == added["uuid"]
    assert added["message"] == {
        "role": "user",
        "content": [{"type": "tool_result", "content": UNKNOWN_RESULT, "is_error": True, "tool_use_id": "c1"}],
    }
    assert {key: added[key] for key in ("type", "sessionId", "cwd", "isSidechain", "timestamp")} == {
        "type": "user",
        **{key: asked[key] for key in ("sessionId", "cwd", "isSidechain", "timestamp")},
    }


def test_calls_of_one_answer_are_answered_together_for_claude_code(tmp_path):
    session = claude.Session()
    session.user("Go.")
    session.assistant(claude.call("c1"), id="m1")
    session.assistant(claude.call("c2"), id="m1")
    session.assistant(claude.call("c3"), id="m1")
    session.results(claude.result("c2"), parent=session.id_of(3))
    session.assistant("Done.", parent=session.id_of(5))
    edits, lines = mended(tmp_path, session.bytes())
    assert edits == [(2, "call-without-result")]
    assert [block["tool_use_id"] for block in lines[5]["message"]["content"]] == ["c1", "c3"]
    assert lines[6]["parentUuid"] == lines[5]["uuid"]


def test_a_result_in_a_line_with_others_leaves_that_line(tmp_path):
    session = claude.Session()
    session.user("Go.")
    session.assistant(claude.call("c1"))
    session.results(claude.result("c1"), claude.result("c9", "gone"), claude.text("And?"))
    session.assistant("Done.")
    edits, lines = mended(tmp_path, session.bytes())
    assert edits == [(3, "result-without-call")]
    assert [block["type"] for block in lines[2]["message"]["content"]] == ["tool_result", "text"]


def test_what_hung_on_a_line_that_goes_hangs_on_the_one_above(tmp_path):
    session = claude.Session()
    first = session.user("Go.")
    session.results(claude.result("c8"))
    session.results(claude.result("c9"))
    session.assistant("Done.")
    edits, lines = mended(tmp_path, session.bytes())
    assert edits == [(2, "result-without-call"), (3, "result-without-call")]
    assert [line["parentUuid"] for line in lines] == [None, first]


def test_an_entry_of_pi_whose_parent_is_gone_hangs_on_the_one_before(tmp_path):
    records = healthy("pi")
    at("pi", records, "answer")["parentId"] = "gone"
    edits, lines = mended(tmp_path, records)
    assert edits == [(5, "dangling-parent")]
    assert lines[4]["parentId"] == lines[3]["id"]


def test_an_entry_of_pi_is_not_hung_on_one_that_hangs_on_it(tmp_path):
    records = healthy("pi")
    records[3]["parentId"] = records[4]["id"]  # it stands before its parent, of which the own parent is gone
    records[4]["parentId"] = "gone"
    edits, lines = mended(tmp_path, records)
    assert (5, "dangling-parent") in edits
    parents = {line["id"]: line.get("parentId") for line in lines[1:]}
    for _ in lines:
        parents = {entry: parents.get(parent) for entry, parent in parents.items()}
    assert set(parents.values()) == {None}


def test_an_entry_of_pi_that_comes_again_is_linked_both_times(tmp_path):
    records = healthy("pi")
    records[3]["parentId"] = "gone"
    edits, lines = mended(tmp_path, [*records, records[3]])
    assert {line for line, rule in edits if rule == "dangling-parent"} == {4, len(records) + 1}
    assert "gone" not in {line.get("parentId") for line in lines}


def test_what_linking_brings_back_is_mended_as_well(tmp_path):
    records = unlinked(healthy("pi"), LINES["pi"][RESULT])
    at("pi", records, "answer")  # the line moved up
    records[4]["parentId"] = "gone"
    edits, lines = mended(tmp_path, records)
    assert edits == [(3, "call-without-result"), (5, "dangling-parent")]
    assert [line.get("parentId") for line in lines[2:6]] == ["e1", "e2", lines[3]["id"], "e4"]


def test_a_circle_of_pi_is_opened_where_a_parent_stands_behind_its_child(tmp_path):
    records = healthy("pi")
    at("pi", records, ASKED)["parentId"] = "e3"
    at("pi", records, LAST)["parentId"] = "e2"
    edits, lines = mended(tmp_path, records)
    assert edits == [(2, "parent-cycle"), (3, "call-without-result")]
    assert [lines[index].get("parentId") for index in (1, 2, 3, 4, 7)] == [None, "e1", "e2", "e2", lines[3]["id"]]


def test_the_last_call_of_pi_is_answered_at_the_end_where_pi_goes_on(tmp_path):
    session = pi.Session()
    session.say("e1", pi.user("Go."))
    session.say("e2", pi.assistant(pi.call("c1"), pi.call("c2")))
    session.add("model_change", "e3", provider="p", modelId="m")
    _, lines = mended(tmp_path, session.records)
    assert [(line["message"]["toolCallId"], line["parentId"]) for line in lines[-2:]] == [
        ("c1", "e3"),
        ("c2", lines[-2]["id"]),
    ]
    assert lines[-1]["message"] == {
        "role": "toolResult",
        "toolCallId": "c2",
        "toolName": lines[-1]["message"]["toolName"],
        "content": [{"type": "text", "text": UNKNOWN_RESULT}],
        "isError": True,
        "timestamp": lines[-1]["message"]["timestamp"],
    }


def test_entries_of_old_pi_sessions_have_no_ids_and_get_none(tmp_path):
    records = unlinked(healthy("pi"), LINES["pi"][RESULT])
    for record in records[1:]:
        record.pop("id")
        record.pop("parentId")
    records[0].pop("version", None)
    edits, lines = mended(tmp_path, records)
    assert edits == [(3, "call-without-result")]
    assert lines[3]["message"]["toolCallId"] == "c1"
    assert not {"id", "parentId"} & lines[3].keys()


def test_lines_of_claude_code_that_name_no_parents_get_one_that_names_none(tmp_path):
    records = unlinked(healthy("claude-code"), LINES["claude-code"][RESULT])
    edits, lines = mended(tmp_path, [{**record, "parentUuid": None} for record in records])
    assert edits == [(2, "call-without-result")]
    assert lines[2]["parentUuid"] is None
    assert len({line["uuid"] for line in lines}) == len(lines)


def test_where_nobody_answered_a_result_is_taken_out_all_the_same(tmp_path):
    edits, lines = mended(tmp_path, [chat.user(), chat.tool("c9"), chat.user()])
    assert (edits, len(lines)) == ([(2, "result-without-call")], 2)


def test_calls_of_codex_are_answered_by_their_kind(tmp_path):
    records = [
        codex.meta(history_mode="paginated"),
        codex.said(codex.user("Go.")),
        codex.said(codex.call("c1")),
        codex.said(codex.custom_call("c2")),
        codex.said(codex.assistant("Done.")),
    ]
    numbered = [{**record, "ordinal": ordinal} for ordinal, record in enumerate(records)]
    _, lines = mended(tmp_path, numbered)
    added = [line for line in lines if line["payload"].get("output") == UNKNOWN_RESULT]
    assert [(each["payload"]["type"], each["payload"]["call_id"]) for each in added] == [
        ("function_call_output", "c1"),
        ("custom_tool_call_output", "c2"),
    ]
    assert all(isinstance(each["ordinal"], int) for each in added)


def test_a_call_in_a_history_of_codex_is_answered_there(tmp_path):
    raw = codex.rollout(
        codex.user("Go."),
        codex.compacted(codex.user("Go."), codex.call("c1"), codex.assistant("So far."), codex.output("c9")),
        codex.assistant("Done."),
    )
    edits, lines = mended(tmp_path, raw)
    assert sorted(rule for _, rule in edits) == ["call-without-result", "result-without-call"]
    history = lines[2]["payload"]["replacement_history"]
    assert [item["type"] for item in history] == ["message", "function_call", "message", "function_call_output"]
    assert (history[3]["call_id"], history[3]["output"]) == ("c1", UNKNOWN_RESULT)


def test_conversations_on_lines_are_mended_where_they_are(tmp_path):
    made = {
        "messages": [
            chat.user(),
            chat.assistant(None, [("c1", "run", "{}"), ("c2", "run", "{}")]),
            chat.tool("c2"),
            chat.tool("c2"),
            chat.assistant(),
        ]
    }
    raw = jsonl([made, {"messages": [chat.user(), chat.tool("c9"), chat.assistant()]}])
    path = written(tmp_path, raw)
    outcomes = run.audit([str(path)], Options(audit=Audit(fix=True), apply=True)).outcomes
    assert outcomes[0].status == "applied", outcomes[0].error
    first, second = (json.loads(line)["messages"] for line in (tmp_path / "s.fixed.jsonl").read_bytes().splitlines())
    assert [message.get("tool_call_id") for message in first] == [None, None, "c2", "c1", None]
    assert [message["role"] for message in second] == ["user", "assistant"]


# what is never written ---------------------------------------------------------------------------

ASKED_IN_VAIN = [chat.user("Look."), chat.assistant("", [("c1", "Read", "{}")]), chat.user("Go on."), chat.assistant()]

ANSWER = Insert(1, write_json(chat.tool("c1")))


@pytest.mark.parametrize(
    "edits, why",
    [
        ([ANSWER, Drop(0)], "line 1: something of it is gone from the context"),
        ([ANSWER, Replace(Place(2, ("content",)), b'"Stop."')], "line 3: something of it is gone"),
        ([ANSWER, Insert(3, write_json(chat.tool("c9")))], "result-without-call: "),
        ([Replace(Place(0, ("content",)), b'"Look."')], "call-without-result is left"),
    ],
    ids=["a message lost", "a text changed", "a new problem", "the fault left"],
)
def test_what_fails_its_checks_is_not_written(edits, why, tmp_path, monkeypatch):
    mend = Mend(2, "call-without-result", "mends it badly", tuple(edits))
    monkeypatch.setattr(fix, "_pairs", lambda format_, document, transcripts: [mend])
    made, target = fixed(written(tmp_path, jsonl(ASKED_IN_VAIN)))
    assert (made.status, made.exit_code) == ("failed", 7)
    assert why in made.error.message
    assert not target.exists()


def test_a_circle_that_mending_would_close_is_not_written(tmp_path, monkeypatch):
    records = healthy("pi")
    records[4]["parentId"] = "gone"
    circle = Replace(Place(4, ("parentId",)), write_json(records[4]["id"]))
    monkeypatch.setattr(type(PI), "mend_links", lambda *_: [Mend(5, "dangling-parent", "", (circle,))])
    made, target = fixed(written(tmp_path, jsonl(records)))
    assert made.error.code == "verify_error"
    assert "parent-cycle is new" in made.error.message
    assert not target.exists()


def test_a_source_that_changed_meanwhile_is_not_mended(tmp_path, monkeypatch):
    path = written(tmp_path, jsonl(ASKED_IN_VAIN))
    checked = fix._require_sound

    def changed(*states):
        checked(*states)
        path.write_bytes(jsonl([*ASKED_IN_VAIN, chat.user()]))

    monkeypatch.setattr(fix, "_require_sound", changed)
    made, target = fixed(path)
    assert (made.status, made.error.code) == ("failed", "source_changed")
    assert not target.exists()


def test_a_large_file_is_mended_like_a_small_one(tmp_path, monkeypatch):
    path = written(tmp_path, jsonl(ASKED_IN_VAIN))
    _, target = fixed(path)
    small = target.read_bytes()
    target.unlink()
    monkeypatch.setattr(fix, "IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(fix.io, "BytesIO", None)
    assert fixed(path)[0].status == "applied"
    assert target.read_bytes() == small


# how it is asked for -----------------------------------------------------------------------------


@pytest.fixture
def torn(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return written(tmp_path, chat.lines(chat.user(), chat.assistant()) + b'{"role": "us')


def test_a_dry_run_lists_each_edit_and_writes_nothing(torn, capsys):
    assert exit_code(["audit", "s.jsonl", "--fix", "--select", "reading"]) == 0
    assert capsys.readouterr().out == (
        "s.jsonl:3: to fix torn-tail: leaves out the torn last line, 12 bytes\n"
        "s.jsonl: --apply writes s.fixed.jsonl; what follows is found in it\n"
        "1 session · no findings\n"
    )
    assert [path.name for path in torn.parent.iterdir()] == ["s.jsonl"]


def test_a_second_run_over_the_source_is_unchanged_and_nothing_else_is_overwritten(torn, capsys):
    assert exit_code(["audit", "s.jsonl", "--fix", "--apply"]) == 0
    assert exit_code(["audit", "s.jsonl", "--fix", "--apply", "-o", "json"]) == 0
    [made] = json.loads(capsys.readouterr().out.partition("\n{")[2].join(["{", ""]))["sessions"]
    assert made["status"] == "unchanged"
    size = torn.stat().st_size
    assert made["bytes"] == {"before": size, "after": size - 12, "beside": 0}
    assert made["fix"] == {
        "file": "s.fixed.jsonl",
        "edits": [{"line": 3, "rule": "torn-tail", "text": "leaves out the torn last line, 12 bytes"}],
    }
    target = torn.with_name("s.fixed.jsonl")
    target.write_bytes(target.read_bytes() + b"{}\n")
    assert exit_code(["audit", "s.jsonl", "--fix", "--apply"]) == 6
    assert target.read_bytes().endswith(b"{}\n")
    assert exit_code(["audit", "s.jsonl", "--fix", "--apply", "--out", "elsewhere"]) == 0
    assert (torn.parent / "elsewhere" / "s.fixed.jsonl").read_bytes() + b"{}\n" == target.read_bytes()


def test_a_rule_that_is_left_out_is_not_mended(torn, capsys):
    assert exit_code(["audit", "s.jsonl", "--fix", "--apply", "--ignore", "torn-tail"]) == 0
    assert not torn.with_name("s.fixed.jsonl").exists()


@pytest.mark.parametrize("arguments", [["--apply"], ["--out", "d"]])
def test_without_fix_there_is_nothing_to_apply(torn, arguments, capsys):
    assert exit_code(["audit", "s.jsonl", *arguments]) == 2
    assert "--fix" in capsys.readouterr().err


def test_a_mended_session_holds_what_its_source_did(tmp_path):
    name = "claude-code"
    records = inserted(healthy(name), LINES[name][RESULT], at(name, healthy(name), RESULT))
    path = written(tmp_path, jsonl(records))
    _, target = fixed(path)
    with opened(str(target), None) as session:
        assert [message.line for message in session.read.transcripts[0].messages] == [1, 2, 3, 4, 5, 6]
    assert CALL in LINES[name]
