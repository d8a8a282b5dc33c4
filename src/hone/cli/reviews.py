"""`hone reviews` and `hone review`: list reviews, and queue, retry or cancel one."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

import click

from hone.app import Hone
from hone.cli.changes import NOTHING, learned_lines, line
from hone.cli.context import Interrupts, in_home, ledger_of, with_home, writable_keeper
from hone.cli.help_formatter import CommandGroup
from hone.cli.listing import entry, folded
from hone.cli.options import FAILED, INTERRUPTED, complain, limit_option
from hone.cli.output import echo_json, echo_prose, lay_out_rows, moment, screen_width, to_json, wrap_cells
from hone.cli.render import Paint, account, paint_for, price
from hone.cli.terminal.screen import working
from hone.core.errors import Missing
from hone.core.events import Event, Learned
from hone.core.jobs import JobId, State, Topics
from hone.core.model import total
from hone.core.ports import StoredSession
from hone.core.topics import NAMES
from hone.core.visible import one_line, visible
from hone.knowledge import descriptions
from hone.knowledge.descriptions import DescribedChange, describe
from hone.learning.paying import explain_slower
from hone.learning.reports import Report, data, queued, reports

ID = click.IntRange(1)
TITLES = ("id", "when", "session", "about", "state", "tokens", "cached", "cost", "changes", "why")
RIGHT = frozenset({"id", "tokens", "cached", "cost"})


@click.group(
    cls=CommandGroup, invoke_without_command=True, short_help="List the reviews: done, running and queued."
)
@limit_option("How many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_context
def reviews(ctx: click.Context, limit: int, as_json: bool) -> None:
    """List the reviews, newest first.

    After some turns, Hone reviews a conversation and keeps what it teaches. A review runs beside the
    conversation, with the next one, or in hone worker.
    """
    if ctx.invoked_subcommand:
        return

    async def act(hone: Hone) -> tuple[list[Report], list[str]]:
        ledger_of(hone)
        return await reports(hone, await hone.jobs.jobs(limit)), await explain_slower(hone)

    found, slower = with_home(ctx.obj, act)
    if as_json:
        echo_json([data(each) for each in found])
    elif found:
        click.echo(table(found, screen_width()))
        echo_prose(slower)
    else:
        click.echo("There has been no review yet. Start one: hone review")


@reviews.command(short_help="Print what was said in a review, and what it changed.")
@click.argument("id", type=ID)
@click.option("--full", is_flag=True, help="Show calls and results whole.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@in_home
async def show(hone: Hone, id: JobId, full: bool, as_json: bool) -> Iterable[str]:
    """Print what was said in the review ID from its question on, what it changed and what it took."""
    keeper, paint = ledger_of(hone), paint_for(sys.stdout)
    [report] = await reports(hone, [await hone.jobs.job(id)])
    made = await describe(keeper, [await keeper.ledger.entry(each) for each in report.job.changes])
    try:
        said: Iterable[str] = _said(await hone.sessions.load(report.job.review), paint, full=full)
    except Missing:
        said = ["What was said in it is no longer kept." if report.job.tries else "It has not begun."]
    if as_json:
        return to_json({**data(report), "made": [descriptions.data(each) for each in made]})
    return _shown(report, said, made, paint)


def _shown(
    report: Report, said: Iterable[str], made: Sequence[DescribedChange], paint: Paint
) -> Iterator[str]:
    first, *more = heading(report)
    yield paint.bold(first)
    yield from (*map(paint.dim, more), *said, "", *map(line, made))
    if not made and report.job.ended:
        yield "It changed nothing."
    if report.usage:
        cached = percent(report.cached) or "nothing"
        yield paint.dim(f"{account(report.usage)} · first request {cached} cached")


def _said(stored: StoredSession, paint: Paint, *, full: bool) -> Iterator[str]:
    """Yield the review from its question on. The conversation itself precedes it."""
    shared = stored.header.shared
    if shared:
        yield paint.dim(f"(messages 1 to {shared:,} are those of session {stored.header.parent})")
    question, *answers = enumerate(stored.transcript.nodes[shared:], shared + 1)
    yield f"\n{paint.bold(f'{question[0]} question')}"
    yield from (f"  {row}" if row else "" for row in folded(question[1].message.text, full=full))
    for number, node in answers:
        yield ""
        yield from entry(number, node, paint, full=full)


@reviews.command()
@click.argument("id", type=ID)
@in_home
async def retry(hone: Hone, id: JobId) -> str:
    """Queue the review ID again after it failed or was canceled."""
    writable_keeper(hone)
    await hone.jobs.retry(id)
    return f"Review {id} is queued again. The next conversation runs it. To run it now: hone worker --once"


@reviews.command(short_help="Remove a review from the queue.")
@click.argument("id", type=ID)
@in_home
async def cancel(hone: Hone, id: JobId) -> str:
    """Remove the review ID from the queue. If it is running, what it learns is dropped."""
    writable_keeper(hone)
    await hone.jobs.cancel(id, datetime.now(UTC))
    return f"Review {id} is canceled. To queue it again: hone reviews retry {id}"


@click.command(short_help="Review a conversation now, and keep what it teaches.")
@click.argument("session", default="")
@click.option("--about", type=click.Choice(sorted(NAMES)), help="Only for this. [default: both]")
@in_home
async def review(hone: Hone, session: str, about: str | None) -> int:
    """Review SESSION, or your latest conversation, and keep what it teaches.

    The review runs at once. Ctrl-C leaves it in the queue.
    """
    writable_keeper(hone)
    job = await queued(hone, session, frozenset({about}) if about else NAMES, datetime.now(UTC))
    click.echo(
        f"Reviewing conversation {job.session} for {join_topics(job.topics)}: review {job.id}.", err=True
    )
    with Interrupts() as interrupts:
        work = asyncio.ensure_future(attempt(hone, job.id))
        with interrupts.heed(work.cancel):
            async with working(interrupts):
                await asyncio.wait([work])
    if work.cancelled():
        return complain(f"Review {job.id} stays in the queue. To run it: hone worker --once", INTERRUPTED)
    click.echo(await outcome(hone, job.id, work.result()))
    [report] = await reports(hone, [await hone.jobs.job(job.id)])
    if report.usage:
        click.echo(account(report.usage), err=True)
    return 0 if report.job.state is State.DONE else FAILED


async def attempt(hone: Hone, id: JobId) -> Learned | None:
    """Work on a job. Return what it learned, if it was completed."""
    heard: list[Event] = []
    await hone.reviewer.work(id, heard.append)
    return next((event for event in heard if isinstance(event, Learned)), None)


async def outcome(hone: Hone, id: JobId, learned: Learned | None) -> str:
    """Return the outcome of a job that was worked on."""
    if learned:
        show = hone.settings.learning.show
        shown = "on" if show == "off" else show
        said = await learned_lines(hone.keeper, learned, shown, width=screen_width())
        return "\n".join(said) or NOTHING
    job = await hone.jobs.job(id)
    if job.state is State.QUEUED:
        return (
            visible(f"waits: {job.error}") if job.error else "another process is reviewing this conversation"
        )
    return visible(f"{job.state}: {job.error}" if job.error else job.state)


def table(found: Sequence[Report], width: int | None = None) -> str:
    """Return a table of reviews, with the reason below each failed one. `width` is that of the screen; a pipe
    has none."""
    lines, *rows = lay_out_rows(TITLES, [_cells(each) for each in found], width, RIGHT)
    indent = max(len(str(each.job.id)) for each in found) if found else 0
    for report, row in zip(found, rows, strict=True):
        lines += row
        if report.job.error:
            lines += _below(report.job.error, max(indent, len(TITLES[0])) + 2, width)
    return "\n".join(lines)


def _below(words: str, indent: int, width: int | None) -> list[str]:
    said = one_line(words, 500)
    rows = [said] if width is None else wrap_cells(said, width - indent)
    return [" " * indent + row for row in rows]


def _cells(report: Report) -> tuple[str, ...]:
    job, spent = report.job, total(report.usage)
    return (
        str(job.id),
        moment(job.created),
        one_line(job.session, 12),
        join_topics(job.topics, "+"),
        report.state,
        f"{spent.input + spent.output:,}" if report.usage else "",
        percent(report.cached),
        price(spent.cost).removeprefix("cost ") if report.usage else "",
        _changes(report),
        job.why,
    )


def join_topics(topics: Topics, joint: str = " and ") -> str:
    return joint.join(sorted(topics))


def percent(share: float | None) -> str:
    return "" if share is None else f"{int(100 * share)}%"


def _changes(report: Report) -> str:
    made = str(len(report.job.changes)) if report.job.state is State.DONE else ""
    return f"{made}, {report.waiting} wait{'s' if report.waiting == 1 else ''}" if report.waiting else made


def heading(report: Report) -> Iterator[str]:
    """Describe one review: its first line, and whatever else is known about it."""
    job = report.job
    yield f"Review {job.id} of session {one_line(job.session, 40)}: {report.state}"
    tries = (f"{job.tries} tries",) if job.tries > 1 else ()
    cause = f"{join_topics(job.topics)}, {one_line(job.why, 60)}"
    yield " · ".join((moment(job.created), cause, f"{job.messages:,} messages", *tries))
    if job.error:
        yield one_line(job.error, 500)
