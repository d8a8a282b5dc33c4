"""`hone review`: looks back over a conversation now, while you watch."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from hone.cli.main import FAILED, INTERRUPTED, Options, complain
from hone.core.jobs import Job, State
from hone.core.topics import NAMES

if TYPE_CHECKING:
    from hone.app import Hone


@click.command(short_help="Look back over a conversation now, for what is worth keeping.")
@click.argument("session", default="")
@click.option("--about", type=click.Choice(sorted(NAMES)), help="Only for this. [default: both]")
@click.pass_obj
def review(options: Options, session: str, about: str | None) -> int:
    """Look back over SESSION, your latest one if none is named, for what is worth keeping.

    It is queued and done at once. Ctrl-C leaves it in the queue.
    """
    from hone.cli.home import with_home
    from hone.learning.reports import queued

    topics = frozenset({about}) if about else NAMES

    async def act(hone: "Hone") -> int:
        job = await queued(hone, session, topics, datetime.now(UTC))
        return await _reviewed(hone, job)

    return with_home(options, act)


async def _reviewed(hone: "Hone", job: Job) -> int:
    """Says what it looks at and what came of it. Gives the exit code."""
    from hone.cli.interrupt import Interrupts
    from hone.cli.render import account
    from hone.cli.review_rows import about, reports
    from hone.cli.terminal.screen import working
    from hone.cli.worker import attempt, outcome

    click.echo(f"Looking back over session {job.session} for {about(job.topics)}: review {job.id}.", err=True)
    with Interrupts() as interrupts:
        work = asyncio.ensure_future(attempt(hone, job.id))
        with interrupts.heed(work.cancel):
            async with working(interrupts):
                await asyncio.wait([work])
    if work.cancelled():
        return complain(f"Review {job.id} is left for later: hone worker --once", INTERRUPTED)
    click.echo(await outcome(hone, job.id, work.result()))
    [report] = await reports(hone, [await hone.jobs.job(job.id)])
    if report.usage:
        click.echo(account(report.usage), err=True)
    return 0 if report.job.state is State.DONE else FAILED
