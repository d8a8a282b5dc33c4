"""Tell the sandbox which sensitive files a tool writes with the owner's consent.

A command that runs in the background meanwhile would otherwise be taken for the writer, and the file undone.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hone.core.tool_context import ToolContext
from hone.sandbox.choice import Sandbox


class Vouching:
    """Observes file tools for the sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def before_write(self, path: Path, before: bytes | None, context: ToolContext) -> None:
        self._sandbox.vouch(path)

    async def after_write(self, path: Path, data: bytes, context: ToolContext) -> None:
        """Do nothing: the sandbox was told before the write."""

    @asynccontextmanager
    async def around_command(
        self, folder: Path, text: str, context: ToolContext, *, network: bool
    ) -> AsyncIterator[None]:
        yield
