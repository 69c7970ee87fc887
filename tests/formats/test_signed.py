"""Signed thinking: edited after it was signed, or stripped of its signature."""

import pytest
from msgspec import Raw

from compactctl.findings import Finding
from compactctl.formats.signed import Block, Signed


def thinking(text, signature=""):
    return Block("thinking", thinking=Raw(text), signature=Raw(signature))


def findings(*blocks):
    """Return what is found where each block stands on a line of its own."""
    signed = Signed()
    for line, block in enumerate(blocks, start=1):
        signed.note(line, [block])
    return list(signed.findings())


EDITED = Finding(2, "edited-reasoning", "the signature is that of other reasoning, at line 1")
HOLLOW = "the block of thinking has no signature"


@pytest.mark.parametrize(
    "blocks, found",
    [
        ([thinking('"I see."', '"s"'), thinking('"[cut]"', '"s"')], [EDITED]),
        ([thinking('"I see."', '"s"'), thinking('"I see."', '"s"')], []),  # written again
        ([thinking(r'"caf\u00e9"', '"s"'), thinking('"café"', '"s"')], []),  # escaped in another way
        ([thinking('"I see."', '"s"'), thinking('""', '"s"')], []),  # the client left its text out
        ([thinking(f'"{text}"', '"mock"') for text in "abc"], []),  # one signature for all is a stand-in
        ([thinking('"I see."', '"s"'), thinking('"So."')], [Finding(2, "hollow-reasoning", HOLLOW)]),
        ([thinking('"I see."'), thinking('"So."')], []),  # no provider that signs has seen it
    ],
)
def test_what_was_done_to_signed_thinking(blocks, found):
    assert findings(*blocks) == found
