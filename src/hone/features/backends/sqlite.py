"""Store memory items in a separate SQLite file, with ranked full-text search."""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

from hone.core.backend import KEYS, LIMIT, Availability, Deleted, MemoryItem
from hone.core.clock import Clock
from hone.core.errors import BackendError, StoreError
from hone.core.messages import canonical
from hone.features.backends.forms import beginning, content_terms, has_form, roots
from hone.files.atomic import make_folder
from hone.stores.database import Database
from hone.stores.words import question_terms, rarest, spaced

SCHEMA = tuple(sorted(Path(__file__).with_name("schema").glob("*.sql")))
BUDGET = 500
"""The most memories to score for one question: more say little and take long."""
EPOCH = datetime.fromtimestamp(0, UTC)
MICROSECOND = timedelta(microseconds=1)

COLUMNS = "m.key, m.value, m.user, m.created, m.updated, m.metadata"
COMMON = 50
"""The number of memories that makes a word common: it is searched without its other forms."""
SPARE = 3
"""How many times as many memories to check as are requested: not all that begin alike are forms."""
GET = f"SELECT {COLUMNS} FROM memos AS m WHERE user = ? AND key = ?"
OLD = "DELETE FROM memos WHERE user = ? AND key = ? RETURNING id, created"
PUT = (
    "INSERT INTO memos (user, key, value, metadata, created, updated) VALUES (?, ?, ?, ?, ?, ?) RETURNING id"
)
INDEX = "INSERT INTO memo_words (rowid, key, value) VALUES (?, ?, ?)"
UNINDEX = "DELETE FROM memo_words WHERE rowid = ?"
EXACT = "SELECT rowid FROM memo_words WHERE memo_words MATCH ? AND rowid = ?"
NEWEST = "SELECT key FROM memos WHERE user = ? ORDER BY id DESC LIMIT ?"
COUNT = "SELECT count(*) FROM (SELECT 1 FROM memo_words WHERE memo_words MATCH ? LIMIT ?)"
SEARCH = f"""
SELECT m.id, {COLUMNS} FROM (
    SELECT w.rowid AS id, bm25(memo_words, 3.0, 1.0) AS score
    FROM memo_words AS w JOIN memos AS o ON o.id = w.rowid
    WHERE memo_words MATCH ? AND o.user = ? ORDER BY w.rowid DESC LIMIT ?
) AS found JOIN memos AS m ON m.id = found.id ORDER BY found.score, m.id DESC LIMIT ?
"""

EVERYWHERE = f"""
SELECT m.id, {COLUMNS} FROM memo_words AS w JOIN memos AS m ON m.id = w.rowid
WHERE memo_words MATCH ? AND m.user = ? ORDER BY w.rowid DESC LIMIT ?
"""


class _Draft(Struct, frozen=True):
    user: str
    key: str
    value: str
    metadata: str
    at: int
    words: tuple[str, str]


class SqliteBackend:
    """The file is opened, or created, at the first use; `available` creates none."""

    name = "sqlite"
    is_cloud = False

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._opened: Database | None = None

    async def available(self) -> Availability:
        if self._opened is None and not self._path.exists():
            return _room(self._path.absolute().parent)
        await self._database.read(lambda connection: connection.execute("SELECT 1 FROM memos LIMIT 1").get)
        return Availability()

    async def store(
        self, user_id: str, key: str, value: str, metadata: Mapping[str, str] | None = None
    ) -> MemoryItem:
        words = (spaced(key), spaced(value))
        at = (self._clock.now() - EPOCH) // MICROSECOND
        draft = _Draft(user_id, key, value, canonical(dict(metadata or {})), at, words)
        return await self._database.write(partial(_store, draft=draft))

    async def retrieve(self, user_id: str, key: str) -> MemoryItem | None:
        return await self._database.read(partial(_get, user=user_id, key=key))

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        def work(connection: apsw.Connection) -> tuple[MemoryItem, ...]:
            """Return what has content words first, then what has others."""
            terms, every = content_terms(text), question_terms(text)
            found = _search(connection, user_id, terms, limit)
            if len(found) == limit or terms == every:
                return found
            more = _search(connection, user_id, every, limit)
            known = {memory.key for memory in found}
            return (*found, *(memory for memory in more if memory.key not in known))[:limit]

        return await self._database.read(work)

    async def list_keys(self, user_id: str, limit: int = KEYS) -> Sequence[str]:
        def work(connection: apsw.Connection) -> tuple[str, ...]:
            return tuple(key for (key,) in connection.execute(NEWEST, (user_id, limit)))

        return await self._database.read(work)

    async def delete(self, user_id: str, key: str) -> Deleted:
        def work(connection: apsw.Connection) -> Deleted:
            return Deleted.ABSENT if _taken(connection, user_id, key) is None else Deleted.GONE

        return await self._database.write(work)

    async def close(self) -> None:
        if self._opened:
            await self._opened.close()

    @property
    def _database(self) -> Database:
        if self._opened is None:
            folder = self._path.parent
            try:
                make_folder(folder)
            except OSError as error:
                raise StoreError(f"{folder} cannot be made: {error.strerror}.") from error
            self._opened = Database.open(self._path, scripts=SCHEMA)
        return self._opened


def _room(folder: Path) -> Availability:
    """Tell whether a file could be created there, with the folders on the way to it."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    fits = there.is_dir() and os.access(there, os.W_OK)
    return Availability() if fits else Availability(f"{there} cannot be written.")


def _store(connection: apsw.Connection, draft: _Draft) -> MemoryItem:
    created = _taken(connection, draft.user, draft.key)
    created = draft.at if created is None else created
    # Clocks jump: an item is never updated before it was created.
    row = (draft.user, draft.key, draft.value, draft.metadata, created, max(created, draft.at))
    connection.execute(INDEX, (connection.execute(PUT, row).get, *draft.words))
    return _memory((draft.key, draft.value, draft.user, created, max(created, draft.at), draft.metadata))


def _taken(connection: apsw.Connection, user: str, key: str) -> int | None:
    """Delete a memory. Return when it was made."""
    row: Any = connection.execute(OLD, (user, key)).fetchone()
    if row is None:
        return None
    connection.execute(UNINDEX, row[:1])
    return int(row[1])


def _get(connection: apsw.Connection, user: str, key: str) -> MemoryItem | None:
    row = connection.execute(GET, (user, key)).fetchone()
    return None if row is None else _memory(row)


def _search(
    connection: apsw.Connection, user: str, terms: Sequence[str], limit: int
) -> tuple[MemoryItem, ...]:
    counts = [(_count(connection, f'"{term}"'), f'"{term}"') for term in terms]
    known = {term: count for count, term in counts}
    rare = [term for term in terms if known[f'"{term}"'] < COMMON]
    formed = roots(rare)
    begun = [f'"{beginning(root)}"*' for root in formed]
    counts += [(_count(connection, term), term) for term in begun]
    chosen = rarest(counts, BUDGET)
    if not chosen:
        return ()
    # A word that is everywhere ranks nothing; weighing it would mean reading every memory.
    everywhere = min(count for count, _ in counts if count) > BUDGET
    values = (user, SPARE * limit) if everywhere else (user, BUDGET, SPARE * limit)
    asked = EVERYWHERE if everywhere else SEARCH
    rows: list[Any] = connection.execute(asked, (" OR ".join(chosen), *values)).fetchall()
    fits = partial(_fits, connection, terms, formed) if {*chosen} & {*begun} else _is_any
    fitting = (row for id, *row in rows if fits(id, row))
    return tuple(_memory(row) for row in islice(fitting, limit))


def _count(connection: apsw.Connection, term: str) -> int:
    return int(connection.execute(COUNT, (term, BUDGET + 1)).get)


def _is_any(_: int, __: Sequence[Any]) -> bool:
    return True


def _fits(
    connection: apsw.Connection, terms: Sequence[str], formed: Sequence[str], id: int, row: Sequence[Any]
) -> bool:
    """Tell whether a memory has a searched word, or another form of one. The index is asked only if the words
    themselves do not tell."""
    text = f"{row[0]} {row[1]}"
    if has_form(text, formed):
        return True
    exact = " OR ".join(f'"{term}"' for term in terms)
    return connection.execute(EXACT, (exact, id)).fetchone() is not None


def _memory(row: Sequence[Any]) -> MemoryItem:
    key, value, user, created, updated, metadata = row
    try:
        known = json.loads(metadata)
        if not isinstance(known, dict):
            raise ValueError("no object")
        times = [EPOCH + int(each) * MICROSECOND for each in (created, updated)]
    except (ValueError, TypeError, OverflowError) as error:
        raise BackendError(f"The memo {key!r} is damaged; store it again.") from error
    return MemoryItem(key, value, user, times[0], times[1], known)
