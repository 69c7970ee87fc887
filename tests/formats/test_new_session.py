"""A session under a new id: what is renamed, what is not, and that it reads as the old one did."""

import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from compactctl import formats, splicing
from compactctl.document import Document
from compactctl.formats.claude_code import FORMAT as CLAUDE
from compactctl.formats.codex import FORMAT as CODEX
from compactctl.formats.fork import UUID, derived_session_id, file_stamp
from compactctl.formats.interface import SideFile
from compactctl.formats.pi import FORMAT as PI
from tests.builders import claude, codex, pi
from tests.builders.claude import Session, call, result
from tests.builders.generated import stories, write
from tests.conftest import CORPUS
from tests.formats import reading
from tests.formats.sent import context

SEED = "5eed" * 16
OLD = claude.SESSION_ID


def renewed(format_, raw, name="s.jsonl", seed=SEED):
    """Return the new session and its bytes."""
    document = reading.opened(raw)
    [transcript] = format_.read(document)
    new = format_.new_session(document, transcript, name, seed)
    return new, b"".join(splicing.edited(document, splicing.concrete(document, new.edits))) if new else None


def told(new):
    """Return all that a new session says, as values that can be compared."""
    return new and (new.session_id, new.name, list(new.edits), new.side_files, dict(new.renamed))


def strings(value):
    """Return every string in a value, in order."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def masked(raw, ids):
    """Return the bytes with each id (old or new) as its number, so that two files can be compared but for ids."""
    for number, (old, new) in enumerate(ids.items()):
        for id in (old, new):
            raw = raw.replace(f'"{id}"'.encode(), f'"id {number}"'.encode())
    return raw


# ids and names -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "old, usual, stamp, version",
    [
        ("3d5c2f0a-7b1e-4c58-9f6d-0a1b2c3d4e5f", "7", "2026-04-05T06:07:08.000Z", "4"),
        ("0f3c1a52-6d84-7e19-b0c7-2a9e5d4f8b13", "4", None, "7"),
        ("chat-of-monday", "7", "2026-04-05T06:07:08.000Z", "7"),
        ("chat-of-monday", "7", "on a monday", "4"),
        ("chat-of-monday", "7", None, "4"),
        ("chat-of-monday", "4", None, "4"),
    ],
)
def test_a_new_id_is_a_uuid_of_the_version_that_the_agent_uses(old, usual, stamp, version):
    made = derived_session_id(SEED, old, usual, stamp)
    assert UUID.fullmatch(made)
    assert made[14] == version
    assert made[19] in "89ab"


@pytest.mark.parametrize("old", ["0f3c1a52-6d84-7e19-b0c7-2a9e5d4f8b13", "ffffffff-6d84-7e19-b0c7-2a9e5d4f8b13"])
def test_a_new_id_is_derived_and_begins_otherwise_than_the_old_one(old):
    made = derived_session_id(SEED, old, "7", None)
    assert made == derived_session_id(SEED, old, "7", None)
    assert made[:8] != old[:8]
    assert made != derived_session_id("other", old, "7", None)


@pytest.mark.parametrize(
    "name, stamps, stamp",
    [
        ("rollout-2026-04-05T08-07-08-0f3c1a52.jsonl", ["2026-04-05T06:07:08.000Z"], "2026-04-05T08-07-08"),
        ("2026-04-05T06-07-08-123Z_7b0e4c96.jsonl", ["2026-04-05T06:07:08.000Z"], "2026-04-05T06-07-08-123Z"),
        ("mine.jsonl", ["2026-04-05T06:07:08.000Z"], "2026-04-05T06-07-08-000Z"),
        ("mine.jsonl", [None, "soon", "2026-04-05T06:07:08Z"], "2026-04-05T06-07-08"),
        ("mine.jsonl", [], "1970-01-01T00-00-00"),
    ],
)
def test_a_file_is_named_by_its_sources_time(name, stamps, stamp):
    assert file_stamp(name, *stamps) == stamp


# claude code ---------------------------------------------------------------------------------------


def a_session():
    """A session with every kind of line that points at another."""
    s = Session()
    first = s.user("Go.")
    s.other("file-history-snapshot", messageId=first, snapshot={"messageId": first, "trackedFileBackups": {}})
    asked = s.assistant("On it.", call("toolu_1", id=s.id_of(1)), requestId="req_1")
    s.progress(data={"message": {"uuid": "5f0c1a52-6d84-4e19-b0c7-2a9e5d4f8b13"}})
    s.results(result("toolu_1", s.id_of(1)), copy={"stdout": OLD}, sourceToolAssistantUUID=asked)
    s.boundary(preservedMessages={"anchorUuid": s.next_id, "uuids": [asked], "allUuids": [first, asked]})
    s.summary(f"All of {OLD}.")
    s.user("Look.", parent=None, isSidechain=True, agentId="a1")
    s.assistant("Seen.", parent=s.id_of(6), supersedesUuids=[asked])
    s.attachment("queued_command", source_uuid=first, prompt=first)
    s.other("worktree-state", worktreeSession={"sessionId": OLD})
    s.other("summary", summary="Of another session.", leafUuid="99999999-aaaa-4aaa-8aaa-aaaaaaaaaaaa")
    s.other("last-prompt", leafUuid=s.id_of(8))
    return s


def test_every_line_takes_the_new_session_id_and_a_new_uuid():
    new, raw = renewed(CLAUDE, a_session().bytes())
    made, before = reading.values(raw), reading.values(a_session().bytes())
    assert {value["sessionId"] for value in made} == {new.session_id}
    old_uuids, uuids = ([value["uuid"] for value in values if "uuid" in value] for values in (before, made))
    assert [new.renamed[uuid] for uuid in old_uuids] == uuids
    assert len({*old_uuids, *uuids}) == 2 * len(uuids)
    assert all(UUID.fullmatch(uuid) and uuid[14] == "4" for uuid in uuids)


def test_what_points_at_a_line_follows_it_and_all_else_keeps_its_bytes():
    new, raw = renewed(CLAUDE, a_session().bytes())
    kept = ("message", "toolUseResult", "data", "requestId", "agentId", "timestamp", "prompt")
    for made, before in zip(reading.values(raw), reading.values(a_session().bytes()), strict=True):
        assert [made.get(name) for name in kept] == [before.get(name) for name in kept]
    assert masked(raw, new.renamed) == masked(a_session().bytes(), new.renamed)
    left = [text for value in reading.values(raw) for text in strings(value) if text in new.renamed]
    in_content = [a_session().id_of(1)] * 3 + [OLD]
    assert sorted(left) == sorted(in_content)


def test_the_new_session_reads_as_the_old_one():
    new, raw = renewed(CLAUDE, a_session().bytes())
    [(messages, *facts)] = context(CLAUDE, a_session().bytes())
    named = [(role, parts, new.renamed.get(key, key), *rest) for role, parts, key, *rest in messages]
    assert context(CLAUDE, raw) == [(named, *facts)]
    assert reading.session(CLAUDE, raw).session_id == new.session_id
    assert reading.rules(reading.session(CLAUDE, raw)) == reading.rules(reading.session(CLAUDE, a_session().bytes()))


def test_the_file_is_named_by_the_new_id_and_its_folder_and_stores_go_along():
    new, _ = renewed(CLAUDE, a_session().bytes(), f"{OLD}.jsonl")
    assert new.name == f"{new.session_id}.jsonl"
    assert new.side_files == (
        SideFile(OLD, new.session_id, rewrite_id=True),
        SideFile(f"../../file-history/{OLD}", f"../../file-history/{new.session_id}"),
        SideFile(f"../../tasks/{OLD}", f"../../tasks/{new.session_id}"),
    )


def stub(path, body="tail"):
    return (
        "<persisted-output>\n"
        f"Output too large (61.6KB). Full output saved to: {path}\n\nPreview (first 2KB):\n{body}\n</persisted-output>"
    )


@pytest.mark.parametrize(
    "path, moved",
    [
        ("/home/dev/.claude/projects/-x/{id}/tool-results/b1.txt", True),
        ("C:\\Users\\dev\\.claude\\projects\\-x\\{id}\\tool-results\\b1.txt", True),
        ("/home/dev/.claude/projects/-x/{id}/b1.txt", False),
        ("/home/dev/{id}/tool-results/deeper/b1.txt", False),
        ("/home/dev/{id}/tool-results/b1.txt (a copy of /x/y)", False),
        ("/home/dev/x{id}/tool-results/b1.txt", False),
        ("/home/dev/{id}.compacted/tool-results/b1.txt", False),
    ],
)
@pytest.mark.parametrize("as_blocks", [False, True])
def test_the_path_in_a_stub_leads_to_the_new_folder(path, moved, as_blocks):
    def a_stubbed(id):
        text = stub(path.format(id=id), body=f"{path.format(id=OLD)}\nPreview")
        return [claude.text(text)] if as_blocks else text

    s = Session()
    s.user("Go.")
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", a_stubbed(OLD)), copy={"persistedOutputPath": path.format(id=OLD)})
    s.other("content-replacement", replacements=[{"toolUseId": "toolu_1", "replacement": stub(path.format(id=OLD))}])
    new, raw = renewed(CLAUDE, s.bytes())
    made = reading.values(raw)
    id = new.session_id if moved else OLD
    assert made[2]["message"]["content"][0]["content"] == a_stubbed(id)
    assert made[2]["toolUseResult"] == {"persistedOutputPath": path.format(id=OLD)}
    assert made[3]["replacements"][0]["replacement"] == stub(path.format(id=id))


@pytest.mark.parametrize(
    "text", ["<persisted-output>\n", stub(f"/x/{OLD}/tool-results/b", body="x" * 9000), f"/x/{OLD}"]
)
def test_a_text_that_is_no_stub_of_the_clients_is_left_alone(text):
    s = Session()
    s.user("Go.")
    s.assistant(call("toolu_1"))
    s.results(result("toolu_1", text))
    _, raw = renewed(CLAUDE, s.bytes())
    assert reading.values(raw)[2]["message"] == reading.values(s.bytes())[2]["message"]


def test_lines_of_an_earlier_session_in_the_file_take_the_new_id_too():
    s = Session()
    s.user("Go.", sessionId="8b1e2f0a-7b1e-4c58-9f6d-0a1b2c3d4e5f")
    s.assistant("On it.")
    new, raw = renewed(CLAUDE, s.bytes())
    assert [value["sessionId"] for value in reading.values(raw)] == [new.session_id] * 2


def test_a_line_written_twice_has_one_uuid_still():
    s = Session()
    s.user("Go.")
    s.assistant("On it.")
    s.again(0)
    values = reading.values(renewed(CLAUDE, s.bytes())[1])
    assert values[0] == values[2]


def test_a_subagents_file_is_no_session_of_its_own():
    s = Session()
    s.user("Look.", isSidechain=True, agentId="a1")
    s.assistant("Seen.", isSidechain=True, agentId="a1")
    assert renewed(CLAUDE, s.bytes()) == (None, None)


# codex ---------------------------------------------------------------------------------------------


def a_rollout():
    thread = {"thread_id": codex.SESSION_ID}
    return codex.jsonl(
        codex.meta(session_id=codex.SESSION_ID),
        codex.meta(id="0f3c1a52-0000-7e19-b0c7-2a9e5d4f8b13", session_id=codex.SESSION_ID),
        codex.event("item_completed", **thread, item={"id": "c1"}),
        codex.event("collab_waiting_end", call_id="c1", sender_thread_id=codex.SESSION_ID),
        codex.line("token_usage_record", {**thread, "session_id": codex.SESSION_ID}),
        codex.said(codex.user(codex.SESSION_ID)),
        codex.said(codex.reasoning("Hm.", sealed="c2VhbGVk", id=codex.SESSION_ID)),
        codex.said(codex.assistant("Yes.")),
        codex.compacted(codex.user("Kept.", id=codex.SESSION_ID)),
    )


def test_a_rollout_takes_its_id_where_it_names_itself_and_nowhere_else():
    new, raw = renewed(CODEX, a_rollout())
    lines, before = raw.splitlines(), a_rollout().splitlines()
    mine, others = [0, 2, 3, 4], [1, 5, 6, 7, 8]
    for number in mine:
        assert lines[number] == before[number].replace(codex.SESSION_ID.encode(), new.session_id.encode())
    assert [lines[number] for number in others] == [before[number] for number in others]
    assert context(CODEX, raw) == context(CODEX, a_rollout())


@pytest.mark.parametrize(
    "name, stamp",
    [
        (f"rollout-2026-04-05T08-07-08-{codex.SESSION_ID}.jsonl", "2026-04-05T08-07-08"),
        (f"/2020-01-01T00-00-00/rollout-2026-04-05T08-07-08-{codex.SESSION_ID}.jsonl.zst", "2026-04-05T08-07-08"),
        ("mine.jsonl", "2026-04-05T06-07-08"),
    ],
)
def test_a_rollouts_file_is_named_as_codex_names_them(name, stamp):
    new, _ = renewed(CODEX, a_rollout(), name)
    assert re.fullmatch(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-" + UUID.pattern + r"\.jsonl", new.name)
    assert new.name == f"rollout-{stamp}-{new.session_id}.jsonl"
    assert new.side_files == ()


def test_an_old_rollout_takes_the_id_in_its_bare_header():
    head = {"id": codex.SESSION_ID, "timestamp": codex.STAMP, "instructions": None}
    raw = codex.jsonl(head, codex.user("Go."), codex.assistant("Yes."))
    new, made = renewed(CODEX, raw)
    assert reading.values(made) == [{**head, "id": new.session_id}, *reading.values(raw)[1:]]


def test_a_rollout_without_a_header_cannot_be_given_an_id():
    assert renewed(CODEX, codex.jsonl(codex.said(codex.user("Go.")))) == (None, None)


# pi ------------------------------------------------------------------------------------------------


def a_pi_session(**fields):
    s = pi.Session(**fields).say("a", pi.user("Go."), under=pi.SESSION_ID)
    return s.say("b", pi.assistant("Yes.")).say("c", pi.user(pi.SESSION_ID)).jsonl()


@pytest.mark.parametrize("fields", [{}, {"parentSession": "/home/dev/older.jsonl"}, {"note": {"at": [1.0, 1e2]}}])
def test_a_pi_session_takes_a_new_id_and_names_where_it_comes_from(fields):
    path = str(Path(f"/home/dev/2026-04-05T06-07-08-000Z_{pi.SESSION_ID}.jsonl").absolute())
    new, raw = renewed(PI, a_pi_session(**fields), path)
    made, before = reading.values(raw), reading.values(a_pi_session(**fields))
    assert made[0] == {**before[0], "id": new.session_id, "parentSession": path}
    assert made[1] == {**before[1], "parentId": new.session_id}
    assert raw.splitlines()[2:] == a_pi_session(**fields).splitlines()[2:]
    assert new.name == f"2026-04-05T06-07-08-000Z_{new.session_id}.jsonl"
    assert context(PI, raw) == context(PI, a_pi_session(**fields))


def test_where_only_its_name_is_known_the_parent_of_a_pi_session_stays():
    new, raw = renewed(PI, a_pi_session(parentSession="/home/dev/older.jsonl"), "mine.jsonl")
    assert reading.values(raw)[0]["parentSession"] == "/home/dev/older.jsonl"
    assert new.name == f"2026-04-05T06-07-08-000Z_{new.session_id}.jsonl"


def test_a_pi_session_without_a_header_cannot_be_given_an_id():
    assert renewed(PI, b"".join(a_pi_session().splitlines(keepends=True)[1:])) == (None, None)


# laws ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi"])
@settings(max_examples=25)
@given(story=stories)
def test_every_session_reads_the_same_under_its_new_id(name, story):
    check(formats.get(name), write(story, name))


def check(format_, raw):
    new, made = renewed(format_, raw)
    again, made_again = renewed(format_, raw)
    assert (told(new), made) == (told(again), made_again)
    if new is None:
        return
    assert reading.session(format_, made).session_id == new.session_id
    [(messages, *facts)] = context(format_, raw)
    named = [(role, parts, new.renamed.get(key, key), *rest) for role, parts, key, *rest in messages]
    assert context(format_, made) == [(named, *facts)]
    assert [rule for _, rule in reading.rules(reading.session(format_, made))] == [
        rule for _, rule in reading.rules(reading.session(format_, raw))
    ]


@pytest.mark.parametrize("name", ["chat", "anthropic"])
def test_a_plain_conversation_has_no_session_id(name):
    line = json.dumps({"role": "user", "content": "Go."}).encode()
    assert renewed(formats.get(name), line) == (None, None)


FILES = sorted(path for name in ("claude-code", "codex", "pi") for path in (CORPUS / name).glob("*.jsonl"))


@pytest.mark.corpus
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name[:24]}")
def test_a_real_session_reads_the_same_under_its_new_id(path):
    raw = path.read_bytes()
    format_ = formats.recognise(Document(io.BytesIO(raw)))
    if format_ is not None:
        check(format_, raw)
