"""Laws of a compaction's edits, on generated sessions of every format, sound and damaged, cut anywhere."""

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from compactctl import formats
from tests.builders.generated import stories, write
from tests.compaction_laws import a_cut, check
from tests.compactions import METAS, compacted, opened, previews
from tests.laws import EVERY_FORMAT

EXAMPLES = settings(max_examples=30, deadline=None, derandomize=True, phases=[Phase.generate])
choices = st.tuples(st.integers(0, 30), st.booleans(), st.booleans())
"""Which of the boundaries, whether a request is pinned, and whether the history stays in the file."""


@EVERY_FORMAT
@EXAMPLES
@given(story=stories, choice=choices)
def test_what_is_kept_stays_word_for_word_behind_a_summary_of_the_rest(name, story, choice):
    data, format_ = write(story, name), formats.get(name)
    cut = a_cut(opened(data, format_)[1].messages, *choice[:2])
    if cut is not None:
        check(format_, data, cut, choice[2])


@EVERY_FORMAT
@EXAMPLES
@given(story=stories, choice=choices, again=choices)
def test_a_second_compaction_loses_nothing_that_the_first_kept(name, story, choice, again):
    data, format_ = write(story, name), formats.get(name)
    cut = a_cut(opened(data, format_)[1].messages, *choice[:2])
    if cut is None:
        return
    once = check(format_, data, cut, choice[2])
    cut = a_cut(opened(once, format_)[1].messages, *again[:2])
    if cut is not None:
        check(format_, once, cut, again[2], METAS.__class__("Both stories.", "Noted again.", "Read again."))


@EVERY_FORMAT
@EXAMPLES
@given(story=stories, choice=choices)
def test_kept_results_can_be_spilled_in_the_same_go(name, story, choice):
    data, format_ = write(story, name), formats.get(name)
    messages = opened(data, format_)[1].messages
    cut = a_cut(messages, *choice[:2])
    if cut is None:
        return
    kept = messages[cut.first_kept :]
    raw, _ = compacted(format_, data, cut, keep_history=choice[2], spilled=previews(kept))
    document, transcript = opened(raw, format_)
    told = [document.value(m.result.place) for m in transcript.messages if m.result is not None]
    assert len(told) == sum(message.result is not None for message in kept)
    assert all("[preview]" in str(value) for value in told)


@EVERY_FORMAT
@EXAMPLES
@given(story=stories, choice=choices)
def test_the_same_source_and_summary_give_the_same_bytes(name, story, choice):
    data, format_ = write(story, name), formats.get(name)
    cut = a_cut(opened(data, format_)[1].messages, *choice[:2])
    if cut is not None:
        assert compacted(format_, data, cut) == compacted(format_, data, cut)
