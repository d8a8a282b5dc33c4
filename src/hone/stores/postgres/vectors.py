"""Vectors of contents in PostgreSQL: find missing ones, store them, and find the nearest for a search.

As in SQLite, an embedder's contents have no gap, so its first and last vector tell what is left. With the
extension pgvector the server compares all vectors of the owner.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from hone.core.embedding import Coverage, Unembedded
from hone.stores.postgres.database import PostgresStore, Rows
from hone.stores.postgres.passages import catch_up
from hone.stores.vectors import CACHED, make_digest, read_text

NUMBER = "SELECT id FROM embedders WHERE owner = %(owner)s AND name = %(name)s"
ADOPTED = """
SELECT id, name FROM embedders WHERE owner = %(owner)s AND adopted > 0 ORDER BY adopted DESC LIMIT 1
"""
LOCK = "SELECT lock_owner(%(owner)s)"
NAME = """
INSERT INTO embedders (owner, id, name, adopted)
SELECT %(owner)s, coalesce(max(id), 0) + 1, %(name)s, 0 FROM embedders WHERE owner = %(owner)s
ON CONFLICT DO NOTHING
"""
ADOPT = """
UPDATE embedders SET adopted = (SELECT max(adopted) + 1 FROM embedders WHERE owner = %(owner)s)
WHERE owner = %(owner)s AND name = %(name)s
"""
RUN = "SELECT min(content), max(content) FROM vectors WHERE owner = %(owner)s AND embedder = %(embedder)s"
CONTENTS = """
SELECT p.id, p.content, c.body FROM passages AS p
JOIN contents AS c ON c.owner = p.owner AND c.digest = p.content WHERE p.owner = %(owner)s AND
"""
ABOVE = f"{CONTENTS} p.id > %(start)s ORDER BY p.id LIMIT %(limit)s"
BELOW = f"{CONTENTS} p.id < %(start)s ORDER BY p.id DESC LIMIT %(limit)s"
PUT = """
INSERT INTO vectors (owner, content, embedder, vector{columns})
SELECT %(owner)s, p.id, %(embedder)s, given.vector{values}
FROM unnest(%(ids)s::bigint[], %(digests)s::text[], %(vectors)s::bytea[], %(near)s::text[])
AS given (id, digest, vector, near)
JOIN passages AS p ON p.owner = %(owner)s AND p.id = given.id AND p.content = given.digest
ON CONFLICT (owner, content) DO UPDATE SET embedder = excluded.embedder, vector = excluded.vector{updates}
"""
GAP = "SELECT EXISTS (SELECT 1 FROM passages WHERE owner = %(owner)s AND id > %(low)s AND id < %(high)s)"
COVERAGE = """
SELECT (SELECT count(*) FROM vectors WHERE owner = %(owner)s AND embedder = %(embedder)s),
    (SELECT count(*) FROM passages WHERE owner = %(owner)s)
"""
TOP = (1 << 63) - 1
CACHE = """
INSERT INTO meanings (owner, embedder, digest, vector)
SELECT %(owner)s, %(embedder)s, * FROM unnest(%(digests)s::bytea[], %(vectors)s::bytea[])
ON CONFLICT (owner, embedder, digest) DO UPDATE SET vector = excluded.vector, id = nextval('meaning_ids')
"""
CACHED_ONES = """
SELECT digest, vector FROM meanings
WHERE owner = %(owner)s AND embedder = %(embedder)s AND digest = ANY (%(digests)s::bytea[])
"""
SHRINK = f"""
DELETE FROM meanings WHERE owner = %(owner)s AND (embedder <> %(embedder)s OR id <= (
    SELECT id FROM meanings WHERE owner = %(owner)s ORDER BY id DESC OFFSET {CACHED} LIMIT 1
))
"""
EXTENSION = """
SELECT n.nspname::text FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid
JOIN pg_namespace AS n ON n.oid = typnamespace
WHERE attrelid = 'hone.vectors'::regclass AND attname = 'near' AND NOT attisdropped
"""
NEAREST = """
SELECT content FROM vectors
WHERE owner = %(owner)s AND embedder = %(embedder)s AND length(vector) = %(size)s AND near IS NOT NULL
ORDER BY near OPERATOR("{0}".<#>) %(asked)s::"{0}".vector LIMIT %(count)s
"""
SOME = """
SELECT content, vector FROM vectors WHERE owner = %(owner)s AND embedder = %(embedder)s
    AND content = ANY (%(contents)s::bigint[]) AND length(vector) = %(size)s
"""
SPREAD = """
SELECT DISTINCT v.content FROM unnest(%(places)s::bigint[]) AS given (place) CROSS JOIN LATERAL (
    SELECT content FROM vectors
    WHERE owner = %(owner)s AND embedder = %(embedder)s AND content >= given.place ORDER BY content LIMIT 1
) AS v
"""
LARGEST = 16_000
"""The most numbers in a vector of pgvector."""


def find_number(rows: Rows, embedder: str) -> int | None:
    """Return the number of an embedder, None if it has no vectors yet."""
    found: int | None = rows.value(NUMBER, name=embedder)
    return found


def _adopted(rows: Rows, embedder: str) -> int | None:
    row = rows.one(ADOPTED)
    return int(row[0]) if row is not None and row[1] == embedder else None


def _is_adopted(rows: Rows, embedder: str) -> bool:
    return _adopted(rows, embedder) is not None


def _adopt(rows: Rows, embedder: str) -> None:
    rows.execute(LOCK)
    if not _is_adopted(rows, embedder):
        rows.execute(NAME, name=embedder)
        rows.execute(ADOPT, name=embedder)


def _missing(rows: Rows, embedder: str, limit: int) -> tuple[Unembedded, ...]:
    id = _adopted(rows, embedder)
    if id is None:
        return ()
    first, last = rows.one(RUN, embedder=id) or (None, None)
    found = rows.execute(ABOVE, start=last, limit=limit).fetchall() if last is not None else []
    found = found or rows.execute(BELOW, start=TOP if first is None else first, limit=limit).fetchall()
    return tuple(Unembedded(id, digest, read_text(body)) for id, digest, body in found)


def _put(rows: Rows, embedder: str, made: Sequence[tuple[Unembedded, bytes]]) -> None:
    rows.execute(LOCK)
    id = _adopted(rows, embedder)
    if id is None or not made or not _continues(rows, id, [each.content for each, _ in made]):
        return
    schema = rows.value(EXTENSION)
    more = (", near", f', given.near::"{schema}".vector', ", near = excluded.near") if schema else ("",) * 3
    rows.execute(
        PUT.format(**dict(zip(("columns", "values", "updates"), more, strict=True))),
        embedder=id,
        ids=[each.content for each, _ in made],
        digests=[each.digest for each, _ in made],
        vectors=[vector for _, vector in made],
        near=[_write(vector) for _, vector in made],
    )


def _write(vector: bytes) -> str | None:
    """Write a vector in pgvector's format; None for one that it cannot hold."""
    if not 0 < len(vector) <= LARGEST:
        return None
    return f"[{','.join(map(str, memoryview(vector).cast('b')))}]"


def _continues(rows: Rows, id: int, numbers: Sequence[int]) -> bool:
    """Tell whether these leave no gap: contents and vectors may have been deleted since they were read."""
    first, last = rows.one(RUN, embedder=id) or (None, None)
    if first is None:
        return True
    low, high = min(numbers), max(numbers)
    low, high = (last, low) if low > last else (high, first)
    return not rows.value(GAP, low=low, high=high)


def _coverage(rows: Rows, embedder: str) -> Coverage:
    made, every = rows.one(COVERAGE, embedder=find_number(rows, embedder)) or (0, 0)
    return Coverage(made, every - made)


def _cached(rows: Rows, embedder: str, texts: Sequence[str]) -> dict[str, bytes]:
    names = {make_digest(text): text for text in texts}
    id = find_number(rows, embedder)
    return {
        names[digest]: vector for digest, vector in rows.pairs(CACHED_ONES, embedder=id, digests=[*names])
    }


def _cache(rows: Rows, embedder: str, made: Mapping[str, bytes]) -> None:
    rows.execute(LOCK)
    rows.execute(NAME, name=embedder)
    id = find_number(rows, embedder)
    rows.execute(CACHE, embedder=id, digests=[*map(make_digest, made)], vectors=[*made.values()])
    rows.execute(SHRINK, embedder=id)


class PostgresVectors(PostgresStore):
    """Vectors in PostgreSQL. Contents get their numbers when they are indexed, so that is done before
    counting."""

    async def adopt(self, embedder: str) -> None:
        await self._database.write(partial(_adopt, embedder=embedder))

    async def is_adopted(self, embedder: str) -> bool:
        return await self._database.read(partial(_is_adopted, embedder=embedder))

    async def missing(self, embedder: str, limit: int) -> Sequence[Unembedded]:
        await catch_up(self._database, batches=1)
        return await self._database.read(partial(_missing, embedder=embedder, limit=limit))

    async def put(self, embedder: str, made: Sequence[tuple[Unembedded, bytes]]) -> None:
        await self._database.write(partial(_put, embedder=embedder, made=made))

    async def tidy(self, embedder: str) -> bool:
        """Do nothing: the server needs no preparation."""
        return False

    async def coverage(self, embedder: str) -> Coverage:
        waiting = await catch_up(self._database)
        found = await self._database.read(partial(_coverage, embedder=embedder))
        return Coverage(found.made, found.left + waiting)

    async def cached(self, embedder: str, texts: Sequence[str]) -> Mapping[str, bytes]:
        return await self._database.read(partial(_cached, embedder=embedder, texts=texts))

    async def cache(self, embedder: str, made: Mapping[str, bytes]) -> None:
        await self._database.write(partial(_cache, embedder=embedder, made=made))


class PostgresVectorSource:
    """Searches one view of the data, during one search."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.number = partial(find_number, rows)

    def nearest(self, embedder: int, vector: bytes, count: int) -> list[int]:
        schema, asked = self._rows.value(EXTENSION), _write(vector)
        if not schema or asked is None:
            return []
        values = {"embedder": embedder, "size": len(vector), "asked": asked, "count": count}
        return [id for (id,) in self._rows.execute(NEAREST.format(schema), **values)]

    def vectors(self, embedder: int, contents: Collection[int], size: int) -> list[tuple[int, bytes]]:
        return list(self._rows.pairs(SOME, embedder=embedder, contents=list(contents), size=size))

    def sample(self, embedder: int, count: int) -> list[int]:
        low, high = self._rows.one(RUN, embedder=embedder) or (None, None)
        if low is None:
            return []
        places = [low + (high - low) * each // count for each in range(count)]
        return [id for (id,) in self._rows.execute(SPREAD, embedder=embedder, places=places)]
