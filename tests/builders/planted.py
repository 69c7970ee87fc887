"""Faults, each planted alone in a healthy session of every format that can have it."""

import base64
import json
from collections.abc import Callable
from typing import NamedTuple

from compactctl.formats.codex.checks import item_digest
from tests.builders import claude, codex, pi
from tests.builders.healthy import (
    ANSWER,
    ASKED,
    CALL,
    HEALTHY,
    LAST,
    LINES,
    QUESTION,
    RESULT,
    Json,
    Records,
    at,
    image,
    inserted,
    jsonl,
    set_arguments,
    set_call_id,
    set_question,
    set_result,
    set_usage,
    unlinked,
)

ALL = tuple(HEALTHY)
AGENTS = ("claude-code", "codex", "pi")
SIGNED = ("claude-code", "anthropic")
LOGS = ("anthropic", "chat")

KEY = "AKIA" + "QYLPMN5HFIQR7XYZ"
"""The shape of a key that opens nothing."""


class Fault(NamedTuple):
    """A fault: its rule, the line it is found on, the file that has it, and what has to be set to call it one."""

    rule: str
    line: int | None
    file: bytes
    also: frozenset[str] = frozenset()
    """Rules that the same fault breaks as well."""
    settings: tuple[str, ...] = ()
    window_tokens: int | None = None


Plant = Callable[[str, Records], Fault]

PLANTS: list[tuple[str, tuple[str, ...], Plant]] = []
"""What each fault is called, the formats it applies to, and what plants it."""


def plant(*formats: str) -> Callable[[Plant], Plant]:
    def add(function: Plant) -> Plant:
        PLANTS.append((function.__name__, formats or ALL, function))
        return function

    return add


# reading -----------------------------------------------------------------------------------------


@plant()
def a_line_that_is_no_json(name, records):
    line = LINES[name][ANSWER]
    return Fault("unreadable-line", line + 1, jsonl([*records[:line], b'{"half": "a rec', *records[line:]]))


@plant()
def two_records_on_a_line(name, records):
    first, second = LINES[name][ANSWER] - 1, LINES[name][ANSWER]
    glued = jsonl(records[first : second + 1]).replace(b"\n", b"") + b"\n"
    return Fault("glued-records", first + 1, jsonl(records[:first]) + glued + jsonl(records[second + 1 :]))


@plant()
def zero_bytes(name, records):
    return Fault("nul-run", len(records) + 1, jsonl(records) + b"\0" * 64 + b"\n")


@plant()
def a_torn_last_line(name, records):
    return Fault("torn-tail", len(records) + 1, jsonl(records) + b'{"type": "user", "mess')


@plant()
def bytes_that_are_not_utf8(name, records):
    set_result(name, records, "caf#")
    return Fault("invalid-utf8", LINES[name][RESULT], jsonl(records).replace(b"caf#", b"caf\xe9"))


@plant()
def half_of_a_surrogate_pair(name, records):
    set_result(name, records, "done \ud83d")
    return Fault("lone-surrogate", LINES[name][RESULT], jsonl(records))


@plant()
def no_newline_at_the_end(name, records):
    return Fault("no-final-newline", len(records), jsonl(records)[:-1])


@plant()
def a_record_of_an_unknown_kind(name, records):
    strange = (
        {"type": "weather", "payload": {"sky": "blue"}} if name in LOGS or name == "codex" else {"type": "weather"}
    )
    if name == "claude-code":
        strange["sessionId"] = claude.SESSION_ID
    line = LINES[name][ANSWER]
    made = inserted(records, line, strange) if name == "pi" else [*records[:line], strange, *records[line:]]
    return Fault("unknown-record", line + 1, jsonl(made))


@plant("claude-code", "pi")
def a_record_twice(name, records):
    again = LINES[name][LAST]
    expected = again if name == "pi" else again + 1
    return Fault("replayed-records", expected, jsonl([*records, records[again - 1]]))


@plant()
def a_byte_order_mark(name, records):
    return Fault("byte-order-mark", 1, b"\xef\xbb\xbf" + jsonl(records))


@plant()
def a_number_that_json_has_not(name, records):
    at(name, records, RESULT)["score"] = float("nan")
    return Fault("non-json-number", LINES[name][RESULT], jsonl(records))


@plant("codex", "pi")
def a_header_and_nothing_else(name, records):
    return Fault("empty-session", None, jsonl(records[:1]))


@plant("claude-code")
def bookkeeping_and_nothing_else(name, records):
    return Fault("empty-session", None, jsonl([{"type": "mode", "sessionId": claude.SESSION_ID, "mode": "plan"}]))


@plant()
def no_bytes_at_all(name, records):
    return Fault("empty-file", None, b"")


# resume ------------------------------------------------------------------------------------------


@plant()
def a_result_whose_call_is_gone(name, records):
    made = unlinked(records, LINES[name][CALL])
    return Fault("result-without-call", LINES[name][RESULT] - 1, jsonl(made))


@plant()
def a_call_whose_result_is_gone(name, records):
    return Fault("call-without-result", LINES[name][CALL], jsonl(unlinked(records, LINES[name][RESULT])))


@plant()
def a_second_result(name, records):
    line = LINES[name][RESULT]
    return Fault("duplicate-result", line + 1, jsonl(inserted(records, line, records[line - 1])))


@plant()
def a_call_without_an_id(name, records):
    set_call_id(name, records, "")
    return Fault("bad-call-id", LINES[name][CALL], jsonl(records), frozenset({"result-without-call"}))


@plant("claude-code", "anthropic", "chat", "pi")
def two_calls_of_one_id(name, records):
    record = at(name, records, CALL)
    holder = record["message"] if name in ("claude-code", "pi") else record
    calls = holder["tool_calls"] if name == "chat" else holder["content"]
    calls.insert(0, calls[0])
    return Fault("bad-call-id", LINES[name][CALL], jsonl(records), frozenset({"call-without-result"}))


@plant()
def an_end_before_the_answer(name, records):
    return Fault("unfinished-call", LINES[name][CALL], jsonl(records[: LINES[name][CALL]]), frozenset({"no-usage"}))


@plant("anthropic", "chat", "pi")
def a_message_between_call_and_result(name, records):
    line = LINES[name][CALL]
    between = {"role": "user", "content": [{"type": "text", "text": "wait"}]}
    made = {**records[1], "message": between} if name == "pi" else between
    return Fault("result-out-of-place", line + 1, jsonl(inserted(records, line, made)))


@plant("claude-code", "pi")
def a_parent_that_is_not_there(name, records):
    record = at(name, records, ANSWER)
    record["parentUuid" if name == "claude-code" else "parentId"] = "gone"
    return Fault("dangling-parent", LINES[name][ANSWER], jsonl(records))


@plant("claude-code", "pi")
def parents_in_a_circle(name, records):
    own, parent = ("uuid", "parentUuid") if name == "claude-code" else ("id", "parentId")
    at(name, records, ASKED)[parent] = at(name, records, ANSWER)[own]
    expected = {"claude-code": LINES[name][ASKED], "pi": LINES[name][ANSWER]}[name]
    return Fault("parent-cycle", expected, jsonl(records))


def compacted(name: str, records: Records, summary: str = "All was fine.") -> tuple[Records, int]:
    """Return the records with a compaction of all behind the first answer, and its line."""
    line = LINES[name][ANSWER]
    match name:
        case "claude-code":
            boundary = claude.Session()
            boundary.boundary()
            boundary.summary(summary)
            made, told = (json.loads(raw) for raw in boundary.raw_lines)
            told |= {"uuid": "s1", "parentUuid": "b1"}
            made |= {"uuid": "b1", "logicalParentUuid": records[line - 1]["uuid"]}
            records[line]["parentUuid"] = "s1"
            return [*records[:line], made, told, *records[line:]], line + 1
        case "codex":
            made = codex.compacted_by_message(summary)
            return [*records[: line + 1], made, *records[line + 1 :]], line + 2
    made = pi.entry("compaction", "k1", None, summary=summary, firstKeptEntryId="e4", tokensBefore=22_000)
    return inserted(records, line, made), line + 1


@plant(*AGENTS)
def a_summary_without_a_word(name, records):
    made, line = compacted(name, records, " " if name != "codex" else "")
    return Fault("blank-summary", line, jsonl(made))


@plant("claude-code")
def a_boundary_without_metadata(name, records):
    made, line = compacted(name, records)
    del made[line - 1]["compactMetadata"]
    return Fault("ignored-compaction", line, jsonl(made))


@plant("claude-code")
def a_message_to_preserve_that_is_not_there(name, records):
    made, line = compacted(name, records)
    made[line - 1]["compactMetadata"]["preservedMessages"] = {"anchorUuid": "s1", "uuids": ["gone"]}
    return Fault("ignored-compaction", line, jsonl(made))


@plant("pi")
def a_first_kept_entry_that_is_not_there(name, records):
    made, line = compacted(name, records)
    made[line - 1]["firstKeptEntryId"] = "gone"
    return Fault("ignored-compaction", line, jsonl(made))


def with_references(records: Records, *, is_edited: bool) -> tuple[Records, int]:
    """Return the records with a compaction that refers to two items, of which one was edited since."""
    asked, answer = at("codex", records, ASKED), at("codex", records, ANSWER)
    for item_id, record in (("i1", asked), ("i2", answer)):
        record["payload"]["id"] = item_id
    entries = [
        {"type": "reference_v2", "item_id": record["payload"]["id"], "source_digest": item_digest(jsonl([record]))}
        for record in (asked, answer)
    ]
    if is_edited:
        answer["payload"]["content"][0]["text"] = "They are mostly fine."
    line = LINES["codex"][ANSWER] + 1
    return [*records[:line], codex.compacted_by_entries(*entries), *records[line:]], line + 1


@plant("codex")
def a_reference_to_an_item_that_was_edited(name, records):
    made, line = with_references(records, is_edited=True)
    return Fault("ignored-compaction", line, jsonl(made))


@plant("codex")
def a_reference_to_an_item_that_is_gone(name, records):
    made, line = with_references(records, is_edited=False)
    made[line - 1]["payload"]["replacement_history_entries"][1]["item_id"] = "gone"
    return Fault("ignored-compaction", line, jsonl(made), frozenset({"unknown-record"}))


@plant("codex", "pi")
def a_header_that_is_not_the_first_record(name, records):
    return Fault("missing-header", 1, jsonl([records[1], records[0], *records[2:]]))


@plant("codex")
def a_last_record_without_its_ordinal(name, records):
    records[0]["payload"]["history_mode"] = "paginated"
    for ordinal, record in enumerate(records[:-1]):
        record["ordinal"] = ordinal
    return Fault("missing-ordinal", len(records), jsonl(records))


def blocks(name: str, record: Json) -> list[Json]:
    return (record["message"] if name == "claude-code" else record)["content"]


@plant(*SIGNED)
def reasoning_that_was_edited(name, records):
    signed = blocks(name, at(name, records, LAST))[0]
    edited = {**signed, "thinking": "[shortened]"}
    answer = at(name, records, ANSWER)
    if name == "anthropic":
        answer["content"] = [{"type": "text", "text": answer["content"]}]
    blocks(name, answer).insert(0, signed)
    blocks(name, at(name, records, LAST))[0] = edited
    return Fault("edited-reasoning", LINES[name][LAST], jsonl(records))


@plant(*SIGNED)
def reasoning_that_lost_its_signature(name, records):
    last = blocks(name, at(name, records, LAST))
    last.insert(0, {"type": "thinking", "thinking": "Hm, first.", "signature": ""})
    return Fault("hollow-reasoning", LINES[name][LAST], jsonl(records))


@plant("anthropic", "chat")
def a_role_that_no_api_has(name, records):
    critic = {"role": "critic", "content": "nice"}
    line = LINES[name][ANSWER]
    return Fault("refused-role", line + 1, jsonl(inserted(records, line, critic)), frozenset({"unknown-record"}))


@plant("claude-code")
def a_role_that_the_messages_api_has_not(name, records):
    at(name, records, QUESTION)["message"]["role"] = "developer"
    return Fault("refused-role", LINES[name][QUESTION], jsonl(records))


@plant("anthropic")
def a_system_message_in_the_middle(name, records):
    at(name, records, QUESTION)["role"] = "system"
    return Fault("refused-role", LINES[name][QUESTION], jsonl(records))


@plant("codex", "chat")
def nothing_that_a_person_says(name, records):
    summary = {"role": "system", "content": "It went well."}
    made = [records[0], codex.said(codex.developer("It went well."))] if name == "codex" else [summary]
    return Fault("refused-role", None, jsonl(made))


@plant("claude-code", "anthropic", "chat")
def a_message_without_a_word(name, records):
    set_question(name, records, "")
    return Fault("empty-content", LINES[name][QUESTION], jsonl(records))


@plant("claude-code", "anthropic", "chat")
def a_block_without_a_word(name, records):
    set_question(name, records, [{"type": "text", "text": "And?"}, {"type": "text", "text": ""}])
    return Fault("empty-content", LINES[name][QUESTION], jsonl(records))


@plant()
def a_preview_whose_file_is_gone(name, records):
    preview = (
        "[content offloaded] original size: 61600 bytes\n[saved to] /gone/tool-results/c1.txt\n[head preview]\nok\n"
    )
    set_result(name, records, preview)
    return Fault("unreachable-output", LINES[name][RESULT], jsonl(records))


# size --------------------------------------------------------------------------------------------


@plant()
def a_context_over_its_window(name, records):
    set_usage(name, records, 2, 90_000, 9)
    return Fault("over-window", None, jsonl(records), frozenset({"impossible-usage"}), window_tokens=50_000)


@plant()
def a_context_at_its_threshold(name, records):
    set_usage(name, records, 2, 90_000, 9)
    return Fault("over-threshold", None, jsonl(records), window_tokens=100_000)


@plant()
def a_result_over_the_limit(name, records):
    set_result(name, records, "x" * 50_001)
    return Fault("large-result", LINES[name][RESULT], jsonl(records))


@plant()
def a_round_over_the_limit(name, records):
    set_result(name, records, "x" * 30_000)
    settings = ("layer1.round_limit_bytes=29999",)
    return Fault("large-round", LINES[name][CALL], jsonl(records), settings=settings)


@plant()
def a_request_over_its_budget(name, records):
    set_result(name, records, "x" * 30_000)
    return Fault("large-request", None, jsonl(records), settings=("audit.request_limit_bytes=30000",))


PIXELS = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(3_000)).decode()


@plant()
def an_image_over_its_limit(name, records):
    set_question(name, records, [image(name, PIXELS)])
    settings = ("audit.image_limit_bytes=3000",)
    return Fault("large-image", LINES[name][QUESTION], jsonl(records), settings=settings)


@plant()
def more_images_than_a_request_may_have(name, records):
    set_question(name, records, [image(name, PIXELS)] * 3)
    return Fault("too-many-images", None, jsonl(records), settings=("audit.image_limit_count=2",))


@plant()
def a_result_that_takes_half_the_window(name, records):
    set_result(name, records, "x" * 49_000)
    settings = ("audit.heavy_results_percent=13",)
    return Fault("heavy-results", None, jsonl(records), settings=settings, window_tokens=100_000)


# usage -------------------------------------------------------------------------------------------


@plant(*AGENTS)
def usage_from_before_a_compaction(name, records):
    made, line = compacted(name, records)
    counted = {"codex": LINES[name][ANSWER] + 1}.get(name, LINES[name][ANSWER])
    if name == "pi":
        made[line - 1]["firstKeptEntryId"] = ""
    return Fault("stale-usage", counted, jsonl(made[: line + (name == "claude-code")]))


@plant("claude-code", "anthropic", "chat", "pi")
def usage_of_several_requests(name, records):
    set_usage(name, records, 1, 931_000, 40)
    line = LINES[name][ANSWER]
    also = frozenset({"falling-usage"})
    model = records[line - 1].get("message", {}).get("model")
    settings = () if model or name == "anthropic" else ("window.fallback_tokens=200000",)
    return Fault("impossible-usage", line, jsonl(records), also, settings)


@plant()
def usage_that_falls(name, records):
    set_usage(name, records, 1, 60_000, 40)
    line = {"codex": 11}.get(name, LINES[name][LAST])
    return Fault("falling-usage", line, jsonl(records))


@plant("claude-code", "anthropic", "chat", "pi")
def output_that_was_never_counted(name, records):
    for number, (what, taken) in enumerate(((CALL, 21_000), (ANSWER, 21_500), (LAST, 22_000))):
        record = at(name, records, what)
        holder = record["message"] if name in ("claude-code", "pi") else record
        if isinstance(holder["content"], list):
            holder["content"].append({"type": "text", "text": "y" * 900})
        else:
            holder["content"] = "y" * 900
        set_usage(name, records, number, taken, 1)
    return Fault("placeholder-output", LINES[name][CALL], jsonl(records))


@plant("claude-code", "anthropic", "chat", "pi")
def usage_that_is_told_twice(name, records):
    for number in (0, 1):
        set_usage(name, records, number, 21_000, 60)
    return Fault("repeated-usage", LINES[name][ANSWER], jsonl(records))


@plant(*AGENTS)
def no_usage_at_all(name, records):
    for record in records:
        record.get("message", {}).pop("usage", None)
    return Fault("no-usage", None, jsonl([r for r in records if r.get("payload", {}).get("type") != "token_count"]))


@plant("claude-code", "anthropic", "chat", "pi")
def usage_that_no_estimate_comes_near(name, records):
    for number, taken in enumerate((21_000, 31_000, 49_000)):
        set_usage(name, records, number, taken, 60 + number)
    return Fault("estimator-error", LINES[name][LAST], jsonl(records))


ROUNDS = 5
"""More than those right after a compaction that do not count."""

LOSS = ("audit.lost_count=1", "audit.lost_percent=1", "audit.read_again_count=1", "audit.read_again_percent=1")


USUAL = frozenset({"stale-usage", "repeated-usage", "placeholder-output"})
"""What the added answers break, which carry no usage of their own."""


# loss --------------------------------------------------------------------------------------------


def compacted_and_worked_on(name: str, records: Records) -> tuple[Records, int]:
    """Return the records with a compaction of all behind the first answer, and its line; behind them more rounds of
    the same call, then the second question and its answer once more."""
    call, result, asked, last = (at(name, records, what) for what in (CALL, RESULT, QUESTION, LAST))
    made, line = compacted(name, records)
    if name == "pi":
        made[line - 1]["firstKeptEntryId"] = ""
    own, parent = ("uuid", "parentUuid") if name == "claude-code" else ("id", "parentId")
    for number, record in enumerate([*[call, result] * ROUNDS, asked, last]):
        copied = json.loads(json.dumps(record).replace('"c1"', f'"n{number // 2}"'))
        copied.get("message", {}).pop("usage", None)
        if name == "claude-code":
            copied["message"]["id"] = f"n{number}"
        if name != "codex":
            copied |= {own: f"n{number}", parent: made[-1][own]}
        made.append(copied)
    return made, line


@plant(*AGENTS)
def what_a_compaction_lost(name, records):
    set_arguments(name, records, {"command": "make src/rows.py", "cmd": "make src/rows.py"})
    made, line = compacted_and_worked_on(name, records)
    return Fault("lost-after-compaction", line, jsonl(made), USUAL, LOSS)


@plant(*AGENTS)
def a_file_that_is_read_again(name, records):
    set_arguments(name, records, {"command": "cat src/rows.py", "cmd": "cat src/rows.py"})
    made, line = compacted_and_worked_on(name, records)
    return Fault("read-again", line, jsonl(made), USUAL | {"lost-after-compaction"}, LOSS)


@plant("claude-code", "pi")
def an_instruction_that_had_to_be_said_again(name, records):
    rule = "Never edit the generated rows by hand."
    at(name, records, ASKED)["message"]["content"] = [{"type": "text", "text": rule}]
    made, line = compacted_and_worked_on(name, records)
    made[-2]["message"]["content"] = [{"type": "text", "text": rule}]
    return Fault("lost-instruction", line, jsonl(made), USUAL | {"lost-after-compaction"}, LOSS)


# secrets -----------------------------------------------------------------------------------------


@plant()
def a_key_in_a_message(name, records):
    kind = "input_text" if name == "codex" else "text"
    set_question(name, records, [{"type": kind, "text": f"use {KEY}, please"}])
    return Fault("secret", LINES[name][QUESTION], jsonl(records))


@plant()
def a_key_in_a_result(name, records):
    set_result(name, records, f"region=eu\nkey id:\n{KEY}\n")
    return Fault("secret", LINES[name][RESULT], jsonl(records))


@plant()
def a_key_in_a_torn_line(name, records):
    torn = jsonl(records) + b'{"role": "user", "content": "the key of the production account is ' + KEY.encode()
    return Fault("secret", len(records) + 1, torn, frozenset({"torn-tail"}))


@plant()
def a_password_in_the_arguments(name, records):
    set_arguments(name, records, {"command": "PGPASSWORD=Tr0ub4dor-and-3 psql"})
    return Fault("possible-secret", LINES[name][CALL], jsonl(records))


@plant(*AGENTS)
def a_key_in_a_summary(name, records):
    made, line = compacted(name, records, f"The key is {KEY}.")
    return Fault("secret", line + (name == "claude-code"), jsonl(made))
