"""Sessions of every format made at random from a seeded draw: rounds of calls, results of many sizes, damage.

A story is format-free (what was said, called and answered); each format writes it in its own way.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.builders import anthropic, chat, claude, codex, pi

ALPHABET = 'ab \n"\\/é日\U0001f600\u2028\u0085\t<'


@dataclass(frozen=True)
class Answered:
    """One call of a round and its result; None where it was never answered."""

    call_id: str
    text: str | None
    is_list: bool = False


@dataclass(frozen=True)
class Step:
    """A user message, or an answer with its calls; `used` is the context that the provider counted for it."""

    said: str
    calls: tuple[Answered, ...] = ()
    is_user: bool = False
    used: int | None = None


@dataclass(frozen=True)
class Damage:
    """What is done to the lines of the file: by line index, and at its end."""

    glued: tuple[int, ...] = ()
    blank: tuple[int, ...] = ()
    junk: tuple[int, ...] = ()
    newline: bytes = b"\n"
    mark: bytes = b""
    tail: bytes = b""
    final_newline: bool = True


@dataclass(frozen=True)
class Story:
    steps: tuple[Step, ...]
    damage: Damage = field(default_factory=Damage)


texts = st.text(ALPHABET, max_size=12)


@st.composite
def result_texts(draw):
    piece, times = draw(st.text(ALPHABET, min_size=1, max_size=12)), draw(st.sampled_from([1, 20, 120, 400]))
    return piece * times


call_ids = st.sampled_from(["a", "A", "call_1", "call_2", "../x", "x" * 120, "é|fc_1"])


@st.composite
def steps(draw):
    if draw(st.booleans()):
        return Step(draw(texts) or "Go on.", is_user=True)
    ids = draw(st.lists(call_ids, unique=True, max_size=3))
    calls = tuple(Answered(i, draw(st.none() | result_texts()), draw(st.booleans())) for i in ids)
    return Step(draw(texts) or "Looking.", calls, used=draw(st.none() | st.integers(1_000, 150_000)))


damages = st.builds(
    Damage,
    glued=st.lists(st.integers(0, 12), max_size=2).map(tuple),
    blank=st.lists(st.integers(0, 12), max_size=2).map(tuple),
    junk=st.lists(st.integers(0, 12), max_size=2).map(tuple),
    newline=st.sampled_from([b"\n", b"\n", b"\r\n"]),
    mark=st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    tail=st.sampled_from([b"", b"", b'{"type":"user","mess', b"\x00\x00\x00\x00", b'{"a":"\xc3']),
    final_newline=st.booleans(),
)

stories = st.builds(
    lambda first, rest, damage: Story((Step(first or "Start.", is_user=True), *rest), damage),
    texts,
    st.lists(steps(), min_size=2, max_size=9),
    damages,
)


# writing a story in each format --------------------------------------------------------------------


def _chat(story):
    rows = [chat.system()]
    for step in story.steps:
        if step.is_user:
            rows.append(chat.user(step.said))
            continue
        usage = {"usage": {"prompt_tokens": step.used, "completion_tokens": 7}} if step.used else {}
        rows.append(chat.assistant(step.said, [(c.call_id, "run", "{}") for c in step.calls], **usage))
        rows += [chat.tool(c.call_id, _blocks(c)) for c in step.calls if c.text is not None]
    return chat.lines(*rows)


def _blocks(answered):
    if not answered.is_list:
        return answered.text
    half = len(answered.text) // 2
    pieces = [answered.text[:half], answered.text[half:]]
    return [{"type": "text", "text": piece} for piece in pieces if piece] or answered.text


def _anthropic(story):
    rows = [anthropic.user("Hi."), anthropic.assistant(anthropic.text(), anthropic.use("first"))]
    rows.append(anthropic.user(anthropic.result("first")))
    for step in story.steps:
        if step.is_user:
            rows.append(anthropic.user(step.said))
            continue
        usage = {"usage": {"input_tokens": step.used, "output_tokens": 7}} if step.used else {}
        uses = [anthropic.use(c.call_id) for c in step.calls]
        rows.append(anthropic.assistant(anthropic.text(step.said), *uses, **usage))
        answers = [anthropic.result(c.call_id, _blocks(c)) for c in step.calls if c.text is not None]
        rows += [anthropic.user(*answers)] if answers else []
    return chat.lines(*rows)


def _claude(story):
    session = claude.Session()
    for step in story.steps:
        if step.is_user:
            session.user(step.said)
            continue
        usage = {"usage": claude.usage(step.used, out=7)} if step.used else {}
        session.assistant(claude.text(step.said), *(claude.call(c.call_id) for c in step.calls), **usage)
        for answered in step.calls:
            if answered.text is not None:
                copy = {"stdout": answered.text, "stderr": "", "interrupted": False, "lines": [answered.text] * 2}
                session.results(claude.result(answered.call_id, _blocks(answered)), copy=copy)
    return session.bytes()


def _codex(story):
    rows, total = [codex.meta(), codex.turn()], 0
    for step in story.steps:
        if step.is_user:
            rows.append(codex.said(codex.user(step.said)))
            continue
        rows.append(codex.said(codex.assistant(step.said)))
        rows += [codex.said(codex.call(c.call_id)) for c in step.calls]
        for answered in step.calls:
            if answered.text is not None:
                rows.append(codex.event("exec_command_end", call_id=answered.call_id, aggregated_output=answered.text))
                rows.append(codex.said(codex.output(answered.call_id, answered.text)))
        if step.used:
            total += step.used
            rows.append(codex.tokens(step.used, 7, total=total))
    return codex.jsonl(*rows)


def _pi(story):
    session = pi.Session()
    for number, step in enumerate(story.steps):
        if step.is_user:
            session.say(f"u{number:07}", pi.user(step.said))
            continue
        calls = [pi.call(c.call_id) for c in step.calls]
        usage = {"usage": pi.usage(step.used, 7)} if step.used else {}
        session.say(f"a{number:07}", pi.assistant(step.said, *calls, **usage))
        for index, answered in enumerate(step.calls):
            if answered.text is not None:
                value = _blocks(answered)
                session.say(f"r{number:06}{index}", pi.result(answered.call_id, value))
    return session.jsonl()


WRITERS = {"chat": _chat, "anthropic": _anthropic, "claude-code": _claude, "codex": _codex, "pi": _pi}


def write(story, name):
    """Return the story as a file of this format, damaged as the story says."""
    lines = WRITERS[name](story).split(b"\n")[:-1]
    damage = story.damage
    made = bytearray(damage.mark)
    last = len(lines) - 1
    for index, line in enumerate(lines):
        made += line
        if index in damage.glued and 0 < index < last:
            continue
        made += damage.newline if index < last or damage.final_newline else b""
        if index in damage.blank:
            made += damage.newline if made.endswith(b"\n") else b""
        if index in damage.junk and made.endswith(b"\n"):
            made += b'{"broken": \n'
    if damage.tail:
        made += (b"" if made.endswith(b"\n") else b"\n") + damage.tail
    return bytes(made)
