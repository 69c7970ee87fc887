"""The two wire formats, by the real SDKs, against a server on loopback."""

import json
import subprocess
import sys
import threading
from typing import ClassVar

import pytest

from compactctl import errors
from compactctl.providers import ProviderConfig, SummaryRequest, make, missing
from compactctl.providers.interface import Answer, ProviderUsage
from compactctl.summary import Budget, summarize
from tests.builders.said import long_story
from tests.providers.server import SOON, Reply, Server

KEY = "sk-test-abcdefghijklmnop"
NOTE = "<analysis>hm</analysis><summary>Port the parser.</summary>"


class OpenAIWire:
    """How Chat Completions writes what the tests need."""

    kind = "openai"
    path = "/chat/completions"
    too_long: ClassVar = {
        "message": "This model's maximum context length is 2048 tokens. However, you requested 6099 tokens (6035 in "
        "the messages, 64 in the completion).",
        "code": "context_length_exceeded",
    }

    @staticmethod
    def answer(text=NOTE, stop="stop", tokens=(900, 20), **message):
        return {
            "id": "c1",
            "object": "chat.completion",
            "choices": [
                {"index": 0, "finish_reason": stop, "message": {"role": "assistant", "content": text, **message}}
            ],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
        }

    @staticmethod
    def error(message, kind="invalid_request_error", code=None):
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    @staticmethod
    def tool_call():
        call = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        return OpenAIWire.answer(None, "tool_calls", tool_calls=[call])


class AnthropicWire:
    """How the Messages API writes it."""

    kind = "anthropic"
    path = "/v1/messages"
    too_long: ClassVar = {"message": "prompt is too long: 6035 tokens > 2048 maximum", "code": None}

    @staticmethod
    def answer(text=NOTE, stop="end_turn", tokens=(900, 20), blocks=()):
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [*blocks, {"type": "text", "text": text}],
            "stop_reason": stop,
            "usage": {"input_tokens": tokens[0], "output_tokens": tokens[1]},
        }

    @staticmethod
    def error(message, kind="invalid_request_error", code=None):
        return {"type": "error", "error": {"type": kind, "message": message}}

    @staticmethod
    def tool_call():
        reply = AnthropicWire.answer("", "tool_use")
        return {**reply, "content": [{"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}]}


WIRES = [OpenAIWire, AnthropicWire]


def provider(wire, server, environment=None, **more):
    config = ProviderConfig(
        "local", wire.kind, model="m", base_url=server.url, **{"api_key_env": "TEST_KEY", "timeout_s": 20.0, **more}
    )
    return make(config, {"TEST_KEY": KEY} if environment is None else environment)


def ask(wire, *replies, **more):
    """Return what one request comes to, the error included, and what the server saw."""
    with Server(replies) as server:
        try:
            return provider(wire, server, **more).answer(SummaryRequest("Sum up.", 512)), server
        except errors.ProviderError as error:
            return error, server


@pytest.mark.parametrize("wire", WIRES)
def test_one_user_message_goes_out_without_tools_and_with_the_limit_of_an_answer(wire):
    answer, server = ask(wire, Reply(wire.answer()))
    (seen,) = server.seen
    assert answer == Answer(NOTE, "stop" if wire is OpenAIWire else "end_turn", usage=ProviderUsage(900, 20))
    assert seen.path == wire.path
    assert seen.body == {"model": "m", "max_tokens": 512, "messages": [{"role": "user", "content": "Sum up."}]}


@pytest.mark.parametrize("wire", WIRES)
def test_the_key_comes_from_the_named_variable_only(wire, monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID"):
        monkeypatch.setenv(name, "not-this-one")
    _, server = ask(wire, Reply(wire.answer()))
    headers = server.seen[0].headers
    assert KEY in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer "))
    assert "not-this-one" not in str(headers)


@pytest.mark.parametrize("wire", WIRES)
def test_without_a_named_variable_no_key_goes_to_an_address_of_ones_own(wire, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    answer, server = ask(wire, Reply(wire.answer()), api_key_env=None)
    assert isinstance(answer, Answer)
    assert KEY not in str(server.seen[0].headers)


FINAL = [
    (401, ("Incorrect API key provided: " + KEY, "authentication_error", "invalid_api_key"), errors.AuthFailed),
    (403, ("not yours", "permission_error"), errors.AuthFailed),
    (404, ("no such model", "not_found_error"), errors.RequestRejected),
    (413, ("Request exceeds the maximum size", "request_too_large"), errors.TooLarge),
]
ONLY_OPENAIS = (400, ("filtered", "invalid_request_error", "content_filter"), errors.ContentFiltered)


@pytest.mark.parametrize(
    "wire, status, body, error", [*((wire, *row) for wire in WIRES for row in FINAL), (OpenAIWire, *ONLY_OPENAIS)]
)
def test_what_can_not_be_mended_is_said_at_once(wire, status, body, error):
    failed, server = ask(wire, Reply(wire.error(*body), status))
    assert (type(failed), len(server.seen)) == (error, 1)
    assert KEY not in str(failed)


@pytest.mark.parametrize("wire", WIRES)
def test_too_long_comes_with_its_numbers_and_is_not_sent_again(wire):
    failed, server = ask(wire, Reply(wire.error(**wire.too_long), 400))
    assert (type(failed), failed.limit_tokens, failed.size_tokens) == (errors.TooLong, 2048, 6035)
    assert len(server.seen) == 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_transient_error_is_tried_again_after_the_wait_that_is_asked_for(wire, status):
    answer, server = ask(wire, Reply(wire.error("later", "rate_limit_error"), status, SOON), Reply(wire.answer()))
    assert (answer.text, len(server.seen)) == (NOTE, 2)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("max_retries, requests", [(0, 1), (1, 2), (3, 4), (1_000, 11), (-1, 1)])
def test_tries_are_bounded(wire, max_retries, requests):
    replies = [Reply(wire.error("slow down", "rate_limit_error"), 429, {**SOON, "retry-after": "7"})]
    failed, server = ask(wire, *replies, max_retries=max_retries)
    assert (type(failed), failed.retry_after_s, len(server.seen)) == (errors.RateLimited, 7.0, requests)


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_stays_overloaded_is_unavailable(wire):
    failed, _ = ask(wire, Reply(wire.error("Overloaded", "overloaded_error"), 529, SOON), max_retries=1)
    assert type(failed) is errors.ProviderUnavailable


BAD_REPLIES = {
    "an error body": (
        Reply({"error": {"code": 502, "message": "Provider returned error"}}),
        errors.ProviderUnavailable,
    ),
    "an error in a stream": (
        Reply('event: error\ndata: {"type": "error", "error": {"code": "context_length_exceeded"}}\n\n'),
        errors.TooLong,
    ),
    "a web page": (Reply("<!doctype html><p>Sign in", headers={"content-type": "text/html"}), errors.BadResponse),
    "nothing": (Reply(""), errors.BadResponse),
    "half of a body": (Reply('{"choices": [{"message": {"cont'), errors.BadResponse),
    "another API": (Reply({"object": "list", "data": []}), errors.BadResponse),
    "a list": (Reply([1]), errors.BadResponse),
    "no message": (Reply({"choices": [], "content": None}), errors.BadResponse),
    "bytes that are no text": (Reply(b"\xff\xfe\x00"), errors.BadResponse),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("reply, error", BAD_REPLIES.values(), ids=BAD_REPLIES)
def test_a_200_that_is_no_answer_is_an_error_of_one_line(wire, reply, error):
    failed, server = ask(wire, reply)
    assert (type(failed), len(server.seen)) == (error, 1)
    assert "\n" not in str(failed)
    assert str(failed).startswith("local: ")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("reply", [Reply('{"a": 1', cut_bytes=50), Reply(hang_up=True)], ids=["cut", "hung up"])
def test_a_connection_that_breaks_off_is_unavailable_and_names_the_address(wire, reply):
    failed, server = ask(wire, reply, max_retries=0)
    assert type(failed) is errors.ProviderUnavailable
    assert server.url in str(failed)


@pytest.mark.parametrize("wire", WIRES)
def test_a_server_that_takes_too_long_is_not_waited_for(wire):
    held = threading.Event()
    with Server([Reply(wire.answer(), hold=held)]) as server:
        with pytest.raises(errors.ProviderUnavailable, match="timed out"):
            provider(wire, server, timeout_s=0.3, max_retries=0).answer(SummaryRequest("Sum up.", 512))
        held.set()


@pytest.mark.parametrize("wire", WIRES)
def test_an_address_where_nobody_listens_is_unavailable(wire):
    with Server([]) as server:
        pass
    with pytest.raises(errors.ProviderUnavailable, match="no reply from"):
        provider(wire, server, max_retries=0).answer(SummaryRequest("Sum up.", 512))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "make_reply, reason",
    [
        (
            lambda wire: wire.answer("<summary>Port the par", "length" if wire is OpenAIWire else "max_tokens"),
            "truncated",
        ),
        (lambda wire: wire.answer("no", "content_filter" if wire is OpenAIWire else "refusal"), "refused"),
        (lambda wire: wire.tool_call(), "tool_call"),
        (lambda wire: wire.answer(""), "blank"),
        (lambda wire: wire.answer("<analysis>and on and on"), "scratchpad"),
        (lambda wire: wire.answer(NOTE, None), "unfinished"),
        (lambda wire: wire.answer(NOTE, 7), "unfinished"),
    ],
)
def test_an_answer_that_is_no_summary_is_refused_with_its_reason(wire, make_reply, reason):
    with Server([Reply(make_reply(wire))]) as server, pytest.raises(errors.SummaryRefused) as refused:
        summarize(provider(wire, server), long_story(1), None, Budget(128_000), "fold")
    assert refused.value.reason == reason


def test_only_reasoning_is_a_blank_answer():
    answer, _ = ask(OpenAIWire, Reply(OpenAIWire.answer(None, reasoning_content="The user wants…")))
    assert answer.text == ""


def test_only_thinking_is_a_blank_answer():
    reply = {**AnthropicWire.answer(), "content": [{"type": "thinking", "thinking": "hm", "signature": "eA=="}]}
    answer, _ = ask(AnthropicWire, Reply(reply))
    assert (answer.text, answer.has_tool_call) == ("", False)


def test_a_refusal_in_its_own_field_is_a_refusal():
    answer, _ = ask(OpenAIWire, Reply(OpenAIWire.answer(None, refusal="I can't.")))
    assert answer.stop_reason == "refusal"


def test_content_in_parts_is_joined():
    parts = [{"type": "text", "text": "Port "}, {"type": "text", "text": "it."}]
    answer, _ = ask(OpenAIWire, Reply(OpenAIWire.answer(parts)))
    assert answer.text == "Port it."


def test_what_came_from_a_cache_is_part_of_the_input():
    usage = {"input_tokens": 10, "cache_read_input_tokens": 700, "cache_creation_input_tokens": 90, "output_tokens": 5}
    answer, _ = ask(AnthropicWire, Reply({**AnthropicWire.answer(), "usage": usage}))
    assert answer.usage == ProviderUsage(800, 5, 700, 90)
    usage = {"prompt_tokens": 800, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 700}}
    answer, _ = ask(OpenAIWire, Reply({**OpenAIWire.answer(), "usage": usage}))
    assert answer.usage == ProviderUsage(800, 5, 700)


@pytest.mark.parametrize("wire", WIRES)
def test_a_real_too_long_is_folded_over_the_wire(wire):
    refusal = Reply(wire.error(**wire.too_long), 400)
    with Server([refusal, Reply(wire.answer(tokens=(0, 9)))]) as server:
        made = summarize(provider(wire, server), long_story(30), None, Budget(128_000), "fold")
    prompts = [seen.body["messages"][0]["content"] for seen in server.seen]
    assert made.text == "Port the parser."
    assert made.folds == len(prompts) - 2 > 0
    assert len(set(prompts)) == len(prompts)
    assert all(len(text) < len(prompts[0]) / 2 for text in prompts[1:])
    assert all(seen.body["max_tokens"] == 512 for seen in server.seen[1:])


@pytest.mark.parametrize("wire", WIRES)
def test_half_of_a_surrogate_pair_never_reaches_the_wire(wire):
    with Server([Reply(wire.answer())]) as server:
        provider(wire, server).answer(SummaryRequest("a\ud800b", 512))
    assert server.seen[0].body["messages"][0]["content"] == "a\ufffdb"


# before anything is asked ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "config, environment, lacks",
    [
        ({"model": "m", "api_key_env": "K"}, {"K": KEY}, []),
        ({"model": "m", "base_url": "http://localhost:1"}, {}, []),
        ({"model": "m", "api_key_env": "K"}, {"K": " "}, ["no key: the environment variable K is not set"]),
        ({"model": "m"}, {"OPENAI_API_KEY": KEY},
         ["no key: set providers.p.api_key_env to the variable that holds it"]),
        ({"api_key_env": "K"}, {"K": KEY}, ["no model: set providers.p.model"]),
    ],
)  # fmt: skip
def test_what_a_provider_lacks_is_said_with_what_to_do(kind, config, environment, lacks):
    made = ProviderConfig("p", kind, **config)
    assert missing(made, environment) == lacks
    if lacks:
        with pytest.raises(errors.ProviderError, match=lacks[0].split(":")[0]):
            make(made, environment).answer(SummaryRequest("Sum up.", 512))


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_missing_sdk_is_named_with_the_command_that_installs_it(kind, monkeypatch):
    monkeypatch.setattr("compactctl.providers.remote.is_installed", lambda sdk: False)
    made = ProviderConfig("p", kind, model="m", base_url="http://localhost:1")
    with pytest.raises(errors.ProviderUnavailable, match=rf"pip install 'compactctl\[{kind}\]'"):
        make(made, {}).answer(SummaryRequest("Sum up.", 512))


def test_no_sdk_is_imported_before_it_is_asked():
    code = (
        "import sys, compactctl.summary\n"
        "from compactctl.providers import ProviderConfig, make, missing\n"
        "for kind in ('openai', 'anthropic', 'command'):\n"
        "    config = ProviderConfig('p', kind, model='m'); make(config, {}); missing(config, {})\n"
        "print([name for name in ('openai', 'anthropic', 'httpx2', 'pydantic') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "base_url, address, is_remote",
    [
        ("http://localhost:8080/v1", "http://localhost:8080/v1", False),
        ("http://127.0.0.9/v1", "http://127.0.0.9/v1", False),
        ("http://[::1]:80", "http://[::1]:80", False),
        ("https://user:secret@llm.example/v1?key=secret", "https://llm.example/v1", True),
        ("http://192.168.0.4:11434/v1", "http://192.168.0.4:11434/v1", True),
        ("http://localhost.example", "http://localhost.example", True),
    ],
)
def test_an_address_says_whether_it_is_this_machine_and_never_a_password(kind, base_url, address, is_remote):
    made = make(ProviderConfig("p", kind, model="m", base_url=base_url), {})
    assert (made.address, made.is_remote) == (address, is_remote)


@pytest.mark.parametrize(
    "kind, address", [("openai", "https://api.openai.com/v1"), ("anthropic", "https://api.anthropic.com")]
)
def test_without_an_address_it_is_the_vendors_own(kind, address, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://elsewhere")
    made = make(ProviderConfig("p", kind, model="m", api_key_env="K"), {"K": KEY})
    assert (made.address, made.is_remote, str(made._client.base_url).rstrip("/")) == (address, True, address)


@pytest.mark.parametrize(
    "base_url, name",
    [
        (None, "max_completion_tokens"),
        ("https://me.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://openrouter.ai/api/v1", "max_tokens"),
    ],
)
def test_the_limit_of_an_answer_goes_by_the_name_that_the_server_knows(base_url, name):
    made = make(ProviderConfig("p", "openai", model="m", base_url=base_url), {})
    assert name in json.dumps(made._body(SummaryRequest("Sum up.", 512)))
