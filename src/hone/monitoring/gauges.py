"""Measure a process and its Hone at the moment of a scrape."""

import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from hone import __version__
from hone.app import Hone
from hone.core.errors import StoreError
from hone.monitoring.families import Family, Sample, gauge

Collect = Callable[[], Sequence[Family]]
"""What this process has counted and measured."""
CollectShared = Callable[[], Awaitable[Sequence[Family]]]
"""Values that are equal for all processes on one database."""


def measure_process(started: float) -> list[Family]:
    """Return the usual figures of a process, by their usual names. `started` is when it began to serve: a
    forked process has the start time of its parent."""
    fds, page = _count_fds(), os.sysconf("SC_PAGE_SIZE")
    found = [
        Family(
            "process_cpu_seconds_total", "counter", "User and system time.", [Sample(time.process_time())]
        ),
        gauge("process_start_time_seconds", "When the process started, since 1970.", started),
        gauge("process_max_fds", "Descriptors it may open.", resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        gauge("hone_build_info", "The version of Hone, with the value 1.", (1, {"version": __version__})),
    ]
    if fds is not None:
        found.append(gauge("process_open_fds", "Descriptors it has open.", fds))
    with suppress(OSError), open("/proc/self/statm") as file:
        resident = int(file.read().split()[1]) * page
        found.append(gauge("process_resident_memory_bytes", "Memory in use.", resident))
    return found


def _count_fds() -> int | None:
    with suppress(OSError):
        return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")) - 1
    return None


def measure_database(hone: Hone) -> list[Family]:
    load = hone.stores.load()
    errors = Family("hone_database_errors_total", "counter", "Errors of the database.", [Sample(load.errors)])
    if not hone.stores.shared:
        return [errors]
    busy = max(0, load.connections - load.idle)
    states = (busy, {"state": "busy"}), (load.idle, {"state": "idle"})
    return [errors, gauge("hone_database_connections", "Connections to PostgreSQL.", *states)]


async def measure_queue(hone: Hone) -> list[Family]:
    """Return the length of the queue of reviews; nothing while the database does not answer."""
    try:
        waiting = await hone.jobs.waiting()
    except StoreError:
        return []
    oldest = min((job.created for job in waiting), default=None)
    age = max(0.0, (hone.clock.now() - oldest).total_seconds()) if oldest else 0.0
    return [
        gauge("hone_reviews_queued", "Reviews that wait or are under way.", len(waiting)),
        gauge("hone_review_oldest_queued_seconds", "Age of the oldest of them; 0 without any.", age),
    ]


async def measure_work(hone: Hone) -> list[Family]:
    """Return the queue and, in a PostgreSQL database, the work of all owners that waits for workers."""
    queue = await measure_queue(hone)
    if not hone.stores.shared:
        return queue
    try:
        status = await hone.stores.delivery(hone.clock).status()
    except StoreError:
        return queue
    waiting = [(float(count), {"kind": kind}) for kind, count in status.waiting.items()]
    oldest = [(age, {"kind": kind}) for kind, age in status.oldest.items()]
    return [
        *queue,
        gauge("hone_tickets_waiting", "Owners' work that waits for a worker, by kind.", *waiting),
        gauge("hone_ticket_oldest_seconds", "How long the oldest has waited, by kind.", *oldest),
        gauge(
            "hone_workers", "Workers on this database that answer.", sum(w.answers for w in status.workers)
        ),
    ]
