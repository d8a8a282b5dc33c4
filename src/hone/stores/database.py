"""One SQLite file: migrations, a few reader threads, one writer thread, and errors in plain words.

If there is no file and none can be made, the writer thread keeps the data in memory. A read-only file is read
where it is; a conversation's additions go to a copy in memory.
"""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import apsw

from hone.core.errors import Corrupt, StoreError
from hone.core.loading import import_object
from hone.core.monitor import DatabaseLoad
from hone.core.threads import run_by
from hone.files.atomic import create_file
from hone.stores import passages
from hone.stores.writer import FOREIGN, Doubtful, Work, Writer

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 10.0
"""Seconds to wait for another process."""
READERS = 4
CACHE, READING = 64 * 1024, 32 * 1024
"""Kibibytes that the writer and each reader may cache, if there is that much to cache."""
TOGETHER = 4 * 1024 * 1024
"""Bytes that all connections of a long-lived process may cache together, with a small margin. The system
caches the files anyway."""
LOG = 4 * 1024 * 1024
"""Bytes of the log that stay on disk: as much as is written before it is copied into the database."""
MEMORY = Path(":memory:")
READ_ONLY = "hone.stores.readonly:open_readonly"
COPY = "hone.stores.readonly:copy_to_memory"
"""Imported with the first read-only file."""
MIGRATIONS = tuple(sorted(Path(__file__).with_name("migrations").glob("*.sql")))


class Database:
    """A read that begins after an awaited write sees that write.

    `connect` opens further connections; None if all the data is in `first`, which the writer then uses for
    everything. `readonly`: the file cannot be written. `overlay`: in that case writes go to a copy in memory,
    except for those that the user expects to last. Without it, all writes are refused.
    """

    def __init__(
        self,
        path: Path,
        first: apsw.Connection,
        connect: Callable[[], apsw.Connection] | None,
        *,
        readonly: bool = False,
        overlay: bool = False,
    ) -> None:
        self._path = path
        self._connect = connect
        self.readonly = readonly
        self._overlay = overlay
        self._in_memory = connect is None
        self._idle = deque([first])
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="hone-reader")
        self._writer = Writer(self._connect_writer, self._explain, passages.keep_up)
        self._closed = False
        self._errors = 0

    @classmethod
    def open(
        cls,
        path: Path,
        patience: float = PATIENCE,
        scripts: Sequence[Path] = MIGRATIONS,
        *,
        overlay: bool = False,
    ) -> Self:
        """Open the file, and create it if there is none. Raises StoreError, or Corrupt if it is not a
        database."""
        path = path.absolute()
        with plainly(path):
            if is_readonly(path):
                first, more = import_object(READ_ONLY)(path, patience, scripts)
                return cls(path, first, more, readonly=True, overlay=overlay)
            create(path)
            connection = connect(path, patience)
            try:
                migrate(connection, path, patience, scripts)
            except (apsw.Error, StoreError):
                connection.close()
                raise
        return cls(path, connection, partial(connect, path, patience))

    @classmethod
    def in_memory(cls) -> Self:
        """Create a database that ends with this process. Each connection to memory is a separate database, so
        there is only one, and the writer also reads with it."""
        with plainly(MEMORY):
            connection = connect(MEMORY, PATIENCE)
            migrate(connection, MEMORY, PATIENCE)
        return cls(MEMORY, connection, None)

    @property
    def is_fixed(self) -> bool:
        """Whether the data is read from a read-only file."""
        return self.readonly and not self._in_memory

    async def write(self, work: Work[T], *, lasting: bool = False) -> T:
        """Write. `lasting`: the write must not go to memory, since that would claim what is not true."""
        if self.readonly and (lasting or not self._overlay):
            raise StoreError(f"{self._path} is read-only; nothing was changed.")
        self._in_memory = self._in_memory or self.readonly
        return await self._writer.run(work)

    async def read(self, work: Work[T]) -> T:
        if self._closed:
            raise StoreError(f"The database {self._path} is closed.")
        if self._in_memory:
            return await self._writer.run(work)
        return await run_by(self._readers, partial(self._read, work))

    async def is_current(self) -> bool:
        """Tell whether the file has this Hone's format. Raises StoreError."""
        return bool(await self.read(lambda each: each.pragma("user_version")) == len(MIGRATIONS))

    def load(self) -> DatabaseLoad:
        return DatabaseLoad(errors=self._errors)

    def _explain(self, error: Exception) -> StoreError:
        self._errors += 1
        return explained(error, self._path)

    async def close(self) -> None:
        """Close the database after all submitted reads and writes."""
        self._closed = True
        self._writer.close()
        await asyncio.to_thread(self._close)

    def _read(self, work: Work[T]) -> T:
        try:
            with self._reader() as connection:
                return work(connection)
        except FOREIGN as error:
            raise self._explain(error) from error
        except OSError as error:
            self._errors += 1
            raise unusable(self._path, error) from error

    @contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            assert self._connect
            connection = self._connect()
        try:
            with connection:  # one view of the data for everything that the work reads
                yield connection
        finally:
            self._idle.append(connection)

    def _close(self) -> None:
        self._writer.join()
        self._readers.shutdown()
        while self._idle:
            self._idle.pop().close()

    def _connect_writer(self) -> apsw.Connection:
        connection = self._connect() if self._connect else self._idle.pop()
        if self.readonly and self._connect:
            connection = import_object(COPY)(connection)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        connection.pragma("synchronous", "FULL")
        # Digests arrive in no order: if there are many, their index must be cached.
        connection.pragma("cache_size", -CACHE)
        # After a large import the log shrinks again.
        connection.pragma("journal_size_limit", LOG)
        # Overwrite deleted data instead of only unlinking it.
        connection.pragma("secure_delete", True)
        # Rollback data of savepoints stays in memory: no parts of conversations in a folder for all.
        connection.pragma("temp_store", "memory")
        passages.prepare(connection)
        return connection


def limit_caches(size: int = TOGETHER) -> None:
    """Let the connections of this process share this many bytes from now on, instead of a separate cache for
    each. A transaction that needs more gets it."""
    apsw.soft_heap_limit(size)


class Store:
    """A store on a database that its opener closes. Its methods pass work to the database with `reads` or
    `writes`; their promises are documented at the port."""

    def __init__(self, database: Database) -> None:
        self._database = database


def reads(
    work: Callable[Concatenate[apsw.Connection, P], T],
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    async def read(store: Store, /, *args: P.args, **named: P.kwargs) -> T:
        return await store._database.read(lambda connection: work(connection, *args, **named))

    return read


def writes(
    work: Callable[Concatenate[apsw.Connection, P], T], *, lasting: bool = False
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    """Run the work in its own transaction, which is finished even if the caller is cancelled. `lasting`:
    never run it only in memory, in place of a read-only file."""

    async def write(store: Store, /, *args: P.args, **named: P.kwargs) -> T:
        return await store._database.write(
            lambda connection: work(connection, *args, **named), lasting=lasting
        )

    return write


def is_readonly(path: Path) -> bool:
    """Tell whether there is a database that this process cannot write, or next to which it cannot keep a
    log."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    beside = (Path(f"{path}{suffix}") for suffix in ("-wal", "-shm"))
    needed = (path.parent, path, *(each for each in beside if each.exists()))
    return not all(os.access(each, os.W_OK) for each in needed)


def create(path: Path) -> None:
    """Create the file for the owner only. SQLite gives the files next to it the same rights."""
    try:
        os.close(create_file(path))
    except FileExistsError:
        # Leave it alone: opening and closing it here would drop this process's locks on it.
        return


def connect(path: Path, patience: float) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(int(patience * 1000))
        # Commands come and go; none of them should pay for the checkpoint, or truncate another's log.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.pragma("cell_size_check", True)
        connection.pragma("cache_size", -READING)
    except apsw.Error:
        connection.close()
        raise
    return connection


def migrate(
    connection: apsw.Connection, path: Path, patience: float, scripts: Sequence[Path] = MIGRATIONS
) -> None:
    """Apply new migrations, all or nothing. If several processes do this at once, one succeeds."""
    if version(connection, path, len(scripts)) == len(scripts):
        return
    _turn_on_log(connection, patience)
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = version(connection, path, len(scripts))
        if not done and connection.execute("SELECT count(*) FROM sqlite_schema").get:
            raise StoreError(
                f"{path} is the database of another program; it was left as it is. Move it away."
            )
        for script in scripts[done:]:
            connection.execute(read_script(script))
        connection.pragma("user_version", len(scripts))
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@cache
def read_script(path: Path) -> str:
    return path.read_text("utf-8")


def version(connection: apsw.Connection, path: Path, latest: int = len(MIGRATIONS)) -> int:
    """Return how many migrations the database has seen."""
    found = int(connection.pragma("user_version"))
    if found > latest:
        raise StoreError(
            f"{path} was written by a newer Hone (format {found}, this one knows {latest}); "
            "it was left as it is. Update Hone."
        )
    return found


def _turn_on_log(connection: apsw.Connection, patience: float) -> None:
    """Turn on the log. If another process does the same, SQLite does not wait here as it does elsewhere."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


@contextmanager
def plainly(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of the file system into ours."""
    try:
        yield
    except FOREIGN as error:
        raise explained(error, path) from error
    except OSError as error:
        raise unusable(path, error) from error


def unusable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be used: {error.strerror}.")


def explained(error: Exception, path: Path) -> StoreError:
    match error:
        case apsw.NotADBError():
            return Corrupt(
                f"{path} is not a database, or its beginning is damaged; it was left as it is. "
                "Move it away, or restore it from a backup."
            )
        case apsw.CorruptError() | apsw.ConstraintError() | UnicodeDecodeError():
            # Our writes violate no constraint, unless a required row is gone.
            return Corrupt(
                f"The database {path} is damaged ({error}). "
                "Restore it from a backup, or run hone doctor --repair."
            )
        case UnicodeEncodeError() | OverflowError():
            return StoreError(
                f"There is a value that {path} cannot hold ({error}); this step changed nothing."
            )
        case apsw.FullError():
            return StoreError(
                f"There is no space left for {path}; this step changed nothing. Make room and try again."
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreError(f"{path} cannot be written: the file or its folder is read-only.")
        case apsw.CantOpenError():
            return StoreError(f"{path} cannot be opened: the folder is missing or closed to you.")
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StoreError(
                f"Another process keeps {path} locked; this step changed nothing. "
                "Try again when it has finished."
            )
        case Doubtful():
            return StoreError(
                f"The disk failed while {path} was written ({error}); whether this was kept shows "
                "when the disk works again."
            )
        case apsw.IOError():
            return StoreError(
                f"The disk failed while {path} was read or written ({error}); this step changed nothing."
            )
    return StoreError(f"The database {path} cannot be used: {error}.")
