"""Collect what waits for one connection and can be asked with one question."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any

from msgspec import Struct

Perform = Callable[[Sequence[Any]], Sequence[Exception | None]]
"""Does all of the items, and returns what became of each. What it raises became of all of them."""


class _Item(Struct, frozen=True):
    value: Any
    future: asyncio.Future[None]


class LaneBatch:
    """What is done together in a lane: items of one owner and one event loop, at most one for each key."""

    def __init__(self, owner: str, loop: asyncio.AbstractEventLoop, perform: Perform) -> None:
        self.of = owner, loop
        self.items: dict[str, _Item] = {}
        self.is_in_line = False
        self._perform = perform

    def run(self) -> None:
        """Do it, and wake the event loop once."""
        items = tuple(self.items.values())
        try:
            errors = self._perform([each.value for each in items])
        except Exception as raised:  # noqa: BLE001  it is raised where the callers wait
            errors = [raised] * len(items)
        answered = [(item.future, error) for item, error in zip(items, errors, strict=True)]
        with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
            self.of[1].call_soon_threadsafe(_answer, answered)


class Batches:
    """One for each lane may be open. It gets in line when the event loop has ended its pass, and takes items
    until its turn comes, or until other work is handed over: what comes after that must be done after it."""

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
        """Return when it is done; raise what became of it. It is done even if the caller is cancelled."""
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
