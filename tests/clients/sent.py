"""What a client sent, as tests compare it."""


def spoken(messages):
    """Return what persons, the model and tools said, neighbouring answers as one; of a result only whose it is."""
    told = []
    for message in messages:
        if message["role"] not in ("user", "assistant", "tool"):
            continue
        calls = [call[0].split("|")[0] for call in message.get("calls", [])]
        result = (message.get("result_of") or "").split("|")[0]
        if message["role"] == "assistant" and told and told[-1][0] == "assistant":
            told[-1] = ("assistant", told[-1][1] + message["text"], [*told[-1][2], *calls], "")
        else:
            told.append((message["role"], "" if result else message["text"], calls, result))
    return told


def is_closed(told):
    """Return whether each call is answered right behind it, once, and each result has its call."""
    waiting = []
    for role, _, calls, result in told:
        if role == "tool":
            if result not in waiting:
                return False
            waiting.remove(result)
        elif waiting:
            return False
        else:
            waiting = list(calls)
    return not waiting
