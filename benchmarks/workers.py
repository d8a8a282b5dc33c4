"""How long work waits for a worker on PostgreSQL: behind a burst, and behind another owner's thousand.

python -m benchmarks.workers
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

import psycopg

from hone.core.clock import SystemClock
from hone.core.delivery import TicketKind, WorkItem, WorkResult
from hone.core.ids import SessionId
from hone.core.jobs import Job
from hone.core.ports import Header
from hone.core.topics import NAMES
from hone.stores.home import Stores
from hone.stores.postgres.home import open_stores
from tests import databases
from tests.stores.postgres_worker import NOW, PREFIX, said

FETCH = "SELECT id FROM procrastinate_fetch_job_v2(NULL, %s)"
FINISH = "SELECT procrastinate_finish_job_v1(%s, 'succeeded', true)"
BURST = "SELECT put_ticket('owner ' || n, 'review') FROM generate_series(1, %s) AS n"


def measure_fetches(url: str, count: int) -> tuple[list[float], int]:
    """Queue work of this many owners at once, and fetch all of it, one after the other. Return the seconds of
    each, and how many tickets were left over."""
    times = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('search_path', 'hone_jobs', false)")
        [worker] = connection.execute("SELECT * FROM procrastinate_register_worker_v1()").fetchone() or (0,)
        connection.execute(BURST, (count,))
        swept = 0.0
        for _ in range(count):
            if time.monotonic() - swept > 0.5:  # as each worker does
                connection.execute("SELECT * FROM sweep(1000)")
                swept = time.monotonic()
            began = time.perf_counter()
            [ticket] = connection.execute(FETCH, (worker,)).fetchone() or (None,)
            times.append(time.perf_counter() - began)
            connection.execute(FINISH, (ticket,))
        [left] = connection.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() or (0,)
    return times, int(left)


async def queue(stores: Stores, count: int, name: str) -> list[Job]:
    jobs = []
    for number in range(count):
        session = SessionId(f"{name}{number}")
        await stores.sessions.start(Header(session, NOW), PREFIX, said("one", "two").nodes)
        jobs.append(await stores.jobs.enqueue(session, 2, NAMES, "due", datetime.now(UTC)))
    return jobs


async def measure_waits(
    url: str, behind: int, times: int, workers: int, takes: float
) -> tuple[list[float], int]:
    """Return how many seconds it took until each of one owner's reviews began, one by one, while another
    owner had this many queued that take this many seconds each; and how many of the other's were done."""
    many, one = open_stores(url, "", "many"), open_stores(url, "", "one")
    begun: dict[int, float] = {}
    changed = asyncio.Event()
    finished = 0

    async def perform(item: WorkItem) -> WorkResult:
        nonlocal finished
        if item.kind is not TicketKind.REVIEW or item.job is None:
            return WorkResult(worked=False)
        stores = one if item.owner else many
        job = await stores.jobs.job(item.job)
        async with stores.claims.hold(job.tree) as held:
            if not held:
                return WorkResult(worked=False)
            if item.owner:
                begun[job.id] = time.monotonic()
                changed.set()
            await asyncio.sleep(takes)
            await stores.jobs.complete(job.id, [], {}, None, NOW)
            finished += not item.owner
        return WorkResult()

    await queue(many, behind, "m")
    crew = [open_stores(url, "", "many") for _ in range(workers)]
    tasks = [asyncio.create_task(each.delivery(SystemClock()).serve(perform, 1, print)) for each in crew]
    waits = []
    await asyncio.sleep(3)
    for number in range(times):
        await asyncio.sleep(takes * 0.7)
        asked = time.monotonic()
        [job] = await queue(one, 1, f"o{number}-")
        while job.id not in begun:
            changed.clear()
            await changed.wait()
        waits.append(begun[job.id] - asked)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for stores in (many, one, *crew):
        with suppress(Exception):
            await stores.close()
    return waits, finished


def percentile(seconds: Sequence[float], rank: int) -> float:
    return sorted(seconds)[min(len(seconds) - 1, len(seconds) * rank // 100)]


def tell(what: str, seconds: Sequence[float]) -> None:
    figures = ", ".join(f"p{rank} {1000 * percentile(seconds, rank):.1f} ms" for rank in (50, 95, 99))
    print(f"{what}: {figures}, most {1000 * max(seconds):.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--burst", type=int, default=3_000)
    parser.add_argument("--behind", type=int, default=1_000)
    parser.add_argument("--times", type=int, default=50)
    chosen = parser.parse_args()
    with databases.new_database() as url:
        asyncio.run(_prepare(url))
        times, left = measure_fetches(url, chosen.burst)
        tell(f"a fetch with {chosen.burst:,} owners queued at once ({left} left)", times)
    with databases.new_database() as url:
        waits, done = asyncio.run(measure_waits(url, chosen.behind, chosen.times, 4, 0.5))
        tell(
            f"start of one owner's review behind {chosen.behind:,} of another's ({done} of them done)", waits
        )


async def _prepare(url: str) -> None:
    await open_stores(url, "").close()


if __name__ == "__main__":
    main()
