"""Files that a command is given beside its sessions: each has a name of its own, and none is read without end."""

import pytest

from compactctl import baseline, profiles, scoring
from compactctl.__main__ import exit_code
from tests.builders.scored import grown


@pytest.mark.parametrize(
    "arguments",
    [
        ["accuracy", "--rows", ""],
        ["accuracy", "--rows", "made", "--fit", "made"],
        ["accuracy", "--rows", "made", "--fit", "../{folder}/made"],
        ["accuracy", "--fit", ""],
        ["audit", "--write-baseline", ""],
        ["audit", "--save", "json=made", "--baseline", "made"],
        ["audit", "--save", "json=made", "--write-baseline", "made"],
    ],
)
def test_files_that_are_to_be_written_have_names_of_their_own(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.jsonl").write_bytes(grown(500).bytes())
    assert exit_code([*(each.format(folder=tmp_path.name) for each in arguments), "s.jsonl"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


@pytest.mark.parametrize("option", ["--baseline", "--compare", "--profile"])
def test_a_file_without_end_is_not_read_to_its_end(option, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(baseline, "LARGEST_FILE_BYTES", 1_000)
    monkeypatch.setattr(scoring, "LARGEST_RESULT_BYTES", 1_000)
    monkeypatch.setattr(profiles, "LARGEST_FILE_BYTES", 1_000)
    (tmp_path / "s.jsonl").write_bytes(grown(500).bytes())
    (tmp_path / "endless").write_bytes(b"\0" * 1_001)
    command = {"--baseline": ["audit"], "--compare": ["accuracy"], "--profile": ["estimate", "--estimator=calibrated"]}
    assert exit_code([*command[option], option, str(tmp_path / "endless"), str(tmp_path / "s.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "too large" in said or "over 1,000 bytes" in said
