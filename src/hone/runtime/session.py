"""A conversation that lasts: each message is stored before the next thing happens."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hone.core.agent import Agent, Limits
from hone.core.clock import Clock
from hone.core.errors import HoneError, ModelError, Overflow
from hone.core.events import Emit, Event, Notice, TurnEnded
from hone.core.messages import Message, sound, user
from hone.core.model import Usage
from hone.core.permit import Permit
from hone.core.ports import Header, SessionId, Sessions, Spending
from hone.core.tool import Toolbox
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin, Turn
from hone.loop import Desk, run, uninterrupted


def new_id() -> SessionId:
    return SessionId(os.urandom(5).hex())


async def branch(store: Sessions, beginning: str, shared: int | None, now: datetime) -> SessionId:
    """A new conversation with the first messages of another one (default: all of them)."""
    parent = await store.load(await store.find(beginning))
    whole = len(parent.transcript)
    count = whole if shared is None else shared
    if not 0 < count <= whole:
        raise HoneError(f"Session {parent.header.id} has messages 1 to {whole}; {count} is none of them.")
    header = replace(
        parent.header, id=new_id(), created=now, origin=Origin.USER, parent=parent.header.id, shared=count
    )
    await store.start(header, parent.prefix, ())
    return header.id


def ignore(event: Event) -> None:
    """For whoever wants the answer and not the show."""


@dataclass(frozen=True, slots=True)
class Services:
    """What a session needs besides its agent. `guard` is asked once a turn; `fallback` gives the agent to go
    on with when the model fails, if there is one."""

    store: Sessions
    clock: Clock
    guard: Callable[[Toolbox], Toolbox]
    fallback: Callable[[Agent], Agent | None] = lambda _: None


class Session:
    """Made by Hone. `send` one message at a time; `cancel` from anywhere in the same event loop."""

    def __init__(
        self,
        header: Header,
        agent: Agent,
        transcript: Transcript,
        services: Services,
        *,
        stored: bool = False,
    ) -> None:
        self.header = header
        self.agent = agent
        self.transcript = transcript
        self._services = services
        self._stored = stored
        self._busy = False
        self._turn: asyncio.Task[Turn] | None = None

    @property
    def id(self) -> SessionId:
        return self.header.id

    async def send(self, message: str | Message, emit: Emit = ignore) -> Turn:
        """One turn. Raises only what the caller must know at once: a store that cannot take the message."""
        if self._busy:
            raise HoneError("This session is still busy with the last message.")
        self._busy = True
        try:
            await self._receive(user(sound(message)) if isinstance(message, str) else message)
            turn = await self._take_turn(emit)
        finally:
            self._busy, self._turn = False, None
        emit(TurnEnded(turn))
        return turn

    async def _take_turn(self, emit: Emit) -> Turn:
        """The turn runs as a task of its own, so that `cancel` stops the turn and not the caller."""
        task = asyncio.create_task(self._run(emit))
        try:
            await asyncio.sleep(0)  # a task that has not begun could not end its turn in order
            self._turn = task
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            raise

    def cancel(self) -> None:
        """Stops the model or the tool at once; the turn ends as interrupted and the session can go on."""
        if self._turn:
            self._turn.cancel()

    def fork(self, permit: Permit, origin: Origin, limits: Limits | None = None) -> "Session":
        """The same agent on the same prefix and the same messages, with a narrower permit."""
        header = Header(
            new_id(),
            self._services.clock.now(),
            origin=origin,
            folder=self.header.folder,
            parent=self.id,
            shared=len(self.transcript),
        )
        narrowed = self.agent.narrowed(permit, limits)
        return Session(header, narrowed, self.transcript.forked(), self._services)

    async def switch(self, agent: Agent) -> None:
        """Another model or tool set: the same contents go on under a new prefix."""
        moved = self.transcript.rooted(agent.prefix.digest)
        if self._stored:
            await self._services.store.move(self.id, agent.prefix, moved)
        self.agent, self.transcript = agent, moved

    def _run(self, emit: Emit) -> Coroutine[None, None, Turn]:
        toolbox = self._services.guard(self.agent.toolbox)

        async def relieve(error: ModelError, _: Transcript) -> tuple[Agent, Transcript] | None:
            relief = None if isinstance(error, Overflow) else self._services.fallback(self.agent)
            if relief is None:
                return None
            await self.switch(relief)
            emit(Notice(f"{error} Going on with {relief.prefix.model}."))
            return replace(relief, toolbox=toolbox), self.transcript

        desk = Desk(self._keep, emit, self._services.clock, relieve)
        return run(replace(self.agent, toolbox=toolbox), self.transcript, self.header.origin, desk)

    async def _receive(self, said: Message) -> None:
        """Stores the user's words before anything else, and before them what an unfinished turn left open."""
        now = self._services.clock.now()
        longer = self.transcript
        for message in self.transcript.closing("the turn was broken off"):
            longer = longer.then(message, min(Trust.AGENT, longer.trust), now)
        own_words = self.header.origin is Origin.USER
        longer = longer.then(said, Trust.OWNER if own_words else Trust.AGENT, now)
        await uninterrupted(self._keep(longer.nodes[len(self.transcript) :], None))

    async def _keep(self, nodes: Sequence[Node], usage: Usage | None) -> None:
        services, origin = self._services, self.header.origin
        model = self.agent.prefix.model
        spending = Spending(services.clock.now(), model, origin, usage) if usage else None
        if self._stored:
            await services.store.append(self.id, nodes, spending)
        else:
            await services.store.start(self.header, self.agent.prefix, nodes)
            self._stored = True
        self.transcript = self.transcript.extended(tuple(nodes))
