"""A PostgreSQL database for the stores: a few connections for writing, a few for reading, and a handle for
each owner.

Writes about one session follow each other on one connection, its lane. A submitted write is done even if its
caller is cancelled.
"""

import asyncio
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Concatenate, ParamSpec, TypeVar
from zlib import crc32

import psycopg
from psycopg import Connection, Cursor, IsolationLevel, errors
from psycopg.conninfo import conninfo_to_dict

from hone.core.errors import StoreError
from hone.core.ids import SessionId
from hone.core.monitor import DatabaseLoad
from hone.core.threads import run_by
from hone.stores.postgres.batches import Batches, Perform
from hone.stores.postgres.faults import describe, explain, is_lost
from hone.stores.postgres.lease import ClaimLease
from hone.stores.postgres.migrating import ROLE, SCHEMA, examine, migrate
from hone.stores.postgres.text import adapt

P = ParamSpec("P")
T = TypeVar("T")
Row = tuple[Any, ...]

LANES, READERS = 4, 4
PATIENCE = 10
"""Seconds to wait for a connection, and for another process's lock."""
TRIES = 3
"""How often to try a write that collides with another in a way that only the server can resolve."""
ALIVE = {
    "connect_timeout": PATIENCE,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""Detects a silently lost server within half a minute. The address may override this."""
SETTINGS = """
SELECT set_config('search_path', %s, false), set_config('lock_timeout', %s, false),
    set_config('role', %s, false), set_config('hone.owner', %s, false)
"""
OWNER = "SELECT set_config('hone.owner', %s, false)"
BREAK_OFF = f"SELECT set_config('idle_in_transaction_session_timeout', '{PATIENCE}s', false)"
"""Lets other processes write if this one is suspended in the middle of a write."""
FATE = "SELECT pg_xact_status(%(number)s::xid8)"
COLLISIONS = (errors.DeadlockDetected, errors.SerializationFailure)


class Rows:
    """A connection and the owner whose rows it sees. Every query names the owner as %(owner)s."""

    def __init__(self, connection: Connection[Row], owner: str) -> None:
        self._connection = connection
        self.owner = owner

    def transaction(self) -> AbstractContextManager[object]:
        return self._connection.transaction()

    def pipeline(self) -> AbstractContextManager[object]:
        """Send statements one after the other without waiting for each result."""
        return self._connection.pipeline()

    def execute(self, query: str, **values: Any) -> Cursor[Row]:
        return self._connection.execute(query, {**values, "owner": self.owner}, binary=True)

    def one(self, query: str, **values: Any) -> Row | None:
        return self.execute(query, **values).fetchone()

    def value(self, query: str, **values: Any) -> Any:
        """Return the first column of the first row; None if there is none."""
        row = self.one(query, **values)
        return row[0] if row else None

    def pairs(self, query: str, **values: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the rows of a query with two columns."""
        yield from ((one, two) for one, two in self.execute(query, **values))

    def stream(self, query: str, types: Sequence[str], **values: Any) -> Iterator[Row]:
        """Yield rows without keeping them, here or in the client library."""
        with self._connection.cursor() as cursor:
            copying = f"COPY ({query}) TO STDOUT (FORMAT binary)"
            with cursor.copy(copying, {**values, "owner": self.owner}) as copy:
                copy.set_types(types)
                yield from copy.rows()

    def many(self, query: str, values: list[dict[str, Any]]) -> None:
        if values:
            with self._connection.cursor() as cursor:
                cursor.executemany(query, [{**each, "owner": self.owner} for each in values])


Work = Callable[[Rows], T]


class PostgresPool:
    """The connections of one process. They are opened as needed."""

    def __init__(
        self, url: str, *, lanes: int = LANES, readers: int = READERS, migrating: bool = True
    ) -> None:
        self.url = url
        self.where = describe(url)
        self._lanes = [ThreadPoolExecutor(1, thread_name_prefix=f"hone-pg-{n}") for n in range(lanes)]
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="hone-pg-read")
        self._claimer = ThreadPoolExecutor(1, thread_name_prefix="hone-pg-claim")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="hone-pg-aside")
        self.lease = ClaimLease()
        self.batches = Batches()
        self._idle: dict[ThreadPoolExecutor, deque[Connection[Row]]] = {
            each: deque() for each in (*self._lanes, self._readers, self._claimer, self._aside)
        }
        self._owners: dict[Connection[Row], str] = {}
        self._closed = False
        self._errors = 0
        with self.plainly(), self._dial() as connection:
            connection.execute("SELECT set_config('lock_timeout', '60s', false)")
            is_member = migrate(connection, self.where) if migrating else examine(connection, self.where)
            self._role = ROLE if is_member else "none"

    def lane(self, key: str) -> ThreadPoolExecutor:
        return self._lanes[crc32(key.encode("utf-8", "surrogatepass")) % len(self._lanes)]

    @property
    def readers(self) -> ThreadPoolExecutor:
        return self._readers

    @property
    def claimer(self) -> ThreadPoolExecutor:
        """One thread and one connection, which holds the advisory locks of this process."""
        return self._claimer

    @property
    def aside(self) -> ThreadPoolExecutor:
        """One thread and one connection for long work, so that no message waits behind it."""
        return self._aside

    def refuse_closed(self) -> None:
        if self._closed:
            raise StoreError(f"The database {self.where} is closed; nothing more is written to it.")

    async def run(self, executor: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        """Run work and return its result. It is done even if the caller is cancelled."""
        self.refuse_closed()
        self.batches.seal(executor)
        return await run_by(executor, work)

    def load(self) -> DatabaseLoad:
        return DatabaseLoad(len(self._owners), sum(map(len, self._idle.values())), self._errors)

    @contextmanager
    def connection(self, executor: ThreadPoolExecutor, owner: str) -> Iterator[Rows]:
        """Lend a connection of this executor. Call it in one of its threads. A broken connection is not
        kept."""
        idle = self._idle[executor]
        try:
            connection = idle.pop()
        except IndexError:
            connection = self._connect(owner, reading=executor is self._readers)
        try:
            if executor is self._claimer:
                self.lease.use(connection)
            if self._owners[connection] != owner:
                connection.execute(OWNER, (owner,), prepare=True)
                self._owners[connection] = owner
            yield Rows(connection, owner)
        finally:
            if connection.closed:
                del self._owners[connection]
                if executor is self._claimer:
                    self.lease.close()
            else:
                idle.append(connection)

    def forget(self) -> None:
        """Close idle connections: the server was restarted, so none of them works any more. The one that
        holds locks stays: if it works, its locks hold."""
        self._forget(executor for executor in self._idle if executor is not self._claimer)

    def _forget(self, executors: Iterable[ThreadPoolExecutor]) -> None:
        for idle in [self._idle[executor] for executor in executors]:
            with suppress(IndexError):
                while True:
                    connection = idle.pop()
                    connection.close()
                    del self._owners[connection]

    async def close(self) -> None:
        """Close all connections after all submitted reads and writes."""
        self._closed = True
        for lane in self._lanes:
            self.batches.seal(lane)
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for executor in self._idle:
            executor.shutdown()
        self.lease.close()
        self._forget(self._idle)

    def dial(self) -> Connection[Row]:
        """Open a connection as the user of the address, without an owner or a role."""
        return self._dial()

    def _dial(self) -> Connection[Row]:
        name = f"hone {os.getpid()}@{socket.gethostname()}"
        options: dict[str, Any] = {**ALIVE, "fallback_application_name": name, **conninfo_to_dict(self.url)}
        return psycopg.connect(**options, autocommit=True)

    def _connect(self, owner: str, *, reading: bool) -> Connection[Row]:
        connection = self._dial()
        connection.prepare_threshold = 2
        if reading:
            connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
        connection.execute(SETTINGS, (SCHEMA, f"{PATIENCE}s", self._role, owner))
        if not reading:
            connection.execute(BREAK_OFF)
        adapt(connection)
        self._owners[connection] = owner
        return connection

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Turn the errors of PostgreSQL into ours."""
        try:
            yield
        except (psycopg.Error, UnicodeError, OverflowError) as error:
            self._errors += 1
            raise explain(error, self.where) from error


class PostgresDatabase:
    """One owner's part of the database. A read that begins after an awaited write sees that write."""

    def __init__(self, pool: PostgresPool, owner: str) -> None:
        self._pool = pool
        self.owner = owner
        self.load = pool.load

    @property
    def where(self) -> str:
        return self._pool.where

    def dial(self) -> Connection[Row]:
        """Open a separate connection as the user of the address."""
        return self._pool.dial()

    @contextmanager
    def borrow(self, *, writing: bool = False) -> Iterator[Rows]:
        """Lend a connection to a thread that waits for it. Errors of a broken one are raised unchanged."""
        executor = self._pool.lane(self.owner) if writing else self._pool.readers
        with self._pool.connection(executor, self.owner) as rows:
            yield rows

    def renew(self) -> None:
        """Open new connections, since an old one broke."""
        self._pool.forget()

    def plainly(self) -> AbstractContextManager[None]:
        return self._pool.plainly()

    async def read(self, work: Work[T]) -> T:
        """Run the work on one view of the data."""
        return await self._pool.run(self._pool.readers, lambda: self._read(work))

    async def ask(self, work: Work[T]) -> T:
        """Run one query."""
        return await self._pool.run(self._pool.readers, lambda: self.read_now(work))

    async def write(self, work: Work[T], key: str = "", *, alone: bool = False) -> T:
        """Run the work in its own transaction. Writes with the same key follow each other. `alone`: no other
        write of this owner happens in the meantime."""
        lane = self._pool.lane(f"{self.owner} {key}")
        return await self._pool.run(lane, lambda: self._write(lane, work, alone=alone))

    async def write_aside(self, work: Work[T]) -> T:
        """Run long work in its own transaction, while messages are stored."""
        aside = self._pool.aside
        return await self._pool.run(aside, lambda: self._write(aside, work, alone=False))

    def read_now(self, work: Work[T]) -> T:
        """Run one query in the calling thread."""
        self._pool.refuse_closed()
        return self._ask(lambda: self._direct(self._pool.readers, work))

    def write_now(self, work: Work[T], key: str = "") -> T:
        """Run the work in its own transaction in the calling thread."""
        self._pool.refuse_closed()
        return self._write(self._pool.lane(f"{self.owner} {key}"), work, alone=False)

    async def call(self, work: Work[T], key: str = "") -> T:
        """Run a single statement without a transaction around it. The work itself resolves what a broken
        connection leaves uncertain."""
        lane = self._pool.lane(f"{self.owner} {key}")
        return await self._pool.run(lane, lambda: self.call_now(work, key))

    async def call_together(self, item: object, key: str, perform: Perform) -> None:
        """Let `perform` do the item with others that wait for the same lane, and raise its error. It reaches
        the lane with `call_now`."""
        self._pool.refuse_closed()
        lane = self._pool.lane(f"{self.owner} {key}")
        await self._pool.batches.join(lane, self.owner, key, item, perform)

    def call_now(self, work: Work[T], key: str = "") -> T:
        """Run the work inside the lane of the key."""
        lane = self._pool.lane(f"{self.owner} {key}")
        with self._pool.plainly():
            return self._retry(lambda: self._direct(lane, work))

    async def claim(self, name: tuple[str, str], take: Work[bool]) -> bool:
        """Take a lock that ends with this process. Return False if another holder has it, here or
        elsewhere."""
        if name in self._pool.lease.claimed:
            return False
        self._pool.lease.claimed[name] = 0
        taken = False
        try:
            taken = await self.on_claimer(lambda rows: self._take(rows, name, take))
        finally:
            if not taken:
                self._pool.lease.claimed.pop(name, None)
        return taken

    async def confirm(self, name: tuple[str, str], take: Work[bool]) -> bool:
        """Tell whether a lock is still held, and take it again if its connection broke. Return False if
        another holder has it by now."""
        lease = self._pool.lease
        if name not in lease.claimed:
            return False
        if lease.is_certain(name):
            return True

        def ask(rows: Rows) -> bool:
            rows.execute("SELECT 1")
            return lease.claimed.get(name) == lease.number or self._take(rows, name, take)

        return await self.on_claimer(ask)

    def _take(self, rows: Rows, name: tuple[str, str], take: Work[bool]) -> bool:
        taken = take(rows)
        if taken:
            self._pool.lease.claimed[name] = self._pool.lease.number
        return taken

    async def release(self, name: tuple[str, str], free: Work[object]) -> None:
        """Release a lock. If its connection broke, it is free already."""
        number = self._pool.lease.claimed.get(name)

        def give_back(rows: Rows) -> None:
            if number == self._pool.lease.number:
                free(rows)

        try:
            await self.on_claimer(give_back)
        finally:
            self._pool.lease.claimed.pop(name, None)

    async def beat(self) -> None:
        """Free this process's locks, from now on, when it has not beaten for some seconds. A recent beat for
        another owner counts for all."""
        if not self._pool.lease.is_fresh:
            await self.on_claimer(lambda rows: self._pool.lease.beat(rows.execute))

    async def on_claimer(self, work: Work[T]) -> T:
        """Run the work on the connection that holds this process's claims."""

        def perform() -> T:
            with self._pool.plainly():
                try:
                    return self._direct(self._pool.claimer, work)
                except psycopg.OperationalError as error:
                    if not is_lost(error):
                        raise
                    return self._direct(self._pool.claimer, work)  # the old connection's locks are free

        return await self._pool.run(self._pool.claimer, perform)

    def reconnected(self, work: Work[T], key: str = "") -> T:
        """Run the work on a new connection, inside a lane whose connection broke."""
        self._pool.forget()
        return self._direct(self._pool.lane(f"{self.owner} {key}"), work)

    def _direct(self, lane: ThreadPoolExecutor, work: Work[T]) -> T:
        with self._pool.connection(lane, self.owner) as rows:
            return work(rows)

    def _read(self, work: Work[T]) -> T:
        def perform() -> T:
            with self._pool.connection(self._pool.readers, self.owner) as rows, rows.transaction():
                return work(rows)

        return self._ask(perform)

    def _ask(self, perform: Callable[[], T]) -> T:
        with self._pool.plainly():
            try:
                return perform()
            except psycopg.OperationalError as error:
                if not is_lost(error):
                    raise
                self._pool.forget()  # an old connection: nothing was changed, so ask again
                return perform()

    def _write(self, lane: ThreadPoolExecutor, work: Work[T], *, alone: bool) -> T:
        with self._pool.plainly():
            return self._retry(lambda: self._transact(lane, work, alone=alone))

    def _retry(self, perform: Callable[[], T]) -> T:
        """Undo and repeat work that collided with another write in a way that only the server can resolve."""
        for _ in range(TRIES - 1):
            with suppress(*COLLISIONS):
                return perform()
        return perform()

    def _transact(self, lane: ThreadPoolExecutor, work: Work[T], *, alone: bool) -> T:
        number, ended = "", False
        try:
            with self._pool.connection(lane, self.owner) as rows, rows.transaction():
                number = rows.value("SELECT enter(%(owner)s, %(alone)s)", alone=alone)
                value = work(rows)
                ended = True
        except psycopg.OperationalError as error:
            if not is_lost(error) or (number and not ended):
                raise
            self._pool.forget()
            if not number:  # an old connection: nothing has begun
                return self._again(lane, work, alone=alone)
            if not self._is_committed(lane, number):
                raise
        return value

    def _again(self, lane: ThreadPoolExecutor, work: Work[T], *, alone: bool) -> T:
        with self._pool.connection(lane, self.owner) as rows, rows.transaction():
            rows.execute("SELECT enter(%(owner)s, %(alone)s)", alone=alone)
            return work(rows)

    def _is_committed(self, lane: ThreadPoolExecutor, number: str) -> bool:
        """Ask for the outcome of a transaction whose end was not heard, once it is decided."""
        deadline = time.monotonic() + PATIENCE
        with self._pool.connection(lane, self.owner) as rows:
            while (fate := rows.value(FATE, number=number)) == "in progress" and time.monotonic() < deadline:
                time.sleep(0.02)
        return bool(fate == "committed")


class PostgresStore:
    """A store on a database that its opener closes. Its methods pass work to the database with `reads` or
    `writes`; their promises are documented at the port."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database


def reads(
    work: Callable[Concatenate[Rows, P], T], *, single: bool = False
) -> Callable[Concatenate[PostgresStore, P], Coroutine[Any, Any, T]]:
    """Run work that reads. `single`: it is one query, which needs no transaction around it."""

    async def read(store: PostgresStore, /, *args: P.args, **named: P.kwargs) -> T:
        ask = store._database.ask if single else store._database.read
        return await ask(lambda rows: work(rows, *args, **named))

    return read


def writes(
    work: Callable[Concatenate[Rows, P], T], *, alone: bool = False
) -> Callable[Concatenate[PostgresStore, P], Coroutine[Any, Any, T]]:
    """Run the work in its own transaction, in the order in which the store's writes were submitted."""

    async def write(store: PostgresStore, /, *args: P.args, **named: P.kwargs) -> T:
        return await store._database.write(lambda rows: work(rows, *args, **named), alone=alone)

    return write


def writes_session(
    work: Callable[Concatenate[Rows, SessionId, P], T], *, alone: bool = False
) -> Callable[Concatenate[PostgresStore, SessionId, P], Coroutine[Any, Any, T]]:
    """Run the work in its own transaction, after earlier writes about the same session."""

    async def write(store: PostgresStore, session: SessionId, /, *args: P.args, **named: P.kwargs) -> T:
        return await store._database.write(
            lambda rows: work(rows, session, *args, **named), session, alone=alone
        )

    return write
