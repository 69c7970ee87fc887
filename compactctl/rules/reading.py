"""Damage of the file itself."""

from compactctl.rules.interface import Page

PAGES: dict[str, Page] = {
    "unreadable-line": Page(
        name="Unreadable line",
        meaning="no JSON reader accepts the line; it is kept as it is and never edited",
        why="Most agents skip such a line, so what it said is gone for the model. Kimi Code cuts the session off there "
        "and Mistral Vibe refuses it whole.",
        example='{"type": "user", "message": {"role": "user", "content": "half a reco\n{"type": "assistant", ...}',
        fix="Look at the line; take it from a backup or leave it out. What is lost can't be guessed.",
    ),
    "glued-records": Page(
        name="Glued records",
        meaning="several records on one line, or one with something behind it",
        why="A writer lost its newline, or two wrote at once. Readers that take a line for a record skip both records, "
        "and where records name their parents the history above is cut off.",
        example='{"uuid": "a", ...}{"uuid": "b", "parentUuid": "a", ...}',
        fix="Put a newline between the records. compactctl reads both and leaves the line as it is.",
    ),
    "nul-run": Page(
        name="Run of zero bytes",
        meaning="zero bytes, as a crash leaves them",
        why="The system had made room for what was never written. The line is no JSON; what stood there is lost.",
        example=r'{"type": "user", ...}\n\x00\x00\x00\x00\x00\x00{"type": "assistant", ...}',
        fix="Take the zero bytes out; nothing is behind them.",
    ),
    "torn-tail": Page(
        name="Torn last line",
        meaning="the last line is cut off; it never stays at the end of an output",
        why="Several agents append their next record right behind it. The first record of the new turn is then part of "
        "an unreadable line, and on the resume after that the history above it is gone (pi 0.73, Qwen Code).",
        example='{"type": "assistant", "message": {"role": "assist',
        fix="Leave the last line out before the session goes on.",
    ),
    "empty-session": Page(
        name="Empty session",
        meaning="recognised, but no message is in context",
        why="There is nothing to resume: the model would start from nothing, though the file has records.",
        example='{"type": "session_meta", "payload": {"id": "..."}}',
        fix="Delete it, or look for the session that it was made from.",
    ),
    "empty-file": Page(
        name="Empty file",
        meaning="a file of no bytes in a folder of sessions",
        why="An agent opened it and never wrote, or a disk was full.",
        example="a session file of 0 bytes",
        fix="Delete it. A file that is named on the command line and is empty is an error with exit code 3.",
    ),
    "invalid-utf8": Page(
        name="Bytes that are not UTF-8",
        meaning="bytes that are not UTF-8",
        why="JSON is UTF-8. Agents put a replacement character in place of such bytes, or refuse the line.",
        example=r'{"role": "user", "content": "caf\xe9"}',
        fix="Write the text again in UTF-8, if it is known what it was.",
    ),
    "lone-surrogate": Page(
        name="Half of a surrogate pair",
        meaning="half of a surrogate pair, which providers refuse",
        why="A text was cut in the middle of a character. The escape is legal JSON and no legal text: providers answer "
        "with an error 400, and each further request with this message in it fails alike.",
        example=r'{"role": "user", "content": "done \ud83d"}',
        fix=r"Replace the escape by \ufffd.",
    ),
    "no-final-newline": Page(
        name="No newline at the end",
        meaning="the last line has no newline; an output has one",
        why="Agents that append without looking glue their next record to the last line.",
        example='...{"type": "assistant", ...}<end of file>',
        fix="Add a newline. What compactctl writes ends in one.",
    ),
    "unknown-record": Page(
        name="Unknown record",
        meaning="a kind of record that this version does not know; kept as it is",
        why="Agents add kinds every month. If the agent sends such a record to the model, figures here are too small.",
        example='{"type": "world_state", ...}',
        fix="Nothing, or a newer compactctl.",
    ),
    "replayed-records": Page(
        name="Replayed records",
        meaning="records that stand in the file twice",
        why="An agent wrote its history again. A reader that counts lines counts those messages and their usage twice.",
        example='two lines with "uuid": "933fee0d-..."',
        fix="Nothing: each counts once here. Slimming the file is safe where the agent reads the newest alone.",
    ),
    "byte-order-mark": Page(
        name="Byte order mark",
        meaning="the file starts with a byte order mark",
        why="Codex and pi 1.6 refuse such a file; an editor has put it there.",
        example=r'\xef\xbb\xbf{"type": "session_meta", ...}',
        fix="Take the first three bytes off.",
    ),
    "non-json-number": Page(
        name="Number that JSON does not have",
        meaning="NaN, Infinity, or an integer too long to read",
        why="Python writes such numbers and most other readers refuse the line.",
        example='{"role": "tool", "content": "...", "score": NaN}',
        fix="Write null, or the number as a text.",
    ),
}
