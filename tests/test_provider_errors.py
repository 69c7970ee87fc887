import json

import pytest

from compactctl import errors
from compactctl.provider_errors import ProviderProblem, classify, classify_text, short


def error(message, code=None, kind="invalid_request_error", **more):
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def anthropic(kind, message):
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


TOO_LONG = [
    ("a code alone", 400, error("over the top", "context_length_exceeded"), None, None),
    (
        "code in a stream",
        200,
        f"event: error\ndata: {json.dumps(error('', 'context_length_exceeded'))}\n\n",
        None,
        None,
    ),
    (
        "azure",
        400,
        error("This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
        8192,
        9001,
    ),
    (
        "anthropic",
        400,
        anthropic("invalid_request_error", "prompt is too long: 201,500 tokens > 200,000 maximum"),
        200_000,
        201_500,
    ),
    (
        "anthropic with its answer",
        400,
        anthropic(
            "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"
        ),
        200_000,
        190_000,
    ),
    (
        "bedrock",
        400,
        {"__type": "ValidationException", "message": "The model said: Input is too long for requested model."},
        None,
        None,
    ),
    (
        "vllm",
        400,
        {
            "object": "error",
            "type": "BadRequestError",
            "code": 400,
            "message": "This model's maximum context length is 4096 tokens. However, you "
            "requested 512 output tokens and your prompt contains "
            "at least 4000 input tokens",
        },
        4096,
        4000,
    ),
    (
        "vllm, newer",
        400,
        error(
            "You passed 3900 input tokens and requested 500 output tokens. "
            "However, the context length is only 4096 tokens",
            400,
        ),
        4096,
        3900,
    ),
    (
        "llama-cpp-python",
        400,
        error(
            "This model's maximum context length is 2048 tokens. However, you requested "
            "6099 tokens (6035 in the messages, "
            "64 in the completion). Please reduce the length of the messages or completion.",
            "context_length_exceeded",
        ),
        2048,
        6035,
    ),
    (
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "request (6035 tokens) exceeds the available context size (2048 tokens)",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 6035,
                "n_ctx": 2048,
            }
        },
        2048,
        6035,
    ),
    (
        "llama.cpp inside ollama",
        400,
        {
            "error": json.dumps(
                {
                    "error": {
                        "code": 400,
                        "type": "exceed_context_size_error",
                        "message": "too big",
                        "n_prompt_tokens": 6035,
                        "n_ctx": 2048,
                    }
                }
            )
        },
        2048,
        6035,
    ),
    (
        "openrouter",
        400,
        error(
            "This endpoint's maximum context length is 32768 tokens. However, you "
            "requested about 40000 tokens (39000 of text "
            "input, 1000 in the output).",
            400,
        ),
        32_768,
        40_000,
    ),
    (
        "litellm under 503",
        503,
        error(
            "litellm.ServiceUnavailableError: OpenAIException - Requested token "
            "count exceeds the model's maximum context length "
            "of 16384 tokens.",
            "503",
            "None",
        ),
        16_384,
        None,
    ),
    (
        "gemini, as a list",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "status": "INVALID_ARGUMENT",
                    "message": "The input token count (1100000) exceeds the "
                    "maximum number of tokens allowed (1048576).",
                }
            }
        ],
        1_048_576,
        1_100_000,
    ),
    ("compatible", 400, error("Input length (5000) exceeds model's maximum context length (4096)."), 4096, 5000),
    ("words alone under 413", 413, error("prompt is too long: 9 tokens > 8 maximum"), 8, 9),
]


@pytest.mark.parametrize("status, body, limit, size", [row[1:] for row in TOO_LONG], ids=[row[0] for row in TOO_LONG])
@pytest.mark.parametrize("as_text", [True, False])
def test_too_long_is_known_in_each_providers_wording_with_its_numbers(status, body, limit, size, as_text):
    problem = classify(status, {}, json.dumps(body) if as_text and not isinstance(body, str) else body)
    assert (problem.kind, problem.limit_tokens, problem.size_tokens) == ("too_long", limit, size)


def test_ollama_says_by_how_much():
    problem = classify(400, {}, {"error": "prompt too long; exceeded max context length by 918 tokens"})
    assert (problem.kind, problem.excess_tokens) == ("too_long", 918)


@pytest.mark.parametrize(
    "status, headers, body, kind, seconds",
    [
        (429, {"Retry-After": "30"}, anthropic("rate_limit_error", "slow down"), "rate_limit", 30.0),
        (429, {}, {"__type": "ThrottlingException", "message": "Too many tokens, please wait."}, "rate_limit", None),
        (400, {}, {"__type": "ThrottlingException", "message": "Too many tokens."}, "rate_limit", None),
        (200, {}, error("Too many tokens per minute", "rate_limit_exceeded"), "rate_limit", None),
        (429, {}, error("prompt is too long", "context_length_exceeded"), "rate_limit", None),
        (429, {}, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota",
                             "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}]}},
         "rate_limit", 2.5),
    ],
)  # fmt: skip
def test_a_rate_limit_is_never_taken_for_too_long(status, headers, body, kind, seconds):
    problem = classify(status, headers, body)
    assert (problem.kind, problem.retry_after_s) == (kind, seconds)


@pytest.mark.parametrize(
    "status, body, kind",
    [
        (413, anthropic("request_too_large", "Request exceeds the maximum size"), "too_large"),
        (413, "<html>413 Request Entity Too Large</html>", "too_large"),
        (413, "", "too_large"),
        (401, error("Incorrect API key provided: sk-abc***xyz", "invalid_api_key"), "auth"),
        (403, "", "auth"),
        (400, error("filtered", "content_filter", None), "content_filter"),
        (529, anthropic("overloaded_error", "Overloaded"), "unavailable"),
        (500, anthropic("api_error", "Internal server error"), "unavailable"),
        (502, "<html>502</html>", "unavailable"),
        (200, {"error": {"code": 502, "message": "Provider returned error"}}, "unavailable"),
        (404, error("The model `none` does not exist", "model_not_found"), "rejected"),
        (400, error("No tool output found for function call call_1."), "rejected"),
        (400, error("max_tokens must be at least 1"), "rejected"),
        (200, {"error": "something odd"}, "bad_response"),
        (200, "", "bad_response"),
        (200, "  \n", "bad_response"),
        (200, "<!doctype html><title>Sign in</title>", "bad_response"),
        (200, '{"choices": [{"mess', "bad_response"),
        (200, "[]", "bad_response"),
        (204, b"", "bad_response"),
    ],
)
def test_each_kind_of_reply_that_is_no_answer(status, body, kind):
    assert classify(status, {}, body).kind == kind


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"content": "the error was: prompt is too long"}}]},
        {"content": [{"type": "text", "text": "error 429"}], "error": None},
        {"choices": [{"message": {"content": '{"error": {"code": "context_length_exceeded"}}'}}]},
    ],
)
def test_an_answer_that_speaks_of_errors_is_an_answer(body):
    assert classify(200, {}, json.dumps(body)) is None


def test_a_content_filter_names_its_category():
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {
        "jailbreak": {"filtered": True, "detected": True}, "hate": {"filtered": False}}}  # fmt: skip
    assert classify(400, {}, error("filtered", "content_filter", innererror=inner)).category == "jailbreak"


@pytest.mark.parametrize(
    "message, most",
    [
        ("max_tokens is too large: 20000. This model supports at most 16384 completion tokens.", 16_384),
        ("max_tokens: 20000 > 8192, which is the maximum allowed number of output tokens for it", 8192),
        ("unsupported parameter", None),
    ],
)
def test_the_longest_answer_that_a_model_gives_is_read(message, most):
    problem = classify(400, {}, error(message))
    assert (problem.kind, problem.output_limit_tokens) == ("rejected", most)


@pytest.mark.parametrize(
    "kind, wanted",
    [
        ("too_long", errors.TooLong),
        ("too_large", errors.TooLarge),
        ("rate_limit", errors.RateLimited),
        ("auth", errors.AuthFailed),
        ("content_filter", errors.ContentFiltered),
        ("rejected", errors.RequestRejected),
        ("bad_response", errors.BadResponse),
        ("unavailable", errors.ProviderUnavailable),
    ],
)
def test_each_kind_has_its_error_and_all_end_with_5(kind, wanted):
    made = ProviderProblem(kind, "why").error("local")
    assert (type(made), made.exit_code, str(made).startswith("local: ")) == (wanted, 5, True)


@pytest.mark.parametrize(
    "text",
    ["sk-live-ABCDEFGH1234", "Incorrect key: sk-ant-api03-xyz", "key abcd****wxyz", "Authorization: Bearer abcdefgh"],
)
def test_no_part_of_a_key_is_repeated(text):
    assert not any(part in short(text) for part in ("ABCDEFGH", "ant-api03", "abcd", "wxyz", "abcdefgh"))


def test_what_is_shown_is_one_short_line():
    assert short("a\n\x1b[31mb\tc" + "x" * 900) == ("a [31mb c" + "x" * 290) + "…"


@pytest.mark.parametrize(
    "text, kind",
    [("API Error: prompt is too long: 9 tokens > 8 maximum", "too_long"), ("rate limit reached", "rate_limit")],
)
def test_a_programs_error_output_is_read_the_same_way(text, kind):
    assert classify_text(text).kind == kind


def test_what_a_program_says_may_mean_nothing_known():
    assert classify_text("segmentation fault") is None
