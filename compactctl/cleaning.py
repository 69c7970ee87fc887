"""Known kinds of keys taken out of a session: out of what edits write, and of every line that stays."""

from collections.abc import Iterator, Sequence
from typing import Any

from compactctl.document import Document, Place
from compactctl.json_text import read_json, write_json
from compactctl.redact import redact
from compactctl.rewrite import beside
from compactctl.splicing import Drop, Edit, Insert, Put, Replace


def without_secrets(document: Document, edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits with no known kind of key in what they write, and those that take such keys out of every line
    that stays."""
    clean = [_cleaned(edit) for edit in edits]
    dropped = {edit.record for edit in edits if isinstance(edit, Drop)}
    found = [
        Replace(place, write_json(redact(text).text))
        for record in range(len(document))
        if record not in dropped and redact(document.raw(record).decode("utf-8", "replace")).counts
        for place, text in _strings(read_json(document.raw(record)), Place(record))
        if redact(text).counts
    ]
    return [*clean, *beside(found, edits)]


def _cleaned(edit: Edit) -> Edit:
    def clean(raw: bytes) -> bytes:
        value = read_json(raw)
        made = _clean(value)
        return raw if made == value else write_json(made)

    match edit:
        case Replace(place, raw):
            return Replace(place, clean(raw))
        case Insert(after, raw):
            return Insert(after, b"\n".join(clean(line) for line in raw.split(b"\n")))
        case Put(place, raws):
            return Put(place, tuple(clean(raw) for raw in raws))
        case _:
            return edit


def _clean(value: Any) -> Any:
    match value:
        case str():
            return redact(value).text
        case list():
            return [_clean(each) for each in value]
        case dict():
            return {key: _clean(each) for key, each in value.items()}
    return value


def _strings(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Yield every text in a decoded record, with its place."""
    match value:
        case str():
            yield place, value
        case list():
            for index, each in enumerate(value):
                yield from _strings(each, place.at(index))
        case dict():
            for key, each in value.items():
                yield from _strings(each, place.at(key))
