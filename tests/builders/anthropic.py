"""Lines of the `anthropic` format, as the Messages API takes and gives them."""


def user(*blocks):
    """A user line: of one text if that is all there is, else of blocks."""
    return {"role": "user", "content": blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)}


def assistant(*blocks, **more):
    content = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)
    return {"role": "assistant", "content": content, **more}


def text(words="Looking."):
    return {"type": "text", "text": words}


def use(call_id, name="run", **arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id, content="fine", **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def thinking(words="Hm.", signature="c2lnbmF0dXJl"):
    return {"type": "thinking", "thinking": words, "signature": signature}
