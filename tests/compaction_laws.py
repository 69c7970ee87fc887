"""The laws that hold for the compaction of any session, and a cut of it to hold them for."""

from compactctl import splicing
from compactctl.cut import boundaries, is_said_by_user, leading_count
from compactctl.plan import Cut
from compactctl.verify import new_problems
from tests.compactions import METAS, compacted, expected, lines, opened


def a_cut(messages, choice, pins):
    """Return one of the cuts that are possible; None where there is none."""
    leading = leading_count(messages)
    legal = [index for index in boundaries(messages) if index > leading]
    if not legal:
        return None
    first_kept = legal[choice % len(legal)]
    asked = [index for index in range(leading, first_kept) if is_said_by_user(messages[index])]
    pinned = asked[-1] if asked and pins else None
    return Cut(leading, first_kept, pinned) if first_kept - leading > (pinned is not None) else None


def said(told):
    """Return the lines without the marks that tell which message leads or is a summary."""
    return [line.removesuffix(" (summary)") for line in told]


def check(format_, data, cut, keep_history, metas=METAS):
    """Compact, hold every law, and return the bytes."""
    raw, made = compacted(format_, data, cut, metas, keep_history=keep_history)
    front, originals = expected(format_, data, cut, made)
    told = lines(format_, raw)
    metas_told = told[len(front) : len(told) - len(originals)]
    assert told[: len(front)] == front
    assert said(told[len(told) - len(originals) :]) == said(originals)
    assert metas_told[0].endswith("(summary)")
    assert metas.summary in metas_told[0]
    assert [line.endswith("(summary)") for line in told].count(True) == 1 + count_summaries(originals)
    before, after = opened(data, format_)[1], opened(raw, format_)[1]
    assert new_problems(before.findings, after.findings) == []
    hold_history(format_, data, cut, made, raw, keep_history)
    return raw


def count_summaries(told):
    """Return how many of the kept messages are the agent's own summaries: a sealed one may stand behind others."""
    return sum(line.startswith("assistant: ~") and line.endswith("(summary)") for line in told)


def hold_history(format_, data, cut, made, raw, keep_history):
    """What is summarised stands verbatim in the history, and nothing of it in the file unless that is asked for."""
    document, transcript = opened(data, format_)
    gone = [m for i, m in enumerate(transcript.messages) if cut.leading <= i < cut.first_kept and i != cut.pinned]
    assert {record for message in gone for record in message.records} <= set(made.moved)
    rest = splicing.concrete(document, made.edits)
    lost = {record for record in range(len(document)) if is_cut_out(document, record, rest)}
    assert lost <= set(made.moved)
    if not keep_history and transcript.format not in ("chat", "anthropic"):
        shared = {r for i, m in enumerate(transcript.messages) if i >= cut.first_kept for r in m.records}
        assert {r for m in gone for r in m.records} - shared - usage_stays(document, made) <= lost


def usage_stays(document, made):
    """The record by which an agent decides may stay."""
    return {record for record in made.moved if b'"usage"' in document.raw(record)}


def is_cut_out(document, record, splices):
    start = document.offset(record)
    end = start + len(document.raw(record))
    return any(s.start <= start and s.end >= end and s.end > s.start for s in splices)
