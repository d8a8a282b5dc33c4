"""Erase memory items: in this home's own file, and at the backend in use."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw

from hone.app import Hone
from hone.core.backend import Backend, Deleted, MemoryItem
from hone.core.erasure import Erasure, Scrubber
from hone.core.errors import BackendError
from hone.core.holding import Occurrence
from hone.features.backends.current import FILE, SQLITE
from hone.features.backends.part import MemoryPart
from hone.features.backends.sqlite import INDEX, SCHEMA
from hone.stores.database import Database
from hone.stores.purging import purge, search
from hone.stores.words import spaced

MOST = 100_000
"""How many items of a service to search."""
TOGETHER = 16
"""How many items to request from a service at once."""
ROWS = "SELECT id, key, value, metadata FROM memos"
HIDDEN = (
    "{name} hides memory items from everybody, but the service still keeps them: {keys}. Delete them there, "
    "or ask its operator to."
)
SILENT = "{name} could not be asked, and may still hold it ({error}) Run this again when it answers."
POSTGRES = (
    "PostgreSQL keeps deleted rows in its files until it vacuums the table hone_memos, and longer in its log "
    "and backups."
)


class BackendEraser:
    """Deletes items that contain the words. What is left of them in the ledger is stored again from there."""

    def __init__(self, hone: Hone) -> None:
        self._part = hone.part(MemoryPart)
        self._file = hone.home / FILE

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        count = await search(self._file, lambda connection: len(_matching(connection, what)))
        found = [Occurrence("backends", FILE, count)] if count else []
        if backend := await self._service():
            with suppress(BackendError):  # `erase` reports it
                items = await self._items(backend, what)
                found += [Occurrence("backends", f"{backend.name}: {item.key}", whole=True) for item in items]
        return found

    async def erase(self, what: Erasure) -> Sequence[str]:
        said: list[str] = []
        if (backend := await self._service()) and (what.words or what.keys):
            try:
                said += await self._erase_service(backend, what)
            except BackendError as error:
                said.append(SILENT.format(name=backend.name, error=error))
        if self._file.exists() and (what.words or what.keys or not what.sessions):
            # The index may still hold words of items that were deleted long ago.
            await _erase_file(self._file, what)
            said += await purge(self._file, what)
        return said

    async def _service(self) -> Backend | None:
        backend = await self._part.used()
        return None if backend is None or backend.name == SQLITE else backend

    async def _items(self, backend: Backend, what: Erasure) -> list[MemoryItem]:
        scrub, user = Scrubber(what.words), self._part.backing.user_id
        keys = await backend.list_keys(user, MOST)
        items: list[MemoryItem | None] = []
        for start in range(0, len(keys), TOGETHER):
            some = keys[start : start + TOGETHER]
            items += await asyncio.gather(*(backend.retrieve(user, key) for key in some))
        return [item for item in items if item and (item.key in what.keys or scrub.count(_text(item)))]

    async def _erase_service(self, backend: Backend, what: Erasure) -> list[str]:
        user = self._part.backing.user_id
        items = await self._items(backend, what)
        done = {item.key: await backend.delete(user, item.key) for item in items}
        hidden = [key for key, deleted in done.items() if deleted is Deleted.HIDDEN]
        said = [HIDDEN.format(name=backend.name, keys=", ".join(hidden))] if hidden else []
        return [*said, POSTGRES] if done and backend.name == "postgres" else said


def _text(item: MemoryItem) -> str:
    return "\n".join((item.key, item.value, *item.metadata, *item.metadata.values()))


def _matching(connection: apsw.Connection, what: Erasure) -> list[int]:
    scrub = Scrubber(what.words)
    return [
        id
        for id, key, *texts in connection.execute(ROWS)
        if key in what.keys or any(map(scrub.count, (key, *texts)))
    ]


def _delete(connection: apsw.Connection, what: Erasure) -> None:
    """Delete items, and rebuild the index: it would keep their words until it is merged."""
    gone = [(id,) for id in _matching(connection, what)]
    connection.executemany("DELETE FROM memos WHERE id = ?", gone)
    connection.execute("INSERT INTO memo_words (memo_words) VALUES ('delete-all')")
    rows: list[Any] = connection.execute(ROWS).fetchall()
    connection.executemany(INDEX, [(id, spaced(key), spaced(value)) for id, key, value, _ in rows])


async def _erase_file(path: Path, what: Erasure) -> None:
    database = Database.open(path, scripts=SCHEMA)
    try:
        await database.write(lambda connection: _delete(connection, what))
    finally:
        await database.close()
