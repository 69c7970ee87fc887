"""Which files a command works on."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compactctl import agents, inputs
from compactctl.cli.options import since_ns, until_ns
from compactctl.errors import NotFound, UsageError
from compactctl.options import Selection

FIRST, SECOND = "5c3a83f2-1982-4cec-acdc-ae1668adf92e", "5c3a83f2-0000-4cec-acdc-ae1668adf92e"


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make empty files under the working folder, which is the temporary one."""
    monkeypatch.chdir(tmp_path)

    def make_all(*names):
        for name in names:
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * len(path.name))

    return make_all


def found(*paths, **how):
    return [item.path for item in inputs.find(paths, **how).files]


# folders -----------------------------------------------------------------------------------------


def test_a_folder_gives_its_session_files_in_order_of_names_without_our_own(make):
    make("f/b.jsonl", "f/a/z.json", "f/a.jsonl.zst", "f/n.txt", "f/a.compacted.jsonl", "f/a.compacted/originals.jsonl")
    make("f/a.estimate.json", "f/a.compacted.report.json")
    assert found("f") == ["f/a/z.json", "f/a.jsonl.zst", "f/b.jsonl"]
    assert found("f", own_outputs=True) == ["f/a.compacted.jsonl"]


def test_where_results_go_keeps_the_path_below_the_folder(make):
    make("f/a/b.jsonl")
    assert [inputs.find([given]).files[0].relative for given in ("f", "f/", "./f", "f/a", ".")] == [
        "a/b.jsonl",
        "a/b.jsonl",
        "a/b.jsonl",
        "b.jsonl",
        "f/a/b.jsonl",
    ]


def test_a_file_knows_its_size(make):
    make("f/abc.jsonl")
    assert [inputs.find([given]).files[0].size_bytes for given in ("f", "f/abc.jsonl")] == [9, 9]


def test_a_folder_that_is_gone_or_a_file_is_told_by_who_reads_it(make):
    assert found("nothing.jsonl") == ["nothing.jsonl"]


# what is left out ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "patterns, left",
    [
        ([], ["f/a/agent-1.jsonl", "f/a/s.jsonl", "f/b/s.jsonl", "f/t.jsonl"]),
        (["agent-*"], ["f/a/s.jsonl", "f/b/s.jsonl", "f/t.jsonl"]),
        (["a"], ["f/b/s.jsonl", "f/t.jsonl"]),
        (["a/*"], ["f/b/s.jsonl", "f/t.jsonl"]),
        (["*/s.jsonl"], ["f/a/agent-1.jsonl", "f/t.jsonl"]),
        (["**/t.jsonl"], ["f/a/agent-1.jsonl", "f/a/s.jsonl", "f/b/s.jsonl"]),
        (["a", "t.*"], ["f/b/s.jsonl"]),
        (["f"], ["f/a/agent-1.jsonl", "f/a/s.jsonl", "f/b/s.jsonl", "f/t.jsonl"]),
    ],
)
def test_exclude_leaves_out_by_name_or_by_path_below_the_folder(patterns, left, make):
    make("f/a/agent-1.jsonl", "f/a/s.jsonl", "f/b/s.jsonl", "f/t.jsonl")
    assert found("f", selection=Selection(excluded=tuple(patterns))) == left


@pytest.mark.parametrize("given", ["f/agent-1.jsonl", "f/agent-*"])
def test_exclude_holds_for_named_files_too_since_a_shell_may_have_named_them(given, make):
    make("f/agent-1.jsonl")
    result = inputs.find([given], Selection(excluded=("agent-*",)))
    assert (result.files, result.left_out) == ((), 1)


def test_files_left_out_are_counted_and_folders_are_not_entered(make):
    make("f/a/1.jsonl", "f/b/2.jsonl", "f/3.jsonl")
    assert inputs.find(["f"], Selection(excluded=("a", "3.*"))).left_out == 1


def moment(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000_000)


@pytest.mark.parametrize(
    "since, until, days",
    [
        (None, None, [1, 2, 3]),
        ("2026-06-02", None, [2, 3]),
        (None, "2026-06-02", [1, 2]),
        ("2026-06-02", "2026-06-02", [2]),
        ("2026-06-02T23:59:59.999999", None, [2, 3]),
        (None, "2026-06-02T23:59:59", [1]),
        ("2026-06-03T02:00+02:00", None, [3]),
        ("20260603", None, [3]),
        ("2026-06-02T23:59:59.999999Z", "2026-06-03T00:00Z", [2]),
    ],
)
def test_since_and_until_choose_by_the_last_change_whole_days_in_utc(since, until, days, make):
    for day in (1, 2, 3):
        make(f"f/{day}.jsonl")
        changed = moment(f"2026-06-0{day}T23:59:59.999999")
        os.utime(f"f/{day}.jsonl", ns=(changed, changed + 999))
    selection = Selection(since_ns=since_ns(since), until_ns=until_ns(until))
    assert found("f", selection=selection) == [f"f/{day}.jsonl" for day in days]
    assert found(*(f"f/{day}.jsonl" for day in (1, 2, 3)), selection=selection) == [f"f/{day}.jsonl" for day in days]


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "", "06/01/2026", "12:00", "0001-01-01T00:00+23:00x"])
def test_what_is_no_date_is_wrong_usage(text):
    with pytest.raises(UsageError, match=r"--until .*: write a date, e\.g\. 2026-06-01"):
        until_ns(text)


# links -------------------------------------------------------------------------------------------


def test_links_are_followed_as_given_and_one_level_below_and_loops_are_told(make):
    make("real/deep/s.jsonl")
    os.mkdir("f")
    os.symlink("../real", "f/link")
    os.symlink(".", "f/loop")
    os.symlink("../deep", "real/deep/up")
    os.symlink("f", "given")
    result = inputs.find(["given"])
    assert [item.path for item in result.files] == ["given/link/deep/s.jsonl"]
    assert list(result.problems) == [
        "given/link/deep/up: a link to a folder, too deep to be followed; name it to read it",
        "given/loop: a link back to a folder that is already read; skipped",
    ]


# by id -------------------------------------------------------------------------------------------


@pytest.fixture
def homes(make):
    """The folders of three agents, with a session or two in each."""
    make(f"claude/projects/-p/{FIRST}.jsonl", f"claude/projects/-p/{FIRST}/subagents/agent-a7f03c1.jsonl")
    make("codex/sessions/2026/03/02/rollout-2026-03-02T09-00-00-019a83f2-1982-7cec-acdc-ae1668adf92e.jsonl")
    make("pi/sessions/--p--/2026-03-02T09-00-00-000Z_77aa83f2-1982-4cec-acdc-ae1668adf92e.jsonl")
    environment = {"CLAUDE_CONFIG_DIR": "claude", "CODEX_HOME": "codex", "PI_CODING_AGENT_DIR": "pi"}
    return agents.folders(environment, "/nowhere")


def test_where_agents_keep_their_sessions():
    assert [str(folder) for folder in agents.folders({}, "/h")] == [
        "/h/.claude/projects",
        "/h/.codex/sessions",
        "/h/.codex/archived_sessions",
        "/h/.pi/agent/sessions",
    ]


@pytest.mark.parametrize(
    "given, name",
    [
        (FIRST, f"{FIRST}.jsonl"),
        (FIRST[:8], f"{FIRST}.jsonl"),
        (FIRST[:12].upper(), f"{FIRST}.jsonl"),
        ("agent-a7f03c1", "agent-a7f03c1.jsonl"),
        ("019a83f2", "rollout-2026-03-02T09-00-00-019a83f2-1982-7cec-acdc-ae1668adf92e.jsonl"),
        ("77aa83f2", "2026-03-02T09-00-00-000Z_77aa83f2-1982-4cec-acdc-ae1668adf92e.jsonl"),
    ],
)
def test_a_session_is_found_by_how_its_id_starts(given, name, homes):
    result = inputs.find([given], agent_folders=homes)
    [item] = result.files
    assert (os.path.basename(item.path), item.is_explicit, item.relative) == (name, True, name)
    assert result.notes == (f"{given} is {item.path}",)


def test_several_sessions_of_one_start_are_all_named(homes, make):
    make(f"claude/projects/-q/{SECOND}.jsonl")
    with pytest.raises(UsageError) as raised:
        inputs.find([FIRST[:8]], agent_folders=homes)
    assert str(raised.value) == (
        f"{FIRST[:8]} is how 2 session ids start; write more, or a path: "
        f"claude/projects/-p/{FIRST}.jsonl, claude/projects/-q/{SECOND}.jsonl"
    )
    assert found(SECOND[:10], agent_folders=homes) == [f"claude/projects/-q/{SECOND}.jsonl"]


@pytest.mark.parametrize("given", ["99999999", "2026-03-02", "rollout-2026", "subagents"])
def test_an_id_that_no_session_has_is_an_error_that_says_where_it_was_looked_for(given, homes):
    result = inputs.find([given], agent_folders=homes)
    assert result.files == ()
    [(path, error)] = result.errors
    assert (path, type(error)) == (given, NotFound)
    looked = "claude/projects, codex/sessions, pi/sessions"
    assert str(error) == f"{given}: no such file or folder, and no session of this id in {looked}"


@pytest.mark.parametrize("given", [FIRST[:7], f"{FIRST}.jsonl", f"./{FIRST}", "no such"])
def test_what_is_too_short_or_a_path_is_no_id(given, homes):
    assert found(given, agent_folders=homes) == [given]


def test_a_path_that_is_there_beats_an_id(homes, make):
    make(f"{FIRST[:8]}/s.jsonl")
    assert found(FIRST[:8], agent_folders=homes) == [f"{FIRST[:8]}/s.jsonl"]


def test_an_id_names_a_session_or_what_was_made_of_it_as_the_command_wants(homes, make):
    make(
        f"claude/projects/-p/{FIRST}.compacted.jsonl", f"claude/projects/-p/{FIRST}.compacted/tool-results/{FIRST}.txt"
    )
    assert found(FIRST[:8], agent_folders=homes) == [f"claude/projects/-p/{FIRST}.jsonl"]
    assert found(FIRST[:8], agent_folders=homes, own_outputs=True) == [f"claude/projects/-p/{FIRST}.compacted.jsonl"]


def test_a_packed_session_counts_where_it_is_not_there_unpacked(homes, make):
    make(f"claude/projects/-p/{FIRST}.jsonl.zst", f"claude/projects/-p/{SECOND}.jsonl.zst")
    assert found(FIRST[:12], agent_folders=homes) == [f"claude/projects/-p/{FIRST}.jsonl"]
    assert found(SECOND[:12], agent_folders=homes) == [f"claude/projects/-p/{SECOND}.jsonl.zst"]
