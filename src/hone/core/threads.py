"""Run blocking functions in threads. An event loop is woken once for all results that wait for it.

asyncio wakes its loop for each result, by way of two futures. With many conversations at once, threads and
loop then spend more time passing Python's lock to each other than on the work.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import cached_property, partial
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

P = ParamSpec("P")
T = TypeVar("T")

MOST = 32
"""Threads of a loop for functions without their own executor. They end with their loop, or with the process,
which waits for them. A forked process has other loops, and so other threads."""


class _Inbox:
    """Results on their way to one event loop."""

    def __init__(self) -> None:
        self._results: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_told = False

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(MOST, thread_name_prefix="hone")

    def put(self, future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        """Add a result, from any thread. Every result added before the loop runs is settled with it."""
        self._results.append((future, value, error))
        if not self._is_told:
            self._is_told = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                future.get_loop().call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        self._is_told = False
        while self._results:
            future, value, error = self._results.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


_inboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Inbox] = WeakKeyDictionary()


def _inbox(loop: asyncio.AbstractEventLoop) -> _Inbox:
    found = _inboxes.get(loop)
    if found is None:
        found = _inboxes[loop] = _Inbox()
    return found


async def run_by(executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    """Run work in a thread of the executor and return its result. It finishes even if the caller is
    cancelled."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    executor.submit(_perform, work, future, _inbox(loop))
    return await future


async def in_thread(function: Callable[P, T], /, *args: P.args, **named: P.kwargs) -> T:
    """Run work in a thread, in the caller's context."""
    threads = _inbox(asyncio.get_running_loop()).threads
    return await run_by(threads, partial(copy_context().run, function, *args, **named))


def _perform(work: Callable[[], Any], future: asyncio.Future[Any], inbox: _Inbox) -> None:
    value, error = None, None
    try:
        value = work()
    except BaseException as raised:  # noqa: BLE001  it is raised where the caller waits
        # A future cannot hold StopIteration.
        error = RuntimeError(f"{raised!r}") if isinstance(raised, StopIteration) else raised
    inbox.put(future, value, error)
