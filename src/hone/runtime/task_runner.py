"""Do one task in a new session: for its turn, or for a value of a type."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from hone.core.events import Emit
from hone.core.loading import import_object
from hone.core.turn import Turn
from hone.runtime.provenance.lazy import LazyProvenance
from hone.runtime.session import OBTAIN, Session, ignore
from hone.settings import Settings

ATTACH = "hone.runtime.pictures:attach"
"""Loaded with the first picture."""
Images = Sequence[Path | str]
T = TypeVar("T")


class TaskRunner(ABC):
    """What does one task at a time, in a session each."""

    settings: Settings
    provenance: LazyProvenance

    @abstractmethod
    async def session(self, model: str = "", template: str = "") -> Session: ...

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

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
        returns: Mapping[str, Any],
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

    async def _attach(self, session: Session, task: str, images: Images) -> Any:
        return await import_object(ATTACH)(task, images, session.agent.prefix.model, self)

    @overload
    def run_sync(self, task: str) -> Turn: ...

    @overload
    def run_sync(self, task: str, *, returns: type[T]) -> T: ...

    @overload
    def run_sync(self, task: str, *, returns: Mapping[str, Any]) -> Any: ...

    def run_sync(self, task: str, *, returns: Any = None) -> Any:
        """`run` for programs without an event loop. Closes this Hone."""

        async def whole() -> Any:
            async with self:
                return await self.run(task, returns=returns)

        return asyncio.run(whole())
