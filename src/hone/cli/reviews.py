"""`hone reviews` and `hone review`: what is learned by looking back, done and to come."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from textwrap import wrap

import click
from msgspec import Struct

from hone.app import Hone
from hone.cli.changes import NOTHING, learned_lines, line
from hone.cli.context import Interrupts, with_home, with_keeper
from hone.cli.listing import entry, folded
from hone.cli.options import FAILED, INTERRUPTED, Options, complain
from hone.cli.output import columns, echo, echo_json, lay_out, moment
from hone.cli.render import WIDE, Paint, account, paint_for, price
from hone.cli.terminal.screen import working
from hone.core.errors import Missing
from hone.core.events import Event, Learned
from hone.core.jobs import Job, JobId, State, Topics
from hone.core.model import Usage, total
from hone.core.ports import StoredSession
from hone.core.topics import NAMES
from hone.core.visible import one_line, visible
from hone.knowledge import descriptions
from hone.knowledge.descriptions import DescribedChange, describe
from hone.knowledge.keeper import Keeper
from hone.learning.reports import Report, data, queued, reports

ID = click.IntRange(1)
TITLES = ("id", "when", "session", "about", "state", "tokens", "cached", "cost", "changes", "why")
RIGHT = frozenset({"id", "tokens", "cached", "cost"})


@click.group(invoke_without_command=True, short_help="List the reviews: done, at work, to come.")
@click.option(
    "--limit", "-n", type=click.IntRange(1), default=20, show_default=True, help="How many, newest first."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_context
def reviews(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List the reviews: after some turns Hone looks back over a conversation for what is worth keeping.

    They are done beside a conversation, by the next one, or by hone worker.
    """
    if ctx.invoked_subcommand:
        return

    async def act(hone: Hone, _: Keeper) -> list[Report]:
        return await reports(hone, await hone.jobs.jobs(limit))

    found = with_keeper(ctx.obj, act)
    if as_json:
        echo_json([data(each) for each in found])
    elif found:
        click.echo(table(found, columns()))
    else:
        click.echo("There was no review yet. Start one: hone review")


class Whole(Struct, frozen=True):
    """A review with what was said in it, as far as that is still there, and what it changed."""

    report: Report
    stored: StoredSession | None
    changes: Sequence[DescribedChange]


@reviews.command(short_help="Print what was said in a review, and what it changed.")
@click.argument("id", type=ID)
@click.option("--full", is_flag=True, help="Show calls and results whole.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def show(options: Options, id: JobId, full: bool, as_json: bool) -> None:
    """Print what was said in the review ID from its question on, what it changed and what it took."""

    async def act(hone: Hone, keeper: Keeper) -> Whole:
        [report] = await reports(hone, [await hone.jobs.job(id)])
        made = [await keeper.ledger.entry(each) for each in report.job.changes]
        return Whole(report, await _stored(hone, report), await describe(keeper, made))

    whole = with_keeper(options, act)
    if as_json:
        made = [descriptions.data(each) for each in whole.changes]
        echo_json({**data(whole.report), "made": made})
        return
    echo(shown(whole, paint_for(sys.stdout), full=full))


async def _stored(hone: Hone, report: Report) -> StoredSession | None:
    try:
        return await hone.sessions.load(report.job.review)
    except Missing:
        return None


def shown(whole: Whole, paint: Paint, *, full: bool) -> Iterator[str]:
    first, *more = heading(whole.report)
    yield paint.bold(first)
    yield from map(paint.dim, more)
    yield from _said(whole.stored, paint, full=full) if whole.stored else _unsaid(whole)
    yield ""
    yield from (line(each) for each in whole.changes)
    if not whole.changes and whole.report.job.ended:
        yield "It changed nothing."
    if whole.report.usage:
        cached = percent(whole.report.cached) or "nothing"
        yield paint.dim(f"{account(whole.report.usage)} · first request {cached} cached")


def _said(stored: StoredSession, paint: Paint, *, full: bool) -> Iterator[str]:
    """From the question on. What comes before it is the conversation itself."""
    shared = stored.header.shared
    if shared:
        yield paint.dim(f"(messages 1 to {shared:,} are those of session {stored.header.parent})")
    question, *answers = enumerate(stored.transcript.nodes[shared:], shared + 1)
    yield f"\n{paint.bold(f'{question[0]} question')}"
    yield from (f"  {row}" if row else "" for row in folded(question[1].message.text, full=full))
    for number, node in answers:
        yield ""
        yield from entry(number, node, paint, full=full)


def _unsaid(whole: Whole) -> Iterator[str]:
    yield "It has not begun." if not whole.report.job.tries else "What was said in it is no longer kept."


@reviews.command()
@click.argument("id", type=ID)
@click.pass_obj
def retry(options: Options, id: JobId) -> None:
    """Queue the review ID again, which failed or was cancelled."""
    with_keeper(options, lambda hone, _: hone.jobs.retry(id))
    click.echo(f"Review {id} is queued again. The next conversation does it, or now: hone worker --once")


@reviews.command(short_help="Take a review out of the queue.")
@click.argument("id", type=ID)
@click.pass_obj
def cancel(options: Options, id: JobId) -> None:
    """Take the review ID out of the queue; if it is at work, what it learns is dropped."""
    with_keeper(options, lambda hone, _: hone.jobs.cancel(id, datetime.now(UTC)))
    click.echo(f"Review {id} is cancelled. Queue it again with: hone reviews retry {id}")


@click.command(short_help="Look back over a conversation now, for what is worth keeping.")
@click.argument("session", default="")
@click.option("--about", type=click.Choice(sorted(NAMES)), help="Only for this. [default: both]")
@click.pass_obj
def review(options: Options, session: str, about: str | None) -> int:
    """Look back over SESSION, your latest one if none is named, for what is worth keeping.

    It is queued and done at once. Ctrl-C leaves it in the queue.
    """
    topics = frozenset({about}) if about else NAMES

    async def act(hone: Hone) -> int:
        job = await queued(hone, session, topics, datetime.now(UTC))
        return await _reviewed(hone, job)

    return with_home(options, act)


async def _reviewed(hone: Hone, job: Job) -> int:
    """Says what it looks at and what came of it. Gives the exit code."""
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


async def attempt(hone: Hone, id: JobId) -> Learned | None:
    """Works on a job; what it learned, if it came to its end."""
    ended: list[Learned] = []

    def heard(event: Event) -> None:
        if isinstance(event, Learned):
            ended.append(event)

    await hone.reviewer.work(id, heard)
    return ended[0] if ended else None


async def outcome(hone: Hone, id: JobId, learned: Learned | None) -> str:
    """What became of a job that was worked on."""
    if learned:
        show = hone.settings.learning.show
        said = await learned_lines(hone.keeper, learned, "on" if show == "off" else show)
        return "\n".join(said) or NOTHING
    job = await hone.jobs.job(id)
    if job.state is State.QUEUED:
        return (
            visible(f"waits: {job.error}") if job.error else "somebody else is at work on this conversation"
        )
    return visible(f"{job.state}: {job.error}" if job.error else job.state)


def table(found: Sequence[Report], width: int = WIDE) -> str:
    title, *rows = lay_out(TITLES, [_cells(each) for each in found], width, RIGHT)
    indent = max(len(str(each.job.id)) for each in found) if found else 0
    lines = [title]
    for report, row in zip(found, rows, strict=True):
        lines.append(row)
        if report.job.error:
            lines += _below(report.job.error, max(indent, len(TITLES[0])) + 2, width)
    return "\n".join(lines)


def _below(words: str, indent: int, width: int) -> list[str]:
    room = max(40, width - indent)
    return [" " * indent + row for row in wrap(one_line(words, 500), room, break_on_hyphens=False)]


def _cells(report: Report) -> tuple[str, ...]:
    job, spent = report.job, total(report.usage)
    return (
        str(job.id),
        moment(job.created),
        one_line(job.session, 12),
        about(job.topics, "+"),
        report.state,
        f"{spent.input + spent.output:,}" if report.usage else "",
        percent(report.cached),
        _cost(report.usage),
        _changes(report),
        job.why,
    )


def about(topics: Topics, joint: str = " and ") -> str:
    return joint.join(sorted(topics))


def percent(share: float | None) -> str:
    return "" if share is None else f"{int(100 * share)} %"


def _cost(usage: Sequence[Usage]) -> str:
    return price(total(usage).cost).removeprefix("cost ") if usage else ""


def _changes(report: Report) -> str:
    made = str(len(report.job.changes)) if report.job.state is State.DONE else ""
    return f"{made}, {report.waiting} wait{'s' if report.waiting == 1 else ''}" if report.waiting else made


def heading(report: Report) -> Iterator[str]:
    """One review by itself: its first line, and what else there is to know about it."""
    job = report.job
    yield f"Review {job.id} of session {one_line(job.session, 40)}: {report.state}"
    tries = (f"{job.tries} tries",) if job.tries > 1 else ()
    cause = f"{about(job.topics)}, {one_line(job.why, 60)}"
    yield " · ".join((moment(job.created), cause, f"{job.messages:,} messages", *tries))
    if job.error:
        yield one_line(job.error, 500)
