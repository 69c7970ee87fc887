"""The one place that takes secrets out of text: all that leaves the machine or enters a summary or a report.

A documented set of rules, each for a known kind of key, told by its own shape (a prefix and a length, or an armour)
or by what stands right before it (a password in an address, the value of an authorization header, a value given to a
name that says it is secret). A commit id, a digest, a uuid and a call id have no such shape and are never touched;
neither is the word that only names a secret (`$API_KEY`, `<token>`, `os.environ["TOKEN"]`).

The shapes are those that the services publish for secret scanning; where the rule set of gitleaks has one it is the
model. Nothing is looked up and nothing is decoded: the promise is that known kinds are found, not that all are.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct


class Redacted(Struct, frozen=True):
    """A text without its secrets, and how many of each kind were in it."""

    text: str
    counts: Mapping[str, int]


class Rule(NamedTuple):
    """One kind of secret. The group `secret` of the pattern gives way; what stands around it stays."""

    kind: str
    hints: tuple[str, ...]
    """One of these is in every text that has such a secret: most texts are through by that alone."""
    pattern: re.Pattern[str]
    words: tuple[str, ...] = ()
    """Where there are any, one of these is in it as well, in whatever case: the pattern alone would be slow."""


def _rule(kind: str, hints: str, pattern: str, flags: int = 0, words: str = "") -> Rule:
    return Rule(kind, tuple(hints.split()), re.compile(pattern, flags), tuple(words.split()))


_END = r"(?![A-Za-z0-9_\-])"
_START = r"(?<![A-Za-z0-9_\-])"

RULES: tuple[Rule, ...] = (
    _rule(
        "private-key",
        "PRIVATE",
        r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:(?!-----BEGIN ).)*?"
        r"(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z))",
        re.DOTALL,
    ),
    _rule("anthropic-key", "sk-ant-", rf"{_START}(?P<secret>sk-ant-[A-Za-z0-9_\-]{{20,}})"),
    _rule("openrouter-key", "sk-or-", rf"{_START}(?P<secret>sk-or-[A-Za-z0-9_\-]{{20,}})"),
    _rule(
        "openai-key",
        "sk-",
        rf"{_START}(?P<secret>sk-(?:proj|svcacct|admin)-[A-Za-z0-9_\-]{{20,}}|sk-[A-Za-z0-9]{{32,}}){_END}",
    ),
    _rule("aws-access-key", "AKIA ASIA", rf"{_START}(?P<secret>(?:AKIA|ASIA)[A-Z2-7]{{16}}){_END}"),
    _rule(
        "github-token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        rf"{_START}(?P<secret>gh[pousr]_[A-Za-z0-9]{{36,}}|github_pat_[A-Za-z0-9_]{{22,}}){_END}",
    ),
    _rule("gitlab-token", "glpat- gldt- glrt-", rf"{_START}(?P<secret>gl(?:pat|dt|rt)-[A-Za-z0-9_\-]{{20,}}){_END}"),
    _rule("google-key", "AIza", rf"{_START}(?P<secret>AIza[A-Za-z0-9_\-]{{35}}){_END}"),
    _rule(
        "slack-token",
        "xox xapp-",
        rf"{_START}(?P<secret>xox[abeprs]-[A-Za-z0-9\-]{{10,}}|xapp-\d-[A-Za-z0-9\-]{{20,}})",
    ),
    _rule("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{20,})"),
    _rule(
        "stripe-key",
        "_live_ _test_ whsec_",
        rf"{_START}(?P<secret>(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{{16,}}){_END}",
    ),
    _rule("npm-token", "npm_", rf"{_START}(?P<secret>npm_[A-Za-z0-9]{{36}}){_END}"),
    _rule("pypi-token", "pypi-", rf"{_START}(?P<secret>pypi-AgE[A-Za-z0-9_\-]{{50,}})"),
    _rule("huggingface-token", "hf_", rf"{_START}(?P<secret>hf_[A-Za-z0-9]{{30,}}){_END}"),
    _rule("sendgrid-key", "SG.", rf"{_START}(?P<secret>SG\.[A-Za-z0-9_\-]{{20,24}}\.[A-Za-z0-9_\-]{{39,50}}){_END}"),
    _rule("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", rf"{_START}(?P<secret>do[por]_v1_[a-f0-9]{{64}}){_END}"),
    _rule("groq-key", "gsk_", rf"{_START}(?P<secret>gsk_[A-Za-z0-9]{{40,}}){_END}"),
    _rule(
        "jwt",
        "eyJ",
        rf"{_START}(?P<secret>eyJ[A-Za-z0-9_\-]{{8,}}\.eyJ[A-Za-z0-9_\-]{{8,}}\.[A-Za-z0-9_\-]{{8,}}){_END}",
    ),
    _rule(
        "authorization",
        "uthorization api-key Api-Key API-KEY X-Auth x-auth",
        r"(?:authorization|x-api-key|api-key|x-auth-token)[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token)\s+)?"
        r"(?P<secret>[A-Za-z0-9._~+/=\-]{8,})",
        re.IGNORECASE,
    ),
    _rule("bearer-token", "earer EARER", r"\bbearer\s+(?P<secret>[A-Za-z0-9._~+/=\-]{20,})", re.IGNORECASE),
    _rule(
        "password-in-url",
        "://",
        r"(?<=[a-z0-9+.\-])://[^\s/?#@:\"'<>]*:(?P<secret>[^\s/?#@\"'<>]{1,})@",
        re.IGNORECASE,
    ),
    _rule(
        "token-in-url",
        "?",
        r"[?&](?:access_token|api_?key|apikey|auth|client_secret|password|sig|signature|token|x-amz-signature)="
        r"(?P<secret>[A-Za-z0-9._~+/%\-]{8,})",
        re.IGNORECASE,
    ),
    _rule(
        "named-secret",
        "= :",
        r"(?<![A-Za-z])"
        r"(?:api[_\-]?key|access[_\-]?key(?:[_\-]id)?|secret[_\-]?(?:access[_\-]?)?key|client[_\-]?secret"
        r"|auth[_\-]?token|access[_\-]?token|refresh[_\-]?token|session[_\-]?token|private[_\-]?token"
        r"|token|secret|(?:pg)?password|passwd|passphrase)"
        r"\\?[\"']?\s{0,3}(?:=|:)\s{0,3}\\?[\"']?(?P<secret>[^\s\"'`<>$(){}\[\],;&|\\]{8,})",
        re.IGNORECASE,
        words="key token secret passw passphrase",
    ),
)
"""In order: what an earlier rule took out is no longer there for a later one."""

_HINT = re.compile("|".join(re.escape(hint) for rule in RULES for hint in rule.hints))

VAGUE = frozenset({"named-secret", "authorization"})
"""Rules that go by a name alone: the value must look like something that was drawn by chance or chosen by a person."""

_HEX_ID = re.compile(r"[0-9a-f]{7,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MARK = re.compile(r"\[redacted: [a-z\-]+\]")


def mark(kind: str) -> str:
    """Return what stands where a secret of this kind stood."""
    return f"[redacted: {kind}]"


def redact(text: str) -> Redacted:
    """Return the text with each known kind of key replaced by a mark. Doing it again changes nothing more."""
    counts: dict[str, int] = {}

    def count(kind: str, _: str) -> None:
        counts[kind] = counts.get(kind, 0) + 1

    return Redacted(_replaced(text, count), counts)


class Secret(NamedTuple):
    """A known kind of key that was found, and its value, which no output may tell."""

    kind: str
    value: str


def secrets(text: str) -> list[Secret]:
    """Return what `redact` would take out of a text, in the order of the rules."""
    found: list[Secret] = []
    _replaced(text, lambda kind, value: found.append(Secret(kind, value)))
    return found


def _replaced(text: str, note: Callable[[str, str], None]) -> str:
    if _HINT.search(text) is None:
        return text
    lower = ""
    for rule in RULES:
        for hint in rule.hints:
            if hint in text:
                break
        else:
            continue
        if rule.words:
            lower = lower or text.lower()
            if not any(word in lower for word in rule.words):
                continue
        text = rule.pattern.sub(_replacer(rule, note), text)
    return text


def _replacer(rule: Rule, note: Callable[[str, str], None]) -> Callable[[re.Match[str]], str]:
    def replaced(match: re.Match[str]) -> str:
        secret = match["secret"]
        if _MARK.search(match[0]) or secret.startswith("[redacted") or (rule.kind in VAGUE and not _is_drawn(secret)):
            return match[0]
        note(rule.kind, secret)
        start, end = match.span("secret")
        return match[0][: start - match.start()] + mark(rule.kind) + match[0][end - match.start() :]

    return replaced


def _is_drawn(value: str) -> bool:
    """Return whether a value that a secret name was given may be the secret: no word, no path, no name of a variable.

    An id of hex digits alone is none (a commit, a digest), whatever its name; nor is a number.
    """
    if _HEX_ID.fullmatch(value) or value.isdigit() or "/" in value[:1] or "..." in value or "***" in value:
        return False
    kinds = (any(c.isdigit() for c in value), any(c.isupper() for c in value), any(c.islower() for c in value))
    has_mark = any(not c.isalnum() and c not in "_-." for c in value)
    return sum(kinds) + has_mark >= 2 and (kinds[0] or has_mark) and "()" not in value and not value.startswith("os.")


def add(*counts: Mapping[str, int]) -> dict[str, int]:
    """Return several counts as one, by kind in order of names."""
    kinds: Iterable[str] = sorted({kind for each in counts for kind in each})
    return {kind: sum(each.get(kind, 0) for each in counts) for kind in kinds}
