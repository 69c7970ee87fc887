"""What a model is sent of a session, without where it stands: the same after an edit that changes no context."""

import msgspec

from tests.formats import reading


def context(format_, raw):
    """Return the effective context and what is told of its requests, without the places where they stand."""
    return [
        ([_said(message) for message in t.messages], [_used(usage) for usage in t.requests], t.anchor_floor, t.model)
        for t in reading.sessions(format_, raw)
    ]


def _said(message):
    parts = [{**_facts(part), "type": type(part).__name__} for part in message.parts]
    return message.role, parts, message.key, _used(message.usage), message.is_summary, message.is_leading


def _facts(part):
    known = {name: value for name, value in msgspec.structs.asdict(part).items() if name not in ("place", "copies")}
    return {**known, "media": [_facts(item) for item in known.get("media", ())]}


def _used(usage):
    return usage and {name: value for name, value in msgspec.structs.asdict(usage).items() if name != "line"}
