"""A provider that asks nobody: it records what it was asked, and answers as it is told."""

from collections.abc import Callable, Iterable

from compactctl.providers.interface import Answer, Kind, ProviderUsage, SummaryRequest

Reply = Answer | Exception | str | Callable[[SummaryRequest], Answer]


class FakeProvider:
    """Gives its replies one after the other, the last one again and again."""

    kind: Kind = "openai"
    is_remote = False
    address = "nowhere"

    def __init__(
        self,
        replies: Iterable[Reply] = (),
        *,
        name: str = "fake",
        model: str | None = None,
        window_tokens: int | None = None,
    ) -> None:
        self.replies = list(replies) or ["<analysis>hm</analysis><summary>All is told.</summary>"]
        self.asked: list[SummaryRequest] = []
        self.name = name
        self.model = model
        self.window_tokens = window_tokens

    @property
    def prompts(self) -> list[str]:
        return [request.prompt for request in self.asked]

    def answer(self, request: SummaryRequest) -> Answer:
        reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append(request)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, str):
            return Answer(reply, "stop", usage=ProviderUsage(len(request.prompt) // 3, len(reply) // 3))
        return reply if isinstance(reply, Answer) else reply(request)
