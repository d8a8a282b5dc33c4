"""Observe what tools do to files: learn of each change, and label what tools bring back.

All paths are real: links are resolved.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from hone.core.tool_context import ToolContext
from hone.core.trust import Trust


class Reasons(Struct):
    """The reasons why results of one call are foreign: true for each that only lacks the owner's trust in
    `folder`. `confined` tells whether a command of this call can read nothing that would be foreign
    anyway."""

    folder: Path
    found: list[bool] = field(default_factory=list)
    confined: bool = False


reasons_of_call: ContextVar[Reasons | None] = ContextVar("reasons_of_call", default=None)
"""A tool asks for labels while it runs, so the reasons are collected outside the call."""


class WorkObserver(Protocol):
    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        """Prepare for a write. Called before a tool replaces a file. `before` is its content, None if there
        is no file. Raises HoneError to refuse the write."""
        ...

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None: ...

    def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AbstractAsyncContextManager[None]:
        """Surround a command or code: enter before it starts, leave when it has ended. Raises HoneError to
        refuse."""
        ...


class FileLabels(Protocol):
    def of_file(self, path: Path, data: bytes) -> Trust: ...

    def of_folder(self, path: Path) -> Trust:
        """Label the names in a folder."""
        ...

    def of_output(self, folder: Path, text: str) -> Trust:
        """Label what a command printed."""
        ...


class Work(Struct, frozen=True):
    """Everything that observes the tools of one conversation. The observers are created with the first
    change, since most conversations change nothing."""

    labels: FileLabels
    observers: Callable[[], Sequence[WorkObserver]] = tuple

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        for observer in self.observers():
            await observer.before_write(path, before, context)

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        for observer in self.observers():
            await observer.after_write(path, data, context)

    @asynccontextmanager
    async def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for observer in self.observers():
                await stack.enter_async_context(
                    observer.around_command(folder, text, context, network=network)
                )
            yield
