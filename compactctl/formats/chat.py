"""`chat`: one chat-completions message a line, or one conversation (`{"messages": […]}`) a line.

Facts: `content` is text, parts or null; a call's `arguments` is a string of JSON; results are lines of role `tool`.
The legacy `function_call` and its `function` line carry no id and pair by the function's name. An assistant line
may carry `model` and `usage` as the API returned it: what that one request took in (cached tokens inside) and
gave out.
Every line is sent as it stands, so the whole file is the effective context, and order matters to the API.
"""

from compactctl.formats.messages import MessageLines


class Chat(MessageLines, frozen=True):
    """Chat-completions messages, one or one conversation a line"""


FORMAT = Chat(name="chat", is_anthropic=False)
