"""What is shared by `chat` and `anthropic` is tested here; `test_anthropic` has what differs."""

import json

import pytest

from compactctl.formats.chat import FORMAT
from compactctl.media import CLAUDE
from compactctl.model import context_bytes
from compactctl.turns import rounds
from tests.builders.chat import assistant, lines, system, tool, user
from tests.builders.images import encoded, png
from tests.formats.reading import context, opened, rules, session, sessions, spilled, texts, values


def test_every_line_is_a_message_and_every_result_one_of_its_own():
    raw = lines(
        system("Be brief."),
        user("Count the files."),
        assistant(None, [("c1", "run", '{"command":"ls"}')]),
        tool("c1", "a\nb\n"),
        assistant("Two."),
    )
    transcript = session(FORMAT, raw)
    assert context(transcript) == [
        ("system", "text 9"),
        ("user", "text 16"),
        ("assistant", "call c1 run 16"),
        ("tool", "result c1 run 4"),
        ("assistant", "text 4"),
    ]
    assert [message.line for message in transcript.messages] == [1, 2, 3, 4, 5]
    assert rules(transcript) == []


def test_places_lead_to_what_they_stand_for():
    raw = lines(
        user([{"type": "text", "text": "see"}, {"type": "input_text", "text": "here"}]),
        assistant("well", [("c1", "run", "{}")], reasoning_content="so"),
        tool("c1", [{"type": "text", "text": "x"}]),
        assistant(None, refusal="no"),
    )
    document = opened(raw)
    (transcript,) = FORMAT.read(document)
    result_text = [{"type": "text", "text": "x"}]
    assert texts(document, transcript) == ["see", "here", "so", "well", "{}", result_text, "no"]


@pytest.mark.parametrize(
    "record, message",
    [
        (user("é"), ("user", "text 2")),
        (user('a\\b\n"c" \u2028'), ("user", "text 11")),
        (user([{"type": "text", "text": "a"}, {"type": "text", "text": "bc"}]), ("user", "text 1", "text 2")),
        (system(role="developer"), ("developer", "text 9")),
        (assistant("", [("c", "f", "{}")]), ("assistant", "call c f 2")),
        (assistant(None, [("c", "f", {"a": [1, 2]})]), ("assistant", "call c f 13")),  # an object, as it stands
        (assistant(None, [("c", "f", "")]), ("assistant", "call c f 0")),
        (assistant(None, [(None, None, "{}")]), ("assistant", "call   2")),
        (assistant(None, function_call={"name": "f", "arguments": "{}"}), ("assistant", "call f f 2")),
        (assistant("x", function_call=None, tool_calls=None, refusal=None), ("assistant", "text 1")),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "f", "input": "abc"}}],
            },
            ("assistant", "call c f 3"),
        ),
        ({"role": "assistant", "tool_calls": ["odd"]}, ("assistant", "opaque tool_call 5")),
        (tool("c", None), ("tool", "result c - 0")),
        (tool("c", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), ("tool", "result c - 3")),
        (tool("c", name="run"), ("tool", "result c run 4")),
        ({"role": "tool", "tool_call_id": "c"}, ("tool", "result c - 0")),
        ({"role": "tool", "content": "x"}, ("tool", "result  - 1")),
        ({"role": "function", "name": "f", "content": "x"}, ("function", "result f f 1")),
        (user({"odd": True}), ("user", "opaque content 12")),
        (user(5), ("user", "opaque content 1")),
    ],
)
def test_a_line_of_any_known_shape_is_read(record, message):
    assert context(session(FORMAT, lines(record))) == [message]


def test_a_legacy_function_pairs_by_its_name():
    raw = lines(
        user(),
        assistant(None, function_call={"name": "f", "arguments": "{}"}),
        {"role": "function", "name": "f", "content": "x"},
        assistant(),
    )
    transcript = session(FORMAT, raw)
    assert (rules(transcript), [len(item.results) for item in rounds(transcript.messages)]) == ([], [1])


def test_leading_instructions_are_told_from_later_ones():
    raw = lines(system(), system(role="developer"), user(), system("Now be quick."), assistant())
    assert [message.is_leading for message in session(FORMAT, raw).messages] == [True, True, False, False, False]


def test_an_empty_message_is_not_in_context():
    raw = lines(user(""), user([]), user(None), assistant(""), assistant(None), user("x"))
    assert context(session(FORMAT, raw)) == [("user", "text 1")]


# images ------------------------------------------------------------------------------------------

IMAGE = encoded(png(280, 140))
URL = "data:image/png;base64," + IMAGE


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "input_image", "image_url": URL},
        {"type": "image", "image": URL},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
        {"type": "image", "data": IMAGE, "mimeType": "image/png"},
        {"inlineData": {"mimeType": "image/png", "data": IMAGE}},
    ],
)
def test_an_image_of_any_shape_counts_by_its_pixels_in_messages_and_results_alike(block):
    raw = lines(user([block]), assistant(None, [("c", "f", "{}")]), tool("c", [block]))
    transcript = session(FORMAT, raw)
    first, _, result = transcript.messages
    assert [CLAUDE.tokens(first.parts[0]), *map(CLAUDE.tokens, result.result.media)] == [50, 50]
    assert result.result.size_bytes == 0


@pytest.mark.parametrize("content", [f"see {URL}", json.dumps([{"type": "image", "data": IMAGE}])])
def test_an_image_inside_text_is_text_for_the_model(content):
    raw = lines(user(content), assistant(None, [("c", "f", "{}")]), tool("c", content))
    transcript = session(FORMAT, raw)
    assert context_bytes(transcript.messages)["media"] == 0
    assert transcript.messages[2].result.size_bytes == len(content)


# usage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage, counted",
    [
        (
            {"prompt_tokens": 38_196, "completion_tokens": 120, "prompt_tokens_details": {"cached_tokens": 38_153}},
            38_316,
        ),
        ({"input_tokens": 38_400, "output_tokens": 10, "input_tokens_details": {"cached_tokens": 38_300}}, 38_410),
        ({"prompt_tokens": 100, "completion_tokens": 5, "cache_read_input_tokens": 90}, 105),  # a proxy's mix
        ({"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 90}, 105),  # Anthropic's: beside
        ({"prompt_tokens": 100.0, "completion_tokens": 5}, 105),
    ],
)
def test_cached_tokens_are_counted_once_by_the_usage_s_own_shape(usage, counted):
    transcript = session(FORMAT, lines(user(), assistant(usage=usage, model="m")))
    assert (transcript.messages[1].usage.total_tokens, transcript.peak_tokens) == (counted, counted)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        [],
        "none",
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": None},
        {"prompt_tokens": "many"},
        {"prompt_tokens": -5, "completion_tokens": 0},
        {"completion_tokens": 50},  # what it took in is not known
    ],
)
def test_a_usage_that_says_nothing_is_no_anchor(usage):
    assert session(FORMAT, lines(user(), assistant(usage=usage))).messages[1].usage is None


def test_cached_tokens_are_kept_apart():
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}
    (request,) = session(FORMAT, lines(user(), assistant(usage=usage, model="m", id="r1"))).requests
    assert (request.line, request.cache_read_tokens, request.model, request.request_id) == (2, 60, "m", "r1")


def test_one_request_that_two_lines_report_counts_once():
    first = assistant("a", usage={"prompt_tokens": 100, "completion_tokens": 1}, id="r1")
    last = assistant("b", usage={"prompt_tokens": 100, "completion_tokens": 9}, id="r1")
    other = assistant("c", usage={"prompt_tokens": 120, "completion_tokens": 1})
    transcript = session(FORMAT, lines(user(), first, last, other))
    assert [request.total_tokens for request in transcript.requests] == [109, 121]


def test_the_model_is_the_newest():
    raw = lines(user(), assistant(model="old"), user(), assistant(model="new"), user(), assistant())
    assert session(FORMAT, raw).model == "new"


# pairs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "records, found",
    [
        (  # parallel calls, the results of the second batch in reverse order
            [
                user("Compare."),
                assistant(None, [("a", "read", "{}"), ("b", "grep", "{}")]),
                tool("a"),
                tool("b"),
                assistant(None, [("c", "read", "{}"), ("d", "read", "{}")]),
                tool("d"),
                tool("c"),
                assistant("Same."),
            ],
            [],
        ),
        (  # a person typed while the call ran
            [user(), assistant(None, [("a", "deploy", "{}")]), user("Wait."), tool("a"), assistant()],
            [(3, "result-out-of-place")],
        ),
        ([user(), tool("a"), assistant()], [(2, "result-without-call")]),
        ([user(), assistant(None, [("a", "f", "{}")]), user(), assistant()], [(2, "call-without-result")]),
        ([user(), assistant(None, [("a", "f", "{}")])], [(2, "unfinished-call")]),
        ([user(), assistant(None, [("a", "f", "{}")]), tool("a"), tool("a")], [(4, "duplicate-result")]),
        ([user(), assistant(None, [("", "f", "{}")]), tool("")], [(2, "bad-call-id"), (3, "bad-call-id")]),
    ],
)
def test_pairs_are_matched_by_id_and_order(records, found):
    assert rules(session(FORMAT, lines(*records))) == found


def test_call_ids_stay_what_they_are():
    ids = ["../../etc/passwd", "a/b\\c", "x" * 300, "NUL", "é\u202e", ".", "a b"]
    records = [record for call_id in ids for record in (assistant(None, [(call_id, "f", "{}")]), tool(call_id))]
    transcript = session(FORMAT, lines(user(), *records))
    results = [message.result.call_id for message in transcript.messages if message.result]
    assert (results, rules(transcript)) == (ids, [])


# what is no message ------------------------------------------------------------------------------


def test_what_is_no_message_is_noted_once_a_kind_with_its_count():
    raw = lines(user(), 5, {"note": 1}, [1], {"role": "model", "content": "x"}, {"note": 2}, {"role": 7})
    transcript = session(FORMAT, raw)
    found = [(finding.line, finding.message) for finding in transcript.findings]
    assert found == [
        (2, "a record that is no object is no message (2 records)"),
        (3, "an object without a role is no message (3 records)"),
        (5, "an object with role model is no message (1 record)"),
    ]


def test_where_nothing_is_a_message_there_is_no_session():
    assert sessions(FORMAT, lines({"note": 1}, 5)) == []


def test_a_session_of_empty_messages_is_empty():
    assert rules(session(FORMAT, lines(user(""), assistant(None)))) == [(None, "empty-session")]


@pytest.mark.parametrize("damage", [b"\xef\xbb\xbf", b"\0\0\0", b'{"role":"user","content":"glued"}'])
def test_damage_beside_a_message_does_not_hide_it(damage):
    transcript = session(FORMAT, damage + lines(user("hello"), assistant()))
    assert context(transcript)[-2:] == [("user", "text 5"), ("assistant", "text 5")]


def test_half_a_surrogate_pair_counts_as_the_mark_that_replaces_it():
    transcript = session(FORMAT, b'{"role":"user","content":[{"type":"text","text":"x\\ud83d and more"}]}\n')
    assert context(transcript) == [("user", "text 13")]


# conversations -----------------------------------------------------------------------------------


def conversation(*messages, **more):
    return {"messages": list(messages), **more}


def test_each_line_that_holds_a_conversation_is_a_session():
    raw = lines(
        conversation(user("one"), assistant("1", [("a", "f", "{}")]), tool("a", "res")),
        conversation(user("three")),
        conversation(user("two"), assistant("2"), system="Be brief."),
    )
    document = opened(raw)
    found = list(FORMAT.read(document))
    assert [(item.index, [message.role for message in item.messages]) for item in found] == [
        (0, ["user", "assistant", "tool"]),
        (1, ["user"]),
        (2, ["system", "user", "assistant"]),
    ]
    assert [texts(document, item) for item in found] == [
        ["one", "1", "{}", "res"],
        ["three"],
        ["Be brief.", "two", "2"],
    ]
    assert sum(sum(item.bytes_by_kind.values()) for item in found) == len(raw)


def test_one_conversation_alone_has_no_index():
    assert session(FORMAT, lines(conversation(user(), assistant()))).index is None


def test_items_that_are_no_messages_are_noted():
    transcript = session(FORMAT, lines(conversation(user(), "odd", {"role": "x"}, assistant())))
    assert (rules(transcript), len(transcript.messages)) == ([(1, "unknown-record")], 2)


def test_messages_beside_conversations_are_a_session_too():
    found = sessions(FORMAT, lines(user("a"), conversation(user("b")), assistant("c")))
    assert [(item.index, len(item.messages)) for item in found] == [(0, 2), (1, 1)]


# bytes and edits ---------------------------------------------------------------------------------


def test_bytes_by_kind_add_up_to_the_file():
    raw = lines(
        user([{"type": "text", "text": "look"}, {"type": "image", "data": IMAGE}]),
        assistant("so", [("c1", "run", "{}")], reasoning_content="hm"),
        tool("c1", "x" * 1_000),
        {"note": 1},
    )
    kinds = session(FORMAT, raw).bytes_by_kind
    assert sum(kinds.values()) == len(raw)
    assert {kind: kinds[kind] for kind in ("text", "calls", "results", "media", "reasoning")} == {
        "text": 6,
        "calls": 2,
        "results": 1_000,
        "media": len(IMAGE),
        "reasoning": 2,
    }


@pytest.mark.parametrize(
    "content, kept",
    [
        ("long text", "gone"),
        (
            [{"type": "text", "text": "a", "x": 1}, {"type": "text", "text": "b"}],
            [{"type": "text", "text": "gone", "x": 1}],
        ),
        (
            [{"type": "image", "data": "AAAA"}, {"type": "text", "text": "a"}],
            [{"type": "image", "data": "AAAA"}, {"type": "text", "text": "gone"}],
        ),
    ],
)
@pytest.mark.parametrize("whole", [False, True], ids=["lines", "conversation"])
def test_a_preview_takes_the_place_of_a_text_in_the_shape_it_has(content, kept, whole):
    records = [user(), assistant(None, [("c", "f", "{}")]), tool("c", content, extra=[1.0, 1e5])]
    raw = lines(conversation(*records)) if whole else lines(*records)
    result = values(spilled(FORMAT, raw))
    messages = result[0]["messages"] if whole else result
    assert messages == [*records[:2], {**records[2], "content": kept}]


def test_no_usage_is_ever_rewritten():
    document = opened(lines(user(), assistant(usage={"prompt_tokens": 9, "completion_tokens": 1})))
    (transcript,) = FORMAT.read(document)
    assert FORMAT.usage_edits(document, transcript, 5) == []
