"""A receipt is written in pieces and read into little room: a huge session has hundreds of thousands of decisions."""

import msgspec
import pytest

from compactctl import receipt
from compactctl.errors import NoReceipt
from compactctl.receipt import Decision, FileNote, Receipt, SessionNote, TokensNote
from compactctl.rows import BLOCK, Rows
from compactctl.settings import Settings

FILE = FileNote('s "decisions": [].jsonl', 100, "5eed" * 16, 3)
TOKENS = TokensNote("heuristic", False, 10, 5, 200_000, 167_000)


def decision(number):
    return Decision(f"msg\n{number}", f"toolu_{number}", "Bash", number, 10, "kept", "under the limits")


def made(*counts):
    sessions = tuple(
        SessionNote("chat", None, index, 5, TOKENS, list(map(decision, range(count))))
        for index, count in enumerate(counts)
    )
    return Receipt(receipt.SCHEMA, "1", "spill", FILE, FILE, sessions, Settings())


@pytest.mark.parametrize("counts", [(), (0,), (1,), (2, 0, 3), (0, 300)])
def test_the_pieces_of_a_receipt_are_its_json(counts):
    written = b"".join(receipt.chunks(made(*counts)))
    assert written == msgspec.json.format(msgspec.json.encode(made(*counts)), indent=2) + b"\n"
    assert receipt.decode(written, "r.json") == made(*counts)


def test_the_decisions_that_are_read_are_held_packed():
    written = msgspec.json.encode(made(3 * BLOCK))
    held = receipt.decode(written, "r.json").sessions[0].decisions
    assert isinstance(held, Rows)
    assert (len(held._newest), sum(map(len, held._blocks)) < len(written) / 8) == (0, True)
    assert receipt.decode(written, "r.json") == receipt.decode(written, "r.json")


def test_a_receipt_with_a_decision_of_another_shape_is_none():
    written = msgspec.json.encode(made(2)).replace(b'"toolu_1"', b"1")
    with pytest.raises(NoReceipt, match=r"r\.json: not a receipt of compactctl: Expected `str`, got `int`"):
        receipt.decode(written, "r.json")
