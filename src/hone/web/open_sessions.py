"""The open sessions of this server. Each runs one turn at a time, for all clients together."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

from msgspec import Struct

from hone.app import Hone
from hone.core.clock import Clock
from hone.core.errors import Conflict, Ending, HoneError, Missing, Occupied, Refused
from hone.core.events import Emit, Event, Heard
from hone.core.ids import SessionId
from hone.core.messages import Message
from hone.core.switchboard import Inbox
from hone.core.trust import Trust
from hone.core.turn import Origin, Turn
from hone.core.visible import text_to_path
from hone.runtime.returning import AnswerForm, ask_for
from hone.runtime.session import Session
from hone.runtime.task_runner import Form, ignore
from hone.runtime.turn_claims import ConversationClaim
from hone.web.bus import EVERYWHERE
from hone.web.events import shown
from hone.web.pending_questions import watched
from hone.web.relay import Relay

MOST = 256
"""How many conversations stay open while they are idle."""
AGAIN = 0.1
"""Seconds before an interrupt is repeated."""


class TurnLimits(Protocol):
    """Limits on turns. Both methods get the number of running turns, the new one included, and raise
    LimitReached."""

    async def admit(self, turns: int) -> None: ...

    async def count(self, turns: int) -> None:
        """Judge by the number of turns alone."""
        ...


class Overtaken(Conflict):
    """Others said something in a conversation before words that were meant for an earlier point."""


class Audience(Protocol):
    """Hears what happens in the conversations, by channel; `Bus` is one."""

    def publish(self, channel: str, kind: str, data: Mapping[str, Any]) -> None: ...

    def clear(self, channel: str) -> None: ...

    def drop(self, channel: str) -> None: ...


@dataclass(eq=False, slots=True)
class OpenSession:
    """Owns the tasks of its turns, in the order of their requests. The first one is running."""

    session: Session
    turns: list[asyncio.Task[Turn]] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    speaking: bool = False
    """Whether the first turn has begun, so that this server holds the conversation."""

    @property
    def is_busy(self) -> bool:
        return bool(self.turns)

    def run(self, turn: Coroutine[Any, Any, Turn]) -> asyncio.Task[Turn]:
        task = asyncio.create_task(turn)
        self.turns.append(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[Turn]) -> None:
        self.turns.remove(task)
        if not task.cancelled():
            task.exception()  # already published; nobody needs to hear it again

    def give_up(self, task: asyncio.Task[Turn]) -> None:
        """End this turn in order, as interrupted: nobody waits for it any more."""
        if self.speaking and self.turns[0] is task:
            self.session.cancel()
        else:
            task.cancel()  # has not begun, or is over


class Words(Struct, frozen=True):
    """What is said in a conversation. `watched`: somebody is there to answer the agent's questions. `form` is
    the required form of the answer. `patient`: wait for turns of other servers in this conversation. `exact`:
    say it directly after the messages that are known here, not after what others have said since."""

    message: str | Message
    voice: Trust | None = None
    aside: str = ""
    watched: bool = False
    form: AnswerForm | None = None
    patient: bool = False
    exact: bool = False


class OpenSessions:
    """`relay` connects them with those of other servers. `limits` are a user's."""

    def __init__(
        self,
        hone: Hone,
        bus: Audience,
        clock: Clock,
        most: int = MOST,
        relay: Relay | None = None,
        limits: TurnLimits | None = None,
    ) -> None:
        self._hone = hone
        self._bus = bus
        self._clock = clock
        self._most = most
        self._relay = relay
        self._limits = limits
        self._open: dict[str, OpenSession] = {}
        self._entrances: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing = False

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._open)

    @property
    def busy(self) -> list[str]:
        return [id for id, each in self._open.items() if each.is_busy]

    def find(self, id: str) -> OpenSession | None:
        return self._open.get(id)

    async def begin(
        self, model: str = "", id: str = "", told: Sequence[Message] = (), folder: Path | str = ""
    ) -> OpenSession:
        """Begin a new conversation, stored with its first message."""
        return await self._add(await self._hone.session(model, id=id, told=told, folder=folder))

    async def enter(self, id: str) -> OpenSession:
        """Open a stored conversation; `id` is complete. Raises Missing."""
        async with self._entrance(id):
            return self._touch(id) if id in self._open else await self._resume(id)

    async def enter_or_begin(self, id: str, model: str = "") -> OpenSession:
        async with self._entrance(id):
            if id in self._open:
                return self._touch(id)
            with suppress(Missing):
                if await self._hone.sessions.find(id) == id:
                    return await self._resume(id)
            return await self.begin(model, id)

    async def change_model(self, id: str, model: str) -> OpenSession:
        """Continue with another model in the same mode. Raises Conflict during a turn."""
        opened = await self.enter(id)
        async with self._entrance(id):
            if opened.is_busy:
                raise Conflict("This conversation is busy. Change the model when its turn has ended.")
            stale = opened.session
            async with self._claimed(id):
                if len(stale.transcript):
                    opened.session = await self._hone.resume(id, model)
                else:  # there is nothing stored to resume
                    folder = text_to_path(stale.header.folder)
                    opened.session = await self._hone.session(model, id=id, folder=folder)
            opened.session.set_mode(stale.mode)
            await self._hone.release(stale)
        return opened

    async def patiently(self, id: str, enter: Callable[[], Awaitable[OpenSession]]) -> OpenSession:
        """Open a conversation that another server may be answering in, once that turn has ended."""
        while True:
            try:
                return await enter()
            except Occupied:
                await self._wait(id)

    async def renew(self, opened: OpenSession) -> None:
        """Reload a conversation that another process has continued."""
        stale = opened.session
        opened.session = await self._hone.resume(stale.id)
        if not self._hone.stores.shared:  # otherwise the messages or the switchboard know the mode
            opened.session.set_mode(stale.mode)
        await self._hone.release(stale)

    def _touch(self, id: str) -> OpenSession:
        """Move the most recently used one to the end."""
        found = self._open[id] = self._open.pop(id)
        return found

    def _entrance(self, id: str) -> asyncio.Lock:
        return self._entrances.setdefault(id, asyncio.Lock())

    async def _resume(self, id: str) -> OpenSession:
        """Resume a conversation. Raises Refused for one that Hone had with itself: nobody else talks
        there."""
        stored = await self._hone.sessions.load(SessionId(id))
        if stored.header.origin is not Origin.USER:
            raise Refused(f"Session {id} is no conversation of yours. Branch off from it to talk.")
        return await self._add(await self._hone.resume(id))

    async def _add(self, session: Session) -> OpenSession:
        """Close the ones that were idle longest to make room; they are reopened on demand."""
        idle = [id for id, each in self._open.items() if not each.is_busy]
        surplus = [self._open.pop(id) for id in idle[: max(0, len(self._open) + 1 - self._most)]]
        added = self._open[session.id] = OpenSession(session)
        for each in surplus:
            self._bus.drop(each.session.id)
            self._hone.lookback.forget(each.session.id)
            await self._hone.release(each.session)
        return added

    async def start(self, open_session: OpenSession, words: Words) -> None:
        """Start a turn. Return when the words are stored; the turn continues. Raises Conflict during another
        turn."""
        if open_session.is_busy:
            raise Conflict("This conversation is busy with the last message. Wait, or interrupt it.")
        heard: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def listen(event: Event) -> None:
            if isinstance(event, Heard) and not heard.done():
                heard.set_result(None)

        task = self.send(open_session, words, listen)
        either: list[asyncio.Future[Any]] = [task, heard]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        heard.cancel()
        if task.done():
            task.result()

    async def admit(self) -> None:
        """Raise LimitReached if no further turn may begin."""
        if self._limits:
            await self._limits.admit(len(self._tasks()) + 1)

    def send(self, open_session: OpenSession, words: Words, emit: Emit = ignore) -> asyncio.Task[Turn]:
        """Start one turn, after those requested before. It continues even if nobody waits for it."""
        return open_session.run(self._turn(open_session, words, emit))

    def interrupt(self, open_session: OpenSession) -> bool:
        """Interrupt the running turn. Return False if there is none."""
        open_session.session.cancel()
        return open_session.is_busy

    async def interrupt_anywhere(self, id: str) -> bool:
        """Interrupt the turn of a conversation, on whichever server it runs."""
        opened = self._open.get(id)
        if opened and (opened.speaking or self._relay is None):
            return self.interrupt(opened)
        return bool(self._relay and await self._relay.board.interrupt(id))

    def act(self, inbox: Inbox) -> None:
        """Do what other servers request for the turns here."""
        for id in inbox.interrupted:
            if (opened := self._open.get(id)) and opened.speaking:
                opened.session.cancel()
        for id, mode in inbox.modes.items():
            if opened := self._open.get(id):
                opened.session.set_mode(mode)

    async def close(self, id: str) -> None:
        """End a conversation's turns in order and close it; it can be opened again."""
        opened = self._open.get(id)
        while opened and opened.turns:
            opened.session.cancel()
            await asyncio.wait(opened.turns, timeout=AGAIN)
        if opened and self._open.pop(id, None):
            self._bus.drop(id)
            await self._hone.release(opened.session)

    async def finish(self, grace: float) -> int:
        """Let running turns end, and interrupt those that take longer. Return how many those were."""
        self._closing = True
        if tasks := self._tasks():
            with suppress(TimeoutError):
                async with self._clock.timeout(grace):
                    await asyncio.wait(tasks)
        late = len(self.busy)
        while tasks := self._tasks():
            for each in self._open.values():
                each.session.cancel()
            await asyncio.wait(tasks, timeout=AGAIN)  # one that had just begun did not hear it
        return late

    def _tasks(self) -> list[asyncio.Task[Turn]]:
        return [task for each in self._open.values() for task in each.turns]

    async def _turn(self, open_session: OpenSession, words: Words, emit: Emit) -> Turn:
        id, mode, begun = open_session.session.id, "", False
        if self._limits:
            await self._limits.count(len(self._tasks()))
        async with open_session.lock:
            try:
                async with self._taken(id, words):
                    begun = True
                    if self._relay and (mode := await self._relay.begin(id)):
                        open_session.session.set_mode(mode)
                    open_session.speaking = True
                    return await self._speak(open_session, words, emit)
            finally:
                open_session.speaking = False
                if begun and self._relay:
                    await self._relay.end(id, mode)

    @asynccontextmanager
    async def _taken(self, id: str, words: Words) -> AsyncGenerator[None, None]:
        """Hold a conversation exclusively among all servers. Raises Occupied unless the words are patient."""
        async with AsyncExitStack() as stack:
            while True:
                if self._closing:
                    raise Ending
                try:
                    await stack.enter_async_context(self._claimed(id))
                    break
                except Occupied as error:
                    if words.exact:
                        raise Overtaken(str(error)) from error
                    if not words.patient:
                        raise
                await self._wait(id)
            yield

    def _claimed(self, id: str) -> AbstractAsyncContextManager[None]:
        stores = self._hone.stores
        return ConversationClaim(stores.open_claims, SessionId(id)).hold() if stores.shared else nullcontext()

    async def _wait(self, id: str) -> None:
        if self._relay:
            await self._relay.until_free(id)
        else:
            await self._clock.sleep(AGAIN)

    async def _speak(self, open_session: OpenSession, words: Words, emit: Emit) -> Turn:
        id = open_session.session.id
        watched.set(id if words.watched else "")

        def tell(event: Event) -> None:
            self._bus.publish(id, *shown(event))
            emit(event)

        self._bus.clear(id)
        self._bus.publish(EVERYWHERE, "session", {"session": id, "state": "began"})
        try:
            return await self._send(open_session, words, tell)
        except HoneError as error:
            self._bus.publish(id, "ended", {"stop": "failed", "error": str(error), "text": ""})
            raise
        finally:
            self._bus.publish(EVERYWHERE, "session", {"session": id, "state": "ended"})

    async def _send(self, open_session: OpenSession, words: Words, tell: Emit) -> Turn:
        message, voice, aside = words.message, words.voice, words.aside
        send = partial(self._send_once, open_session, exact=words.exact)
        if words.form is None:
            return await send(message, tell, voice=voice, aside=aside)
        session, form = open_session.session, words.form
        return (await ask_for(session, form, message, tell, voice=voice, aside=aside, send=send)).turn

    async def _send_once(
        self,
        open_session: OpenSession,
        message: str | Message,
        tell: Emit,
        *,
        voice: Trust | None = None,
        aside: str = "",
        form: Form | None = None,
        exact: bool = False,
    ) -> Turn:
        """Send. If another process has continued the conversation since, continue after what it said."""
        try:
            return await open_session.session.send(message, tell, voice=voice, aside=aside, form=form)
        except Conflict as error:
            if exact:
                raise Overtaken(str(error)) from error
            await self.renew(open_session)
            return await open_session.session.send(message, tell, voice=voice, aside=aside)  # it has begun
