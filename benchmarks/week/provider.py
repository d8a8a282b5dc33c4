"""The provider of the stories: the model behind real HTTP, and a record of what it was sent."""

import asyncio
from collections.abc import Sequence
from threading import Event, Thread
from typing import Literal

from msgspec import Struct

from benchmarks.week.mind import Mind
from benchmarks.week.request import Seen, read, told
from benchmarks.week.world import WorldClock
from hone.core.messages import Message, Role, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.caching import unmarked
from hone.models.scripted import weigh

PATIENCE = 60.0

Kind = Literal["turn", "review", "other"]


class Exchange(Struct, frozen=True):
    """One request and its answer. `at` is in seconds of the world's clock."""

    at: float
    kind: Kind
    prompt: bytes
    text: str
    """All words of the request, including the system's."""
    output: int
    first: bool
    """It begins a conversation or a review."""
    visit: bool = False


class Provider:
    """Runs in a thread. `play` chooses who answers."""

    def __init__(self, clock: WorldClock) -> None:
        self._clock = clock
        self._mind: Mind | None = None
        self._stalling = ""
        self._stalled = Event()
        self.exchanges: list[Exchange] = []
        self.visiting = False
        self._fake = FakeProvider(self._reply, fault=self._fault)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._fake.__aenter__(), self._loop).result(PATIENCE)

    @property
    def url(self) -> str:
        return self._fake.url

    @property
    def complaints(self) -> Sequence[str]:
        """Return errors found in requests."""
        return self._fake.invalid

    def play(self, mind: Mind) -> None:
        self._mind = mind
        self.exchanges, self.visiting = [], False
        self._fake.requests.clear()
        self._fake.invalid.clear()

    def stall(self, turn: str) -> None:
        """Give no answer to these words, until the caller disconnects."""
        self._stalled.clear()
        self._stalling = turn

    def wait_stalled(self) -> None:
        if not self._stalled.wait(PATIENCE):
            raise TimeoutError("the turn to be interrupted was never sent")
        self._stalling = ""

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._fake.__aexit__(None, None, None), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _seen(self) -> Seen:
        return read(self._fake.requests[-1].body)

    def _fault(self, _: int) -> str | None:
        if not self._stalling or self._seen().last.strip() != self._stalling.strip():
            return None
        self._note(assistant(""))
        self._stalled.set()
        return "silent"

    def _reply(self, _: Sequence[Message]) -> Message:
        assert self._mind is not None
        reply = self._mind.answer(self._seen())
        self._note(reply)
        return reply

    def _note(self, reply: Message) -> None:
        assert self._mind is not None
        seen, body = self._seen(), self._fake.requests[-1].body
        prompt, _ = unmarked(body)
        turn = self._mind.is_turn(seen)
        kind: Kind = "turn" if turn else "review" if "evidence" in seen.last else "other"
        alone = sum(each.role is Role.USER for each in seen.messages) == 1
        words = "\n".join((seen.system, *map(told, seen.messages)))
        self.exchanges.append(
            Exchange(
                self._clock.now().timestamp(),
                kind,
                bytes(prompt),
                words,
                weigh(reply) if reply.parts else 0,
                not seen.steps and (alone or kind != "turn"),
                self.visiting and kind == "turn",
            )
        )
