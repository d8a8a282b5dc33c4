"""Copy the rows of a home whose database is PostgreSQL into the file of a backup, and back.

A backup holds them as hone.db, like a home without such a database. So it can be restored either way.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from hone.core.errors import Refused
from hone.core.visible import visible
from hone.features.backups.archive import Report
from hone.files.atomic import settle
from hone.stores.database import PATIENCE, Database, connect, plainly
from hone.stores.home import FILE
from hone.stores.moving.copying import copy, fingerprint
from hone.stores.moving.documents import put_in_place, take_away
from hone.stores.moving.sqlite import SqliteEnd, new_file
from hone.stores.postgres.database import PostgresPool
from hone.stores.postgres.home import LOCAL, name_checkout
from hone.stores.postgres.machine import name_machine
from hone.stores.postgres.moving import PostgresEnd, alone_with

SPARE = "hone-before-restore.db"
DOCUMENTS, ASIDE = "documents", "hone-moved-files-before-restore"
OWNER = "SELECT lock_owner(%(owner)s)"


@contextmanager
def pin_rows(address: str, home: Path, owner: str = LOCAL) -> Iterator[PostgresEnd]:
    """Show the rows as of this moment, whatever others write later. Raises StoreError."""
    with _open(address) as pool, pool.plainly():
        with pool.connection(pool.lane(""), owner) as rows:
            rows.execute(OWNER)  # the owner's single values exist before they are read
        with pool.connection(pool.readers, owner) as rows, rows.transaction():
            rows.execute("SELECT 1")
            yield PostgresEnd(rows, name_checkout(home), name_machine(home))


def save_rows(source: PostgresEnd, path: Path, documents: Path, report: Report) -> None:
    """Write all rows to a new database file, and documents to files below a folder, and compare them. Raises
    StoreError."""
    known = fingerprint(source, "Reading", report)
    with new_file(path, documents) as target:
        copy(source, target, known, report)
        target.index(report)
        target.check(path)


class RowReplacement:
    """Replaces the existing rows with those of a backup, in one transaction."""

    def __init__(self, target: PostgresEnd, where: str, former: Path) -> None:
        self._target, self._where = target, where
        self._former = former
        self.documents = former.parent / DOCUMENTS
        """The place of the documents that were replaced."""

    @contextmanager
    def former(self, *, replace: bool, report: Report) -> Iterator[apsw.Connection | None]:
        """Copy the existing rows to a file and return it; None if there are none. Raises Refused unless they
        may be replaced."""
        if self._target.is_empty():
            yield None
            return
        if not replace:
            raise Refused(
                f"{self._where} has conversations or lessons already; nothing was changed. Say --replace to "
                "restore in their place: what is there now is kept as a home with a hone.db."
            )
        save_rows(self._target, self._former, self.documents, report)
        with plainly(self._former), closing(connect(self._former, PATIENCE)) as connection:
            yield connection

    def keep(self, folder: Path) -> Path:
        """Put the file with the former rows into the former home, which then works without PostgreSQL. Return
        that home. Raises OSError."""
        folder.mkdir(mode=0o700, exist_ok=True)
        wanted = folder / FILE
        os.rename(self._former, wanted if not wanted.exists() else folder / SPARE)
        put_in_place(self.documents, folder, folder / ASIDE)
        settle(wanted)
        return folder

    def put(self, stage: Path, report: Report) -> None:
        """Replace the rows with those of the stage's hone.db, which is removed. Raises StoreError."""
        path = stage / FILE
        asyncio.run(Database.open(path).close())  # updates an older one
        with plainly(path), closing(connect(path, PATIENCE)) as connection:
            source = SqliteEnd(connection, stage)
            known = fingerprint(source, "Reading", report)
            self._target.clear()
            self._target.forget_move()
            copy(source, self._target, known, report)
        for each in stage.glob(f"{FILE}*"):
            each.unlink()
        take_away(stage)


@contextmanager
def replacing_rows(
    address: str, stage: Path, home: Path, former: Path, owner: str = LOCAL
) -> Iterator[RowReplacement]:
    """Hold the rows exclusively. Changes take effect at the end, when the stage is the home. Raises
    StoreError if others are writing."""
    names = name_checkout(stage, home), name_machine(stage)
    with _open(address) as pool, alone_with(pool, owner, *names) as target:
        yield RowReplacement(target, visible(pool.where), former)


@contextmanager
def _open(address: str) -> Iterator[PostgresPool]:
    pool = PostgresPool(address, lanes=1, readers=1)
    try:
        yield pool
    finally:
        asyncio.run(pool.close())
