"""Laws that hold for every session, on generated ones of every format, sound and damaged."""

import tempfile
from pathlib import Path

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from compactctl import estimators, run, splicing
from compactctl.estimators.heuristic import tokens_beside, weight
from compactctl.fix import MENDED
from compactctl.media import CLAUDE
from compactctl.options import Audit, Options
from compactctl.settings import Settings, with_changes
from tests.builders.generated import stories, write
from tests.builders.messages import NO_FILE
from tests.laws import EVERY_FORMAT, FEW_EXAMPLES, read

LOW_LIMITS = with_changes(
    Settings(),
    ["layer1.single_limit_bytes=900", "layer1.round_limit_bytes=1500", "layer1.preview_head_bytes=40"],
)
DRY, APPLY = Options(settings=LOW_LIMITS), Options(settings=LOW_LIMITS, apply=True)


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories)
def test_a_session_is_recognised_and_reading_then_dumping_it_is_the_identity(name, story):
    data = write(story, name)
    document, format_, transcripts = read(data)
    assert format_.name == name
    assert b"".join(splicing.edited(document, ())) == data
    assert sum(transcripts[0].bytes_by_kind.values()) == len(data)


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories)
def test_reading_is_deterministic_and_every_part_is_where_it_says(name, story):
    data = write(story, name)
    document, _, transcripts = read(data)
    assert read(data)[2] == transcripts
    for message in transcripts[0].messages:
        for part in message.parts:
            document.value(part.place)


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories)
def test_the_heuristic_is_the_bytes_of_all_messages_rounded_up_once(name, story):
    messages = read(write(story, name))[2][0].messages
    heuristic = estimators.get("heuristic", Settings(), NO_FILE)
    size = sum(weight([message], CLAUDE)[0] for message in messages)
    assert heuristic.tokens(messages) == -(-size * 2 // 7) + sum(tokens_beside(message, CLAUDE) for message in messages)


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories)
def test_spill_then_restore_is_the_identity_and_a_second_spill_changes_nothing(name, story):
    data = write(story, name)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "s.jsonl"
        path.write_bytes(data)
        planned = run.spill([str(path)], DRY).outcomes[0]
        assert [p.name for p in Path(place).iterdir()] == ["s.jsonl"]
        batch = run.spill([str(path)], APPLY)
        made = batch.outcomes[0]
        assert batch.exit_code == 0, made.error
        assert path.read_bytes() == data
        assert made.layer1 == planned.layer1
        assert made.tokens == planned.tokens
        assert made.status == ("applied" if made.layer1.spills else "unchanged")
        if made.status == "unchanged":
            return
        assert (made.bytes.after, planned.bytes.after) == ((Path(place) / "s.compacted.jsonl").stat().st_size,) * 2
        first = written(place)
        assert run.spill([str(path)], APPLY).outcomes[0].status == "unchanged"
        assert run.spill([str(Path(place) / "s.compacted.jsonl")], APPLY).outcomes[0].status == "unchanged"
        assert written(place) == first
        checked = run.verify([place], Options())
        assert checked.exit_code == 0, checked.outcomes[0].notes
        path.unlink()
        assert run.restore([place], APPLY).exit_code == 0
        assert (Path(place) / "s.restored.jsonl").read_bytes() == data


def written(place):
    return {str(p): p.read_bytes() for p in Path(place).rglob("*") if p.is_file()}


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories)
def test_after_a_spill_no_result_is_over_a_limit_that_a_preview_would_help(name, story):
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "s.jsonl"
        path.write_bytes(write(story, name))
        made = run.spill([str(path)], APPLY).outcomes[0]
        assert made.tokens.after <= made.tokens.before
        assert all(note.bytes > 900 or note.reason == "round" for note in made.layer1.spills)
        before = {(f.rule, f.line) for f in run.inspect([str(path)], DRY).outcomes[0].findings}
        if made.status == "applied":
            compacted = str(Path(place) / "s.compacted.jsonl")
            after = {(f.rule, f.line) for f in run.inspect([compacted], DRY).outcomes[0].findings}
            assert after - before <= {("stale-usage", line) for _, line in after}


FIX = Options(apply=True, audit=Audit(fix=True, selected=("reading", "resume"), secrets=False))

line_numbers = st.lists(st.integers(1, 30), max_size=3)


@EVERY_FORMAT
@settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate])
@given(story=stories, gone=line_numbers, twice=line_numbers)
def test_whatever_lines_are_gone_or_come_twice_a_mended_session_has_nothing_left_to_mend(name, story, gone, twice):
    lines = write(story, name).splitlines(keepends=True)
    kept = [(number, line) for number, line in enumerate(lines) if number not in gone]
    data = b"".join(line * (2 if number in twice else 1) for number, line in kept)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "s.jsonl"
        path.write_bytes(data)
        [made] = run.audit([str(path)], FIX).outcomes
        assert made.error is None, made.error
        assert path.read_bytes() == data
        rules = {finding.rule for finding in made.findings}
        assert not rules & MENDED or "bad-call-id" in rules
        if made.status == "applied":
            again = run.audit([str(path.with_name("s.fixed.jsonl"))], FIX).outcomes[0]
            assert again.status == "read"
            assert [(f.rule, f.line) for f in again.findings] == [(f.rule, f.line) for f in made.findings]
