"""Settings: what they may be, and layers of them, without any file."""

import msgspec
import pytest

from compactctl.errors import UsageError
from compactctl.settings import (
    Given,
    Layer,
    Origin,
    Settings,
    environment_name,
    flattened,
    from_assignments,
    from_environment,
    is_limit,
    known_keys,
    resolve,
    value_of,
    with_changes,
    written,
)


def layer(source="user file", **values):
    """Return a layer of one file that sets these keys (`__` for the dot)."""
    given = tuple(Given(key.replace("__", "."), value, f"{source}:1") for key, value in values.items())
    return Layer(source, given)


def test_every_default_fits_its_own_setting():
    assert msgspec.convert(msgspec.to_builtins(Settings()), Settings) == Settings()


def test_a_later_layer_wins_and_each_value_knows_where_it_comes_from():
    resolved = resolve(
        [
            layer("user file", layer1__single_limit_bytes=1, layer1__round_limit_bytes=2, layer2__recent_keep_tokens=3),
            layer("found file", layer1__single_limit_bytes=4, layer1__round_limit_bytes=5),
            from_environment({"COMPACTCTL_LAYER1__ROUND_LIMIT_BYTES": "6"}),
            from_assignments(["layer1.round_limit_bytes=7"]),
        ]
    )
    layer1 = resolved.settings.layer1
    assert (layer1.single_limit_bytes, layer1.round_limit_bytes) == (4, 7)
    assert resolved.settings.layer2.recent_keep_tokens == 3
    assert {key: resolved.origin(key) for key in known_keys()[:3]} == {
        "layer1.single_limit_bytes": Origin("found file", "found file:1"),
        "layer1.round_limit_bytes": Origin("option", "--set"),
        "layer1.preview_head_lines": Origin("default", None),
    }


@pytest.mark.parametrize(
    "text, value",
    [
        ("layer1.single_limit_bytes=20000", 20_000),
        ("layer1.single_limit_bytes = 20_000 ", 20_000),
        ("layer1.single_limit_bytes=0", 0),
        ("layer1.preview_style=native", "native"),
        ("layer1.preview_wording=kept at {path}=ok", "kept at {path}=ok"),
        ("layer1.spill_media=true", True),
        ("estimator.bytes_per_token=2", 2.0),
        ("window.fallback_tokens=32000", 32_000),
        ("window.fallback_tokens=none", None),
    ],
)
def test_a_text_is_read_as_its_setting_has_it(text, value):
    assert value_of(with_changes(Settings(), [text]), text.partition("=")[0].strip()) == value


@pytest.mark.parametrize(
    "text, said",
    [
        ("layer1.single_limit_bytes", "--set layer1.single_limit_bytes: write KEY=VALUE, e.g. layer1"),
        ("layer1.single_limit_byte=3", "did you mean layer1.single_limit_bytes?"),
        ("single_limit=3", "unknown setting single_limit; did you mean layer1.single_limit_bytes?"),
        ("layer2.single_limit_bytes=3", "did you mean layer1.single_limit_bytes?"),
        ("zzz=3", "unknown setting zzz; compactctl settings lists them"),
        ("layer1=3", "layer1 is a group of settings, not one; layer1.NAME is"),
        (
            "layer1.single_limit_bytes=big",
            'layer1.single_limit_bytes = "big" does not fit; write a whole number from 0',
        ),
        ("layer1.single_limit_bytes=-1", "write a whole number from 0"),
        ("layer1.single_limit_bytes=", "write a whole number from 0"),
        ("layer1.single_limit_bytes=1.5", "write a whole number from 0"),
        ("layer1.single_limit_bytes=" + "9" * 5000, "write a whole number from 0"),
        ("layer1.preview_style=fancy", "write auto, seed or native"),
        ("layer1.preview_wording=gone", "write en, zh, or a text that has {path} in it"),
        ("layer1.spill_media=maybe", "write true or false"),
        ("estimator.bytes_per_token=0", "write a number from 0.01"),
        ("estimator.bytes_per_token=nan", "write a number from 0.01"),
        ("estimator.bytes_per_token=inf", "write a number from 0.01"),
        ("window.fallback_tokens=0", "write a whole number from 1, or none"),
    ],
)
def test_what_does_not_fit_is_said_with_what_would(text, said):
    with pytest.raises(UsageError) as raised:
        with_changes(Settings(), [text])
    assert said in str(raised.value)
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize("key", known_keys())
def test_every_setting_has_a_variable_in_the_environment(key):
    resolved = resolve([from_environment({environment_name(key): written(value_of(Settings(), key))})])
    assert resolved.origins == {key: Origin("environment", environment_name(key))}
    assert resolved.settings == Settings()


@pytest.mark.parametrize(
    "name",
    ["COMPACTCTL_LAYER1__SINGEL_LIMIT_BYTES", "COMPACTCTL_LAYER1_SINGLE_LIMIT_BYTES"],
)
def test_a_variable_that_nearly_is_one_is_wrong_usage(name):
    said = f"unknown setting {name}; did you mean COMPACTCTL_LAYER1__SINGLE_LIMIT_BYTES?"
    with pytest.raises(UsageError) as raised:
        resolve([from_environment({name: "3"})])
    assert str(raised.value) == said


@pytest.mark.parametrize(
    "environment", [{"COMPACTCTL_LAYER1__SINGLE_LIMIT_BYTES": ""}, {"COMPACTCTL_VERSION": "3"}, {"LAYER1__X": "3"}]
)
def test_an_empty_variable_and_one_that_is_not_ours_set_nothing(environment):
    assert from_environment(environment).given == ()


def test_wrong_values_in_the_environment_name_the_variable():
    with pytest.raises(UsageError, match=r"^COMPACTCTL_WINDOW__FALLBACK_TOKENS: window.fallback_tokens = "):
        resolve([from_environment({"COMPACTCTL_WINDOW__FALLBACK_TOKENS": "many"})])


def test_what_is_no_limit():
    assert [key for key in known_keys() if not is_limit(key)] == [
        "layer1.preview_style",
        "layer1.preview_wording",
        "layer1.spill_media",
        "layer2.too_long",
        "layer2.provider",
        "layer2.prompt",
        "estimator.media_as_text",
        "estimator.encoding_file",
        "estimator.encoding_pattern",
        "estimator.profile",
        "hooks.pre_compact",
        "hooks.post_compact",
    ]


@pytest.mark.parametrize(
    "value, key",
    [("20000", "layer1.single_limit_bytes"), (True, "layer1.single_limit_bytes"), (1.5, "layer1.round_limit_bytes")],
)
def test_a_value_of_toml_has_its_type(value, key):
    with pytest.raises(UsageError, match="write a whole number from 0"):
        resolve([Layer("user file", (Given(key, value, "x.toml:1"),))])


@pytest.mark.parametrize(
    "tree, keys",
    [
        ({"layer1": {"a": 1, "b": {"c": 2}}}, [("layer1.a", 1), ("layer1.b.c", 2)]),
        ({"layer1": {}}, []),
        ({"layre1": {}}, [("layre1", {})]),
        ({"layer1": 3}, [("layer1", 3)]),
    ],
)
def test_tables_become_dotted_keys(tree, keys):
    assert list(flattened(tree)) == keys


# providers ---------------------------------------------------------------------------------------


def test_a_provider_is_a_table_with_a_name_of_the_users():
    tree = {"providers": {"fast": {"kind": "openai", "model": "m", "window": 32_000}, "own": {"command": ["llm", "-"]}}}
    given = [Given(key, value, "x:1") for key, value in flattened(tree)]
    made = resolve([Layer("config file", tuple(given)), from_assignments(["providers.fast.timeout_s=5"])]).settings
    assert sorted(made.providers) == ["fast", "own"]
    assert (made.providers["fast"].model, made.providers["fast"].timeout_s) == ("m", 5.0)
    assert value_of(made, "providers.own.command") == ("llm", "-")


def test_a_member_that_providers_lack_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match=r"providers\.fast\.modell; did you mean providers\.fast\.model\?"):
        resolve([layer(providers__fast__modell="x")])


def test_a_found_file_sets_no_provider_and_no_hook():
    for key in ("providers.fast.model", "hooks.pre_compact", "layer2.prompt", "layer2.provider"):
        with pytest.raises(UsageError, match=key):
            resolve([Layer("found file", (Given(key, "x", "x:1"),), "say --trust-project")])


# severities --------------------------------------------------------------------------------------


def test_each_rule_s_severity_is_a_setting_of_its_own():
    tree = {"audit": {"severity": {"torn-tail": "note", "secret": "warning"}, "image_limit_count": 50}}
    given = tuple(Given(key, value, "x:1") for key, value in flattened(tree))
    layers = [
        Layer("config file", given),
        from_environment({"COMPACTCTL_AUDIT__SEVERITY__TORN_TAIL": "warning"}),
        from_assignments(["audit.severity.secret=off"]),
    ]
    made = resolve(layers)
    assert made.settings.audit.severity == {"torn-tail": "warning", "secret": "off"}
    assert made.origin("audit.severity.torn-tail").source == "environment"
    assert value_of(made.settings, "audit.severity.nul-run") == "error"
    assert made.settings.audit.image_limit_count == 50
    assert list(flattened({"audit": {"severity": {}}})) == []


@pytest.mark.parametrize(
    "text, said",
    [
        ("audit.severity.torn-tial=note", "did you mean audit.severity.torn-tail?"),
        ("audit.severity.torn-tail=bad", "write error, warning, note or off"),
        ("audit.severity=note", "audit.severity is a group of settings"),
    ],
)
def test_a_severity_that_is_none_is_refused(text, said):
    with pytest.raises(UsageError) as raised:
        with_changes(Settings(), [text])
    assert said in str(raised.value)


def test_a_found_file_can_not_silence_a_rule():
    given = Given("audit.severity.secret", "off", "x:1")
    with pytest.raises(UsageError, match=r"audit\.severity\.secret is no limit"):
        resolve([Layer("found file", (given,), "say --trust-project")])
