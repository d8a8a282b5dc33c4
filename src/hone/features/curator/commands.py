"""`hone curator`: show, run and control the curator of learned skills."""

import sys
from collections.abc import Iterator, Sequence

import click

from hone.app import Hone
from hone.cli import skills
from hone.cli.changes import diff, indented
from hone.cli.context import with_home, writable_keeper
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import FAILED, Options
from hone.cli.output import echo, moment
from hone.cli.render import Paint, paint_for
from hone.core.curation import CuratorRun, summarize
from hone.core.errors import Conflict, Missing
from hone.core.ledger import Actor, ChangeState, Entry, skill
from hone.core.visible import visible
from hone.features.curator.curator import Curator, Preview, report
from hone.features.curator.part import CuratorPart
from hone.features.curator.reports import markdown
from hone.features.curator.retention import Aged
from hone.knowledge.folding import steps

SHOWN = 20
"""How many skills the status shows, those unused longest first."""
NONE = "There has been no round yet."


@click.group(cls=CommandGroup)
def curator() -> None:
    """Control how learned skills are merged and archived.

    Once a week, when nobody has used Hone for two hours, the curator archives skills that were not used on 90
    days and asks a model which skills to merge. It touches learned skills only and deletes nothing, and hone
    undo undoes each round.
    """


for _command in (skills.pin, skills.unpin, skills.archive, skills.restore):
    curator.add_command(_command)


@curator.command(short_help="Do a round now.")
@click.option("--again", is_flag=True, help="Ask a model even if no skill has changed since the last time.")
@click.pass_obj
def run(options: Options, again: bool) -> int:
    """Do a round now, without waiting for the week or for quiet."""

    async def act(hone: Hone) -> tuple[CuratorRun, tuple[Entry, ...]]:
        done = await _curator(hone).work(again=again)
        if done is None:
            raise Conflict("Another process is running a round. To see it: hone curator show")
        return done

    done, entries = with_home(options, act)
    click.echo(markdown(done))
    click.echo(summarize(done, entries))
    return FAILED if done.error else 0


@curator.command("dry-run", short_help="Show what a round would do, and change nothing.")
@click.option("--again", is_flag=True, help="Ask a model even if no skill has changed since the last time.")
@click.pass_obj
def dry_run(options: Options, again: bool) -> int:
    """Show what a round would do now, with every line that would change. A model is asked, as in a round."""
    preview = with_home(options, lambda hone: _curator(hone).preview(again=again))
    echo(previewed(preview, paint_for(sys.stdout)))
    return FAILED if preview.refused or preview.thought.advice.error else 0


def previewed(preview: Preview, paint: Paint) -> Iterator[str]:
    yield visible(report(preview.thought, [each.change for each in preview.entries], preview.refused))
    states = {each.change.target: each.change.standing for each in preview.entries}
    for batch in preview.thought.batches:
        for move in batch.moves:
            if skill(move.name) in states:
                waits = states[skill(move.name)] is ChangeState.PENDING
                yield f"\n{paint.bold(f'{move.name}, {move.kind}')}{' (would wait for you)' if waits else ''}"
                yield from indented(diff(skill(move.name), steps(move.before, move.after), paint))
    yield "\nNothing was changed."


@curator.command(short_help="Show when it last ran, and what is next.")
@click.pass_obj
def status(options: Options) -> None:
    """Show when the curator last ran, what waits, and how long learned skills have been unused."""

    async def act(hone: Hone) -> list[str]:
        keeper = hone.part(CuratorPart).curator
        runs = await hone.stores.curator_runs.runs(1)
        lines = [_state(runs, paused=keeper.is_paused, due=await keeper.due())]
        pending = await hone.ledger.pending()
        if any(entry.change.author.actor is Actor.CURATOR for entry in pending):
            lines.append("Its proposals wait for you: hone pending")
        return [*lines, *_ages(await keeper.ages())]

    echo(with_home(options, act))


def _state(runs: Sequence[CuratorRun], *, paused: bool, due: str) -> str:
    last = f"The last round was {runs[0].id}, {moment(runs[0].at)}." if runs else NONE
    if paused:
        return f"{last} It is paused: hone curator resume"
    if due:
        return f"{last} The next one is due: {due}. hone worker or the next conversation does it."
    when = "a week after it, once nobody" if runs else "once something was learned and nobody"
    return f"{last} The next one comes {when} has used Hone for two hours."


def _ages(aged: Sequence[Aged]) -> Iterator[str]:
    if not aged:
        yield "No learned skill can age."
        return
    yield f"{len(aged):,} learned skill{'s' if len(aged) > 1 else ''} can age; days without use:"
    longest = sorted(aged, key=lambda each: (-each.unused, each.name))[:SHOWN]
    width = max(len(each.name) for each in longest)
    yield from (f"  {each.name:<{width}}  {each.unused:>4}  {each.grade}" for each in longest)


@curator.command(short_help="Print the report of a round.")
@click.argument("id", type=click.IntRange(1), required=False)
@click.option("--list", "as_list", is_flag=True, help="One line for each round.")
@click.pass_obj
def show(options: Options, id: int | None, as_list: bool) -> None:
    """Print the report of the round ID, or of the last one. Reports are in Hone's home, below curator/."""

    async def act(hone: Hone) -> Sequence[CuratorRun]:
        runs = await hone.stores.curator_runs.runs()
        hone.part(CuratorPart).curator.reports.catch_up(runs)
        return runs

    runs = with_home(options, act)
    if as_list:
        for each in runs:
            click.echo(f"{each.id:>4}  {moment(each.at)}  {len(each.changes)} changes  {each.why}")
        return
    found = next((each for each in runs if id in (None, each.id)), None)
    if found is None:
        raise Missing(
            f"There is no round {id}." if id else "There has been no round yet. Do one: hone curator run"
        )
    click.echo(markdown(found).rstrip("\n"))


@curator.command()
@click.pass_obj
def pause(options: Options) -> None:
    """Start no round until `hone curator resume`."""

    async def act(hone: Hone) -> None:
        _curator(hone).reports.pause()

    with_home(options, act)
    click.echo("The curator is paused. To resume it: hone curator resume")


@curator.command()
@click.pass_obj
def resume(options: Options) -> None:
    """Start rounds again."""

    async def act(hone: Hone) -> None:
        _curator(hone).reports.resume()

    with_home(options, act)
    click.echo("The curator is running again.")


def _curator(hone: Hone) -> Curator:
    """Return the curator for changes. Raises Refused if nothing can be changed."""
    writable_keeper(hone)
    return hone.part(CuratorPart).curator
