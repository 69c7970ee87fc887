"""How scores are shown."""

from compactctl.outcome import ScoresNote
from compactctl.outputs import View, table
from compactctl.outputs.accuracy import bars, head
from compactctl.predictions import ALL, Worst
from compactctl.totals import Batch
from tests.builders.scored import note, score


def shown(*found, terminal=False):
    batch = Batch(command="accuracy", accuracy=note(*found))
    return table.printer("accuracy", View(terminal=terminal)).end(batch).splitlines()


def test_scores_stand_under_their_model_in_a_table_that_fits_100_columns():
    worst = Worst(-0.25, "/somewhere/2026-03-02T09-14-05-000Z_e7a3306b-d6ef.jsonl", 1_009)
    found = [
        score(estimator=e, kind=k, model=m, n=1_166, bias=-0.11, worst=worst, histogram=(1,) * 11)
        for m in ("claude-opus-4-5-20251101", "gpt-5.3-codex-spark")
        for k in (ALL, "prose")
        for e in ("calibrated", "tiktoken:o200k_base")
    ]
    for terminal in (False, True):
        lines = shown(*found, terminal=terminal)[4:]
        assert max(map(len, lines)) <= 100
        assert [line for line in lines if not line.startswith(" ")][1:] == [
            "claude-opus-4-5-20251101",
            "gpt-5.3-codex-spark",
        ]
    assert (
        "  tiktoken:o200k_base, prose     1,166         3  -11.0 %   2.0 %  6.0 %  -25.0 %  2026-03-0...:1009"
        in shown(*found)
    )


def test_a_histogram_keeps_its_empty_bins():
    counts = (0, 0, 0, 0, 0, 2, 8, 0, 0, 0, 1)
    assert bars(counts) == "·····▂█···▁"
    assert shown(score(histogram=counts), terminal=True)[-1].endswith(" ·····▂█···▁")


def test_where_nothing_is_judged_it_is_said():
    said = table.printer("accuracy", View()).end(
        Batch(command="accuracy", accuracy=ScoresNote("t", "p", 0, 0, 0, {}, ()))
    )
    assert said.splitlines()[-1] == "nothing to judge by: no request with recorded usage stands behind another one"


def test_the_name_of_a_profile_is_printed_as_what_it_is():
    told = ScoresNote("t", "red\x1b[31m\n", 0, 1, 1, {}, ())
    assert "\x1b" not in "".join(head(Batch(command="accuracy"), told))
