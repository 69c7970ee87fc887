"""A real model, small and local: the wiring is proved, not the quality of what it writes."""

import json
import subprocess
import sys

import pytest

from compactctl import errors
from compactctl.providers import ProviderConfig, make
from compactctl.providers.interface import SummaryRequest
from compactctl.summary import Budget, summarize
from tests.builders import chat
from tests.builders.said import assistant, story, user
from tests.model.served import WINDOW_TOKENS, Served, why_not

pytestmark = [pytest.mark.model, pytest.mark.skipif(why_not() is not None, reason=why_not() or "")]

TEMPLATE = "{previous}{history}\n\nWrite one short sentence that says what the user asked for and what was done.\n"
"""So small a model can't follow our own prompt; it can say something about a text, and stop."""

TALK = [
    ("My shop's order page is slow.", "The query of the orders table has no index. I added one on customer_id."),
    ("Is it faster now?", "Yes: the page took 2300 ms before and takes 40 ms now."),
    ("Then write a test for it.", "I wrote tests/test_orders.py; it passes."),
    ("And the invoices page?", "It had the same trouble. I added an index on invoice_date."),
]
WORDS = " ".join(f"The log of day {day} shows {day * 7} orders and no error at all." for day in range(60))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with Served(tmp_path_factory.mktemp("model")) as server:
        yield server


def local(served):
    return make(ProviderConfig("local", "openai", model="smollm2", base_url=served.base_url, timeout_s=300.0), {})


class Heard:
    """A provider that notes what another one is asked and what came of it."""

    def __init__(self, inner):
        self._inner = inner
        self.sizes = []
        self.outcomes = []
        self.name, self.kind, self.model, self.window_tokens = inner.name, inner.kind, inner.model, None
        self.address, self.is_remote = inner.address, inner.is_remote

    def answer(self, request):
        self.sizes.append(len(request.prompt))
        try:
            made = self._inner.answer(request)
        except errors.ProviderError as error:
            self.outcomes.append(error)
            raise
        self.outcomes.append(made)
        return made


def talk(times):
    messages = [
        each
        for _ in range(times)
        for asked, said in TALK
        for each in (user(asked), assistant(f"{said} {WORDS[:2400]}"))
    ]
    return story(*messages)


def test_its_answer_comes_with_what_it_counted(served):
    made = local(served).answer(SummaryRequest("Say hello.", 64))
    assert made.text.strip()
    assert made.stop_reason in ("stop", "length")
    assert made.usage.input_tokens > 0


def test_a_real_too_long_names_its_numbers(served):
    with pytest.raises(errors.TooLong) as caught:
        local(served).answer(SummaryRequest(WORDS * 5, 64))
    assert caught.value.limit_tokens == WINDOW_TOKENS
    assert caught.value.size_tokens > WINDOW_TOKENS


def test_a_story_that_is_too_long_for_it_is_folded_by_the_numbers_of_its_error(served):
    """The window is told four times as large as it is, so that the server itself has to say no."""
    provider = Heard(local(served))
    made = summarize(provider, talk(1), None, Budget(4 * WINDOW_TOKENS), "fold", template=TEMPLATE)
    refused = [
        size
        for size, outcome in zip(provider.sizes, provider.outcomes, strict=True)
        if isinstance(outcome, errors.TooLong)
    ]
    taken = [
        size
        for size, outcome in zip(provider.sizes, provider.outcomes, strict=True)
        if not isinstance(outcome, Exception)
    ]
    assert made.text
    assert made.folds == len(taken) - 1 > 0
    assert len(refused) >= 1
    assert max(taken) < min(refused)


def test_summarize_writes_a_session_with_its_summary(served, tmp_path):
    rows = [
        row
        for number in range(4)
        for row in (chat.user(f"{number}: {TALK[number][0]}"), chat.assistant(TALK[number][1]))
    ]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "prompt.txt").write_text(TEMPLATE)
    (tmp_path / "c.toml").write_text(
        f'[layer2]\nprompt = "{tmp_path}/prompt.txt"\nrecent_keep_tokens = 20\nrecent_keep_messages = 2\n'
        f'[providers.local]\nkind = "openai"\nmodel = "smollm2"\nbase_url = "{served.base_url}"\n'
        f"window = {WINDOW_TOKENS}\n"
    )
    command = ["-m", "compactctl", "summarize", "--config", str(tmp_path / "c.toml"), "-o", "json", str(path)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (session,) = json.loads(done.stdout)["sessions"]
    assert (session["status"], session["layer2"]["ran"], session["layer2"]["provider"]) == ("applied", True, "local")
    assert session["layer2"]["usage"]["input_tokens"] > 0
    assert (tmp_path / "s.compacted.jsonl").exists()
