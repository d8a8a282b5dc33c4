"""The conversations that are open in this server: one turn at a time each, whoever asked for it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from typing import Any
from weakref import WeakValueDictionary

from hone.app import Hone
from hone.core.clock import Clock
from hone.core.errors import Conflict, HoneError, Missing, Refused
from hone.core.events import Emit, Event, Heard
from hone.core.ids import SessionId
from hone.core.messages import Message
from hone.core.trust import Trust
from hone.core.turn import Origin, Turn
from hone.core.value import dataclass
from hone.runtime.session import Session, ignore
from hone.web.bus import Bus
from hone.web.events import shown
from hone.web.pending_questions import watched

MOST = 256
"""Conversations that stay open while nobody speaks in them."""
AGAIN = 0.1
"""Seconds before an interrupt is repeated."""
EVERYWHERE = ""
"""The channel of what concerns no single conversation."""


@dataclass(eq=False, slots=True)
class OpenSession:
    session: Session
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    task: asyncio.Task[Turn] | None = None
    sender: asyncio.Task[Any] | None = None
    """Who asked for the turn that is under way."""
    waiting: int = 0
    """How many want one."""

    @property
    def is_busy(self) -> bool:
        return self.task is not None or self.waiting > 0


@dataclass(frozen=True, slots=True)
class Words:
    """What is said in a conversation. `watched`: somebody is there to answer a question of the agent's."""

    message: str | Message
    voice: Trust | None = None
    aside: str = ""
    watched: bool = False


def settled(task: asyncio.Task[Turn]) -> None:
    """What went wrong was published; nobody has to hear of it a second time."""
    if not task.cancelled():
        task.exception()


class OpenSessions:
    def __init__(self, hone: Hone, bus: Bus, clock: Clock, most: int = MOST) -> None:
        self._hone = hone
        self._bus = bus
        self._clock = clock
        self._most = most
        self._open: dict[str, OpenSession] = {}
        self._entrances: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing = False

    @property
    def busy(self) -> list[str]:
        return [id for id, open_session in self._open.items() if open_session.task]

    def find(self, id: str) -> OpenSession | None:
        return self._open.get(id)

    async def begin(self, model: str = "", id: str = "", told: Sequence[Message] = ()) -> OpenSession:
        """A new conversation, stored with its first message."""
        return self._keep(OpenSession(await self._hone.session(model, id=id, told=told)))

    async def enter(self, id: str) -> OpenSession:
        """A stored conversation; `id` is whole. Raises Missing."""
        entrance = self._entrances.setdefault(id, asyncio.Lock())
        async with entrance:
            return self._keep(self._open.pop(id) if id in self._open else await self._resumed(id))

    async def enter_or_begin(self, id: str, model: str = "") -> OpenSession:
        entrance = self._entrances.setdefault(id, asyncio.Lock())
        async with entrance:
            if found := self._open.get(id):
                return found
            with suppress(Missing):
                if await self._hone.sessions.find(id) == id:
                    return self._keep(await self._resumed(id))
            return await self.begin(model, id)

    async def _resumed(self, id: str) -> OpenSession:
        """Raises Refused for what Hone said to itself: nobody else talks there."""
        stored = await self._hone.sessions.load(SessionId(id))
        if stored.header.origin is not Origin.USER:
            raise Refused(f"Session {id} is no conversation of yours. Branch off from it to talk.")
        return OpenSession(await self._hone.resume(id))

    def _keep(self, open_session: OpenSession) -> OpenSession:
        """The one that was used last stands last."""
        self._open[open_session.session.id] = open_session
        return open_session

    async def start(self, open_session: OpenSession, words: Words) -> None:
        """Returns when the words are stored; the turn goes on. Raises Conflict while another one does."""
        if open_session.is_busy:
            raise Conflict("This conversation is busy with the last message. Wait, or interrupt it.")
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def listen(event: Event) -> None:
            if isinstance(event, Heard) and not heard.done():
                heard.set_result(None)

        task = asyncio.create_task(self.send(open_session, words, listen))
        task.add_done_callback(settled)
        either: list[asyncio.Future[Any]] = [task, heard]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        heard.cancel()
        if task.done():
            task.result()

    async def send(self, open_session: OpenSession, words: Words, emit: Emit = ignore) -> Turn:
        """One turn, after those that were asked for before. Goes on if the caller does not wait for it."""
        open_session.waiting += 1
        try:
            async with open_session.lock:
                if self._closing:
                    raise Conflict("The server is about to end. Ask again when it is back.")
                open_session.sender = asyncio.current_task()
                open_session.task = asyncio.create_task(self._turn(open_session, words, emit))
                try:
                    return await asyncio.shield(open_session.task)
                except asyncio.CancelledError:
                    open_session.session.cancel()
                    await asyncio.wait([open_session.task])
                    raise
                finally:
                    open_session.task = open_session.sender = None
        finally:
            open_session.waiting -= 1
            await self._make_room()

    def interrupt(self, open_session: OpenSession) -> bool:
        """False if there was nothing to interrupt."""
        open_session.session.cancel()
        return open_session.task is not None

    async def finish(self, grace: float) -> int:
        """Lets the turns that are under way end by themselves, and interrupts those that take longer. Says
        how many those were."""
        self._closing = True
        tasks = self._tasks()
        if tasks:
            with suppress(TimeoutError):
                async with self._clock.timeout(grace):
                    await asyncio.wait(tasks)
        late = self._tasks()
        while tasks := self._tasks():
            for open_session in self._open.values():
                open_session.session.cancel()
            await asyncio.wait(tasks, timeout=AGAIN)  # one that had just begun did not hear it
        return len(late)

    def _tasks(self) -> list[asyncio.Task[Turn]]:
        return [
            open_session.task
            for open_session in self._open.values()
            if open_session.task and not open_session.task.done()
        ]

    async def _turn(self, open_session: OpenSession, words: Words, emit: Emit) -> Turn:
        id = open_session.session.id
        watched.set(id if words.watched else "")
        publish = self._publisher(id)

        def tell(event: Event) -> None:
            publish(event)
            emit(event)

        self._bus.clear(id)
        self._bus.publish(EVERYWHERE, "session", {"session": id, "state": "began"})
        try:
            return await self._sent(open_session, words, tell)
        except HoneError as error:
            self._bus.publish(id, "ended", {"stop": "failed", "error": str(error), "text": ""})
            raise
        finally:
            self._bus.publish(EVERYWHERE, "session", {"session": id, "state": "ended"})

    async def _sent(self, open_session: OpenSession, words: Words, tell: Emit) -> Turn:
        """Where another process went on with the conversation meanwhile, so do we, after what it said."""
        try:
            return await open_session.session.send(words.message, tell, voice=words.voice, aside=words.aside)
        except Conflict:
            stale, open_session.session = (
                open_session.session,
                await self._hone.resume(open_session.session.id),
            )
            await self._hone.release(stale)
            return await open_session.session.send(words.message, tell, voice=words.voice, aside=words.aside)

    def _publisher(self, id: str) -> Callable[[Event], None]:
        def publish(event: Event) -> None:
            self._bus.publish(id, *shown(event))

        return publish

    async def _make_room(self) -> None:
        """Those that were quiet for longest are closed; they open again when somebody comes."""
        idle = [id for id, open_session in self._open.items() if not open_session.is_busy]
        for id in idle[: max(0, len(self._open) - self._most)]:
            open_session = self._open.pop(id)
            self._bus.drop(id)
            await self._hone.release(open_session.session)
