"""What a text is, roughly, by a look at its beginning: estimators err differently on prose, code and base64."""

import re
from typing import Literal

Content = Literal["prose", "code", "json", "logs", "cjk", "other-script", "base64", "images", "mixed"]

SAMPLE_CHARACTERS = 8_000

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]")
_OTHER_LETTERS = re.compile("[\u0370-\u1fff\u2c00-\u2dff\ua640-\uabff]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{120,}={0,2}")
_JSON_KEY = re.compile(r'"[^"\n]{1,60}"\s*:')
_LOG_LINE = re.compile(
    r"^\W*(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE|FATAL)\b|(?:ok|FAIL|PASS|---|===)\s)",
    re.MULTILINE,
)
_CODE_SIGNS = re.compile(r"[{}();=<>\[\]]|->|::|\b(?:def|func|return|import|const|let|var|class|if|else|for|fn|end)\b")

SCRIPT_SHARE = 0.2
BASE64_SHARE = 0.5
JSON_KEYS_PER_KB = 10
LOG_SHARE = 0.4
CODE_SIGNS_PER_KB = 35


def content(text: str) -> Content:
    """Return what most of a text is."""
    sample = text[:SAMPLE_CHARACTERS]
    size = len(sample) or 1
    if len(_CJK.findall(sample)) > SCRIPT_SHARE * size:
        return "cjk"
    if len(_OTHER_LETTERS.findall(sample)) > SCRIPT_SHARE * size:
        return "other-script"
    if sum(map(len, _BASE64.findall(sample))) > BASE64_SHARE * size:
        return "base64"
    if len(_JSON_KEY.findall(sample)) * 1000 > JSON_KEYS_PER_KB * size and sample.lstrip()[:1] in ("{", "["):
        return "json"
    lines = sample.count("\n") + 1
    if len(_LOG_LINE.findall(sample)) > LOG_SHARE * lines:
        return "logs"
    return "code" if len(_CODE_SIGNS.findall(sample)) * 1000 > CODE_SIGNS_PER_KB * size else "prose"
