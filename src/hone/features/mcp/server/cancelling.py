"""Cancel running requests over HTTP: by a later message, or when the client has disconnected."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from hone.rpc.messages import Id

Result = dict[str, Any]
LOOK = 0.25
"""Seconds between two checks whether the client is still connected."""


class RunningRequests:
    """The running requests, by session and id. Only its client knows a session's id."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, Id], asyncio.Task[Result]] = {}

    async def run(self, session: str, id: Id, work: Coroutine[Any, Any, Result]) -> Result | None:
        """Return the result, or None if the request was canceled. Raises what the work raises."""
        key, task = (session, id), asyncio.create_task(work)
        self._tasks.setdefault(key, task)
        try:
            return await _finish(task)
        finally:
            if self._tasks.get(key) is task:
                del self._tasks[key]

    def cancel(self, session: str, id: Id) -> None:
        if task := self._tasks.get((session, id)):
            task.cancel()


async def run_while_there(
    work: Coroutine[Any, Any, Result], is_gone: Callable[[], Awaitable[bool]]
) -> Result | None:
    """Return the result, or None if the client disconnected before: in the stateless era that cancels."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=LOOK))[0]:
            if await is_gone():
                task.cancel()
        return await _finish(task)
    finally:
        task.cancel()


async def _finish(task: asyncio.Task[Result]) -> Result | None:
    """Wait for a task. If this request itself is cancelled, the task ends with it."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        raise
    return None if task.cancelled() else task.result()
