import json
from pathlib import Path

import pytest

from compactctl import run
from compactctl.model import Message, Transcript, Usage, Window
from compactctl.options import Options
from compactctl.settings import Settings, with_changes
from compactctl.windows import choose, listed_tokens, table
from tests.builders.messages import answer, user
from tests.scripts import make_windows

SETTINGS = Settings()


def transcript(**fields) -> Transcript:
    return Transcript(**{"format": "chat", "messages": (), **fields})


def used(tokens, line=1, text_bytes=0) -> Message:
    """An answer whose request took in and gave out so many tokens."""
    said = answer(text_bytes=text_bytes)
    return Message(said.role, said.parts, said.records, line, usage=Usage(line, tokens - 1, 1))


@pytest.mark.parametrize(
    "model, tokens",
    [
        ("claude-opus-4-5-20251101", 200_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("anthropic/claude-opus-4.5", 200_000),
        ("litellm_proxy/claude-sonnet-4-20250514", 200_000),
        ("bedrock/us.anthropic.claude-sonnet-4-20250514-v1:0", 200_000),
        ("global.anthropic.claude-sonnet-5-v1:0", 1_000_000),
        ("vertex_ai/claude-haiku-4-5@20251001", 200_000),
        ("gpt-5.2-2025-12-11", 400_000),
        ("openai/gpt-5.2", 400_000),
        ("openai:gpt-5", 400_000),
        ("azure/gpt-4o", 128_000),
        ("GPT-4O", 128_000),
        ("models/gemini-2.5-pro", 1_048_576),
        ("accounts/fireworks/models/kimi-k2.5", 262_144),
        ("o3-mini-high", 200_000),
        ("no-such-model", None),
        ("", None),
        ("/", None),
    ],
)
def test_a_model_is_found_whatever_a_provider_or_a_date_adds_to_its_name(model, tokens):
    assert listed_tokens(model) == tokens


@pytest.mark.parametrize(
    "fields, window",
    [
        # recorded
        ({"recorded_window_tokens": 258_400, "model": "gpt-5.5"}, Window(258_400, "recorded")),
        ({"recorded_window_tokens": 258_400, "peak_tokens": 300_000}, Window(258_400, "recorded")),
        # looked up
        ({"model": "gpt-4o"}, Window(128_000, "table")),
        ({"model": "claude-opus-4-6"}, Window(1_000_000, "table")),
        ({"model": "claude-opus-4-5[1m]"}, Window(1_000_000, "table")),
        # what Claude Code would assume
        (
            {"format": "claude-code", "model": "claude-opus-4-6", "default_window_tokens": 200_000},
            Window(200_000, "table"),
        ),
        ({"format": "claude-code", "model": None, "default_window_tokens": 200_000}, Window(200_000, "table")),
        ({"format": "claude-code", "model": "gpt-4o", "default_window_tokens": 200_000}, Window(128_000, "table")),
        (
            {"format": "claude-code", "model": "claude-opus-4-6[1m]", "default_window_tokens": 200_000},
            Window(1_000_000, "table"),
        ),
        # fallbacks
        ({}, Window(128_000, "fallback")),
        ({"model": "no-such-model"}, Window(128_000, "fallback")),
        ({"model": "claude-of-tomorrow"}, Window(200_000, "fallback")),
        ({"format": "anthropic"}, Window(200_000, "fallback")),
        ({"format": "anthropic", "model": "no-such-model"}, Window(200_000, "fallback")),
        # proved
        ({"model": "gpt-4o", "peak_tokens": 128_000}, Window(128_000, "table")),
        ({"model": "gpt-4o", "peak_tokens": 128_001}, Window(200_000, "proved")),
        ({"model": "gpt-4o", "peak_tokens": 300_000}, Window(400_000, "proved")),
        ({"model": "gpt-4o", "peak_tokens": 2_500_000}, Window(2_500_000, "proved")),
        ({"model": "claude-opus-4-5", "peak_tokens": 200_001}, Window(1_000_000, "proved")),
        ({"model": "claude-opus-4-5", "peak_tokens": 1_200_000}, Window(1_200_000, "proved")),
    ],
)
def test_the_window_is_recorded_proved_looked_up_or_assumed(fields, window):
    assert choose(transcript(**fields), SETTINGS, None, None) == window


@pytest.mark.parametrize(
    "option_window, option_model, window",
    [
        (64_000, None, Window(64_000, "option")),
        (64_000, "gpt-4.1", Window(64_000, "option")),
        (None, "gpt-4.1", Window(1_000_000, "table")),
        (None, "gpt-4o", Window(128_000, "table")),
        (None, "no-such-model", Window(128_000, "fallback")),
    ],
)
def test_an_option_beats_what_the_session_says(option_window, option_model, window):
    session = transcript(model="gpt-5.5", recorded_window_tokens=258_400, peak_tokens=250_000)
    assert choose(session, SETTINGS, option_window, option_model) == window


def test_the_fallback_is_a_setting():
    settings = with_changes(SETTINGS, ["window.fallback_tokens=32000"])
    assert choose(transcript(format="anthropic"), settings, None, None) == Window(32_000, "fallback")


@pytest.mark.parametrize(
    "messages, window",
    [
        # grown by what was said: it is a context, and the window is larger than thought
        ((used(90_000), user(600_000), used(260_000)), Window(400_000, "proved")),
        # grown by far more than was said: the sum of a turn's requests
        ((used(90_000), user(100), used(931_000)), Window(128_000, "table")),
        # nothing to compare with
        ((user(100), used(931_000)), Window(1_000_000, "proved")),
    ],
)
def test_only_what_one_request_had_proves_a_window(messages, window):
    requests = tuple(message.usage for message in messages if message.usage)
    peak = max(usage.total_tokens for usage in requests)
    session = transcript(
        model="gpt-4o", messages=numbered(messages), requests=numbered_usages(messages), peak_tokens=peak
    )
    assert choose(session, SETTINGS, None, None) == window


def numbered(messages):
    """Return the messages with their usages on lines of their own."""
    from msgspec.structs import replace

    return tuple(
        replace(message, line=line, usage=replace(message.usage, line=line) if message.usage else None)
        for line, message in enumerate(messages, start=1)
    )


def numbered_usages(messages):
    return tuple(message.usage for message in numbered(messages) if message.usage)


def outgrown(tmp_path):
    """Return a session of a model of 128,000 tokens whose context has proved to be larger."""
    lines = []
    for index in range(8):
        lines.append({"role": "user", "content": "The quick brown fox jumps over the lazy dog. " * 2_000})
        counted = {"prompt_tokens": 25_000 * (index + 1), "completion_tokens": 3}
        lines.append({"role": "assistant", "content": "Done.", "model": "gpt-4o", "usage": counted})
    for _ in range(4):  # what stays tells no figure
        lines.append({"role": "user", "content": "And then? " * 2_000})
        lines.append({"role": "assistant", "content": "Done.", "model": "gpt-4o"})
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def window_of(path, **options):
    tokens = run.inspect([str(path)], Options(**options)).outcomes[0].tokens
    return Window(tokens.window, tokens.window_source)


@pytest.mark.parametrize("place", ["beside", "in place"])
def test_what_we_compacted_has_the_window_that_it_was_compacted_for(tmp_path, place):
    path = outgrown(tmp_path)
    assert window_of(path) == Window(256_000, "proved")
    [made] = run.summarize([str(path)], Options(apply=True, place=place)).outcomes
    assert window_of(made.output.session) == Window(256_000, "receipt")
    assert window_of(made.output.session, window_tokens=50_000) == Window(50_000, "option")
    assert window_of(made.output.session, model="gpt-4o") == Window(128_000, "table")
    compacted = Path(made.output.session)
    gone_on = compacted.read_bytes().replace(b"gpt-4o", b"o1-min")
    compacted.write_bytes(gone_on)
    assert window_of(compacted).source != "receipt"


def test_the_shipped_table_is_what_its_script_makes():
    assert table().source == f"genai-prices {make_windows.version()}"
    assert make_windows.TABLE.read_text(encoding="utf-8") == make_windows.table(table().as_of)
