import csv
import io
import json
import re

import orjson
import pytest
from msgspec import UNSET

from compactctl.outcome import Disk, FindingNote, KeepCounts, Problem, ResumeNote
from compactctl.outputs import OUTPUTS, View, load, words
from compactctl.outputs.json import dumps
from compactctl.totals import Batch
from tests.builders.outcomes import HOSTILE, batch, failed, finding, hostile, outcome, spilled, tokens

COMMANDS = ("inspect", "estimate", "spill", "restore", "verify")


def printed(name: str, made: Batch, view: View = View()) -> str:  # noqa: B008
    """Return all that an output prints for a batch."""
    printer = load(name).printer(made.command, view)
    return "".join(printer.outcome(item) for item in made.outcomes) + printer.end(made)


# every output ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("outcomes", [slice(0, 1), slice(1, 2), slice(0, 2)], ids=["page", "failed", "list"])
def test_hostile_text_steers_nothing(name, command, outcomes):
    made = batch(*hostile().outcomes[outcomes], command=command)
    for view in (View(), View(terminal=True, verbose=True, command_line=f"compactctl spill {HOSTILE}")):
        text = printed(name, made, view)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
        assert not re.search(r"##\w*\[", text)
        assert not re.search(r"^\s*::", text, re.MULTILINE)


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_output_ends_in_a_newline(name):
    assert printed(name, batch(outcome())).endswith("\n")


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_batch_of_nothing_is_printed(name):
    assert printed(name, batch())


# json, jsonl, csv --------------------------------------------------------------------------------


def test_json_is_one_object_of_the_contract():
    made = json.loads(printed("json", batch(outcome(findings=(finding(),)), failed())))
    assert made["schema"] == "compactctl.inspect/1"
    assert made["totals"]["sessions"] == 2
    assert made["totals"]["exit_codes"] == {"0": 1, "3": 1}
    assert [session["status"] for session in made["sessions"]] == ["read", "failed"]
    assert made["sessions"][0]["findings"] == [
        {"rule": "torn-tail", "severity": "error", "line": 41, "message": "cut off"}
    ]
    assert made["sessions"][1]["error"]["code"] == "unknown_format"


def test_json_comes_piece_by_piece():
    printer = load("json").printer("inspect", View())
    made = batch(outcome("a"), outcome("b"))
    pieces = [printer.outcome(item) for item in made.outcomes]
    assert ['"path": "a"' in pieces[0], '"path": "b"' in pieces[1]] == [True, True]
    assert json.loads("".join(pieces) + printer.end(made)) == json.loads(json.dumps(made.document()))


def test_csv_comes_row_by_row_once_its_columns_are_known():
    printer = load("csv").printer("estimate", View())
    first, second = failed(), outcome("a", estimates={"heuristic": 7})
    assert (printer.outcome(first), printer.outcome(second).count("\n")) == ("", 3)
    assert printer.outcome(second).count("\n") == 1
    assert printer.end(batch(first, second)) == ""


def test_jsonl_is_a_line_a_session_and_totals_last():
    lines = [json.loads(line) for line in printed("jsonl", batch(outcome("a"), outcome("b"))).splitlines()]
    assert [line.get("path") for line in lines] == ["a", "b", None]
    assert lines[-1]["totals"]["sessions"] == 2


def test_json_keeps_the_text_of_a_session_exactly():
    text = HOSTILE.replace("\ud800", "")
    made = json.loads(printed("json", batch(outcome(text))))
    assert made["sessions"][0]["path"] == text


@pytest.mark.parametrize("option", [0, orjson.OPT_INDENT_2])
def test_json_has_what_orjson_refuses(option):
    """A name of a file that is no Unicode is spelled, an integer beyond 64 bits is written out."""
    ordinary = dumps({"a": [1, {"b": None}], "é": "\u200b"}, option)
    assert json.loads(dumps({"n": 2**70, "name": "x\udcff"}, option)) == {"n": 2**70, "name": r"x\udcff"}
    assert dumps({"a": [1, {"b": None}], "é": "\u200b", "n": 2**70}, option).startswith(ordinary[:-3].rstrip())


def test_csv_is_a_row_a_session_with_estimates_as_columns():
    made = batch(outcome("a,b", estimates={"heuristic": 7, "usage": None}), failed(), command="estimate")
    rows = list(csv.DictReader(io.StringIO(printed("csv", made))))
    assert [(row["path"], row["tokens_heuristic"], row["tokens_usage"], row["exit_code"]) for row in rows] == [
        ("a,b", "7", "", "0"),
        ("notes.txt", "", "", "3"),
    ]


def test_a_csv_cell_is_no_formula():
    rows = list(csv.DictReader(io.StringIO(printed("csv", batch(outcome("=1+1", model="@sum", session_id="-1"))))))
    assert (rows[0]["path"], rows[0]["model"], rows[0]["session_id"]) == ("'=1+1", "'@sum", "'-1")


# markdown ----------------------------------------------------------------------------------------


def test_markdown_leaves_no_markup_of_a_session_alive():
    text = printed("markdown", hostile())
    blocks = re.sub(r"^(`{3,})\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", blocks)
    assert "<script>" not in outside
    assert "![" not in outside


def test_a_markdown_fence_is_longer_than_any_run_inside():
    text = printed("markdown", batch(spilled(notes=("````", "# heading"))))
    assert "\n`````\n````\n# heading\n`````\n" in text


def test_a_bar_does_not_end_a_markdown_cell():
    assert r"| `a\|b` |" in printed("markdown", batch(outcome("a|b")))


# table -------------------------------------------------------------------------------------------


def test_one_session_is_a_page():
    assert (
        printed("table", batch(outcome(findings=(finding(),))))
        == """\
a.jsonl   Claude Code 2.1.29 · claude-opus-4-5 · 142 kB · 41 lines

context   94,172 of 200,000 tokens (47 %)
          94,000 recorded by the provider at line 40 + 172 estimated since (heuristic)
          window from the table of models; the session does not say. Summary due at 167,000
messages  31 messages · 9 tool rounds · 12 tool results · 9 requests
history   compacted at line 20 (167,979 tokens before, auto)

bytes           in the file  in context
messages              2,000       1,500
tool results         90,000      60,000
display copies       40,000           -

biggest of 2 tool results
  line   bytes  tool  in context
    12  69,033  Read  no, before the compaction
    30  23,211  Bash  yes, under the limit of 50,000

spill     at 50,000 bytes: nothing
          at 20,000 bytes: 1 result, about -6,012 tokens
problems  error torn-tail: line 41: cut off
"""
    )


def test_a_spill_that_is_only_planned_says_how_to_write_it():
    view = View(command_line="compactctl spill a.jsonl --apply")
    assert (
        printed("table", batch(spilled(), command="spill"), view)
        == """\
dry run: nothing was written
a.jsonl   Claude Code 2.1.29 · claude-opus-4-5 · 410 kB · 41 lines
context   141,203 -> 103,480 of 200,000 tokens (71 % -> 52 %)
file      410 kB -> 221 kB · 190 kB beside it

  line    bytes  tool  why          preview starts
    14  169,033  Bash  over 50,000  npm ERR! code ERESOLVE

kept      14 results under the limits
to write  a.compacted.jsonl
          a.compacted/tool-results
          a.compacted.report.json

to write it: compactctl spill a.jsonl --apply
"""
    )


RESUME = ResumeNote("claude --resume /s/a.compacted.jsonl --fork-session", "without it, it goes elsewhere")


def test_what_was_applied_says_how_to_go_on_in_it_and_how_to_undo_it():
    made = spilled(
        status="applied", resume=RESUME, undo="compactctl restore a.compacted.jsonl", disk=Disk(410_000, 821_000)
    )
    lines = printed("table", batch(made, command="spill")).splitlines()
    assert (lines[0], lines[-4:]) == (
        "applied and verified",
        [
            "disk      410 kB -> 821 kB, all included",
            "resume    claude --resume /s/a.compacted.jsonl --fork-session",
            "          (without it, it goes elsewhere)",
            "undo      compactctl restore a.compacted.jsonl",
        ],
    )


@pytest.mark.parametrize(
    ("resume", "said"),
    [(ResumeNote(None, "not from here"), "resume    not from here"), (UNSET, "disk ")],
)
def test_what_cannot_be_resumed_says_why(resume, said):
    made = batch(spilled(status="applied", resume=resume, undo="undo it", disk=Disk(1, 2)), command="spill")
    assert printed("table", made).splitlines()[-2].startswith(said)


def test_many_sessions_are_a_line_each_in_input_order_with_subagents_under_their_parent():
    child = outcome("z/agent-1.jsonl", session_id="sub", parent_session_id="p")
    made = batch(child, outcome("z.jsonl", session_id="q"), outcome("p.jsonl", session_id="p"), failed())
    names = [line.split("  ")[0] for line in printed("table", made).splitlines()[1:5]]
    assert names == ["z.jsonl", "p.jsonl", "`-- z/agent-1.jsonl", "notes.txt"]


def test_a_subagent_whose_parent_is_elsewhere_stands_alone():
    child = outcome("agent-1.jsonl", session_id="sub", parent_session_id="p")
    assert printed("table", batch(child, outcome("b"))).splitlines()[1].startswith("agent-1.jsonl")


@pytest.mark.parametrize("view", [View(), View(terminal=True)], ids=["piped", "terminal"])
def test_a_list_says_what_was_wrong_where_something_was_written(view):
    missed = spilled("b.jsonl", "applied", exit_code=4, error=Problem("over_target", "90,000 tokens are left"))
    lines = printed("table", batch(spilled(status="applied"), missed, command="spill"), view).splitlines()
    assert [re.findall(r"applied(?:: \w+)?", line) for line in lines if "applied" in line] == [
        ["applied"],
        ["applied: over_target"],
    ]


def test_many_sessions_end_in_totals():
    made = batch(outcome(findings=(finding(),)), outcome("b", format="codex"), not_sessions=["x", "y"])
    assert printed("table", made).splitlines()[-2:] == [
        "2 sessions · 284 kB · claude-code 1, codex 1 · 2 other files",
        "problems  1 session with errors",
    ]


def test_a_terminal_is_shown_short_names_and_figures_below_the_totals():
    one = outcome("x/5c3a83f2-1982-4cec-acdc-ae1668adf92e.jsonl", findings=(finding(),))
    made = batch(one, outcome("b", tokens=tokens(1_234_567, window=2_000_000, window_source="option")))
    assert (
        printed("table", made, View(terminal=True))
        == """\
2 sessions · 284 kB

modified    project    session   format         size     context   limit  could spill     problems
2026-03-02  tidewatch  5c3a83f2  claude-code  142 kB   94k  47 %  200k t  at 20k: 1, -6k  1 error
2026-03-02  tidewatch  b         claude-code  142 kB  1.2M  62 %    2M o  at 20k: 1, -6k  -
problems  1 session with errors
limit     t from the table of models · o from the command line
"""
    )


def test_a_list_says_how_many_it_leaves_out():
    made = batch(*(outcome(f"{number}.jsonl") for number in range(5)))
    made.outcomes = made.outcomes[:2]
    said = "...2 of 5, by size; --all, --limit N, --sort, --since DATE show others"
    assert printed("table", made, View(sort="size")).splitlines()[3:] == [said, "", "5 sessions · 710 kB"]
    assert printed("table", made, View(sort="size", terminal=True)).splitlines()[0] == "5 sessions · 710 kB"
    assert printed("table", made, View(sort="size", terminal=True)).splitlines()[-2] == said
    assert said in printed("markdown", made, View(sort="size"))


def test_one_session_of_many_is_still_a_list():
    made = batch(outcome("a"), outcome("b"))
    made.outcomes = made.outcomes[:1]
    assert printed("table", made).splitlines()[2] == "...1 of 2; --all, --limit N, --sort, --since DATE show others"


def test_a_failed_verification_shows_its_checks_and_the_worst_first():
    notes = (FindingNote("no-usage", "note", None, "none"), finding(message="gone"))
    made = failed("a.compacted.jsonl", exit_code=1, checks={"restorable": True, "odd_one": False}, findings=notes)
    assert printed("table", batch(made, command="verify")).splitlines()[2:] == [
        "checks    ok  the original can be given back, byte for byte",
        "          FAILED  odd one",
        "problems  error torn-tail: line 41: gone",
        "          note no-usage: none",
    ]


@pytest.mark.parametrize("color, found", [(True, True), (False, False)])
def test_colour_is_there_only_where_it_is_wanted(color, found):
    assert ("\x1b[" in printed("table", batch(outcome(findings=(finding(),))), View(color=color))) is found


def test_findings_of_a_page_are_cut_unless_all_are_wanted():
    made = batch(outcome(findings=tuple(finding(line=line) for line in range(30))))
    assert "and 18 more (-v shows all)" in printed("table", made)
    assert "line 29" in printed("table", made, View(verbose=True))


@pytest.mark.parametrize(
    "made, said",
    [
        (tokens(anchored=False), "estimated (heuristic), the messages alone; no recorded usage to start from"),
        (tokens(window_source="recorded"), "window recorded in the session. Summary due at 167,000"),
        (tokens(window_source="option"), "window from the command line. Summary due at 167,000"),
    ],
)
def test_a_page_says_how_its_figures_are_known(made, said):
    assert said in printed("table", batch(outcome(tokens=made)))


def test_why_results_stay_is_said_in_the_plural_too():
    counts = [KeepCounts("its preview would not be smaller", 11), KeepCounts("under the limits", 1)]
    assert words.kept(counts) == "11 results whose preview would not be smaller · 1 result under the limits"
