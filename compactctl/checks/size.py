"""Size: what is too large, or about to be."""

from collections.abc import Iterator

from compactctl.checks.interface import Check, Subject
from compactctl.findings import Finding
from compactctl.model import Media, Message, context_bytes


def large_results(subject: Subject) -> Iterator[Finding]:
    """Yield each result in context that Layer 1 would spill for its own size."""
    limit = subject.settings.layer1.single_limit_bytes
    messages = subject.sized.transcript.messages
    for paired in subject.sized.paired.results:
        result = paired.result
        if result.size_bytes > limit and not result.is_preview:
            text = f"{result.size_bytes:,} bytes{_by(result.name)}, over the limit of {limit:,}"
            yield Finding(messages[paired.message_index].line, "large-result", text)


def _by(tool: str) -> str:
    return f" by {tool}" if tool else ""


def large_rounds(subject: Subject) -> Iterator[Finding]:
    """Yield each round whose results, without those over the single limit, are over the limit of a round."""
    limits = subject.settings.layer1
    for made in subject.sized.paired.rounds:
        results = [item.result for item in made.results if not item.result.is_preview]
        together = sum(r.size_bytes for r in results if r.size_bytes <= limits.single_limit_bytes)
        if together > limits.round_limit_bytes:
            line = subject.sized.transcript.messages[made.message_index].line
            text = f"{together:,} bytes in {len(results)} results, over the limit of {limits.round_limit_bytes:,}"
            yield Finding(line, "large-round", text)


def fullness(subject: Subject) -> Iterator[Finding]:
    """Yield whether the context is over the window, or at its threshold. A window that is a guess proves nothing."""
    measured = subject.sized.measured
    window = measured.window.tokens
    how = "" if measured.anchored else ", estimated"
    if measured.tokens > window and measured.window.source != "fallback":
        yield Finding(None, "over-window", f"{measured.tokens:,} tokens{how}, and the window is {window:,}")
    elif measured.tokens >= measured.threshold:
        text = f"{measured.tokens:,} tokens{how}; a summary is due at {measured.threshold:,} of {window:,}"
        yield Finding(None, "over-threshold", text)


def request_bytes(subject: Subject) -> Iterator[Finding]:
    """Yield whether what is in context is over the byte budget of a request."""
    limit = subject.settings.audit.request_limit_bytes
    carried = sum(context_bytes(subject.sized.transcript.messages).values())
    if carried > limit:
        yield Finding(None, "large-request", f"{carried:,} bytes in context, over the limit of {limit:,}")


def images(subject: Subject) -> Iterator[Finding]:
    """Yield each image that is too large, and whether there are too many."""
    audit = subject.settings.audit
    count = 0
    for message in subject.sized.transcript.messages:
        for media in _media(message):
            count += 1
            decoded = media.size_bytes * 3 // 4
            if decoded > audit.image_limit_bytes:
                text = f"{decoded:,} bytes, over the limit of {audit.image_limit_bytes:,}"
                yield Finding(message.line, "large-image", text)
    if count > audit.image_limit_count:
        text = f"{count:,} images in context, over the limit of {audit.image_limit_count:,}"
        yield Finding(None, "too-many-images", text)


def _media(message: Message) -> Iterator[Media]:
    for part in message.parts:
        if isinstance(part, Media):
            yield part
    if message.result is not None:
        yield from message.result.media


def heavy_results(subject: Subject) -> Iterator[Finding]:
    """Yield whether the largest results take a large share of the window together."""
    audit, window = subject.settings.audit, subject.sized.measured.window.tokens
    sizes = sorted((item.result.size_bytes for item in subject.sized.paired.results), reverse=True)
    largest = sum(sizes[: audit.heavy_results_count])
    tokens = round(largest / subject.settings.estimator.bytes_per_token)
    if window and tokens * 100 > window * audit.heavy_results_percent:
        count = min(len(sizes), audit.heavy_results_count)
        share = round(100 * tokens / window)
        text = (
            f"the {count} largest results, {largest:,} bytes, take about {share} % of the window of {window:,} tokens"
        )
        yield Finding(None, "heavy-results", text)


CHECKS = (
    Check(("large-result",), large_results),
    Check(("large-round",), large_rounds),
    Check(("over-window", "over-threshold"), fullness),
    Check(("large-request",), request_bytes),
    Check(("large-image", "too-many-images"), images),
    Check(("heavy-results",), heavy_results),
)
