"""A compaction in a Claude Code session: the lines that come out, one by one."""

from compactctl import formats
from compactctl.formats.interface import Metas
from compactctl.plan import Cut
from tests.builders import claude
from tests.compactions import METAS, compacted, lines, opened
from tests.formats.reading import values

CLAUDE = formats.get("claude-code")


def links(raw):
    """Return each line's last letters of uuid and parent, or its type where it has none."""
    return [_link(value) for value in values(raw)]


def _link(value):
    if "uuid" not in value:
        return value["type"]
    kind = (
        "boundary" if value.get("subtype") == "compact_boundary" else "summary" if value.get("isCompactSummary") else ""
    )
    return kind or int(value["uuid"][:8])


def parents(raw):
    """Return what each line with a uuid hangs on, by the same names."""
    named = {value["uuid"]: _link(value) for value in values(raw) if "uuid" in value}
    return [named.get(value["parentUuid"]) for value in values(raw) if "uuid" in value]


def a_session():
    session = claude.Session()
    session.other("custom-title", customTitle="Moving")
    session.user("Old.")  # 1
    session.progress()  # 2
    session.assistant("Yes.")  # 3
    session.user("Move the shop.")  # 4
    session.attachment("task_reminder", content="Tasks.")  # 5
    session.assistant(claude.call("c1"))  # 6
    session.results(claude.result("c1"))  # 7
    session.other("last-prompt", leafUuid=session.last)
    session.system("turn_duration")  # 8
    session.assistant("Half.")  # 9
    session.progress()  # 10
    session.user("And the till.")  # 11
    return session.bytes()


def test_boundary_and_summary_stand_before_the_first_kept_line_which_hangs_on_them():
    raw, made = compacted(CLAUDE, a_session(), Cut(0, 6, 2))
    assert links(raw) == ["custom-title", "boundary", "summary", 4, "last-prompt", 9, 10, 11]
    assert parents(raw) == [None, "boundary", "summary", 4, 9, 10]
    assert lines(CLAUDE, raw) == [
        f"user: {METAS.summary} (summary)",
        "user: Move the shop.",
        "assistant: Half.",
        "user: And the till.",
    ]
    assert made.moved == (1, 2, 3, 5, 6, 7, 9)


def test_the_boundary_tells_of_itself_as_the_client_lets_it():
    raw, _ = compacted(CLAUDE, a_session(), Cut(0, 6, 2))
    boundary, summary = values(raw)[1:3]
    assert boundary == {
        "parentUuid": None,
        "logicalParentUuid": "00000007-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
        "isSidechain": False,
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "isMeta": False,
        "uuid": boundary["uuid"],
        "level": "info",
        "compactMetadata": {
            "trigger": "manual",
            "preTokens": 90_000,
            "durationMs": 0,
            "postTokens": 4_000,
            "cumulativeDroppedTokens": 86_000,
        },
        "userType": "external",
        "cwd": "/home/dev/project",
        "sessionId": claude.SESSION_ID,
        "version": "2.1.101",
        "gitBranch": "main",
        "timestamp": "2026-03-02T09:00:04.000Z",
    }
    assert summary["message"] == {"role": "user", "content": METAS.summary}
    assert (summary["isCompactSummary"], summary["isVisibleInTranscriptOnly"]) == (True, True)


def test_the_history_can_stay_as_a_branch_that_is_not_resumed():
    raw, made = compacted(CLAUDE, a_session(), Cut(0, 6, 2), keep_history=True)
    assert links(raw)[4:7] == ["boundary", "summary", 4]
    assert len(values(raw)) == 15
    assert lines(CLAUDE, raw)[1:] == ["user: Move the shop.", "assistant: Half.", "user: And the till."]
    assert made.moved == (1, 2, 3, 5, 6, 7, 9)


def test_a_last_prompt_behind_the_boundary_names_a_line_that_is_there():
    raw, _ = compacted(CLAUDE, a_session(), Cut(0, 6, 2))
    assert values(raw)[4]["leafUuid"] == "00000011-aaaa-4aaa-8aaa-aaaaaaaaaaaa"


def test_lines_of_signed_thinking_go_and_what_hung_on_them_takes_the_line_above():
    session = claude.Session()
    session.user("Old.")
    session.assistant("Yes.")
    session.user("Go.")  # 3
    session.assistant(claude.thinking("Hm."), id="msg_a")  # 4
    session.assistant(claude.text("Done."), id="msg_a")  # 5
    session.user("More.")  # 6
    session.assistant(claude.thinking("So."), claude.text("Sure."))  # 7
    raw, made = compacted(CLAUDE, session.bytes(), Cut(0, 2))
    assert links(raw) == ["boundary", "summary", 3, 5, 6, 7]
    assert parents(raw) == [None, "boundary", "summary", 3, 5, 6]
    assert values(raw)[-1]["message"]["content"] == [claude.text("Sure.")]
    assert (made.dropped_reasoning, made.moved) == (2, (0, 1, 3, 6))


def test_dead_branches_and_sidechains_go_with_what_they_hang_on():
    session = claude.Session()
    first = session.user("Old.")  # 1
    session.user("A try.", parent=first)  # 2, left
    session.user("Side.", parent=None, isSidechain=True)  # 3
    session.assistant("Yes.", parent=first)  # 4
    kept = session.user("Go.")  # 5
    session.user("Go, I said.", parent=kept)  # 6, left
    session.assistant("Done.", parent=kept)  # 7
    raw, made = compacted(CLAUDE, session.bytes(), Cut(0, 2))
    assert links(raw) == ["boundary", "summary", 5, 6, 7]
    assert made.moved == (0, 1, 2, 3)


def test_parallel_calls_and_their_results_stay_together():
    session = claude.Session()
    session.user("Old.")
    session.assistant("Yes.")
    one = session.assistant(claude.call("c1"), id="msg_p")  # 3
    two = session.assistant(claude.call("c2"), id="msg_p")  # 4
    session.results(claude.result("c1", "one"), parent=one)  # 5
    session.results(claude.result("c2", "two"), parent=two)  # 6
    session.assistant("Done.")
    before, after = session.bytes(), compacted(CLAUDE, session.bytes(), Cut(0, 2))[0]
    assert lines(CLAUDE, after)[1:] == lines(CLAUDE, before)[2:]


def test_what_the_clients_own_compaction_kept_is_kept_or_summarised_by_the_next():
    session = claude.Session()
    session.user("q1")
    session.assistant("a1")
    session.user("q2")  # 3
    session.assistant("a2")  # 4
    kept = [session.id_of(3), session.id_of(4)]
    summary = session.id_of(6)
    session.boundary(
        preservedMessages={"anchorUuid": summary, "uuids": kept, "allUuids": kept}, cumulativeDroppedTokens=9
    )
    session.summary("s1")  # 6
    session.user("q3")  # 7
    session.assistant("a3")  # 8
    data = session.bytes()
    assert lines(CLAUDE, data) == ["user: s1 (summary)", "user: q2", "assistant: a2", "user: q3", "assistant: a3"]
    for keep_history in (False, True):
        raw, made = compacted(CLAUDE, data, Cut(0, 2), keep_history=keep_history)
        assert lines(CLAUDE, raw)[1:] == ["assistant: a2", "user: q3", "assistant: a3"]
        assert set(made.moved) == {0, 1, 2, 4, 5}
        [boundary] = [v for v in values(raw) if v.get("compactMetadata", {}).get("trigger") == "manual"]
        assert boundary["compactMetadata"]["cumulativeDroppedTokens"] == 86_009


def test_two_compactions_in_a_row_leave_one_summary_and_all_that_is_kept():
    once, _ = compacted(CLAUDE, a_session(), Cut(0, 3))
    twice, _ = compacted(CLAUDE, once, Cut(0, 3), Metas("Both stories."))
    assert lines(CLAUDE, twice) == ["user: Both stories. (summary)", *lines(CLAUDE, once)[3:]]
    assert [link for link in links(twice) if isinstance(link, str)].count("boundary") == 1


def test_a_subagents_session_is_compacted_as_its_own():
    session = claude.Session()
    for said in ("Old.", "Go."):
        session.user(said, isSidechain=True, agentId="a7")
        session.assistant("Yes.", isSidechain=True, agentId="a7")
    raw, _ = compacted(CLAUDE, session.bytes(), Cut(0, 2))
    assert lines(CLAUDE, raw) == [f"user: {METAS.summary} (summary)", "user: Go.", "assistant: Yes."]
    assert {(v["isSidechain"], v["agentId"]) for v in values(raw)} == {(True, "a7")}
    assert opened(raw, CLAUDE)[1].parent_session_id == claude.SESSION_ID
