"""F2: vectors in SQLite: near ones are found, deleted contents leave nothing, and damage is noticed."""

import asyncio
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from hone.core.embedding import pack, similarity
from hone.core.messages import digest, user
from hone.core.messages import encode as encode_message
from hone.stores.database import Database
from hone.stores.examine import examine_file
from hone.stores.home import Stores, over
from hone.stores.meaning import similarities
from hone.stores.repair import Rebuilt, repair
from hone.stores.sqlite_meaning import SqliteVectorSource
from hone.stores.vector_codes import BLOCK, CodeCache, encode
from hone.stores.vectors import CACHED
from tests.contract.test_ledger import NOW
from tests.contract.test_vectors import fill, say
from tests.doubles.embedder import WordEmbedder

PUT = "INSERT INTO contents (digest, body) VALUES (?, ?)"
COUNTS = "SELECT embedder, count(*) FROM vectors GROUP BY embedder"
MANY = BLOCK + 500
ONE = WordEmbedder("one")


def random_vector(random: Random, size: int = 96) -> bytes:
    return pack([random.gauss(0, 1) for _ in range(size)])


async def crowd(path: Path) -> tuple[Stores, dict[int, bytes]]:
    """Many contents with vectors that were made elsewhere."""
    stores, random = over(path.parent, Database.open(path)), Random(1)
    bodies = [encode_message(user(f"Message {number}.")) for number in range(MANY)]
    with closing(apsw.Connection(str(path))) as connection, connection:
        connection.executemany(PUT, [(digest(body), body) for body in bodies])
    await stores.vectors.adopt("one")
    made: dict[int, bytes] = {}
    while found := await stores.vectors.missing("one", 2_000):
        batch = [(each, random_vector(random)) for each in found]
        made |= {each.content: vector for each, vector in batch}
        await stores.vectors.put("one", batch)
    while await stores.vectors.tidy("one"):
        pass
    return stores, made


async def test_the_codes_find_the_nearest_vectors_with_and_without_numpy(tmp_path: Path) -> None:
    stores, made = await crowd(tmp_path / "hone.db")
    with closing(apsw.Connection(str(tmp_path / "hone.db"))) as connection:
        assert connection.execute("SELECT count(*) FROM vector_codes").get == 1
        caches = CodeCache(fast=True), CodeCache(fast=False)
        for content in (1, 7, BLOCK - 1, BLOCK, MANY):
            found = [cache.nearest(connection, 1, made[content], 20) for cache in caches]
            assert found[0][0] == found[1][0] == content
            wanted = encode(made[content])
            far = [
                [(int.from_bytes(encode(made[each])) ^ int.from_bytes(wanted)).bit_count() for each in one]
                for one in found
            ]
            assert sorted(far[0]) == sorted(far[1])
            assert len(far[0]) == 20
        alike = similarities(SqliteVectorSource(connection, caches[0]), 1, [1, 2, 3], made[1])
        assert alike == pytest.approx({each: similarity(made[1], made[each]) for each in (1, 2, 3)}, abs=0.02)
    await stores.close()


async def test_a_deleted_content_leaves_no_vector_no_code_and_no_hit(tmp_path: Path) -> None:
    stores, made = await crowd(tmp_path / "hone.db")
    with closing(apsw.Connection(str(tmp_path / "hone.db"))) as connection:
        cache = CodeCache()
        assert cache.nearest(connection, 1, made[3], 1) == [3]
        connection.execute("DELETE FROM contents WHERE id <= 500")
        assert connection.execute("SELECT count(*) FROM vectors WHERE content <= 500").get == 0
        assert connection.execute("SELECT count(*) FROM vector_codes").get == 0
        assert cache.nearest(connection, 1, made[3], 1) != [3]
        while await stores.vectors.tidy("one"):
            pass
        assert connection.execute("SELECT count(*) FROM vector_codes").get == 1
        assert cache.nearest(connection, 1, made[501], 1) == [501]
    await stores.close()


async def test_the_cache_of_short_texts_has_an_end_and_one_embedder(tmp_path: Path) -> None:
    stores = over(tmp_path, Database.open(tmp_path / "hone.db"))
    await stores.vectors.cache("one", {f"text {number}": b"1" for number in range(CACHED + 10)})
    with closing(apsw.Connection(str(tmp_path / "hone.db"))) as connection:
        assert connection.execute("SELECT count(*) FROM meanings").get == CACHED
        await stores.vectors.cache("two", {"other": b"2"})
        assert connection.execute("SELECT count(*) FROM meanings").get == 1
    await stores.close()


BROKEN = {
    "a vector of nothing": "INSERT INTO vectors VALUES (999, 1, x'00')",
    "a vector that is gone": "DELETE FROM vectors WHERE content = 2",
    "codes of other vectors": "INSERT INTO vector_codes VALUES (0, 1, 1, zeroblob(8), zeroblob(8))",
}


@pytest.mark.parametrize("damage", BROKEN)
async def test_vectors_that_are_not_those_of_the_messages_are_noticed_and_made_again(
    damage: str, tmp_path: Path
) -> None:
    path = tmp_path / "hone.db"
    stores = over(path.parent, Database.open(path))
    await say(stores, "a", "One.", "Two.", "Three.")
    await fill(stores, ONE)
    await stores.close()
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(BROKEN[damage])
    assert len(examine_file(path)) == 1
    rebuilt = await repair(path, NOW)
    assert isinstance(rebuilt, Rebuilt)
    assert "vectors" in rebuilt.parts[0]
    again = over(path.parent, Database.open(path))
    assert await fill(again, ONE) == 3
    await again.close()
    assert examine_file(path) == []


async def test_readers_beside_the_one_that_makes_vectors_see_whole_batches(tmp_path: Path) -> None:
    """A search in the middle of it finds vectors of one embedder only."""
    stores = over(tmp_path, Database.open(tmp_path / "hone.db"))
    await say(stores, "a", *(f"Message {number}." for number in range(60)))
    await fill(stores, ONE)
    two, seen = WordEmbedder("two"), set[tuple[int, int]]()
    with closing(apsw.Connection(str(tmp_path / "hone.db"))) as connection:
        making = asyncio.ensure_future(fill(stores, two))
        while not making.done():
            await asyncio.sleep(0)
            rows: list[Any] = connection.execute(COUNTS).fetchall()
            counts: dict[int, int] = dict(rows)
            assert sum(counts.values()) == 60
            seen.add((counts.get(1, 0), counts.get(2, 0)))
    assert all(mine % 2 == 0 for mine, _ in seen)
    assert (60, 0) in seen
    await stores.close()
