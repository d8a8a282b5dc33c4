"""What observes the work of tools on files: it learns of each change, and labels what tools bring back.

Paths are real ones: links are resolved.
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
    """Why results of one call are foreign: true for each that only lacks the owner's trust in `folder`.
    `confined` tells whether a command of this call can read nothing that would be foreign all the same."""

    folder: Path
    found: list[bool] = field(default_factory=list)
    confined: bool = False


reasons_of_call: ContextVar[Reasons | None] = ContextVar("reasons_of_call", default=None)
"""Labels are asked for while a tool runs, so the reasons are collected beside it."""


class WorkObserver(Protocol):
    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        """Called before a tool replaces a file. `before` is its content, None if there is no file. Raises
        HoneError to refuse the write."""
        ...

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None: ...

    def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AbstractAsyncContextManager[None]:
        """Entered before a command or code starts, and left when it has ended. Raises HoneError to refuse."""
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
    """Everything that observes the tools of one conversation. The observers are made with the first change:
    most conversations change nothing."""

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
