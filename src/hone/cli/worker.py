"""`hone worker`: run queued reviews, and wait for more; say whether a worker runs, and stop it."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from hone.app import Hone
from hone.cli.context import in_home, tell, with_home, writable_keeper
from hone.cli.crew import Crew
from hone.cli.detach import has_work
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import FAILED
from hone.cli.output import echo_json
from hone.cli.queued import describe_commands, end_command
from hone.core.clock import SystemClock
from hone.core.curation import summarize
from hone.core.delivery import DeliveryStatus
from hone.core.events import Curated, Event
from hone.core.queued import CommandState
from hone.core.visible import visible
from hone.learning.paying import explain_slower
from hone.monitoring.exposing import expose
from hone.monitoring.gauges import measure_work
from hone.monitoring.logs import Log, caught
from hone.runtime.claims import find_worker, hold_worker, stop_worker
from hone.runtime.queued import CommandQueue
from hone.stores.delivery import EmbeddedDelivery

POLL = 2.0
"""Seconds between two checks of a background worker."""
LIFETIME = 15 * 60.0
"""Seconds after which a background worker always ends."""
GOING = 5.0
"""Seconds that a worker gets to stop before we report that it has not."""


@click.group(
    cls=CommandGroup, invoke_without_command=True, short_help="Run the queued reviews, and wait for more."
)
@click.option("--once", is_flag=True, help="End when there is nothing left to do.")
@click.option(
    "--concurrency", type=click.IntRange(1, 64), default=1, show_default=True, help="Reviews at a time."
)
@click.option(
    "--metrics",
    metavar="ADDRESS",
    default="",
    help="Let Prometheus read numbers at this address, as in 127.0.0.1:9465.",
)
@click.option("--behind", is_flag=True, hidden=True, help="Started by a command: end as soon as possible.")
@click.pass_context
def worker(ctx: click.Context, once: bool, concurrency: int, metrics: str, behind: bool) -> int | None:
    """Run the queued reviews, print one line for each, and wait for more. Copies for the memory backend are
    sent, too, and commands that you queued with --queue are done.

    Conversations run their own reviews. A worker runs those that hone run and interrupted conversations
    leave. Ctrl-C or SIGTERM ends it; a running review goes back into the queue.

    With a PostgreSQL database, run as many workers as you like, on any machine.
    """
    if ctx.invoked_subcommand:
        return None
    if behind:
        return with_home(ctx.obj, stay_behind)
    return with_home(ctx.obj, lambda hone: work_monitored(hone, metrics, once=once, concurrency=concurrency))


async def work_monitored(hone: Hone, metrics: str, *, once: bool, concurrency: int) -> int:
    """Be a worker that publishes metrics at an address, and that logs as the settings say."""
    log = Log(hone.clock, hone.settings.serve.log)
    if hone.settings.serve.log != "off":
        hone.monitors.add(log)
    async with expose(hone, metrics, list, measure_work):
        with caught(log):
            return await work_here(hone, once=once, concurrency=concurrency)


async def work_here(hone: Hone, *, once: bool, concurrency: int = 1) -> int:
    """Be a worker with its status shown."""
    writable_keeper(hone)
    if not once:
        click.echo("Waiting for reviews to do. Ctrl-C ends.", err=True)
    for part in hone.parts("attend"):
        part.attend()
    clock = SystemClock()
    delivery = EmbeddedDelivery(hone.jobs, clock, once=True) if once else hone.stores.delivery(clock)
    async with Crew(hone, _tell_review, _told, every=once) as crew:
        with hold_worker(hone.home):
            serving = asyncio.ensure_future(delivery.serve(crew.perform, concurrency, _tell_trouble))
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
    return FAILED if once and crew.wrong else 0


def _tell_review(hone: Hone, said: str) -> None:
    """Report the result of a review, with its lessons; a log gets no content."""
    if said and hone.settings.serve.log == "off":
        click.echo(said)
    tell(hone)


def _tell_trouble(sentence: str) -> None:
    click.echo(sentence, err=True)


async def stay_behind(hone: Hone) -> int:
    """Do what is due and what becomes due in the meantime, for some minutes at most, as the only one in this
    home. The next `hone` does the rest."""
    staying = asyncio.ensure_future(_stay(hone))
    await until_told(staying)
    return 0 if staying.cancelled() or not staying.exception() else FAILED


async def _stay(hone: Hone) -> None:
    background, clock = hone.background, hone.clock
    with suppress(TimeoutError):
        async with clock.timeout(LIFETIME):
            # A process that found us here relies on us: we check once more after we are no longer visible.
            while await _is_left(hone):
                with hold_worker(hone.home) as held:
                    if not held:
                        return
                    while (due := await background.next_look()) is not None:
                        if due <= clock.now():
                            await background.drain()
                        if await background.next_look() is not None:  # not due, or another worker is on it
                            await clock.sleep(POLL)
                    for part in hone.parts("work"):
                        await part.work()
                if await has_work(hone):  # it failed, or another worker is on it
                    return


async def _is_left(hone: Hone) -> bool:
    return await hone.background.next_look() is not None or await has_work(hone)


@worker.command(short_help="Say whether a worker runs, and what is left to do.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@in_home
async def status(hone: Hone, as_json: bool) -> Iterator[str] | None:
    """Say which workers run, how many reviews are queued, and when the next one is due. With a PostgreSQL
    database these are the workers of all machines; otherwise it is the one of this home."""
    process, queued = find_worker(hone.home), len(await hone.jobs.waiting())
    due = await hone.background.next_look()
    delivered = await hone.stores.delivery(hone.clock).status()
    commands = CommandQueue(hone.documents, hone.clock).all()
    if not as_json:
        workers = describe_workers(delivered)
        waits = any(each.state is CommandState.WAITING for each in commands)
        left = describe(process, queued, due, whole=not delivered.workers, more=waits)
        return chain(workers, left, describe_commands(commands), await explain_slower(hone))
    facts: dict[str, Any] = {
        "process": process,
        "queued": queued,
        "next": due.isoformat() if due else None,
        "workers": [to_builtins(each) for each in delivered.workers],
        "waiting": dict(delivered.waiting),
        "commands": [to_builtins(each) for each in commands],
    }
    echo_json(facts)
    return None


def describe_workers(delivered: DeliveryStatus) -> Iterator[str]:
    """Yield one line for each worker on the database."""
    for each in delivered.workers:
        work = (
            f"at work on {each.busy} of {each.concurrency}"
            if each.busy
            else f"idle, {each.concurrency} at a time"
        )
        state = work if each.answers else "does not answer"
        yield f"Worker on {visible(each.name)}: {state}, since {each.since.astimezone():%Y-%m-%d %H:%M}."


def describe(
    process: int | None, queued: int, due: datetime | None, *, whole: bool = False, more: bool = False
) -> Iterator[str]:
    """Yield what is left to do and, with `whole`, who does it. `more`: something else waits, too."""
    if whole:
        yield "No worker runs." if process is None else f"A worker runs: process {process}."
    if queued:
        yield f"{queued:,} review{' is' if queued == 1 else 's are'} queued."
    elif due:
        yield f"The next review is due at {due.astimezone():%H:%M}."
    elif whole and not more:
        yield "Nothing is due."


@worker.command(short_help="Take a queued command out of the queue.")
@click.argument("number", type=click.IntRange(1))
@in_home
async def cancel(hone: Hone, number: int) -> str:
    """Take the queued command NUMBER out of the queue. What it has done so far stays."""
    return end_command(hone, number)


@worker.command(short_help="Stop the worker of this home.")
@in_home
async def stop(hone: Hone) -> str:
    """Stop the worker of this home. A running review goes back into the queue."""
    return await end_worker(hone.home)


async def end_worker(home: Path) -> str:
    """Stop the worker of a home, wait for it for a moment, and report the result."""
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
    """Run the task. Ctrl-C and SIGTERM end it in order."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        await asyncio.wait([task])
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
