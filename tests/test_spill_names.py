import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactctl.spill_names import SpillNames, candidates

HASH = "ab" * 32


@pytest.mark.parametrize(
    ("call_id", "name"),
    [
        ("call_1", "call_1.txt"),
        ("toolu_01AbC-x", "toolu_01AbC-x.txt"),
        ("_x", "_x.txt"),
    ],
)
def test_a_short_safe_id_is_its_own_name(call_id, name):
    assert SpillNames(dict).assign(call_id, HASH) == name


@pytest.mark.parametrize(
    "call_id",
    [
        "",
        ".",
        "..",
        "../../etc/cron.d/x",
        "/etc/passwd",
        "a/b",
        "a\\b",
        "a:b",
        "call 1",
        "-rf",
        ".hidden",
        "x" * 300,
        "id%2F..",
        "nul",
        "NUL",
        "COM1",
        "aux.c",
        "com\u00b9",
        "conin$",
        "call\x00x",
        "call\nx",
        "\u202egnp",
        "日本語",
        "a.",
        "call_a|fc_b",
        "\ud800",
    ],
)
def test_any_other_id_gets_a_cleaned_prefix_and_a_hash(call_id):
    name = SpillNames(dict).assign(call_id, HASH)
    stem, _, digest = name.removesuffix(".txt").rpartition("-")
    assert stem
    assert len(digest) == 16
    assert len(name.encode()) <= 80
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.")
    assert name[0] not in ".-"


def test_names_that_differ_only_in_case_do_not_meet():
    names = SpillNames(dict)
    first, second = names.assign("call_AbC", HASH), names.assign("call_aBc", "cd" * 32)
    assert first == "call_AbC.txt"
    assert second.startswith("call_abc-")


def test_the_same_id_and_text_keep_their_name_and_another_text_gets_another():
    names = SpillNames(dict)
    assert names.assign("call_0", HASH) == "call_0.txt"
    assert names.assign("call_0", HASH) == "call_0.txt"
    assert names.assign("call_0", "cd" * 32) != "call_0.txt"


def test_a_file_that_is_there_is_reused_for_the_same_bytes_only():
    assert SpillNames(lambda: {"call_0.txt": HASH}).assign("call_0", HASH) == "call_0.txt"
    assert SpillNames(lambda: {"CALL_0.TXT": "00"}).assign("call_0", HASH) != "call_0.txt"
    assert SpillNames(lambda: {"call_0.txt": ""}).assign("call_0", HASH) != "call_0.txt"


@given(st.lists(st.tuples(st.text(max_size=60), st.sampled_from([HASH, "cd" * 32])), unique=True))
def test_no_two_texts_share_a_name_on_any_file_system(texts):
    names = SpillNames(dict)
    given_names = [names.assign(call_id, digest).casefold() for call_id, digest in texts]
    shared = [name for name in given_names if given_names.count(name) > 1]
    by_name = {
        name: {digest for (_, digest), n in zip(texts, given_names, strict=True) if n == name} for name in shared
    }
    assert all(len(digests) == 1 for digests in by_name.values())


@given(st.text())
def test_a_name_never_leaves_its_folder(call_id):
    for name in candidates(call_id, HASH):
        assert "/" not in name
        assert "\\" not in name
        assert name not in (".", "..")
