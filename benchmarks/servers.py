"""Many conversations through several server processes on one PostgreSQL database, beside one server on SQLite
and the bare loop: turns a second, the slowest hundredth, and what a turn takes of servers and database.

Each turn has some tool calls; the provider answers after 50 ms. Everything runs on this machine, the clients,
the provider and the database included. So turns a second say how much of it is left, and processor time says
more.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from benchmarks.append import find_postgres, server_time
from benchmarks.bench import Bench, environment
from benchmarks.provider import Provider, serving
from benchmarks.scenarios import request_size
from benchmarks.server import CALLS, LATENCY, SETTINGS, Took, running, talked, used
from hone.stores.postgres import home as postgres_home
from hone.stores.postgres.database import PostgresDatabase, PostgresPool
from tests import databases

COMMITS = "SELECT sum(xact_commit)::bigint FROM pg_stat_database"
WRITTEN = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"


@dataclass(frozen=True, slots=True)
class Figures:
    """Per turn: milliseconds of the processor in all server processes and in the database, transactions, and
    bytes that the database wrote permanently."""

    turns: float
    slow: float
    server: float
    database: float = 0.0
    transactions: float = 0.0
    written: float = 0.0

    def show(self, name: str, sessions: int) -> str:
        stored = (
            f"{self.database:8.1f} {self.transactions:8.1f} {self.written / 1024:8.1f}"
            if self.database
            else ""
        )
        return (
            f"{name:24} {sessions:8} {self.turns:8.1f} {self.slow:8.0f} {self.server:8.1f} {stored}".rstrip()
        )


def tree(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(each for child in children for each in tree(int(child)))]


@contextmanager
def database(folder: Path) -> Iterator[str]:
    """Run a server that waits for the disk, as a real one does."""
    (folder / "pg").mkdir()
    folder.chmod(0o755)
    with databases.serving(find_postgres(), folder / "pg", "-c fsync=on") as url:
        yield url


def measure(
    bench: Bench, provider: Provider, options: argparse.Namespace, sessions: int
) -> Iterator[tuple[str, Figures]]:
    count = ("--sessions", str(sessions), "--turns", str(options.turns))
    padding = str(request_size(bench, provider, "openai"))
    took = talked(provider, "--url", provider.url, "--padding", padding, *count)
    yield "bare loop", Figures(took.turns, took.slow, took.cpu)
    total = sessions * options.turns
    yield "SQLite, 1 process", through(bench.folder(), provider, "", 1, count, total)
    for processes in options.processes:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="hone-servers-", dir=options.folder)))
            url = stack.enter_context(database(folder))
            name = f"PostgreSQL, {processes} process{'es' if processes > 1 else ''}"
            yield name, through(bench.folder(), provider, url, processes, count, total)


def through(
    home: Path, provider: Provider, url: str, processes: int, count: tuple[str, ...], total: int
) -> Figures:
    (home / "hone.toml").write_text(SETTINGS)
    with running(home, provider, database=url, processes=processes) as (address, process):
        key = (home / "serve.key").read_text().strip()
        warm = ("--sessions", "4", "--turns", "1")
        talked(provider, "--url", address, "--key", key, *warm)
        before, stored = sum(map(used, tree(process))), look(url)
        took: Took = talked(provider, "--url", address, "--key", key, *count)
        cpu, after = sum(map(used, tree(process))) - before, look(url)
    spent = [(now - then) / total for then, now in zip(stored, after, strict=True)]
    return Figures(took.turns, took.slow, cpu / total, *spent)


def look(url: str) -> tuple[float, float, float]:
    """Return the database's processor milliseconds so far, transactions, and bytes written."""
    if not url:
        return 0.0, 0.0, 0.0
    with psycopg.connect(url) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        commits = connection.execute(COMMITS).fetchone()
        written = connection.execute(WRITTEN).fetchone()
        folder = connection.execute("SHOW data_directory").fetchone()
    assert commits is not None
    assert written is not None
    assert folder is not None
    return server_time(Path(folder[0])) * 1000, float(commits[0]), float(written[0])


async def measure_parts(url: str, count: int) -> None:
    """Print the cost of each step of sharing, one after another on an otherwise idle database."""
    pool = PostgresPool(url)
    stores = postgres_home.over(PostgresDatabase(pool, "bench"), "bench", pool.close)
    assert stores.open_switchboard is not None
    board, claims = stores.open_switchboard("one"), stores.claims

    async def claim() -> None:
        async with claims.hold("conversation-talk"):
            pass

    async def turn() -> None:
        await board.begin("talk")
        await board.end("talk")

    async with claims.hold("conversation-other"):
        steps: dict[str, Callable[[], Awaitable[object]]] = {
            "claim and release": claim,
            "confirm a claim": lambda: claims.confirm("conversation-other"),
            "say that it does not hang": claims.beat,
            "begin and end a turn": turn,
            "look for what others left": lambda: board.receive((), ("",)),
            "list busy conversations": board.busy,
        }
        for name, step in steps.items():
            await step()
            before, began = look(url)[0], time.perf_counter()
            for _ in range(count):
                await step()
            taken, spent = (time.perf_counter() - began) * 1000, look(url)[0] - before
            print(f"{name:28} {taken / count:8.3f} ms, {spent / count:8.3f} ms of the database's processor")
    await board.close()
    await stores.close()
    with psycopg.connect(url, autocommit=True) as connection:
        print(f"claims at a time, by default: {count_locks(connection):,}")


def count_locks(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    """Take claims until the table of locks is full."""
    held = 0
    with suppress(psycopg.errors.OutOfMemory):
        while True:
            connection.execute(
                "SELECT pg_advisory_lock(n) FROM generate_series(%s::bigint, %s::bigint) AS n",
                (held, held + 99),
            )
            held += 100
    return held


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[100, 300, 1000], help="[%(default)s]")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4], help="[%(default)s]")
    parser.add_argument("--turns", type=int, default=3, help="turns of each conversation [%(default)s]")
    parser.add_argument("--folder", default="/tmp", help="where the database lies [%(default)s]")
    parser.add_argument("--parts", type=int, metavar="N", help="instead, do each step of sharing N times")
    options = parser.parse_args()
    if options.parts:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="hone-servers-", dir=options.folder)))
            asyncio.run(measure_parts(stack.enter_context(database(folder)), options.parts))
        return
    print(
        f"{CALLS} tool calls a turn, a provider of {LATENCY * 1000:.0f} ms, {os.cpu_count()} cores, ", end=""
    )
    print(f"load {os.getloadavg()[0]:.1f} at the start\n")
    titles = ("talks", "turns/s", "p99 ms", "srv ms", "db ms", "commits", "WAL KiB")
    print(" " * 24, *(f"{each:>8}" for each in titles))
    with TemporaryDirectory(prefix="hone-bench-") as scratch:
        bench = Bench(Path(scratch), lambda *_: None)
        with serving(environment(bench.folder()), LATENCY) as provider:
            for sessions in options.sessions:
                for name, figures in measure(bench, provider, options, sessions):
                    print(figures.show(name, sessions), flush=True)


if __name__ == "__main__":
    main()
