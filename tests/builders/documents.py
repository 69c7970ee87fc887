"""Documents of any bytes, walked to their end."""

import io

import msgspec

from compactctl.document import Document

ANY = msgspec.json.Decoder()


class Shape(msgspec.Struct):
    """What the typed walks in these tests ask for."""

    a: int = 0
    rest: msgspec.Raw = msgspec.Raw()


SHAPE = msgspec.json.Decoder(Shape)


def opened(raw: bytes) -> Document:
    return Document(io.BytesIO(raw))


def read(raw: bytes):
    """Return a document that was walked, and the values of its records."""
    document = opened(raw)
    return document, [record.value for record in document.records(ANY)]
