"""Collect work that waits for one connection and fits into one query."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any

from msgspec import Struct

Perform = Callable[[Sequence[Any]], Sequence[Exception | None]]
"""Does all of the items, and returns the result of each. An exception is the result of all."""


class _Item(Struct, frozen=True):
    value: Any
    future: asyncio.Future[None]


class LaneBatch:
    """Work done together in a lane: items of one owner and one event loop, at most one for each key."""

    def __init__(self, owner: str, loop: asyncio.AbstractEventLoop, perform: Perform) -> None:
        self.of = owner, loop
        self.items: dict[str, _Item] = {}
        self.is_in_line = False
        self._perform = perform

    def run(self) -> None:
        """Do the work, and wake the event loop once."""
        items = tuple(self.items.values())
        try:
            errors = self._perform([each.value for each in items])
        except Exception as raised:  # noqa: BLE001  it is raised where the callers wait
            errors = [raised] * len(items)
        answered = [(item.future, error) for item, error in zip(items, errors, strict=True)]
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.of[1].call_soon_threadsafe(_answer, answered)


class Batches:
    """One batch may be open for each lane. It is queued when the event loop has ended its pass, and accepts
    items until its turn comes, or until other work is submitted, which must precede later items."""

    def __init__(self) -> None:
        self._open: dict[ThreadPoolExecutor, LaneBatch] = {}
        self._lock = Lock()

    def seal(self, lane: ThreadPoolExecutor) -> None:
        with self._lock:
            batch = self._open.pop(lane, None)
            if batch:
                self._line_up(lane, batch)

    async def join(
        self, lane: ThreadPoolExecutor, owner: str, key: str, value: object, perform: Perform
    ) -> None:
        """Return when the item is done; raise its error. It is done even if the caller is cancelled."""
        loop = asyncio.get_running_loop()
        item = _Item(value, loop.create_future())
        with self._lock:
            batch = self._open.get(lane)
            if batch is None or batch.of != (owner, loop) or key in batch.items:
                if batch:
                    self._line_up(lane, batch)
                batch = self._open[lane] = LaneBatch(owner, loop, perform)
                loop.call_soon(self._pass_ended, lane, batch)
            batch.items[key] = item
        await item.future

    def _pass_ended(self, lane: ThreadPoolExecutor, batch: LaneBatch) -> None:
        with self._lock:
            self._line_up(lane, batch)

    def _line_up(self, lane: ThreadPoolExecutor, batch: LaneBatch) -> None:
        if not batch.is_in_line:
            batch.is_in_line = True
            lane.submit(self._run, lane, batch)

    def _run(self, lane: ThreadPoolExecutor, batch: LaneBatch) -> None:
        with self._lock:
            if self._open.get(lane) is batch:
                del self._open[lane]
        batch.run()


def _answer(answered: Sequence[tuple[asyncio.Future[None], Exception | None]]) -> None:
    for future, error in answered:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
