"""What Layer 2 did to a session, in lines for people."""

from collections.abc import Iterator

from msgspec import UNSET

from compactctl.outcome import Layer2Note, Outcome
from compactctl.outputs import words
from compactctl.outputs.safe import visible

REASONS = {
    "below_threshold": "not due: {tokens:,} tokens, due from {threshold:,}",
    "nothing_older": "nothing is older than what stays word for word",
    "already_done": "done before, with the same settings and the same provider: nobody was asked",
    "breaker_open": "not asked for: too many failures in a row",
    "over_budget": "not asked for: a ceiling would have been passed",
    "hook": "not asked for: the hook pre_compact said no",
    "provider_failed": "none: the provider gave no usable one",
}


def summary(note: Layer2Note, outcome: Outcome) -> Iterator[str]:
    """Yield what the summary stands for and who wrote it, or why there is none."""
    writer = visible(f"{note.provider} ({note.model})" if note.model else note.provider or "")
    if not note.ran and note.reason in REASONS:
        tokens, threshold = (0, 0) if outcome.tokens is UNSET else (outcome.tokens.after, outcome.tokens.threshold)
        yield f"{REASONS[note.reason].format(tokens=tokens, threshold=threshold)}; {writer}"
        return
    size = f" -> {note.summary_tokens:,} tokens" if note.summary_tokens is not None else ""
    size = size or (f", about {note.input_tokens:,} tokens," if note.input_tokens else "")
    line = f", from line {note.cut_line:,} on" if note.cut_line else ""
    yield f"{words.count(note.messages_summarized, 'message')}{size} by {writer}"
    yield f"{words.count(note.messages_kept, 'message')} word for word{line}"
    if note.fates:
        fates = note.fates
        parts = f"{fates.kept:,} kept + {fates.spilled:,} spilled + {fates.summarised:,} summarised"
        yield f"{words.count(fates.messages, 'message')} = {parts}"


def asked(note: Layer2Note) -> Iterator[str]:
    """Yield what the summary took: requests, tokens and price."""
    if not note.ran or note.usage is None:
        return
    price = f" · ${note.price.usd:.4f} (list prices of {note.price.as_of})" if note.price else ""
    usage = f"{note.usage.input_tokens:,} tokens in, {note.usage.output_tokens:,} out"
    yield visible(f"{words.count(note.attempts, 'request')} · {usage}{price}")


def lost(note: Layer2Note) -> Iterator[str]:
    """Yield what did not come through: what no request held, reasoning, secrets, doubts."""
    if note.dropped:
        first = visible(", ".join(note.dropped[:3]))
        yield f"{words.count(len(note.dropped), 'message')} had room in no request: {first}"
    if note.reasoning_dropped:
        yield f"{words.count(note.reasoning_dropped, 'block')} of signed reasoning that no longer fit what is before"
    yield from (visible(doubt) for doubt in note.doubts)


def redacted(note: Layer2Note) -> Iterator[str]:
    """Yield the secrets that were taken out, by kind."""
    if note.redacted:
        yield visible(", ".join(f"{count:,} {kind}" for kind, count in note.redacted.items()))


def survival(note: Layer2Note) -> Iterator[str]:
    """Yield how much of what the summarised part names is still there, and how much can be reached."""
    told = [
        f"{kind} {each.present:,} of {each.total:,} ({words.percent(each.present, each.total)})"
        for kind, each in note.survival.items()
    ]
    if told:
        total = sum(each.total for each in note.survival.values())
        reachable = sum(each.reachable for each in note.survival.values())
        yield f"literally present: {', '.join(told)}"
        yield f"reachable through the history file: {reachable:,} of {total:,}"


def text(note: Layer2Note) -> list[str]:
    """Return the summary itself, line by line."""
    return [visible(line) for line in (note.summary or "").splitlines()]
