"""`-o jsonl`: a line a session as each is done, so that a reader can start at once; the totals are the last line."""

import msgspec

from compactctl.outcome import Outcome
from compactctl.outputs import View
from compactctl.outputs.json import dumps
from compactctl.totals import Batch

ENCODING: str | None = "utf-8"


def printer(command: str, view: View) -> "Lines":
    return Lines()


class Lines:
    def outcome(self, outcome: Outcome) -> str:
        return dumps(msgspec.to_builtins(outcome))

    def end(self, batch: Batch) -> str:
        return dumps({"totals": msgspec.to_builtins(batch.totals())})
