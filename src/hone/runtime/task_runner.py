"""Run a turn as a stream of events or for a typed value, or do one task in a new session."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from hone.core.agent import Agent, Helper
from hone.core.events import Emit, Event
from hone.core.loading import import_object
from hone.core.messages import Message
from hone.core.trust import Trust
from hone.core.turn import Turn
from hone.runtime.provenance.lazy import LazyProvenance
from hone.settings import Settings

ATTACH = "hone.runtime.pictures:attach"
"""Imported with the first image."""
OBTAIN = "hone.runtime.returning:obtain"
"""Imported with the first answer that must have a form."""
Form = Mapping[str, Any]
Images = Sequence[Path | str]
T = TypeVar("T")


def ignore(event: Event) -> None:
    """Drop an event, for callers who want only the answer."""


async def employ(agent: Agent, helper: Helper) -> Agent:
    """Return the agent with the rights of a helper. It keeps its model: no other one is available here."""
    return agent.narrowed(helper.permit)


class Dialog(ABC):
    """Runs one turn at a time, in whichever form the caller prefers."""

    agent: Agent
    _left: asyncio.Task[Turn] | None = None

    @abstractmethod
    async def send(
        self,
        message: str | Message,
        emit: Emit = ignore,
        *,
        voice: Trust | None = None,
        aside: str = "",
        form: Form | None = None,
    ) -> Turn: ...

    def stream(self, message: str | Message) -> "EventStream":
        """Run one turn and iterate over its events as they happen; the last one is TurnEnded. Raises what
        `send` raises. Leaving the loop early interrupts the turn."""
        return EventStream(self, message)

    def abandon(self, turn: asyncio.Task[Turn]) -> None:
        """Interrupt a turn whose stream was abandoned. The next turn waits until it has ended."""
        turn.cancel()
        self._left = turn

    async def _let_go(self) -> None:
        if self._left:
            await asyncio.wait([self._left])
            self._left = None

    @overload
    async def obtain(self, message: str | Message, returns: type[T], emit: Emit = ...) -> T: ...

    @overload
    async def obtain(self, message: str | Message, returns: Form, emit: Emit = ...) -> Any: ...

    async def obtain(self, message: str | Message, returns: Any, emit: Emit = ignore) -> Any:
        """Send a message and return the answer as a value of this type, or of a JSON schema given as a dict.
        An answer that does not fit is asked for once more. Raises AnswerError, or Refused for a type that
        cannot be had."""
        return await import_object(OBTAIN)(self, message, returns, emit)


class EventStream(AsyncIterator[Event]):
    """The events of one turn, which begins when the first event is requested."""

    def __init__(self, dialog: Dialog, message: str | Message) -> None:
        self._dialog = dialog
        self._message = message
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._turn: asyncio.Task[Turn] | None = None

    async def __anext__(self) -> Event:
        put = self._events.put_nowait
        if self._turn is None:
            self._turn = asyncio.create_task(self._dialog.send(self._message, put))
            self._turn.add_done_callback(lambda _: put(None))
        try:
            event = await self._events.get()
        except asyncio.CancelledError:
            await self.aclose()
            raise
        if event is not None:
            return event
        put(None)  # for callers that ask again
        await self._turn
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Interrupt the turn, unless it has ended, and wait for its end."""
        if self._turn:
            self._turn.cancel()
            await asyncio.wait([self._turn])

    def __del__(self) -> None:
        """Release a stream that a loop left with `break`."""
        if self._turn and not self._turn.done() and not self._turn.get_loop().is_closed():
            self._dialog.abandon(self._turn)


class TaskRunner(ABC):
    """Does one task at a time, each in its own session."""

    settings: Settings
    provenance: LazyProvenance

    @abstractmethod
    async def session(self, model: str = "", template: str = "") -> Dialog: ...

    @abstractmethod
    async def close(self, *, wait: bool = True) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close(wait=kind is None)

    @overload
    async def run(
        self, task: str, emit: Emit = ..., model: str = ..., template: str = ..., images: Images = ...
    ) -> Turn: ...

    @overload
    async def run(
        self,
        task: str,
        emit: Emit = ...,
        model: str = ...,
        template: str = ...,
        images: Images = ...,
        *,
        returns: type[T],
    ) -> T: ...

    @overload
    async def run(
        self,
        task: str,
        emit: Emit = ...,
        model: str = ...,
        template: str = ...,
        images: Images = ...,
        *,
        returns: Form,
    ) -> Any: ...

    async def run(
        self,
        task: str,
        emit: Emit = ignore,
        model: str = "",
        template: str = "",
        images: Images = (),
        *,
        returns: Any = None,
    ) -> Any:
        """Do one task in a new session. `images` are files that the model sees with it. With `returns`, a
        type or a JSON schema, the answer comes back as a value of it; raises AnswerError if there is none,
        and Refused for a type that cannot be had."""
        session = await self.session(model, template)
        said, voice = await self._attach(session, task, images) if images else (task, None)
        if returns is None:
            return await session.send(said, emit, voice=voice)
        return await import_object(OBTAIN)(session, said, returns, emit, voice)

    async def _attach(self, session: Dialog, task: str, images: Images) -> Any:
        return await import_object(ATTACH)(task, images, session.agent.prefix.model, self)

    @overload
    def run_sync(
        self, task: str, emit: Emit = ..., model: str = ..., template: str = ..., images: Images = ...
    ) -> Turn: ...

    @overload
    def run_sync(
        self,
        task: str,
        emit: Emit = ...,
        model: str = ...,
        template: str = ...,
        images: Images = ...,
        *,
        returns: type[T],
    ) -> T: ...

    @overload
    def run_sync(
        self,
        task: str,
        emit: Emit = ...,
        model: str = ...,
        template: str = ...,
        images: Images = ...,
        *,
        returns: Form,
    ) -> Any: ...

    def run_sync(
        self,
        task: str,
        emit: Emit = ignore,
        model: str = "",
        template: str = "",
        images: Images = (),
        *,
        returns: Any = None,
    ) -> Any:
        """Do what `run` does, in a program without an event loop. Closes this Hone."""

        async def whole() -> Any:
            async with self:
                return await self.run(task, emit, model, template, images, returns=returns)

        return asyncio.run(whole())
