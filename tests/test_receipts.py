"""A receipt is written in pieces, since a huge session has hundreds of thousands of decisions."""

import msgspec
import pytest

from compactctl import receipt
from compactctl.receipt import Decision, FileNote, Receipt, SessionNote, TokensNote
from compactctl.settings import Settings

FILE = FileNote('s "decisions": [].jsonl', 100, "5eed" * 16, 3)
TOKENS = TokensNote("heuristic", False, 10, 5, 200_000, 167_000)


def decision(number):
    return Decision(f"msg\n{number}", f"toolu_{number}", "Bash", number, 10, "kept", "under the limits")


@pytest.mark.parametrize("counts", [(), (0,), (1,), (2, 0, 3), (0, 300)])
def test_the_pieces_of_a_receipt_are_its_json(counts):
    sessions = tuple(
        SessionNote("chat", None, index, 5, TOKENS, list(map(decision, range(count))))
        for index, count in enumerate(counts)
    )
    made = Receipt(receipt.SCHEMA, "1", "spill", FILE, FILE, sessions, Settings())
    written = b"".join(receipt.chunks(made))
    assert written == msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"
    assert receipt.decode(written, "r.json") == made
