"""Erase from a home's database, local or remote: the port, and its SQLite implementation."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import apsw

from hone.core.erasure import Erasure, Scrubber
from hone.core.ids import SessionId
from hone.core.ledger import Target
from hone.core.loading import import_object
from hone.stores import erasing
from hone.stores.database import Database
from hone.stores.erasing import Found
from hone.stores.home import FILE
from hone.stores.purging import purge
from hone.stores.redacting import Rewrite

T = TypeVar("T")
POSTGRES = "hone.stores.postgres.erasure_store:PostgresErasures"


class ErasureStore(Protocol):
    """Finds and removes rows. Everything can be repeated after a kill."""

    async def find(self, what: Erasure) -> list[Found]:
        """Return which tables hold what is to be erased."""
        ...

    async def erase(self, what: Erasure, rewrite: Rewrite, at: int) -> None:
        """Erase from every table and record that, all or nothing."""
        ...

    async def begin(self, holdings: Sequence[str], at: int) -> None:
        """Record which holdings outside the database are affected, before any of them changes."""
        ...

    async def finish(self) -> None:
        """Record that nothing is left to do."""
        ...

    async def is_cut_off(self) -> bool:
        """Tell whether a killed process left an erasure in the middle."""
        ...

    async def purge(self, what: Erasure) -> Sequence[str]:
        """Remove what deleted rows left in files. Return what the owner should know, a sentence each."""
        ...

    async def search(self, scrub: Scrubber) -> tuple[int, Sequence[str]]:
        """Return how many rows were searched for the words, if no file of the home can tell, and the tables
        that have them."""
        ...

    async def find_decisions(self, scrub: Scrubber) -> Sequence[str]:
        """Return what holds the words and only the owner may change, except for files of the home."""
        ...

    async def family(self, sessions: Iterable[SessionId]) -> list[SessionId]:
        """Return those of these sessions that are there, with the forks that Hone made of them."""
        ...

    async def target_names(self) -> list[Target]:
        """Return every target that a change was ever about."""
        ...

    async def texts(self, words: tuple[str, ...]) -> list[str]:
        """Return the texts of messages that hold the words."""
        ...


def open_erasures(home: Path, address: str) -> ErasureStore:
    """Return the rows of a home: in its file, or in the PostgreSQL database at an address."""
    if not address:
        return SqliteErasures(home / FILE)
    made: ErasureStore = import_object(POSTGRES)(address)
    return made


class SqliteErasures:
    """Works on a file that may not exist yet. It is opened for each step, since erasing empties its log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def find(self, what: Erasure) -> list[Found]:
        return await self._read(lambda connection: erasing.find(connection, what), [])

    async def erase(self, what: Erasure, rewrite: Rewrite, at: int) -> None:
        await self._write(lambda connection: erasing.erase(connection, what, rewrite, at))

    async def begin(self, holdings: Sequence[str], at: int) -> None:
        await self._write(lambda connection: erasing.begin(connection, holdings, at))

    async def finish(self) -> None:
        await self._write(erasing.finish)

    async def is_cut_off(self) -> bool:
        return bool(await self._read(erasing.unfinished, []))

    async def purge(self, what: Erasure) -> Sequence[str]:
        return await purge(self._path, what)

    async def search(self, scrub: Scrubber) -> tuple[int, Sequence[str]]:
        return 0, ()

    async def find_decisions(self, scrub: Scrubber) -> Sequence[str]:
        return ()

    async def family(self, sessions: Iterable[SessionId]) -> list[SessionId]:
        return await self._read(lambda connection: erasing.family(connection, sessions), [])

    async def target_names(self) -> list[Target]:
        return await self._read(erasing.target_names, [])

    async def texts(self, words: tuple[str, ...]) -> list[str]:
        return await self._read(lambda connection: erasing.texts(connection, words), [])

    async def _read(self, work: Callable[[apsw.Connection], T], nothing: T) -> T:
        if not self._path.exists():
            return nothing
        async with self._open() as database:
            return await database.read(work)

    async def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        async with self._open() as database:
            return await database.write(work)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Database]:
        database = Database.open(self._path)
        try:
            yield database
        finally:
            await database.close()
