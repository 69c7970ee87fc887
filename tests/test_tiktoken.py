"""tiktoken without a network: the right ranks, the right counts of odd texts, and nothing counted twice."""

import base64
import hashlib
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactctl import estimators, run
from compactctl.document import Document, Place
from compactctl.errors import UsageError
from compactctl.estimators import Subject, encodings, remembered, tiktoken
from compactctl.estimators.encodings import BUNDLED, Choice, Tokenizer, bundled
from compactctl.media import CLAUDE
from compactctl.model import Message, Text, ToolResult
from compactctl.options import Options
from compactctl.settings import Settings, with_changes
from tests.builders.generated import stories, write
from tests.builders.messages import NO_FILE
from tests.laws import EVERY_FORMAT, FEW_EXAMPLES, read
from tests.scripts import make_ranks
from tests.scripts.readme import ROOT

PLACE = Place(0)
RANKED = sorted(set(BUNDLED.values()))
EVERY_ENCODING = pytest.mark.parametrize("name", RANKED)


def said(text, role="user"):
    return Message(role, (Text(PLACE, len(text), text),), (), 0)


def whole(name, text):
    """Return the tokens of a text that tiktoken is given at once."""
    return len(bundled(name)._encoding.encode_ordinary(text))


# the encodings -----------------------------------------------------------------------------------------


@EVERY_ENCODING
def test_the_ranks_are_those_of_the_file_that_the_installed_tiktoken_expects(name):
    assert hashlib.sha256(encodings.upstream(name)).hexdigest() == make_ranks.expected_sha256(name)


@EVERY_ENCODING
def test_the_pattern_is_that_of_the_installed_tiktoken(name):
    assert encodings.table().patterns[name] == make_ranks.pattern(name)


@EVERY_ENCODING
def test_the_data_is_what_the_script_makes_of_that_file(name):
    made = make_ranks.packed(encodings.upstream(name))
    assert encodings.gzip.decompress(made) == encodings.gzip.decompress(encodings._data(f"{name}.ranks.gz"))


WITHOUT_NETWORK = """
import os, socket, sys
def refuse(*_, **__): raise AssertionError("network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
environment = dict(os.environ)
from compactctl.estimators.encodings import BUNDLED, bundled
print(*(bundled(name).count("hello world") for name in BUNDLED))
assert os.environ == environment
print("requests" in sys.modules)
"""


def test_encodings_are_made_without_network_or_environment(tmp_path):
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)}
    made = subprocess.run(
        [sys.executable, "-c", WITHOUT_NETWORK], capture_output=True, text=True, env=environment, cwd=ROOT, check=True
    )
    assert made.stdout.split() == ["2", "2", "2", "False"]
    assert list(tmp_path.iterdir()) == []


def assumed(why):
    return Choice("o200k_base", f"{why}: o200k_base is assumed")


@pytest.mark.parametrize(
    "model, choice",
    [
        ("gpt-4.1", Choice("o200k_base")),
        ("openai/gpt-5.1-codex", Choice("o200k_base")),
        ("gpt-4", Choice("cl100k_base")),
        ("gpt-oss-20b", Choice("o200k_harmony")),
        (
            "claude-opus-4-5",
            assumed("tiktoken has no encoding for claude-opus-4-5"),
        ),
        (
            "text-davinci-003",
            Choice(
                "o200k_base", "the encoding of text-davinci-003, p50k_base, does not come along: o200k_base is assumed"
            ),
        ),
        (None, assumed("no model is named")),
    ],
)
def test_a_model_has_the_encoding_that_tiktoken_names_or_an_assumed_one(model, choice):
    assert encodings.of_model(model) == choice


# an encoding of one's own ------------------------------------------------------------------------------


def own(path, *changes):
    return with_changes(Settings(), [f"estimator.encoding_file={path}", *changes])


def test_a_file_of_ranks_counts_as_its_encoding_does_and_its_name_says_by_which_pattern(tmp_path):
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(encodings.upstream("cl100k_base"))
    estimator = estimators.get("tiktoken", own(path, "estimator.encoding_pattern=cl100k_base"), NO_FILE)
    text = "  It's 2026-03-01,\n\n\tin São Paulo  "
    assert estimator.tokens([said(text)]) == 1 + whole("cl100k_base", text)
    assert estimator.name == "tiktoken:mine.tiktoken (pattern of cl100k_base)"


@pytest.mark.parametrize(
    "content, words",
    [
        (b"IQ== 0\nnot base64 1\n", "line 2: not a token in base64"),
        (b"IQ== 0\n", "some byte is no token"),
        (b"\x00\xff" * 100, "line 1: not a token in base64"),
        (b"", "some byte is no token"),
        (b"".join(b"%s 7\n" % base64.b64encode(bytes([byte])) for byte in range(256)), "two tokens have one rank"),
    ],
)
def test_a_file_that_holds_no_ranks_is_wrong_usage(content, words, tmp_path):
    path = tmp_path / "mine.tiktoken"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        encodings.from_file(str(path), "o200k_base")


def test_a_file_that_is_not_there_is_wrong_usage_before_anything_is_read(tmp_path):
    with pytest.raises(UsageError, match="no such file for --encoding-file"):
        estimators.require(["tiktoken"], own(tmp_path / "none"))


@pytest.mark.parametrize(
    "name, words",
    [
        ("tiktoken:o200k", "did you mean o200k_base"),
        ("tiktoken:x", "known: o200k_base"),
        ("heuristic:x", "nothing stands"),
    ],
)
def test_an_unknown_encoding_is_wrong_usage_that_names_what_there_is(name, words):
    with pytest.raises(UsageError, match=words):
        estimators.require([name], Settings())


# texts -------------------------------------------------------------------------------------------------

PATCHWORK = st.lists(
    st.one_of(
        st.sampled_from([" ", "  ", "\n", "\r\n", "\t", "\x0b", "\x1c", "\x85", "\u00a0", "\u2028", "\u3000", " " * 7]),
        st.sampled_from(
            ["a", "Ab", "x1", "12345", "'s", "'LL", "/", "//\n", "{}", '":"', "é", "漢字", "ſ", "👍🏽", "\u0301"]
        ),
        st.text(max_size=3),
        st.text("aA1 \n/'", max_size=12),
    ),
    max_size=40,
).map("".join)


@EVERY_ENCODING
@given(text=PATCHWORK, piece=st.integers(1, 12), run_length=st.integers(2, 6))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_text_has_the_same_tokens_however_it_is_cut(name, text, piece, run_length):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encodings, "PIECE_CHARACTERS", piece)
        patch.setattr(encodings, "_RUN", encodings.run_pattern(run_length))
        cut = list(encodings.pieces(text))
        assert "".join(each.text for each in cut) == text
        assert bundled(name).count(text) == whole(name, text)


def test_long_texts_are_cut_and_every_character_is_given_to_the_tokenizer_once():
    text = "one line of a log, 4711\n" * 50_000
    cut = list(encodings.pieces(text))
    assert sum(len(each.text) for each in cut) == len(text)
    assert max(len(each.text) for each in cut) < encodings.PIECE_CHARACTERS + 100
    assert len(cut) == 10


def test_two_million_blanks_are_counted_exactly():
    assert bundled("o200k_base").count(" " * 2_000_000 + "x") == 15_627  # as two other tokenizers have it (research)


@EVERY_ENCODING
def test_special_tokens_nuls_and_halves_of_surrogate_pairs_are_text(name):
    count = bundled(name).count
    assert count("<|endoftext|>") == whole(name, "<|endoftext|>") > 1
    assert count("a\x00b") == whole(name, "a\x00b")
    assert count("a\ud800b") == count("a\ufffdb")


class PanicException(BaseException):
    """What pyo3 raises when Rust panics."""


class Failing:
    def __init__(self, error):
        self._error = error

    def encode_ordinary(self, text):
        if "panic" in text:
            raise self._error
        return [0] * len(text)


def estimator_of(encoding):
    return tiktoken.Tiktoken(tiktoken.Counts(Tokenizer("test", encoding)), NO_FILE.document, 3.5, CLAUDE)


def test_a_text_that_tiktoken_panics_over_is_the_heuristics_and_the_name_says_so():
    estimator = estimator_of(Failing(PanicException("stack")))
    assert estimator.tokens([said("abc")]) == 4 + 3
    assert (estimator.name, estimator.remarks) == ("tiktoken:test", ())
    assert estimator.tokens([said("a panic"), said("abc")]) == 4 + 2 + 4 + 3
    assert estimator.name == "tiktoken:test, partly heuristic"
    assert estimator.remarks == ("the tokenizer failed over one text: its tokens are the heuristic's",)


def test_an_interrupt_while_counting_is_no_panic():
    with pytest.raises(KeyboardInterrupt):
        estimator_of(Failing(KeyboardInterrupt())).tokens([said("panic")])


# the estimator -----------------------------------------------------------------------------------------


def test_the_texts_that_count_are_counted_each_on_its_own():
    message = Message("assistant", (Text(PLACE, 5, "hello"), ToolResult(PLACE, "call_1", 3, made="a b")), (), 0)
    estimator = estimators.get("tiktoken:cl100k_base", Settings(), NO_FILE)
    assert estimator.name == "tiktoken:cl100k_base"
    assert estimator.tokens([message]) == sum(
        whole("cl100k_base", text) for text in ("assistant", "hello", "call_1", "a b")
    )


texts = st.lists(st.text(max_size=20), max_size=5)


@given(texts, texts)
@settings(deadline=None, derandomize=True)
def test_messages_together_are_the_sum_of_what_they_are_apart(some, more):
    estimator = estimators.get("tiktoken", Settings(), NO_FILE)
    first, second = [said(text) for text in some], [said(text) for text in more]
    assert estimator.tokens(first) + estimator.tokens(second) == estimator.tokens([*first, *second])


@EVERY_FORMAT
@FEW_EXAMPLES
@given(story=stories)
def test_a_session_has_the_tokens_of_its_texts(name, story):
    from compactctl.estimators.heuristic import tokens_beside
    from compactctl.texts import counted

    document, _, transcripts = read(write(story, name))
    messages = transcripts[0].messages
    expected = sum(whole("o200k_base", text) for message in messages for _, text in counted(message, document))
    estimator = estimators.get("tiktoken:o200k_base", Settings(), Subject(document))
    assert estimator.tokens(messages) == expected + sum(tokens_beside(message, CLAUDE) for message in messages)


def test_a_text_is_given_to_the_tokenizer_once_as_long_as_it_is_remembered(monkeypatch):
    monkeypatch.setattr(remembered, "MOST_TEXTS", 4)
    counts = tiktoken.Counts(Tokenizer("test", Failing(None)))
    estimator = tiktoken.Tiktoken(counts, NO_FILE.document, 3.5, CLAUDE)
    for _ in range(3):
        assert estimator.tokens([said("abc"), said("abc")]) == 14
    assert counts.worked_out_characters == len("userabc")
    estimator.tokens([said(text) for text in "12345"])
    assert len(counts._known) == 4


def test_a_part_of_a_session_is_read_once(monkeypatch):
    data = b'{"role": "user", "content": "hello"}\n'
    document, _, (transcript,) = read(data)
    estimator = estimators.get("tiktoken:o200k_base", Settings(), Subject(document))
    first = estimator.tokens(transcript.messages)
    monkeypatch.setattr(Document, "value", None)
    monkeypatch.setattr(Document, "raw_value", None)
    assert estimator.tokens(transcript.messages) == first == 2


def test_the_heuristic_reads_no_text_and_loads_no_tokenizer(monkeypatch):
    program = (
        "import sys; from compactctl import run; from compactctl.options import Options; "
        "from compactctl.document import Document; Document.value = Document.raw_value = None; "
        "batch = run.estimate([sys.argv[1]], Options()); "
        "print([o.status for o in batch.outcomes], [n for n in sys.modules if n.startswith('tiktoken')])"
    )
    path = ROOT / "sample_sessions" / "chat.jsonl"
    made = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert made.stdout == "['read'] []\n"


# the commands ------------------------------------------------------------------------------------------

LOW = with_changes(Settings(), ["layer1.single_limit_bytes=400", "layer2.recent_keep_tokens=40"])
COUNTED = Options(estimator="tiktoken:o200k_base", anchored=False, apply=True, settings=LOW)


def long_session(write_session):
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"n": 1}'}}
    rows = [
        {"role": "user", "content": "Look at the log, please."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "".join(f"{n} ms for step {n}\n" for n in range(300))},
        *({"role": role, "content": f"Then {n}, and so on."} for n in range(12) for role in ("assistant", "user")),
    ]
    return write_session(rows)


@pytest.mark.parametrize("command", ["spill", "summarize"])
def test_what_is_foretold_of_previews_and_summaries_is_what_the_written_session_has(command, write_session):
    path = long_session(write_session)
    (made,) = getattr(run, command)([str(path)], COUNTED).outcomes
    assert (made.status, made.tokens.estimator) == ("applied", "tiktoken:o200k_base")
    (again,) = run.estimate([made.output.session], COUNTED).outcomes
    assert again.estimates["tiktoken:o200k_base"] == made.tokens.after < made.tokens.before


def test_estimate_prints_what_several_estimators_make_of_a_session(write_session):
    path = long_session(write_session)
    others = ("tiktoken:cl100k_base", "tiktoken")
    (made,) = run.estimate([str(path)], Options(others=others)).outcomes
    assert list(made.estimates) == ["heuristic", "tiktoken:cl100k_base", "tiktoken:o200k_base", "anchored", "usage"]
    assert made.estimates["anchored"] is None
    assert made.notes == ("no model is named: o200k_base is assumed",)


def test_an_estimator_that_lacks_something_gives_no_figure_and_says_why(write_session, monkeypatch):
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    encodings._ranks.cache_clear()
    encodings.bundled.cache_clear()
    (made,) = run.estimate([str(long_session(write_session))], Options(others=("tiktoken:o200k_base",))).outcomes
    assert made.estimates["tiktoken:o200k_base"] is None
    assert made.status == "read"
    assert [finding.rule for finding in made.findings if finding.rule == "no-estimate"] == ["no-estimate"]


@pytest.mark.parametrize(
    "names, every",
    [
        (["all"], ("heuristic", "tiktoken:o200k_base", "tiktoken:cl100k_base", "calibrated")),
        (["tiktoken", "heuristic", "tiktoken"], ("tiktoken", "heuristic")),
    ],
)
def test_all_stands_for_every_estimator_and_repeats_for_one(names, every):
    assert estimators.every(names, Settings()) == every


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["spill", "--estimator", "all"], "spill counts with one estimator"),
        (["inspect", "--estimator", "tiktoken:o200k"], "did you mean o200k_base"),
        (["estimate", "--encoding-file", "x"], "--encoding-file goes with --estimator tiktoken"),
        (["estimate", "--estimator", "tiktoken", "--encoding-file", "none"], "no such file for --encoding-file"),
    ],
)
def test_estimators_that_go_together_with_nothing_are_wrong_usage(arguments, words):
    path = str(ROOT / "sample_sessions" / "chat.jsonl")
    command = [sys.executable, "-m", "compactctl", *arguments, path]
    made = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (made.returncode, made.stdout) == (2, "")
    assert words in made.stderr
