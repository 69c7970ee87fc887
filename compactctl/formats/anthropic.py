"""`anthropic`: one Messages-API message a line, or one conversation (`{"messages": […], "system": …}`) a line.

Facts: results are blocks of user lines and must come first in the line after their calls; a system prompt stands
beside the messages, never among them; thinking is signed and must stay whole. `usage` counts cached input beside
`input_tokens`. A file is in this format as soon as one block in it is a call, a result or thinking.
Lines that share an `id` are one answer; the last usage of it counts.
Every line is sent as it stands, so the whole file is the effective context, and order matters to the API.
"""

from compactctl.formats.messages import MessageLines


class Anthropic(MessageLines, frozen=True):
    """Messages-API messages, one or one conversation a line"""


FORMAT = Anthropic(name="anthropic", is_anthropic=True)
