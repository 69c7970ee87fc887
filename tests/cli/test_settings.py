"""Settings on their way from files, the environment and options to the run, and how they are listed."""

import json
import re

import pytest

from compactctl.__main__ import exit_code
from tests.builders.outcomes import batch, outcome


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A working folder below a compactctl.toml, and what writes that file."""
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    return (tmp_path / "compactctl.toml").write_text


@pytest.mark.parametrize("command", ["inspect", "estimate", "spill"])
def test_settings_of_all_places_reach_the_run(command, project, fake, monkeypatch, tmp_path):
    project("[layer1]\nsingle_limit_bytes = 1\nround_limit_bytes = 1\n")
    (tmp_path / "named.toml").write_text("[layer1]\nsingle_limit_bytes = 2\npreview_style = 'seed'\n")
    monkeypatch.setenv("COMPACTCTL_LAYER2__RECENT_KEEP_TOKENS", "3")
    stand_in = fake(batch())
    assert (
        exit_code([command, "x", "--config", str(tmp_path / "named.toml"), "--set", "layer1.preview_head_lines=4"]) == 0
    )
    layer1, layer2 = stand_in.asked[0][1].settings.layer1, stand_in.asked[0][1].settings.layer2
    assert (layer1.single_limit_bytes, layer1.round_limit_bytes, layer1.preview_style) == (2, 1, "seed")
    assert (layer1.preview_head_lines, layer2.recent_keep_tokens) == (4, 3)


def test_a_found_file_that_sets_more_than_limits_is_wrong_usage_unless_trusted(project, fake, capsys):
    project('layer1.preview_style = "seed"\n')
    stand_in = fake(batch())
    assert exit_code(["spill", "x"]) == 2
    assert "compactctl.toml:1: layer1.preview_style is no limit" in capsys.readouterr().err
    assert exit_code(["spill", "x", "--trust-project"]) == 0
    assert stand_in.asked[0][1].settings.layer1.preview_style == "seed"


@pytest.mark.parametrize("command", ["verify", "restore"])
def test_what_undoes_is_not_stopped_by_settings(command, project, fake):
    project("nonsense\n")
    fake(batch())
    assert exit_code([command, "x"]) == 0


def test_verbose_names_the_files_of_settings(project, fake, capsys, tmp_path):
    project("layer1.single_limit_bytes = 1\n")
    fake(batch(outcome()))
    exit_code(["inspect", "x", "-v"])
    assert capsys.readouterr().err == f"settings from the found file: {tmp_path / 'compactctl.toml'}\n"


def test_settings_lists_each_value_and_where_it_comes_from(project, capsys, tmp_path):
    project("layer1.single_limit_bytes = 20_000\n")
    place = f"{tmp_path / 'compactctl.toml'}:1"
    assert exit_code(["settings", "--set", "window.fallback_tokens=1", "-o", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["schema"], made["files"]) == (
        "compactctl.settings/1",
        [{"source": "found_file", "path": str(tmp_path / "compactctl.toml")}],
    )
    assert {
        item["key"]: (item["value"], item["default"], item["source"], item["place"]) for item in made["settings"]
    } | {
        "layer1.single_limit_bytes": (20_000, 50_000, "found_file", place),
        "layer1.round_limit_bytes": (200_000, 200_000, "default", None),
        "window.fallback_tokens": (1, None, "option", "--set"),
    } == {item["key"]: (item["value"], item["default"], item["source"], item["place"]) for item in made["settings"]}
    assert exit_code(["settings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(rf"layer1.single_limit_bytes +20000 +50000 +found file, {re.escape(place)}", lines[1])
    assert lines[-1].endswith("compactctl/compactctl.toml (not there)")
