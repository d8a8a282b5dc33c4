"""`hone worker`: run queued reviews, and wait for more."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

import click

from hone.app import Hone
from hone.cli.context import in_home, tell
from hone.cli.options import FAILED
from hone.cli.reviews import attempt, outcome
from hone.core.clock import Clock, SystemClock
from hone.core.curation import summarize
from hone.core.events import Curated, Event
from hone.core.jobs import Job, JobId, Jobs, State

POLL = 2.0
"""Seconds between two looks into the queue."""
REST = 60.0
"""Seconds before what could not be done is tried again."""

Work = Callable[[Job], Awaitable[bool]]
"""Whether a job may be tried again at once: somebody else had it."""
Tend = Callable[[], Awaitable[None]]


@click.command(short_help="Do the reviews that are queued, and wait for more.")
@click.option("--once", is_flag=True, help="End when there is nothing left to do.")
@in_home
async def worker(hone: Hone, once: bool) -> int:
    """Do the reviews that are queued, one line for each, and wait for more. What the memory backend has yet
    to be told is told as well.

    Conversations do their own reviews; a worker does those that hone run and broken-off conversations leave.
    Ctrl-C or SIGTERM ends it; a review that is at work then goes back into the queue.
    """
    wrong: set[JobId] = set()

    async def work(job: Job) -> bool:
        said = await outcome(hone, job.id, await attempt(hone, job.id))
        now = await hone.jobs.job(job.id)
        taken = now.state is State.QUEUED and not now.error
        if once or not taken:
            click.echo(f"review {job.id} of {job.session}: {said}")
        if now.error:
            wrong.add(job.id)
        tell(hone)
        return taken

    def notify() -> None:
        for part in hone.parts("notify"):
            part.notify()

    async def tend() -> None:
        for part in hone.parts("tend"):
            await part.tend(_told)
        tell(hone)

    if not once:
        click.echo("Waiting for reviews to do. Ctrl-C ends.", err=True)
    for part in hone.parts("attend"):
        part.attend()
    serving = asyncio.ensure_future(serve(hone.jobs, work, SystemClock(), once=once, begin=notify, tend=tend))
    await _until_told(serving)
    for part in hone.parts("finish"):
        await part.finish()
    left = len(await hone.jobs.waiting())
    if serving.cancelled():
        click.echo(f"Ended. {left} {'is' if left == 1 else 'are'} left in the queue.", err=True)
        return 0
    serving.result()
    return FAILED if once and wrong else 0


def _told(event: Event) -> None:
    if isinstance(event, Curated):
        click.echo(summarize(event.round, event.entries))


async def _until_told(task: asyncio.Future[None]) -> None:
    """Ctrl-C and SIGTERM end the task in order."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await asyncio.wait([task])
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def serve(
    jobs: Jobs,
    work: Work,
    clock: Clock,
    *,
    once: bool = False,
    begin: Callable[[], None] = lambda: None,
    tend: Tend | None = None,
) -> None:
    """One job after the other, the oldest first. One that could not be done rests for a while. `begin` is
    called with each look into the queue; `tend` does other work, if there is some."""
    resting: dict[JobId, float] = {}
    tended = float("-inf")
    while True:
        begin()
        for job in await jobs.waiting():
            if resting.get(job.id, 0.0) <= clock.monotonic():
                again = await work(job)
                resting[job.id] = clock.monotonic() + (0.0 if again else REST)
        if tend and clock.monotonic() - tended >= REST:
            await tend()
            tended = clock.monotonic()
        if once:
            return
        await clock.sleep(POLL)
