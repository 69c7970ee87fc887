"""No key leaves the machine, and none is shown."""

import json

from compactctl import run
from compactctl.errors import ProviderUnavailable
from compactctl.options import Options
from tests.builders.long_chat import long_chat, records_of
from tests.layer2.running import options, summarize

KEY = "AKIA" + "QWERTYUIOPASDFGH"


def with_a_key_everywhere():
    records = long_chat(12)
    records[1]["content"] += f" The key is {KEY}."
    records[2]["content"] += f" key {KEY}"
    records[2]["tool_calls"][0]["function"]["arguments"] = json.dumps({"command": f"deploy --key {KEY}"})
    records[3]["content"] += f" {KEY}"
    records[-1]["content"] += f" {KEY}"
    return records


def test_no_key_leaves_the_machine_or_enters_a_summary_or_report(tmp_path, write_session, provider):
    fake = provider(f"<summary>The key {KEY} was used.</summary>")
    outcome = summarize(write_session(with_a_key_everywhere()))
    assert KEY not in "".join(fake.prompts)
    assert all(
        KEY not in text for said in fake.asked[0].said for text in (said.text, str(said.calls), str(said.result))
    )
    for name in ("s.compacted/summary.md", "s.compacted.report.json"):
        assert KEY not in (tmp_path / name).read_text()
    assert outcome.layer2.redacted == {"aws-access-key": 4}
    kept = records_of(tmp_path / "s.compacted.jsonl")
    assert KEY in kept[-1]["content"]


def test_redact_takes_keys_out_of_what_is_kept_too_and_the_original_comes_back(tmp_path, write_session, provider):
    provider()
    path = write_session(with_a_key_everywhere())
    outcome = summarize(path, options(redact=True))
    assert (outcome.status, outcome.error) == ("applied", None)
    assert KEY not in (tmp_path / "s.compacted.jsonl").read_text()
    run.restore([str(tmp_path / "s.compacted.jsonl")], Options(apply=True))
    assert (tmp_path / "s.restored.jsonl").read_bytes() == path.read_bytes()


def test_an_error_of_a_provider_is_shown_without_keys(write_session, provider):
    provider(ProviderUnavailable(f"fake: refused {KEY}"))
    outcome = summarize(write_session(long_chat()))
    assert outcome.error.message == "fake: refused [redacted: aws-access-key]"
