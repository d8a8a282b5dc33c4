"""`hone reviews`: what was learned in the background, what is still to come, and what became of it."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from hone.cli.main import Options
from hone.core.jobs import JobId
from hone.core.value import dataclass

if TYPE_CHECKING:
    from hone.app import Hone
    from hone.cli.changes import DescribedChange
    from hone.cli.paint import Paint
    from hone.cli.review_rows import Report
    from hone.core.ports import StoredSession
    from hone.knowledge.keeper import Keeper

ID = click.IntRange(1)


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
    from hone.cli.home import with_keeper
    from hone.cli.log import echo_json
    from hone.cli.review_rows import data, reports, table

    async def act(hone: "Hone", _: "Keeper") -> "list[Report]":
        return await reports(hone, await hone.jobs.jobs(limit))

    found = with_keeper(ctx.obj, act)
    if as_json:
        echo_json([data(each) for each in found])
    elif found:
        import shutil

        click.echo(table(found, shutil.get_terminal_size().columns))
    else:
        click.echo("There was no review yet. Start one: hone review")


@dataclass(frozen=True, slots=True)
class Whole:
    """A review with what was said in it, as far as that is still there, and what it changed."""

    report: "Report"
    stored: "StoredSession | None"
    changes: "Sequence[DescribedChange]"


@reviews.command(short_help="Print what was said in a review, and what it changed.")
@click.argument("id", type=ID)
@click.option("--full", is_flag=True, help="Show calls and results whole.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def show(options: Options, id: JobId, full: bool, as_json: bool) -> None:
    """Print what was said in the review ID from its question on, what it changed and what it took."""
    from hone.cli import changes
    from hone.cli import review_rows as jobs
    from hone.cli.home import with_keeper
    from hone.cli.log import echo_json
    from hone.cli.paint import paint_for

    async def act(hone: "Hone", keeper: "Keeper") -> Whole:
        [report] = await jobs.reports(hone, [await hone.jobs.job(id)])
        made = [await keeper.ledger.entry(each) for each in report.job.changes]
        return Whole(report, await _stored(hone, report), await changes.describe(keeper, made))

    whole = with_keeper(options, act)
    if as_json:
        made = [changes.data(each) for each in whole.changes]
        echo_json({**jobs.data(whole.report), "made": made})
        return
    for row in shown(whole, paint_for(sys.stdout), full=full):
        click.echo(row)


async def _stored(hone: "Hone", report: "Report") -> "StoredSession | None":
    from hone.core.errors import Missing

    try:
        return await hone.sessions.load(report.job.review)
    except Missing:
        return None


def shown(whole: Whole, paint: "Paint", *, full: bool) -> Iterator[str]:
    from hone.cli.changes import line
    from hone.cli.render import account
    from hone.cli.review_rows import heading, percent

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


def _said(stored: "StoredSession", paint: "Paint", *, full: bool) -> Iterator[str]:
    """From the question on. What comes before it is the conversation itself."""
    from hone.cli.listing import entry, folded

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
    from hone.cli.home import with_keeper

    with_keeper(options, lambda hone, _: hone.jobs.retry(id))
    click.echo(f"Review {id} is queued again. The next conversation does it, or now: hone worker --once")


@reviews.command(short_help="Take a review out of the queue.")
@click.argument("id", type=ID)
@click.pass_obj
def cancel(options: Options, id: JobId) -> None:
    """Take the review ID out of the queue; if it is at work, what it learns is dropped."""
    from hone.cli.home import with_keeper

    with_keeper(options, lambda hone, _: hone.jobs.cancel(id, datetime.now(UTC)))
    click.echo(f"Review {id} is cancelled. Queue it again with: hone reviews retry {id}")
