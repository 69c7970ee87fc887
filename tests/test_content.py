"""What a text is, told from the text alone."""

import pytest

from compactctl.content import content


@pytest.mark.parametrize(
    "text, kind",
    [
        ("I looked at the tests and they all seem to pass. Shall I go on?", "prose"),
        ("def add(a, b):\n    return (a + b)\n\nclass Sum:\n    def __init__(self):\n        self.x = {}\n", "code"),
        ('{"name": "x", "size": 3, "items": [{"id": 1, "ok": true}, {"id": 2, "ok": false}]}', "json"),
        ("2026-01-01 10:00:00 INFO started\n2026-01-01 10:00:01 WARN slow\n", "logs"),
        ("夜間のインポートが値を二度書き込みます。原因を調べてください。", "cjk"),
        ("Ночной импорт записывает значения дважды. Найди причину.", "other-script"),
        ("iVBORw0KGgo" * 40, "base64"),
    ],
)
def test_what_a_text_is(text, kind):
    assert content(text) == kind
