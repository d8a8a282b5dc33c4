"""Collect what waits for one connection and can be asked with one question."""

import asyncio
from collections import defaultdict
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
    loop: asyncio.AbstractEventLoop


class Batch:
    """What is done together in a lane: items of one owner, with at most one for each key."""

    def __init__(self, owner: str, perform: Perform) -> None:
        self.owner = owner
        self.items: dict[str, _Item] = {}
        self._perform = perform

    def run(self) -> None:
        """Do it, and wake each event loop once."""
        items = tuple(self.items.values())
        answers: defaultdict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[None], Exception | None]]]
        answers = defaultdict(list)
        try:
            errors = self._perform([each.value for each in items])
        except Exception as raised:  # noqa: BLE001  it is raised where the callers wait
            errors = [raised] * len(items)
        for item, error in zip(items, errors, strict=True):
            answers[item.loop].append((item.future, error))
        for loop, answered in answers.items():
            with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(_answer, answered)


class Batches:
    """One for each lane may be open. It takes items until its turn comes in the lane, or until other work is
    handed over: what comes after that must be done after it."""

    def __init__(self) -> None:
        self._open: dict[ThreadPoolExecutor, Batch] = {}
        self._lock = Lock()

    def seal(self, lane: ThreadPoolExecutor) -> None:
        with self._lock:
            self._open.pop(lane, None)

    async def join(
        self, lane: ThreadPoolExecutor, owner: str, key: str, value: object, perform: Perform
    ) -> None:
        """Return when it is done; raise what became of it. It is done even if the caller is cancelled."""
        loop = asyncio.get_running_loop()
        item = _Item(value, loop.create_future(), loop)
        with self._lock:
            batch = self._open.get(lane)
            if batch is None or batch.owner != owner or key in batch.items:
                batch = self._open[lane] = Batch(owner, perform)
                lane.submit(self._run, lane, batch)
            batch.items[key] = item
        await item.future

    def _run(self, lane: ThreadPoolExecutor, batch: Batch) -> None:
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
