"""Store memory items in a PostgreSQL database, with ranked full-text search. Needs the extra `postgres`."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from hone.core.backend import KEYS, LIMIT, Availability, Deleted, MemoryItem
from hone.core.clock import Clock
from hone.core.errors import BackendError, Unfit
from hone.core.regex import regex
from hone.features.backends.forms import beginning, content_terms, has_form, roots
from hone.stores.words import rarest, spaced

if TYPE_CHECKING:
    from psycopg import AsyncConnection, AsyncCursor

PATIENCE = 5
"""Seconds for a connection, and for a statement."""
BUDGET = 500
"""How many memories to score for one question."""
COMMON_WORD = 50
"""The number of memories that makes a word common: it is searched without its other forms."""
SPARE = 3
"""How many times as many memories to check as are requested: not all that begin alike are forms."""
FRESH = 60.0
"""Seconds for which the server's statistics are cached."""
LOCK = 0x686F6E65
"""If several processes start at once, one creates the table."""
SPEECH = "english"
"""Stems and stop words; text that is not English is indexed unchanged."""
_SIGNS = regex(r"[\W_]+")

COLUMNS = "key, value, user_id, created_at, updated_at, metadata"
SCHEMA = (
    "CREATE SEQUENCE IF NOT EXISTS hone_memos_touched",
    """
    CREATE TABLE IF NOT EXISTS hone_memos (
        user_id text NOT NULL,
        key text NOT NULL,
        value text NOT NULL,
        metadata jsonb NOT NULL,
        created_at timestamptz NOT NULL,
        updated_at timestamptz NOT NULL,
        touched bigint NOT NULL,
        words tsvector NOT NULL,
        PRIMARY KEY (user_id, key)
    )
    """,
    "CREATE INDEX IF NOT EXISTS hone_memos_words ON hone_memos USING gin (words) WITH (fastupdate = off)",
    "CREATE INDEX IF NOT EXISTS hone_memos_newest ON hone_memos (user_id, touched DESC)",
    # Enough of the most common words to know which ones to skip.
    "ALTER TABLE hone_memos ALTER COLUMN words SET STATISTICS 300",
)
# The user is a word of each memory, so that the index itself keeps users apart.
STORE = f"""
INSERT INTO hone_memos (user_id, key, value, metadata, created_at, updated_at, touched, words)
VALUES (%(user)s, %(key)s, %(value)s, %(metadata)s, %(now)s, %(now)s, nextval('hone_memos_touched'),
    setweight(to_tsvector('{SPEECH}', %(key_words)s), 'A') || to_tsvector('{SPEECH}', %(words)s)
    || array_to_tsvector(ARRAY[%(mark)s]))
ON CONFLICT (user_id, key) DO UPDATE SET value = excluded.value, metadata = excluded.metadata,
    updated_at = greatest(hone_memos.created_at, excluded.updated_at), touched = excluded.touched,
    words = excluded.words
RETURNING {COLUMNS}
"""
GET = f"SELECT {COLUMNS} FROM hone_memos WHERE user_id = %s AND key = %s"
NEWEST = "SELECT key FROM hone_memos WHERE user_id = %s ORDER BY touched DESC LIMIT %s"
DELETE = "DELETE FROM hone_memos WHERE user_id = %s AND key = %s"
PARSED = f"""
SELECT phraseto_tsquery('{SPEECH}', term)::text, tsvector_to_array(to_tsvector('{SPEECH}', term))
FROM unnest(%s::text[]) WITH ORDINALITY AS asked (term, place) ORDER BY place
"""
COMMON = """
SELECT element, (frequency * greatest(c.reltuples, 0))::bigint
FROM pg_class AS c JOIN pg_stats AS s ON s.tablename = c.relname AND s.attname = 'words'
    AND s.schemaname = c.relnamespace::regnamespace::text,
    unnest(s.most_common_elems::text::text[], s.most_common_elem_freqs) AS known (element, frequency)
WHERE c.oid = 'hone_memos'::regclass AND frequency * c.reltuples > 20 AND element IS NOT NULL
"""
SEARCH = f"""
SELECT words @@ %(exact)s::tsquery, {COLUMNS} FROM hone_memos
WHERE user_id = %(user)s AND words @@ %(sought)s::tsquery
ORDER BY ts_rank(words, %(wanted)s::tsquery, 1) DESC, touched DESC LIMIT %(limit)s
"""
EVERYWHERE = f"""
SELECT words @@ %(exact)s::tsquery, {COLUMNS} FROM hone_memos
WHERE user_id = %(user)s AND words @@ %(sought)s::tsquery
ORDER BY touched DESC LIMIT %(limit)s
"""


@dataclass(slots=True)
class _Statistics:
    """The number of memories with each of the most common words, as the server estimates it."""

    counts: Mapping[str, int] = field(default_factory=dict)
    at: float = float("-inf")


class PostgresBackend:
    """Uses one connection, made at the first use and again after it breaks."""

    name = "postgres"

    def __init__(self, url: str, clock: Clock, *, is_cloud: bool) -> None:
        self.is_cloud = is_cloud
        self._url = url
        self._clock = clock
        self._lock = asyncio.Lock()
        self._made: AsyncConnection[Any] | None = None
        self._statistics = _Statistics()
        self.calls = 0

    async def warm(self) -> None:
        await asyncio.to_thread(import_module, "psycopg")

    async def available(self) -> Availability:
        async with self._connection():
            return Availability()

    async def store(
        self, user_id: str, key: str, value: str, metadata: Mapping[str, str] | None = None
    ) -> MemoryItem:
        from psycopg.types.json import Jsonb

        values = {
            "user": user_id,
            "key": key,
            "value": value,
            "metadata": Jsonb(dict(metadata or {})),
            "now": self._clock.now(),
            "key_words": self._plain(key),
            "words": self._plain(value),
            "mark": _mark(user_id),
        }
        async with self._connection() as connection:
            [row] = await (await self._run(connection, STORE, values)).fetchall()
        return MemoryItem(*row)

    def _plain(self, text: str) -> str:
        """Return words only: the server takes signs for parts of numbers, hosts and paths; a question does
        not."""
        return _SIGNS.sub(" ", spaced(text))

    async def retrieve(self, user_id: str, key: str) -> MemoryItem | None:
        async with self._connection() as connection:
            row = await (await self._run(connection, GET, (user_id, key))).fetchone()
        return MemoryItem(*row) if row else None

    async def query(
        self, user_id: str, text: str, limit: int = LIMIT, *, dialectic: bool = False
    ) -> Sequence[MemoryItem]:
        terms = content_terms(text)
        if not terms:
            return ()
        async with self._connection() as connection:
            parsed = await (await self._run(connection, PARSED, (terms,))).fetchall()
            counts = await self._counts(connection)
            known = [(_count(lexemes, counts), f"({term})") for term, lexemes in parsed if lexemes]
            exact = " | ".join(term for _, term in known) or _quoted(_mark(""))
            rare = [term for term, (_, found) in zip(terms, parsed, strict=True) if _is_rare(found, counts)]
            wanted = roots(rare)
            known += [(_count_beginning(root, counts), f"{_quoted(beginning(root))}:*") for root in wanted]
            chosen = " | ".join(rarest(known, BUDGET))
            if not chosen:
                return ()
            everywhere = min(count for count, _ in known) > BUDGET
            values = {
                "user": user_id,
                "sought": f"{_quoted(_mark(user_id))} & ({chosen})",
                "wanted": chosen,
                "exact": exact,
                "limit": SPARE * limit,
            }
            asked = await self._run(connection, EVERYWHERE if everywhere else SEARCH, values)
            rows = await asked.fetchall()
        found = (MemoryItem(*row) for same, *row in rows if same or has_form(f"{row[0]} {row[1]}", wanted))
        return list(islice(found, limit))

    async def list_keys(self, user_id: str, limit: int = KEYS) -> Sequence[str]:
        async with self._connection() as connection:
            found = await self._run(connection, NEWEST, (user_id, limit))
            return [key for (key,) in await found.fetchall()]

    async def delete(self, user_id: str, key: str) -> Deleted:
        async with self._connection() as connection:
            done = await self._run(connection, DELETE, (user_id, key))
            return Deleted.GONE if done.rowcount else Deleted.ABSENT

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()

    async def _counts(self, connection: "AsyncConnection[Any]") -> Mapping[str, int]:
        now = self._clock.monotonic()
        if now - self._statistics.at > FRESH:
            rows = await (await self._run(connection, COMMON)).fetchall()
            self._statistics = _Statistics(dict(rows), now)
        return self._statistics.counts

    async def _run(
        self, connection: "AsyncConnection[Any]", statement: str, values: Any = None
    ) -> "AsyncCursor[Any]":
        self.calls += 1
        return await connection.execute(statement.encode(), values)

    @asynccontextmanager
    async def _connection(self) -> "AsyncIterator[AsyncConnection[Any]]":
        """Yield the connection, to one caller at a time. Errors of the server become ours."""
        if not self._url and find_spec("psycopg"):  # reported without importing the driver
            raise BackendError("Say which database: memory.url in hone.toml, or HONE_MEMORY_URL.")
        try:
            import psycopg
        except ImportError as error:
            raise BackendError("PostgreSQL needs an extra: pip install 'hone-agent[postgres]'") from error
        async with self._lock:
            try:
                if self._made is None or self._made.closed:
                    self._made = await self._connect()
                yield self._made
            except psycopg.DataError as error:
                raise Unfit(f"PostgreSQL does not take this: {_first_line(error)}") from error
            except (psycopg.Error, OSError) as error:
                raise BackendError(f"PostgreSQL failed: {_first_line(error)}") from error

    async def _connect(self) -> "AsyncConnection[Any]":
        import psycopg

        options = f"-c statement_timeout={PATIENCE * 1000}"
        made = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, connect_timeout=PATIENCE, options=options, application_name="hone"
        )
        try:
            await _prepare(made)
        except BaseException:
            await made.close()
            raise
        return made


async def _prepare(connection: "AsyncConnection[Any]") -> None:
    """Create what is missing. It checks first, so that a user without the right to create tables can use
    them."""
    known = await (await connection.execute("SELECT to_regclass('hone_memos_newest')")).fetchone()
    if known and known[0]:
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        for statement in SCHEMA:
            await connection.execute(statement)


def _mark(user_id: str) -> str:
    """Return a user's mark, which no text can contain: words have no blanks."""
    return f"user {user_id}"


def _quoted(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _count(lexemes: Sequence[str], counts: Mapping[str, int]) -> int:
    """Return the count of a phrase: that of its rarest word. A word without statistics is rare."""
    return max(1, min(counts.get(lexeme, 1) for lexeme in lexemes))


def _is_rare(lexemes: Sequence[str], counts: Mapping[str, int]) -> bool:
    return bool(lexemes) and _count(lexemes, counts) < COMMON_WORD


def _count_beginning(root: str, counts: Mapping[str, int]) -> int:
    """Return the count of a prefix: that of all the most common words with it."""
    first = beginning(root)
    return max(1, sum(count for lexeme, count in counts.items() if lexeme.startswith(first)))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".") + "."
