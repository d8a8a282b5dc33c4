"""Waiting that an interrupt does not break off."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Value = TypeVar("Value")


async def uninterrupted(work: Awaitable[Value]) -> Value:
    """Waits for work that was begun, whatever happens, and lets an interrupt go on only after it."""
    task = asyncio.ensure_future(work)
    interrupt: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            interrupt = error
    if interrupt:
        task.exception()
        raise interrupt
    return task.result()
