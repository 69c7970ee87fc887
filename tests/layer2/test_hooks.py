"""The user's commands before and after a compaction."""

import json

from compactctl import run
from compactctl.errors import ProviderUnavailable
from tests.builders.long_chat import long_chat
from tests.layer2.running import compact, options, summarize
from tests.runs import files_in, only


def hooked(tmp_path, pre="", post=""):
    return [f"hooks.pre_compact={pre}"] * bool(pre) + [f"hooks.post_compact={post}"] * bool(post)


def test_hooks_are_told_what_happens_before_and_after(tmp_path, write_session, provider):
    provider()
    log = tmp_path / "log"
    outcome = summarize(
        write_session(long_chat()), options(changes=hooked(tmp_path, f"cat >> '{log}'", f"cat >> '{log}'"))
    )
    before, after = [json.loads(line) for line in log.read_text().splitlines()]
    assert (before["event"], before["trigger"], before["before_tokens"]) == (
        "pre_compact",
        "manual",
        outcome.tokens.before,
    )
    assert (before["after_tokens"], before["error"]) == (None, None)
    assert (after["event"], after["status"], after["after_tokens"]) == ("post_compact", "applied", outcome.tokens.after)
    assert after["output"] == str(tmp_path / "s.compacted.jsonl")


def test_the_second_hook_runs_after_a_failure_too(tmp_path, write_session, provider):
    provider(ProviderUnavailable("fake: down"))
    log = tmp_path / "log"
    compact(write_session(long_chat()), options(changes=hooked(tmp_path, post=f"cat >> '{log}'")))
    told = json.loads(log.read_text())
    assert (told["trigger"], told["status"], told["error"]["code"]) == ("auto", "failed", "provider_unavailable")


def test_a_first_hook_that_fails_skips_its_session_with_its_reason(tmp_path, write_session, provider):
    fake = provider()
    path = write_session(long_chat())
    batch = run.summarize([str(path)], options(changes=hooked(tmp_path, "echo not today >&2; exit 3")))
    outcome = only(batch)
    assert (outcome.status, outcome.layer2.reason, outcome.error.code) == ("skipped", "hook", "hook_failed")
    assert "exit code 3: not today" in outcome.error.message
    assert (fake.asked, files_in(tmp_path), batch.exit_code) == ([], ["s.jsonl"], 0)


def test_no_hook_runs_where_nothing_is_written(tmp_path, write_session, provider):
    provider()
    log = tmp_path / "log"
    changes = hooked(tmp_path, f"cat >> '{log}'", f"cat >> '{log}'")
    compact(write_session(long_chat(2)), options(changes=changes))
    summarize(write_session(long_chat()), options(apply=False, changes=changes))
    assert not log.exists()
