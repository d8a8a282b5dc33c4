"""`hone review`: looks back over a conversation now, while you watch."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from hone.cli.main import FAILED, INTERRUPTED, Options, complain
from hone.core.jobs import Job, State, Topic, Topics

if TYPE_CHECKING:
    from hone.app import Hone

BY_HAND = "by hand"


@click.command(short_help="Look back over a conversation now, for what is worth keeping.")
@click.argument("session", default="")
@click.option(
    "--about", type=click.Choice([each.value for each in Topic]), help="Only for this. [default: both]"
)
@click.pass_obj
def review(options: Options, session: str, about: str | None) -> int:
    """Look back over SESSION, your latest one if none is named, for what is worth keeping.

    It is queued and done at once. Ctrl-C leaves it in the queue.
    """
    from hone.cli.home import with_home

    topics = frozenset({Topic(about)}) if about else frozenset(Topic)

    async def act(hone: "Hone") -> int:
        return await _reviewed(hone, await queued(hone, session, topics))

    return with_home(options, act)


async def queued(hone: "Hone", beginning: str, topics: Topics) -> Job:
    """Raises Missing or Refused where there is nothing to look back over."""
    from hone.core.errors import Missing, Refused
    from hone.core.turn import Origin

    latest = [] if beginning else await hone.sessions.list(limit=1, own=True)
    if not beginning and not latest:
        raise Missing("There is no session of yours to look back over yet.")
    id = await hone.sessions.find(beginning) if beginning else latest[0].header.id
    stored = await hone.sessions.load(id)
    if stored.header.origin is not Origin.USER:
        parent = stored.header.parent
        raise Refused(f"Session {id} is no conversation of yours, but a {stored.header.origin} of {parent}.")
    return await hone.jobs.enqueue(id, len(stored.transcript), topics, BY_HAND, datetime.now(UTC))


async def _reviewed(hone: "Hone", job: Job) -> int:
    """Says what it looks at and what came of it. Gives the exit code."""
    from hone.cli.interrupt import Interrupts
    from hone.cli.jobs import about, reports
    from hone.cli.render import account
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
