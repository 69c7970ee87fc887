"""Known kinds of keys go, and only those."""

import hashlib

import pytest

from compactctl.redact import RULES, add, redact


def drawn(length, alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", seed="seed"):
    """Letters as a key has them, the same in every run; put together here so that no scanner takes them for real."""
    digest = hashlib.sha512(seed.encode()).digest() * 4
    return "".join(alphabet[byte % len(alphabet)] for byte in digest[:length])


SECRETS = {
    "anthropic-key": "sk-ant-" + "api03-" + drawn(80),
    "openrouter-key": "sk-or-" + "v1-" + drawn(64, "0123456789abcdef"),
    "openai-key": "sk-" + "proj-" + drawn(60),
    "aws-access-key": "AKIA" + drawn(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "github-token": "ghp" + "_" + drawn(36),
    "gitlab-token": "glpat" + "-" + drawn(20),
    "google-key": "AIza" + drawn(35),
    "slack-token": "xoxb" + "-1234567890-" + drawn(24),
    "stripe-key": "sk_" + "live_" + drawn(24),
    "npm-token": "npm" + "_" + drawn(36),
    "pypi-token": "pypi-" + "AgE" + drawn(70),
    "huggingface-token": "hf" + "_" + drawn(34),
    "sendgrid-key": "SG." + drawn(22) + "." + drawn(43),
    "digitalocean-token": "dop" + "_v1_" + drawn(64, "0123456789abcdef"),
    "groq-key": "gsk" + "_" + drawn(52),
    "jwt": "eyJ" + drawn(20) + ".eyJ" + drawn(30) + "." + drawn(43),
    "private-key": f"-----BEGIN RSA PRIVATE KEY-----\n{drawn(64)}\n{drawn(64)}\n-----END RSA PRIVATE KEY-----",
}

AROUND = {
    "slack-webhook": ("https://hooks.slack.com/services/", "T0000/B0000/" + drawn(24), ""),
    "authorization": ('curl -H "Authorization: Bearer ', drawn(30), '" https://api.example.org/'),
    "bearer-token": ("sends bearer ", drawn(40), " with it"),
    "password-in-url": ("git clone https://deploy:", "hunter2", "@git.example.org/a.git"),
    "token-in-url": ("GET https://example.org/feed?access_token=", drawn(20), "&page=2"),
    "named-secret": ("export DB_PASSWORD='", "corr3ct-horse-battery", "'"),
}


@pytest.mark.parametrize("kind", [rule.kind for rule in RULES])
def test_each_kind_goes_and_leaves_what_stands_around_it(kind):
    before, secret, after = AROUND.get(kind) or ("the key is ", SECRETS[kind], " and works")
    made = redact(before + secret + after)
    assert made.text == f"{before}[redacted: {kind}]{after}"
    assert made.counts == {kind: 1}
    assert redact(made.text).text == made.text


@pytest.mark.parametrize(
    "text",
    [
        "commit 3e798957f1c2a0d6e5b4938271605f4e3d2c1b0a",
        f"sha256 {hashlib.sha256(b'x').hexdigest()}",
        "session 5c3a83f2-1982-4cec-acdc-ae1668adf92e, call toolu_01ABCdefGHIjklMNOpqrSTUv",
        "git show --format=%H sk-learn-docs; pip install sk-video",
        "password = os.environ['DB_PASSWORD']",
        'token: "$GITHUB_TOKEN"',
        "api_key=<your key here>",
        "token = get_token()",
        "password: required",
        'TOKEN = "3e798957f1c2a0d6e5b4938271605f4e3d2c1b0a"',
        "tokens: 123456789",
        "https://example.org:8080/path@v2",
        "next_token=/var/lib/secrets/next",
        "secret: ...",
    ],
)
def test_ids_digests_and_names_of_secrets_stay(text):
    assert redact(text) == redact(text)
    assert (redact(text).text, redact(text).counts) == (text, {})


def test_several_are_counted_by_kind():
    key, token = SECRETS["aws-access-key"], SECRETS["github-token"]
    made = redact(f"{key} {token} {key}")
    assert made.counts == {"aws-access-key": 2, "github-token": 1}
    assert add(made.counts, {"jwt": 1}, made.counts) == {"aws-access-key": 4, "github-token": 2, "jwt": 1}


def test_a_secret_inside_json_goes_and_the_json_stays_json():
    import json

    text = json.dumps({"command": f'curl -u me -H "X-Api-Key: {drawn(32)}"', "password": "s3cret-enough!"})
    made = redact(text)
    assert json.loads(made.text)["password"] == "[redacted: named-secret]"
    assert drawn(32) not in made.text
