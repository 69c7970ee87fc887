"""What the tests of laws over generated sessions share."""

import io

import pytest
from hypothesis import settings

from compactctl import formats
from compactctl.document import Document
from tests.builders.generated import WRITERS

EVERY_FORMAT = pytest.mark.parametrize("name", list(WRITERS))
FEW_EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)


def read(data):
    """Return the document of these bytes, its format as it is told, and its sessions."""
    document = Document(io.BytesIO(data))
    format_ = formats.recognise(document)
    assert format_ is not None
    return document, format_, format_.read(document)
