"""Claude Code sessions for measuring: about as large, as mixed and as deep as real ones, and the same every time.

The mix follows counts over some hundred real sessions: two lines in five are answers (one content block each), more
than a quarter are progress lines, results come with a copy that the display reads (two fifths of all bytes), the
mean line has some 3.5 kB, one line in a thousand has over 100 kB, and a few have a megabyte.
"""

import json
import random
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.scripts.sample_texts import IMPORTER, STORE, TEST_IMPORT

FILES = 24
TOTAL_BYTES = 100_000_000
SEED = 20260302

Line = dict[str, Any]

_WORDS = (IMPORTER + STORE + TEST_IMPORT).split()
_SMALL, _MIDDLE, _LARGE, _HUGE = 1_200, 10_400, 120_000, 520_000
"""Sizes of results; the line of one is about twice as long, since its copy stands in it too."""


class Session:
    """One session, line by line."""

    def __init__(self, chance: random.Random, number: int) -> None:
        self._chance = chance
        self._id = self._uuid()
        self._parent: str | None = None
        self._clock = 1_772_442_845_000 + number
        self._context = 21_000
        self._texts = [self._make_text(size) for size in (_SMALL, _MIDDLE, _LARGE, _HUGE)]

    def lines(self) -> Iterator[Line]:
        """Yield lines without end."""
        while True:
            yield self._chain("user", message={"role": "user", "content": self._text(0)[:400]}, promptId=self._uuid())
            for _ in range(self._chance.randint(4, 14)):
                yield from self._exchange()
            yield self._chain("system", subtype="turn_duration", content="", durationMs=41_230, level="info")

    def _exchange(self) -> Iterator[Line]:
        """An answer in one to three blocks, progress, and the results."""
        message_id, blocks, results = f"msg_{self._uuid()}", self._blocks(), []
        self._context += 900
        usage = {
            "input_tokens": 2,
            "cache_creation_input_tokens": 900,
            "cache_read_input_tokens": self._context,
            "output_tokens": 180,
            "service_tier": "standard",
            "cache_creation": {"ephemeral_5m_input_tokens": 900, "ephemeral_1h_input_tokens": 0},
        }
        for block in blocks:
            message = {
                "model": "claude-opus-4-5-20251101",
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": usage,
            }
            line = self._chain("assistant", message=message, requestId=f"req_{self._uuid()}")
            yield line
            if block["type"] == "tool_use":
                results.append((block["id"], line["uuid"]))
        for call_id, caller in results:
            for _ in range(self._chance.choice((1, 1, 1, 2))):
                data = {"type": "bash_progress", "output": self._text(0)[:300], "elapsedTimeSeconds": 3}
                yield self._chain("progress", data=data, toolUseID=call_id, parentToolUseID=call_id)
            yield self._result(call_id, caller)

    def _blocks(self) -> list[Line]:
        blocks: list[Line] = []
        if self._chance.random() < 0.3:
            blocks.append({"type": "thinking", "thinking": self._text(0)[:600], "signature": "Q" * 700})
        if self._chance.random() < 0.5:
            blocks.append({"type": "text", "text": self._text(0)[:300]})
        for _ in range(self._chance.choice((1, 1, 1, 2))):
            inputs = {"command": self._text(0)[:160], "description": "Run a command"}
            blocks.append({"type": "tool_use", "id": f"toolu_{self._uuid()}", "name": "Bash", "input": inputs})
        return blocks

    def _result(self, call_id: str, caller: str) -> Line:
        text = self._text(self._chance.choices((0, 1, 2, 3), (596, 397, 6, 1))[0])
        block = {"tool_use_id": call_id, "type": "tool_result", "content": text, "is_error": False}
        copy = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        return self._chain(
            "user",
            message={"role": "user", "content": [block]},
            toolUseResult=copy,
            sourceToolAssistantUUID=caller,
        )

    def _chain(self, kind: str, **content: Any) -> Line:
        own_id = self._uuid()
        self._clock += 1_500
        line = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/tidewatch",
            "sessionId": self._id,
            "version": "2.1.29",
            "gitBranch": "main",
            "type": kind,
            **content,
            "uuid": own_id,
            "timestamp": f"2026-03-02T09:14:{self._clock % 60:02d}.000Z",
        }
        self._parent = own_id
        return line

    def _text(self, kind: int) -> str:
        text = self._texts[kind]
        start = self._chance.randrange(len(text) // 2)
        return text[start:]

    def _make_text(self, size: int) -> str:
        words, length = [], 0
        while length < size:
            word = self._chance.choice(_WORDS)
            words.append(word + ("\n" if self._chance.random() < 0.12 else " "))
            length += len(words[-1])
        return "".join(words)

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))


def generate(folder: Path, total_bytes: int = TOTAL_BYTES, files: int = FILES) -> list[Path]:
    """Write the sessions, unless they are there already, and return their paths."""
    done = folder / f"made-{SEED}-{files}-{total_bytes}"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.jsonl"):
            old.unlink()
        chance = random.Random(SEED)
        sizes = [1 / (1 + number) for number in range(files)]
        for number, size in enumerate(sizes):
            _write(
                folder / f"session-{number:02d}.jsonl", Session(chance, number), int(total_bytes * size / sum(sizes))
            )
        done.touch()
    return sorted(folder.glob("*.jsonl"))


def _write(path: Path, session: Session, size_bytes: int) -> None:
    written = 0
    with path.open("wb") as out:
        for line in session.lines():
            raw = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            written += out.write(raw)
            if written >= size_bytes:
                return
