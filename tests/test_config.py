"""Where settings come from: files, the environment, options; and what a file that was only found may not do."""

import os
from pathlib import Path

import pytest

from compactctl import config
from compactctl.config import Surroundings
from compactctl.errors import UsageError

WORDING = '[layer1]\npreview_wording = "gone to {path}"\n'


@pytest.fixture
def place(tmp_path):
    """A home, and a working folder in a project, both empty."""
    folder = tmp_path / "home" / "project" / "deep"
    folder.mkdir(parents=True)
    return Surroundings(str(folder), {"HOME": str(tmp_path / "home")}, "linux")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def user_file(place: Surroundings) -> Path:
    return Path(place.home) / ".config" / "compactctl" / "compactctl.toml"


def project_file(place: Surroundings) -> Path:
    assert place.folder is not None
    return Path(place.folder).parent / "compactctl.toml"


def load(place, named=None, assignments=(), trust=False):
    return config.load(named, assignments, trust_project=trust, surroundings=place)


def refused(place, **how):
    with pytest.raises(UsageError) as raised:
        load(place, **how)
    return str(raised.value)


def single_limit(loaded):
    origin = loaded.resolved.origin("layer1.single_limit_bytes")
    return loaded.resolved.settings.layer1.single_limit_bytes, origin.source, origin.place


def test_without_any_source_all_is_default(place):
    loaded = load(place)
    assert (loaded.resolved.origins, loaded.files) == ({}, ())
    assert loaded.user_file == str(user_file(place))


def test_each_source_beats_the_one_before(place, tmp_path):
    key = "layer1.single_limit_bytes"
    assert single_limit(load(place)) == (50_000, "default", None)
    user = write(user_file(place), f"{key} = 1")
    assert single_limit(load(place)) == (1, "user file", f"{user}:1")
    found = write(project_file(place), f"\n{key} = 2")
    assert single_limit(load(place)) == (2, "found file", f"{found}:2")
    named = write(tmp_path / "named.toml", "[layer1]\nsingle_limit_bytes = 3")
    assert single_limit(load(place, str(named))) == (3, "config file", f"{named}:2")
    variable = "COMPACTCTL_LAYER1__SINGLE_LIMIT_BYTES"
    place = Surroundings(place.folder, {**place.environment, variable: "4"}, place.platform)
    assert single_limit(load(place, str(named))) == (4, "environment", variable)
    assert single_limit(load(place, str(named), [f"{key}=5"])) == (5, "option", "--set")


def test_the_nearest_file_upward_is_found(place):
    write(Path(place.home) / "compactctl.toml", "layer1.single_limit_bytes = 1")
    write(project_file(place), "layer1.single_limit_bytes = 2")
    assert single_limit(load(place))[0] == 2


def test_a_found_file_may_set_limits_only(place):
    path = write(project_file(place), WORDING)
    assert refused(place) == (
        f"{path}:2: layer1.preview_wording is no limit, and a file that was only found sets nothing else; "
        f"move it to {user_file(place)}, name the file with --config, or say --trust-project"
    )


@pytest.mark.parametrize("how", ["trusted", "named", "the user's"])
def test_a_file_that_is_trusted_may_set_anything(how, place):
    path = write(user_file(place) if how == "the user's" else project_file(place), WORDING)
    loaded = load(place, str(path) if how == "named" else None, trust=how == "trusted")
    assert loaded.resolved.settings.layer1.preview_wording == "gone to {path}"


def test_the_user_s_own_file_stays_trusted_where_it_is_found_upward_as_well(place):
    path = write(user_file(place), WORDING)
    inside = Surroundings(str(path.parent), place.environment, place.platform)
    assert [file.source for file in load(inside).files] == ["user file"]


def test_a_found_file_is_refused_whatever_beats_it(place):
    write(project_file(place), WORDING)
    assert "preview_wording" in refused(place, assignments=["layer1.preview_wording=en"])


@pytest.mark.parametrize(
    "text, said",
    [
        (
            "[layer1]\nsingle_limit_byte = 3\n",
            ":2: unknown setting layer1.single_limit_byte; did you mean layer1.single_limit_bytes?",
        ),
        ("# note\n[layre1]\nsingle_limit_bytes = 3\n", ":3: unknown setting layre1.single_limit_bytes; did you mean"),
        ("[layre1]\n", ":1: unknown setting layre1; "),
        ("layer1 = 3\n", ":1: layer1 is a group of settings"),
        (
            "layer1.'single_limit_bytes' = '3'\n",
            ':1: layer1.single_limit_bytes = "3" does not fit; write a whole number',
        ),
        ("layer1.single_limit_bytes = true\n", ":1: layer1.single_limit_bytes = true does not fit"),
        ("[layer1]\n\nsingle_limit_bytes 3\n", ":3: not TOML: "),
        ("[layer1", ": not TOML: "),
        ("a = " + "[" * 100_000, ": not TOML: "),
        ("# " + "x" * (1 << 20), ": over 1,048,576 bytes: no settings"),
    ],
)
@pytest.mark.parametrize("how", ["found", "named", "the user's"])
def test_a_wrong_file_is_named_with_its_line(how, text, said, place):
    path = write(user_file(place) if how == "the user's" else project_file(place), text)
    assert refused(place, named=str(path) if how == "named" else None).startswith(f"{path}{said}")


def test_a_file_that_is_not_utf_8_is_named_with_its_line(place):
    path = project_file(place)
    path.write_bytes(b"# a\n# caf\xe9\n")
    assert refused(place) == f"{path}:2: not UTF-8"


def test_a_byte_order_mark_is_no_error(place):
    project_file(place).write_bytes(b"\xef\xbb\xbflayer1.single_limit_bytes = 7\n")
    assert single_limit(load(place))[0] == 7


@pytest.mark.parametrize("name, said", [("none.toml", "no such file or directory"), ("", "is a directory")])
def test_a_named_file_that_can_t_be_read_is_wrong_usage(name, said, place, tmp_path):
    assert refused(place, named=str(tmp_path / name)).endswith(f"settings can't be read: {said}")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom modes bind")
def test_a_found_file_that_can_t_be_read_is_wrong_usage(place):
    write(project_file(place), "").chmod(0)
    assert "permission denied" in refused(place)


def test_a_working_folder_that_is_gone_finds_nothing(place):
    gone = Surroundings(None, place.environment, place.platform)
    assert load(gone).files == ()


@pytest.mark.parametrize(
    "environment, platform, expected",
    [
        ({}, "linux", ["HOME/.config"]),
        ({"XDG_CONFIG_HOME": "/x"}, "linux", ["/x"]),
        ({"XDG_CONFIG_HOME": "/x"}, "darwin", ["/x", "HOME/Library/Application Support"]),
        ({"XDG_CONFIG_HOME": "relative"}, "linux", ["HOME/.config"]),
        ({}, "darwin", ["HOME/.config", "HOME/Library/Application Support"]),
        ({"APPDATA": "/roaming"}, "win32", ["/roaming"]),
    ],
)
def test_where_the_user_s_file_may_be(environment, platform, expected):
    found = config.user_files(Surroundings(None, {"HOME": "/h", **environment}, platform))
    assert [str(path) for path in found] == [
        f"{each.replace('HOME', '/h')}/compactctl/compactctl.toml" for each in expected
    ]
