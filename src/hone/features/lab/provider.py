"""The lab's provider: the learner behind real HTTP, and a record of each call's cost."""

from collections.abc import Sequence

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.messages import Message, ToolCall
from hone.core.model import Reply, Usage
from hone.features.lab.learner import Learner
from hone.features.lab.request import Seen, read
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.caching import Billing
from hone.models.scripted import say, weigh

MODEL = "learner"
RECALL = 64


class LearnerCall(Struct, frozen=True):
    """One request and its answer."""

    review: bool
    usage: Usage
    system: str
    calls: tuple[ToolCall, ...]


class LearnerProvider:
    """`async with LearnerProvider(learner, clock) as provider` serves it at `provider.url`."""

    def __init__(self, learner: Learner, clock: Clock) -> None:
        self._learner = learner
        self._billing = Billing(RECALL, clock)
        self._fake = FakeProvider(self._reply, clock=clock)
        self.exchanges: list[LearnerCall] = []

    async def __aenter__(self) -> "LearnerProvider":
        await self._fake.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._fake.__aexit__(None, None, None)

    @property
    def url(self) -> str:
        return f"{self._fake.url}/v1"

    @property
    def complaints(self) -> Sequence[str]:
        """Errors found in requests."""
        return self._fake.invalid

    def _reply(self, messages: Sequence[Message]) -> Reply:
        body = self._fake.requests[-1].body
        self._fake.requests.clear()
        seen: Seen = read("openai", body)
        reply = say(lambda _: self._learner.answer(seen), messages)
        tokens = self._billing.count("openai", MODEL, body)
        usage = Usage(tokens.total, tokens.cached, tokens.written, weigh(reply.message))
        review = self._learner.is_review(seen)
        self.exchanges.append(LearnerCall(review, usage, seen.system, tuple(reply.message.calls)))
        return Reply(reply.message, reply.finish, usage)
