"""Every setting, its default and what it may be, in one place; layers of given settings made into one.

The defaults are the constants of the described system (contract: settings and their defaults). All of it is pure:
what reads files and the environment is `config`.
"""

import difflib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from compactctl.errors import UsageError
from compactctl.findings import RULES

LARGEST = 10**15
"""No number that anybody means is larger, and every one up to here is exact wherever JSON is read."""

Limit = Annotated[int, Meta(ge=0, le=LARGEST, description="a whole number from 0", extra={"limit": True})]
Size = Annotated[int, Meta(ge=1, le=LARGEST)]
OptionalLimit = Annotated[Size | None, Meta(description="a whole number from 1, or none", extra={"limit": True})]
Ratio = Annotated[float, Meta(ge=0.01, le=1_000, description="a number from 0.01 to 1000", extra={"limit": True})]
Switch = Annotated[bool, Meta(description="true or false")]
PreviewStyle = Annotated[Literal["auto", "seed", "native"], Meta(description="auto, seed or native")]
TooLong = Annotated[Literal["fold", "drop"], Meta(description="fold or drop")]
ProviderKind = Annotated[
    Literal["extract", "openai", "anthropic", "command"], Meta(description="extract, openai, anthropic or command")
]
Percent = Annotated[float, Meta(ge=0, le=1_000_000, description="a number from 0", extra={"limit": True})]
RuleSeverity = Annotated[Literal["error", "warning", "note", "off"], Meta(description="error, warning, note or off")]
EncodingPattern = Annotated[Literal["o200k_base", "cl100k_base"], Meta(description="o200k_base or cl100k_base")]
OptionalText = Annotated[str | None, Meta(description="a text, or none")]
Command = Annotated[tuple[str, ...] | str, Meta(description="a list of words")]
PreviewWording = Annotated[
    str, Meta(pattern=r"\A(?:en|zh)\Z|\{path\}", description="en, zh, or a text that has {path} in it")
]
"""What a setting may be: checked by msgspec, described for people. A *limit* is a number that only says how much."""


class Layer1(Struct, frozen=True):
    """When results are spilled and what stays in their place."""

    single_limit_bytes: Limit = 50_000
    """A result is spilled when it is larger."""
    round_limit_bytes: Limit = 200_000
    """The results of one round are spilled, largest first, until they are not larger together."""
    preview_head_lines: Limit = 20
    preview_head_bytes: Limit = 2048
    preview_tail_lines: Limit = 0
    preview_tail_bytes: Limit = 0
    """A tail besides the head; none by default."""
    preview_style: PreviewStyle = "auto"
    """`seed`, `native` (the agent's own shape for a persisted output) or `auto`: native where the agent has one."""
    preview_wording: PreviewWording = "en"
    """`en`, `zh`, or a template with {size}, {path}, {head} and {tail}."""
    spill_media: Switch = False
    """Reserved: media in results are left alone."""
    twin_limit_bytes: Limit = 2048


class Layer2(Struct, frozen=True):
    """When history gives way to a summary. Layer 1 reads only what the threshold is made of."""

    summary_reserve_tokens: Limit = 20_000
    auto_safety_margin_tokens: Limit = 13_000
    manual_safety_margin_tokens: Limit = 3_000
    recent_keep_tokens: Limit = 10_000
    recent_keep_messages: Limit = 5
    summary_retry_limit: Limit = 3
    auto_failure_limit: Limit = 3
    facts_max_tokens: Limit = 1_500
    """What the facts that code adds to a summary may take; 0: none are added."""
    too_long: TooLong = "fold"
    """What becomes of history that does not fit a request: `fold` it in pieces, or `drop` the oldest rounds."""
    provider: OptionalText = None
    """The name of the provider that writes summaries; None: `extract`, which needs no model."""
    prompt: OptionalText = None
    """A file with another prompt; None: the one that comes along."""


class EstimatorSettings(Struct, frozen=True):
    bytes_per_token: Ratio = 3.5
    media_as_text: Switch = False
    """Whether images and documents count as the text of their base64, as some gateways have it."""
    encoding_file: OptionalText = None
    """A .tiktoken file, for `--estimator tiktoken`; None: the encoding of the session's model."""
    encoding_pattern: EncodingPattern = "o200k_base"
    """Whose pattern splits text for the encoding of that file."""
    profile: OptionalText = None
    """A calibration profile (JSON), for `--estimator calibrated`; None: the one that comes along."""


class WindowSettings(Struct, frozen=True):
    fallback_tokens: OptionalLimit = None
    """None: 128,000, or 200,000 where the model or format is Anthropic's."""


class Audit(Struct, frozen=True):
    """From where on `audit` finds something too large, and how bad it takes each rule to be."""

    request_limit_bytes: Limit = 32_000_000
    """What one request may carry, all in context together: Anthropic's API takes 32 MB."""
    image_limit_bytes: Limit = 5_000_000
    """One image, decoded: Anthropic's API takes 5 MB."""
    image_limit_count: Limit = 100
    """Images in context: Anthropic's API takes 100 a request."""
    heavy_results_count: Limit = 5
    heavy_results_percent: Percent = 50.0
    """The share of the window that so many of the largest results may take together."""
    estimator_error_percent: Percent = 25.0
    """How far an estimate may be from the usage that was recorded next."""
    lost_percent: Percent = 50.0
    lost_count: Limit = 10
    """After a compaction: the share, and the least number, of things used again that are gone before it is told."""
    read_again_percent: Percent = 50.0
    read_again_count: Limit = 10
    """The same of reads that read a file again."""
    loss_read_bytes: Limit = 200_000_000
    """So much of a session is read again, at most, to see what its compactions lost: the newest first."""
    severity: Mapping[str, RuleSeverity] = {}
    """By rule, where it is not the rule's own: `audit.severity.RULE`."""


class Hooks(Struct, frozen=True):
    """Commands that run before and after each session that `summarize` or `compact` writes."""

    pre_compact: OptionalText = None
    post_compact: OptionalText = None
    timeout_s: Ratio = 60.0


class ProviderSettings(Struct, frozen=True):
    """One named provider (`[providers.NAME]`). What its kind does not need stays None."""

    kind: ProviderKind = "openai"
    model: OptionalText = None
    base_url: OptionalText = None
    api_key_env: OptionalText = None
    """The name of the environment variable that holds the key; the key itself is no setting."""
    timeout_s: Ratio = 600.0
    max_retries: Limit = 2
    window: OptionalLimit = None
    """Tokens that the model takes; None: as the table of models says."""
    command: Command = ()
    """The words of the program, for the kind `command`."""


PROVIDERS = "providers"
"""The section whose tables are named by the user."""

SEVERITY = "audit.severity."
"""What stands before the name of a rule."""


class Settings(Struct, frozen=True):
    layer1: Layer1 = Layer1()
    layer2: Layer2 = Layer2()
    estimator: EstimatorSettings = EstimatorSettings()
    window: WindowSettings = WindowSettings()
    audit: Audit = Audit()
    hooks: Hooks = Hooks()
    providers: Mapping[str, ProviderSettings] = {}


def public(settings: Settings) -> Settings:
    """Return the settings as a report may tell them: without commands and addresses, which may hold a password."""
    return msgspec.structs.replace(settings, hooks=Hooks(), providers={})


# keys --------------------------------------------------------------------------------------------


def _types() -> dict[str, Any]:
    """Return what each setting may be, by key, in the order of the classes above; what has names of its own apart."""
    return {
        f"{section.name}.{field.name}": field.type
        for section in msgspec.structs.fields(Settings)
        if section.name != PROVIDERS
        for field in msgspec.structs.fields(section.type)
        if f"{section.name}.{field.name}." != SEVERITY
    }


_TYPES = _types()
_PROVIDER_TYPES = {field.name: field.type for field in msgspec.structs.fields(ProviderSettings)}


def _type(key: str) -> Any:
    """Return what a setting may be; None for a key that is none."""
    if key.startswith(SEVERITY):
        return RuleSeverity if key.removeprefix(SEVERITY) in RULES else None
    return _PROVIDER_TYPES.get(_provider_key(key)[1]) if key.startswith(f"{PROVIDERS}.") else _TYPES.get(key)


def _provider_key(key: str) -> tuple[str, str]:
    """Return name and member of a provider's setting."""
    name, _, member = key.removeprefix(f"{PROVIDERS}.").rpartition(".")
    return name, member


def known_keys() -> list[str]:
    """Return every key as it is written after `--set`."""
    return list(_TYPES)


def is_limit(key: str) -> bool:
    """Return whether a setting only says how much: all that a file may set that nobody named."""
    return bool((_meta(key).extra or {}).get("limit"))


def value_of(settings: Settings, key: str) -> object:
    """Return the value of one setting."""
    if key.startswith(SEVERITY):
        rule = key.removeprefix(SEVERITY)
        return settings.audit.severity.get(rule, RULES[rule])
    section, _, name = key.partition(".")
    if section == PROVIDERS:
        provider, member = _provider_key(key)
        return getattr(settings.providers.get(provider, ProviderSettings()), member)
    return getattr(getattr(settings, section), name)


def nearest(key: str) -> str | None:
    """Return the key that was most likely meant: one that starts so, one whose last part is alike, one like it."""
    if key.startswith(SEVERITY):
        rules = difflib.get_close_matches(key.removeprefix(SEVERITY), RULES, n=1)
        return f"{SEVERITY}{rules[0]}" if rules else None
    by_name = {known.rpartition(".")[2]: known for known in _TYPES}
    name = key.rpartition(".")[2]
    if key.startswith(f"{PROVIDERS}.") and "." in key.removeprefix(f"{PROVIDERS}."):
        members = difflib.get_close_matches(name, _PROVIDER_TYPES, n=1)
        return f"{key.rpartition('.')[0]}.{members[0]}" if members else None
    started = [known for known in _TYPES if name and known.startswith((key, f"{known.partition('.')[0]}.{name}"))]
    if started:
        return started[0]
    close = difflib.get_close_matches(name, by_name, n=1) if "." not in key else []
    close = [by_name[each] for each in close] or difflib.get_close_matches(key, _TYPES, n=1)
    return close[0] if close else None


ENVIRONMENT_PREFIX = "COMPACTCTL_"
ENVIRONMENT_DOT = "__"


def environment_name(key: str) -> str:
    """Return the name of the environment variable that sets this key."""
    return ENVIRONMENT_PREFIX + key.upper().replace(".", ENVIRONMENT_DOT).replace("-", "_")


def _meta(key: str) -> Meta:
    found: Meta = get_args(_type(key))[1]
    return found


# layers ------------------------------------------------------------------------------------------

SHOWN_CHARACTERS = 80
"""How much of a value that does not fit is repeated."""

Source = Literal["default", "user file", "found file", "config file", "environment", "option"]


class Given(Struct, frozen=True):
    """One setting as somebody gave it: a value of TOML, or a text."""

    key: str
    value: object
    place: str
    """What to look at where it is wrong: a file and line, a variable, the option."""


class Layer(Struct, frozen=True):
    """All that one source gives. Of `limits_only`, anything but a limit is refused, with the ways out that it says."""

    source: Source
    given: tuple[Given, ...]
    limits_only: str = ""


class Origin(Struct, frozen=True):
    """Where the value of a setting comes from."""

    source: Source
    place: str | None


class Resolved(Struct, frozen=True):
    """Settings, and where each value that is not a default comes from."""

    settings: Settings
    origins: dict[str, Origin]

    def origin(self, key: str) -> Origin:
        return self.origins.get(key, Origin("default", None))


def resolve(layers: Iterable[Layer]) -> Resolved:
    """Return the settings that the layers make, later ones over earlier ones.

    Raises UsageError that names the place and the key, and the nearest key or what would fit.
    """
    values: dict[str, object] = {}
    origins: dict[str, Origin] = {}
    for layer in layers:
        for given in layer.given:
            _require_known(given, layer)
            values[given.key] = _value(given, layer.source in ("environment", "option"))
            origins[given.key] = Origin(layer.source, given.place)
    return Resolved(_with_values(Settings(), values), origins)


def with_changes(settings: Settings, assignments: Iterable[str]) -> Settings:
    """Return the settings with each `KEY=VALUE` applied. Raises UsageError that names the key and the nearest one."""
    layer = from_assignments(assignments)
    resolved = resolve([layer])
    return _with_values(settings, {key: value_of(resolved.settings, key) for key in resolved.origins})


def from_assignments(assignments: Iterable[str]) -> Layer:
    """Return what `--set KEY=VALUE` gives. Raises UsageError where one is no assignment."""
    given = []
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"--set {assignment}: write KEY=VALUE, e.g. layer1.single_limit_bytes=20000")
        given.append(Given(key.strip(), text.strip(), "--set"))
    return Layer("option", tuple(given))


def from_environment(environment: Mapping[str, str]) -> Layer:
    """Return what the environment gives, by names like COMPACTCTL_LAYER1__SINGLE_LIMIT_BYTES; an empty one is not set.

    A name with one underscore where two belong is taken too, so that it is refused and not passed over in silence.
    """
    blurred = {_blurred(environment_name(key)) for key in _TYPES}
    given = []
    for name in sorted(environment):
        text = environment[name].strip()
        if not name.startswith(ENVIRONMENT_PREFIX) or not text:
            continue
        rest = name.removeprefix(ENVIRONMENT_PREFIX)
        if ENVIRONMENT_DOT in rest or _blurred(name) in blurred:
            given.append(Given(_key(rest), text, name))
    return Layer("environment", tuple(given))


def _key(rest: str) -> str:
    """Return the key that the rest of a variable's name stands for. Names of rules have hyphens."""
    key = rest.lower().replace(ENVIRONMENT_DOT, ".")
    return SEVERITY + key.removeprefix(SEVERITY).replace("_", "-") if key.startswith(SEVERITY) else key


def _blurred(name: str) -> str:
    return name.replace("_", "")


def flattened(tree: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the dotted keys of nested tables, each with its value; an empty table that is no section comes as one."""
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and value and key not in _TYPES:
            yield from flattened(value, f"{key}.")
        elif value != {} or key not in _SECTIONS:
            yield key, value


_SECTIONS = frozenset({*(key.partition(".")[0] for key in _TYPES), PROVIDERS, SEVERITY.rstrip(".")})


def _require_known(given: Given, layer: Layer) -> None:
    if given.key in _SECTIONS:
        raise UsageError(f"{given.place}: {given.key} is a group of settings, not one; {given.key}.NAME is")
    if _type(given.key) is None:
        raise UsageError(_unknown(given, layer.source))
    if layer.limits_only and not is_limit(given.key):
        raise UsageError(
            f"{given.place}: {given.key} is no limit, and a file that was only found sets nothing else; "
            f"{layer.limits_only}"
        )


def _unknown(given: Given, source: Source) -> str:
    near = nearest(given.key)
    if source == "environment":
        name, hint = given.place, near and environment_name(near)
    else:
        name, hint = given.key, near
    place = "" if source == "environment" else f"{given.place}: "
    return f"{place}unknown setting {name}; " + (f"did you mean {hint}?" if hint else "compactctl settings lists them")


def _value(given: Given, is_text: bool) -> object:
    """Return a given value as its setting has it. Raises UsageError that says what would fit."""
    value = _plain(given.value) if is_text else given.value
    try:
        return msgspec.convert(value, _type(given.key), strict=not is_text)
    except msgspec.ValidationError:
        shown = _shown(given.value)[:SHOWN_CHARACTERS]
        wanted = _meta(given.key).description
        raise UsageError(f"{given.place}: {given.key} = {shown} does not fit; write {wanted}") from None


def _plain(value: object) -> object:
    """Return a text without what people write into numbers (20_000), and `none` as None."""
    if not isinstance(value, str):
        return value
    if value.lower() == "none":
        return None
    digits = value.replace("_", "")
    return digits if digits.isdecimal() else value


def written(value: object) -> str:
    """Return a value as it is written after `--set`."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return shlex.join(value)
    return str(value)


def _shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else written(value)


def _with_values(settings: Settings, values: Mapping[str, object]) -> Settings:
    for key, value in values.items():
        section, _, name = key.partition(".")
        if section == PROVIDERS:
            settings = _with_provider(settings, key, value)
            continue
        if key.startswith(SEVERITY):
            name, value = "severity", {**settings.audit.severity, key.removeprefix(SEVERITY): value}
        changed = msgspec.structs.replace(getattr(settings, section), **{name: value})
        settings = msgspec.structs.replace(settings, **{section: changed})
    return settings


def _with_provider(settings: Settings, key: str, value: object) -> Settings:
    name, member = _provider_key(key)
    known = settings.providers.get(name, ProviderSettings())
    changed = msgspec.structs.replace(known, **{member: value})
    return msgspec.structs.replace(settings, providers={**settings.providers, name: changed})
