"""`python -m benchmarks.vectors`: search by meaning over very many messages, in processor time.

The vectors are random: they cost as much as real ones, and say nothing about quality.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import numpy as np

from hone.core.recall import Query
from hone.stores.database import PATIENCE, Database, connect
from hone.stores.meaning import WEIGHED, similarities
from hone.stores.question import ParsedQuestion
from hone.stores.ranking import Ranked
from hone.stores.sqlite_meaning import SqliteMeaning, SqliteVectorSource
from hone.stores.vector_codes import CodeCache, seal

COUNT, SIZE, TOGETHER = 1_000_000, 384, 10_000
RESCORING, SCAN = 20.0, 100.0
"""The targets in milliseconds."""
PUT = "INSERT INTO contents (id, digest, body) VALUES (?, ?, ?)"
PUT_VECTOR = "INSERT INTO vectors (content, embedder, vector) VALUES (?, 1, ?)"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument(
        "--folder", type=Path, help="where the database is made (default: a temporary folder)"
    )
    options = parser.parse_args()
    with TemporaryDirectory(prefix="hone-bench-", dir=options.folder) as scratch:
        path = Path(scratch) / "hone.db"
        began = time.process_time()
        Database.open(path)
        with closing(connect(path, PATIENCE)) as connection:
            connection.pragma("synchronous", "OFF")
            fill(connection, options.count)
            seconds = time.process_time() - began
            print(f"{options.count:,} vectors of {SIZE} bytes, made in {seconds:.0f} s of processor time")
            print(
                f"file: {(size := path.stat().st_size) / 1e6:,.0f} MB, {size / options.count:.0f} bytes each"
            )
            for line in measure(connection, options.count, options.queries):
                print(line)


def fill(connection: apsw.Connection, count: int) -> None:
    random = np.random.default_rng(1)
    connection.execute("INSERT INTO embedders (id, name, adopted) VALUES (1, 'bench', 1)")
    for start in range(1, count + 1, TOGETHER):
        ids = range(start, min(start + TOGETHER, count + 1))
        rows = draw(random, len(ids))
        with connection:
            connection.executemany(PUT, [(id, str(id), b"{}") for id in ids])
            connection.executemany(PUT_VECTOR, zip(ids, (row.tobytes() for row in rows), strict=True))
    with connection:
        while seal(connection, 1, 1, count):
            pass
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def draw(random: np.random.Generator, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    values = random.standard_normal((count, SIZE), dtype=np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return np.rint(values * 127).astype(np.int8)


def measure(connection: apsw.Connection, count: int, queries: int) -> Iterator[str]:
    random = np.random.default_rng(2)
    vectors = [row.tobytes() for row in draw(random, queries)]
    found = [[int(id) for id in random.integers(1, count + 1, WEIGHED)] for _ in vectors]
    warm, plain, meaning = CodeCache(), CodeCache(fast=False), SqliteMeaning()
    source = SqliteVectorSource(connection, warm)

    def scan(cache: CodeCache) -> Callable[[int], object]:
        return lambda each: cache.nearest(connection, 1, vectors[each], 200)

    def first(each: int) -> object:
        return scan(CodeCache())(each)

    def whole(each: int) -> object:
        words = Ranked(dict.fromkeys(found[each], 1.0), (), ())
        query = Query("", embedder="bench", vector=vectors[each])
        return meaning.combine(connection, words, ParsedQuestion(), query)

    yield describe(
        "re-scoring what words found",
        RESCORING,
        times(queries, lambda each: similarities(source, 1, found[each], vectors[each])),
    )
    yield describe("scan of all codes, the first of a process", SCAN, times(3, first))
    scan(warm)(0)
    yield describe("scan of all codes, later", SCAN, times(queries, scan(warm)))
    scan(plain)(0)
    yield describe("the same without numpy (the latest only)", SCAN, times(queries, scan(plain)))
    whole(0)
    yield describe("all of it", RESCORING + SCAN, times(queries, whole))


def times(queries: int, work: Callable[[int], object]) -> list[float]:
    """Return milliseconds of processor time, shortest first."""
    taken: list[float] = []
    for each in range(queries):
        began = time.process_time()
        work(each)
        taken.append((time.process_time() - began) * 1000)
    return sorted(taken)


def describe(name: str, aim: float, taken: list[float]) -> str:
    p95 = taken[min(len(taken) - 1, int(0.95 * len(taken)))]
    verdict = "✓" if p95 <= aim else "✗"
    return f"{verdict} {name}: p50 {taken[len(taken) // 2]:.1f} ms, p95 {p95:.1f} ms (aim {aim:g} ms)"


if __name__ == "__main__":
    main()
