"""The only thread that writes to a database. It commits waiting writes together and undoes failed ones alone.

Writes of one pass of an event loop are submitted together: conversations that run at the same moment share
one wait for the disk. The thread does not know what it writes. Deferred work is done when nobody waits.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

import apsw
from msgspec import Struct

from hone.core.errors import HoneError, StoreError

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]
Later = Callable[[apsw.Connection, bool], bool]

FOREIGN = (apsw.Error, UnicodeError, OverflowError)
"""Errors of SQLite, and those of a value that it cannot hold."""
REFUSALS = (HoneError, *FOREIGN, TypeError, ValueError)


QUIET = 0.5
"""Seconds without a write before deferred work is done."""
BEHIND = 100
"""Writes after which it is done anyway, if there is much of it."""


class _Write(Struct, frozen=True):
    work: Work[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class _Outcome(Struct, frozen=True):
    value: Any = None
    error: Exception | None = None


class Writer:
    """Starts with the first write. A submitted write is done even if its caller is cancelled, so that code
    that continues after an interrupt knows the state."""

    def __init__(
        self,
        connect: Callable[[], apsw.Connection],
        explained: Callable[[Exception], StoreError],
        later: Later,
    ) -> None:
        """`later` does a piece of deferred work, in its own transaction; True: there may be more. It is told
        whether things are quiet; otherwise a small amount may wait longer."""
        self._connect = connect
        self._explained = explained
        self._later = later
        self._behind = 0
        self._left = False
        self._collected: dict[asyncio.AbstractEventLoop, list[_Write]] = {}
        self._queue: SimpleQueue[Sequence[_Write] | None] = SimpleQueue()
        self._lock = Lock()
        self._thread: Thread | None = None
        self._closed = False

    async def run(self, work: Work[T]) -> T:
        """Run the work. Returns once it is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            if self._closed:
                raise _gone()
            if loop not in self._collected:
                self._collected[loop] = []
                loop.call_soon(self._hand_over, loop)
            self._collected[loop].append(_Write(work, future, loop))
        return await future

    def close(self) -> None:
        """Accept no more work. Submitted work is still written."""
        with self._lock:
            if self._closed:
                return
            for loop in tuple(self._collected):
                self._put(loop)
            self._queue.put(None)
            self._closed = True

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if loop in self._collected:
                self._put(loop)

    def _put(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._serve, name="hone-writer", daemon=True)
            self._thread.start()
        self._queue.put(self._collected.pop(loop))

    def join(self) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        connection: apsw.Connection | None = None
        batch: Sequence[_Write] = ()
        try:
            while batch := self._waiting(connection):
                try:
                    connection = connection or self._connect()
                    outcomes = commit(connection, [write.work for write in batch])
                except apsw.Error as error:
                    outcomes = [_Outcome(error=error)] * len(batch)
                self._behind, self._left = self._behind + len(batch), True
                self._settle(batch, outcomes)
            if connection is not None:
                self._catch_up(connection, quiet=True)
        finally:
            # Only a bug of ours gets here with a batch: nobody may wait for a dead thread.
            with self._lock:
                self._closed = True
                left = [*batch, *_drained(self._queue), *chain(*self._collected.values())]
                self._collected.clear()
            self._settle(left, [_Outcome(error=_gone())] * len(left))
            if connection is not None:
                connection.close()

    def _waiting(self, connection: apsw.Connection | None) -> list[_Write]:
        """Wait for the next write and take all that have arrived by then; empty when closed. Do deferred work
        in the meantime."""
        if connection is not None and self._behind >= BEHIND:
            self._catch_up(connection, quiet=False)
        try:
            first = self._queue.get(timeout=QUIET if connection is not None and self._left else None)
        except Empty:
            assert connection is not None
            self._catch_up(connection, quiet=True)
            return self._waiting(None)
        return [] if first is None else [*first, *_drained(self._queue)]

    def _catch_up(self, connection: apsw.Connection, *, quiet: bool) -> None:
        """Do deferred work. If it fails, it is tried again after the next writes."""
        more, self._left, self._behind = self._left, self._left and not quiet, 0
        while more:
            try:
                [outcome] = commit(connection, [lambda each: self._later(each, quiet)])
            except apsw.Error:
                return
            more = bool(outcome.value)

    def _settle(self, batch: Sequence[_Write], outcomes: Sequence[_Outcome]) -> None:
        """Wake each event loop once."""
        answers: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], _Outcome]]] = defaultdict(
            list
        )
        for write, outcome in zip(batch, outcomes, strict=True):
            error = outcome.error
            told = _Outcome(error=self._explained(error)) if isinstance(error, FOREIGN) else outcome
            answers[write.loop].append((write.future, told))
        for loop, answered in answers.items():
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_answer, answered)


def commit(connection: apsw.Connection, works: Sequence[Work[Any]]) -> list[_Outcome]:
    """Commit everything in one transaction. A failing item undoes only itself. Raises apsw.Error if the
    transaction as a whole fails: then nothing is written."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = (
            [_alone(connection, *works)] if len(works) == 1 else [_apart(connection, each) for each in works]
        )
        if connection.in_transaction:
            _settle(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return outcomes


class Doubtful(apsw.IOError):
    """The disk failed to sync: the next process may or may not find the data."""


def _settle(connection: apsw.Connection) -> None:
    """Commit. Data written before the disk failed is in the log as if it were committed, and the next process
    would believe that, so a harmless write replaces it."""
    try:
        connection.execute("COMMIT")
    except apsw.IOError as error:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            connection.pragma("user_version", connection.pragma("user_version"))
        except apsw.Error as again:
            raise Doubtful(str(error)) from again
        raise


def _alone(connection: apsw.Connection, work: Work[Any]) -> _Outcome:
    """Run the only work of a transaction, which is rolled back as a whole if the work fails."""
    try:
        return _Outcome(work(connection))
    except REFUSALS as error:
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK")
        return _Outcome(error=error)


def _apart(connection: apsw.Connection, work: Work[Any]) -> _Outcome:
    connection.execute("SAVEPOINT work")
    try:
        outcome = _Outcome(work(connection))
    except REFUSALS as error:
        if not connection.in_transaction:  # a full disk, for example: SQLite has undone the others, too
            raise
        connection.execute("ROLLBACK TO work")
        outcome = _Outcome(error=error)
    connection.execute("RELEASE work")
    return outcome


def _drained(queue: SimpleQueue[Sequence[_Write] | None]) -> list[_Write]:
    """Return everything queued, up to the mark that ends the thread, which stays."""
    writes: list[_Write] = []
    with suppress(Empty):
        while (more := queue.get_nowait()) is not None:
            writes += more
        queue.put(None)
    return writes


def _answer(answered: Sequence[tuple[asyncio.Future[Any], _Outcome]]) -> None:
    for future, outcome in answered:
        if future.done():
            continue
        if outcome.error is None:
            future.set_result(outcome.value)
        else:
            future.set_exception(outcome.error)


def _gone() -> StoreError:
    return StoreError("The database is closed; nothing more is written to it.")
