"""Stories, built in few words: what a summariser is asked about."""

from compactctl.story import Answered, Called, Said


def story(*messages: Said) -> tuple[Said, ...]:
    """Return the messages with their indexes and lines as they stand here."""
    return tuple(
        Said(index, each.role, each.text, each.calls, each.result, each.is_summary, index + 1)
        for index, each in enumerate(messages)
    )


def user(text: str = "Do it.") -> Said:
    return Said(0, "user", text)


def assistant(text: str = "", *calls: Called) -> Said:
    return Said(0, "assistant", text, calls)


def call(call_id: str = "a", name: str = "Read", arguments: str = "{}") -> Called:
    return Called(call_id, name, arguments)


def result(call_id: str = "a", text: str = "done", name: str = "Read", **more) -> Said:
    return Said(0, "tool", result=Answered(call_id, name, text, **more))


def summary(text: str) -> Said:
    return Said(0, "user", text, is_summary=True)


def long_story(rounds: int, result_bytes: int = 400) -> tuple[Said, ...]:
    """Return a story of a request and so many rounds, each with words of its own."""
    messages = [user("Find the slow query.")]
    for number in range(rounds):
        words = f"table{number} is read in {number} ms; "
        messages.append(assistant(f"Looking at table{number}.", call(f"c{number}", "Bash", f'{{"n": {number}}}')))
        messages.append(result(f"c{number}", words * (result_bytes // len(words)), "Bash"))
    return story(*messages)
