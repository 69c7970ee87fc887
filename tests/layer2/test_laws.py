"""Laws of `summarize` and `compact` on generated sessions of every format, sound and damaged."""

import json
import tempfile
from pathlib import Path

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from compactctl import run
from compactctl.options import Options
from compactctl.settings import Settings, with_changes
from tests.builders.generated import stories, write
from tests.laws import EVERY_FORMAT

FEW_EXAMPLES = settings(max_examples=20, deadline=None, derandomize=True, phases=[Phase.generate])
KEEP_LITTLE = [
    "layer1.single_limit_bytes=900",
    "layer1.round_limit_bytes=1500",
    "layer1.preview_head_bytes=40",
    "layer2.recent_keep_tokens=60",
    "layer2.recent_keep_messages=2",
    "layer2.facts_max_tokens=50",
]
WINDOW_TOKENS = 2_048
commands = st.sampled_from(["summarize", "compact"])
ENDS_WELL = {0, 4}


def given_options(*, apply=True, **more):
    made = with_changes(Settings(), KEEP_LITTLE)
    return Options(settings=made, apply=apply, window_tokens=WINDOW_TOKENS, **more)


def wrong_by(batch):
    return [(outcome.error, outcome.notes) for outcome in batch.outcomes]


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories, command=commands, spills=st.booleans(), keeps_history=st.booleans())
def test_every_message_is_kept_spilled_or_summarised_and_the_original_comes_back(
    name, story, command, spills, keeps_history
):
    data = write(story, name)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "s.jsonl"
        path.write_bytes(data)
        options = given_options(spill_first=spills, keep_history=keeps_history)
        batch = getattr(run, command)([str(path)], options)
        made = batch.outcomes[0]
        assert batch.exit_code in ENDS_WELL, wrong_by(batch)
        assert path.read_bytes() == data
        if made.status != "applied":
            assert [p.name for p in Path(place).iterdir()] == ["s.jsonl"]
            return
        hold_balance(Path(place), made)
        first = written(place)
        again = getattr(run, command)([str(path)], options)
        assert again.outcomes[0].status == "unchanged", wrong_by(again)
        assert written(place) == first
        checked = run.verify([place], Options())
        assert checked.exit_code == 0, wrong_by(checked)
        path.unlink()
        assert run.restore([place], Options(apply=True)).exit_code == 0
        assert (Path(place) / "s.restored.jsonl").read_bytes() == data


def hold_balance(place, made):
    """Every effective message has exactly one fate, and what was summarised is verbatim in the history."""
    note = made.layer2
    if not note.ran:
        return
    counts = note.fates
    assert counts.messages == made.messages == counts.kept + counts.spilled + counts.summarised
    report = json.loads((place / "s.compacted.report.json").read_bytes())
    fates = report["sessions"][0]["fates"]
    assert len(fates) == counts.messages
    assert all(report["checks"].values())
    context = run.inspect([str(place / "s.compacted.jsonl")], Options(window_tokens=WINDOW_TOKENS)).outcomes[0]
    metas = context.messages - counts.kept - counts.spilled
    assert 1 <= metas <= 3
    assert made.tokens.after >= 0


def written(place):
    return {str(p): p.read_bytes() for p in Path(place).rglob("*") if p.is_file()}


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories, command=commands)
def test_in_place_and_back(name, story, command):
    data = write(story, name)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "s.jsonl"
        path.write_bytes(data)
        options = given_options(place="in place", slim=True)
        batch = getattr(run, command)([str(path)], options)
        assert batch.exit_code in ENDS_WELL, wrong_by(batch)
        if batch.outcomes[0].status != "applied":
            assert path.read_bytes() == data
            return
        first = written(place)
        again = getattr(run, command)([str(path)], options)
        assert again.outcomes[0].status == "unchanged", wrong_by(again)
        assert written(place) == first
        checked = run.verify([str(path)], Options())
        assert checked.exit_code == 0, wrong_by(checked)
        assert run.restore([str(path)], Options(apply=True, place="in place")).exit_code == 0
        assert path.read_bytes() == data
