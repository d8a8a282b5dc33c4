"""`hone worker`: run queued reviews, and wait for more; say whether a worker runs, and stop it."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from hone.app import Hone
from hone.cli.context import in_home, tell, with_home, writable_keeper
from hone.cli.detach import has_work
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import FAILED
from hone.cli.output import echo_json
from hone.cli.reviews import attempt, outcome
from hone.core.clock import Clock, SystemClock
from hone.core.curation import summarize
from hone.core.events import Curated, Event
from hone.core.jobs import Job, JobId, Jobs, State
from hone.runtime.claims import find_worker, hold_worker, stop_worker

POLL = 2.0
"""Seconds between two looks into the queue."""
REST = 60.0
"""Seconds before what could not be done is tried again."""
LIFETIME = 15 * 60.0
"""Seconds after which a worker that was left behind ends in any case."""
GOING = 5.0
"""Seconds that a worker may take to stop before we say so."""

Work = Callable[[Job], Awaitable[bool]]
"""Whether a job may be tried again at once: somebody else had it."""
Tend = Callable[[], Awaitable[None]]


@click.group(
    cls=CommandGroup, invoke_without_command=True, short_help="Run the queued reviews, and wait for more."
)
@click.option("--once", is_flag=True, help="End when there is nothing left to do.")
@click.option("--behind", is_flag=True, hidden=True, help="Started by a command: end as soon as possible.")
@click.pass_context
def worker(ctx: click.Context, once: bool, behind: bool) -> int | None:
    """Run the queued reviews, print one line for each, and wait for more. Copies for the memory backend are
    sent, too.

    Conversations run their own reviews. A worker runs those that hone run and interrupted conversations
    leave. Ctrl-C or SIGTERM ends it; a running review goes back into the queue.
    """
    if ctx.invoked_subcommand:
        return None
    if behind:
        return with_home(ctx.obj, stay_behind)
    return with_home(ctx.obj, lambda hone: work_here(hone, once=once))


async def work_here(hone: Hone, *, once: bool) -> int:
    """Be a worker that is seen."""
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

    async def begin() -> None:
        await hone.background.promote()
        for part in hone.parts("notify"):
            part.notify()

    async def tend() -> None:
        for part in hone.parts("tend"):
            await part.tend(_told)
        tell(hone)

    writable_keeper(hone)
    if not once:
        click.echo("Waiting for reviews to do. Ctrl-C ends.", err=True)
    for part in hone.parts("attend"):
        part.attend()
    with hold_worker(hone.home):
        serving = asyncio.ensure_future(
            serve(hone.jobs, work, SystemClock(), once=once, begin=begin, tend=tend)
        )
        await until_told(serving)
    for part in hone.parts("finish"):
        await part.finish()
    for part in hone.parts("work") if once else ():
        await part.work()
    left = len(await hone.jobs.waiting())
    if serving.cancelled():
        click.echo(f"Ended. {left} {'is' if left == 1 else 'are'} left in the queue.", err=True)
        return 0
    serving.result()
    if once:
        for sentence in describe(None, 0, await hone.background.next_look()):
            click.echo(sentence, err=True)
    return FAILED if once and wrong else 0


async def stay_behind(hone: Hone) -> int:
    """Do what is due and what becomes due meanwhile, for some minutes at most, as the only one in this
    home. What is left by then is done by the next `hone`."""
    staying = asyncio.ensure_future(_stay(hone))
    await until_told(staying)
    return 0 if staying.cancelled() or not staying.exception() else FAILED


async def _stay(hone: Hone) -> None:
    background, clock = hone.background, hone.clock
    with suppress(TimeoutError):
        async with clock.timeout(LIFETIME):
            # A process that found us here relies on us: we look once more when we are no longer found.
            while await _is_left(hone):
                with hold_worker(hone.home) as held:
                    if not held:
                        return
                    while (due := await background.next_look()) is not None:
                        if due <= clock.now():
                            await background.drain()
                        if await background.next_look() is not None:  # not due, or at work elsewhere
                            await clock.sleep(POLL)
                    for part in hone.parts("work"):
                        await part.work()
                if await has_work(hone):  # it failed, or somebody else is at it
                    return


async def _is_left(hone: Hone) -> bool:
    return await hone.background.next_look() is not None or await has_work(hone)


@worker.command(short_help="Say whether a worker runs, and what is left to do.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@in_home
async def status(hone: Hone, as_json: bool) -> Iterator[str] | None:
    """Say whether a worker runs in this home, how many reviews are queued, and when the next one is due."""
    process, queued = find_worker(hone.home), len(await hone.jobs.waiting())
    due = await hone.background.next_look()
    if not as_json:
        return describe(process, queued, due, whole=True)
    facts: dict[str, Any] = {
        "process": process,
        "queued": queued,
        "next": due.isoformat() if due else None,
    }
    echo_json(facts)
    return None


def describe(process: int | None, queued: int, due: datetime | None, *, whole: bool = False) -> Iterator[str]:
    """Yield what is left to do; `whole`: and who does it."""
    if whole:
        yield "No worker runs." if process is None else f"A worker runs: process {process}."
    if queued:
        yield f"{queued:,} review{' is' if queued == 1 else 's are'} queued."
    elif due:
        yield f"The next review is due at {due.astimezone():%H:%M}."
    elif whole:
        yield "Nothing is due."


@worker.command(short_help="Stop the worker of this home.")
@in_home
async def stop(hone: Hone) -> str:
    """Stop the worker of this home. A running review goes back into the queue."""
    return await end_worker(hone.home)


async def end_worker(home: Path) -> str:
    """Stop the worker of a home, wait for it for a moment, and say what came of it."""
    process = stop_worker(home)
    if process is None:
        return "No worker runs."
    clock = SystemClock()
    with suppress(TimeoutError):
        async with clock.timeout(GOING):
            while find_worker(home) == process:
                await clock.sleep(0.05)
            return f"Worker {process} has stopped."
    return f"Worker {process} is still stopping. See: hone worker status"


def _told(event: Event) -> None:
    if isinstance(event, Curated):
        click.echo(summarize(event.round, event.entries))


async def until_told(task: asyncio.Future[Any]) -> None:
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
    begin: Tend | None = None,
    tend: Tend | None = None,
) -> None:
    """One job after the other, the oldest first. One that could not be done rests for a while. `begin` is
    called with each look into the queue; `tend` does other work, if there is some."""
    resting: dict[JobId, float] = {}
    tended = float("-inf")
    while True:
        if begin:
            await begin()
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
