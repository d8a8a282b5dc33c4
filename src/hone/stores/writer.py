"""The only thread that writes to a database. It commits waiting writes together and undoes failed ones alone.

Writes of one pass of an event loop are handed over together: conversations that run at the same moment
share one wait for the disk. The thread does not know what it writes. What can wait is done when nobody waits.
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
"""What SQLite raises, and what a value brings about that it cannot hold: to be explained."""
REFUSALS = (HoneError, *FOREIGN, TypeError, ValueError)


QUIET = 0.5
"""Seconds without a write after which what can wait is done."""
BEHIND = 100
"""Writes after which it is done all the same, if there is much of it."""


class _Write(Struct, frozen=True):
    work: Work[Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop


class _Outcome(Struct, frozen=True):
    value: Any = None
    error: Exception | None = None


class Writer:
    """Starts with the first write. What was handed over is written even if its caller is cancelled meanwhile,
    so that whoever goes on after an interrupt knows what is there."""

    def __init__(
        self,
        connect: Callable[[], apsw.Connection],
        explained: Callable[[Exception], StoreError],
        later: Later,
    ) -> None:
        """`later` does a piece of what can wait, in its own transaction; True: there may be more of it. It is
        told whether it is quiet; otherwise a little of it may wait longer."""
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
        """Returns once the work is on the disk."""
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
        """From now on nothing is taken; what was handed over is still written."""
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
        """Blocks until the thread has ended."""
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
            # Reached with a batch only by an error of ours: nobody may wait for a thread that is no more.
            with self._lock:
                self._closed = True
                left = [*batch, *_drained(self._queue), *chain(*self._collected.values())]
                self._collected.clear()
            self._settle(left, [_Outcome(error=_gone())] * len(left))
            if connection is not None:
                connection.close()

    def _waiting(self, connection: apsw.Connection | None) -> list[_Write]:
        """Block for the next write and take all that have come by then; empty when closed. What can wait is
        done meanwhile."""
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
        """Do what can wait. If it fails, it is tried again after the next writes."""
        more, self._left, self._behind = self._left, self._left and not quiet, 0
        while more:
            try:
                [outcome] = commit(connection, [lambda each: self._later(each, quiet)])
            except apsw.Error:
                return
            more = bool(outcome.value)

    def _settle(self, batch: Sequence[_Write], outcomes: Sequence[_Outcome]) -> None:
        """Wakes each event loop once."""
        answers: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], _Outcome]]] = defaultdict(
            list
        )
        for write, outcome in zip(batch, outcomes, strict=True):
            error = outcome.error
            told = _Outcome(error=self._explained(error)) if isinstance(error, FOREIGN) else outcome
            answers[write.loop].append((write.future, told))
        for loop, answered in answers.items():
            with suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(_answer, answered)


def commit(connection: apsw.Connection, works: Sequence[Work[Any]]) -> list[_Outcome]:
    """All in one transaction; what one of them refuses undoes that one alone. Raises apsw.Error if the
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
    """The disk failed when it was told to keep what it had taken: the next process may find it or not."""


def _settle(connection: apsw.Connection) -> None:
    """Commits. What was written before the disk failed lies in the log as if it were committed, and the next
    process would take it for that: something of no weight is written over it."""
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
    """The only work of a transaction, which is undone as a whole if the work is refused."""
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
        if not connection.in_transaction:  # a full disk, say: SQLite has undone the others, too
            raise
        connection.execute("ROLLBACK TO work")
        outcome = _Outcome(error=error)
    connection.execute("RELEASE work")
    return outcome


def _drained(queue: SimpleQueue[Sequence[_Write] | None]) -> list[_Write]:
    """All that is there, up to the mark that ends the thread, which stays."""
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
