"""`hone learn`: import what is new from another agent, review it, and keep what it teaches."""

import asyncio
from contextlib import aclosing
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import tell, with_home, writable_keeper
from hone.cli.options import FAILED, Options, at_terminal, complain
from hone.cli.output import number_of
from hone.cli.render import price
from hone.cli.reviews import attempt, outcome
from hone.cli.worker import until_told
from hone.core.errors import HoneError
from hone.core.jobs import Job
from hone.core.visible import one_line, visible
from hone.features.imports import claude, codex, hermes, opencode
from hone.features.imports.commands import progress, tell_left
from hone.features.imports.estimating import Estimate
from hone.features.imports.learning import LearnPlan, SourceLearner, in_parallel
from hone.features.imports.plan import ImportState
from hone.features.imports.sources import default_folder, recognize

AGENTS = (claude.NAME, codex.NAME, hermes.NAME, opencode.NAME)
ASKED = """\
Are these your own conversations? What stands under the user's name in {path} would count as
said by you, and files are no proof of that.
  [y] they are mine
  [f] they are not mine: whatever is learned from them waits for me
  [n] stop (default)"""
ALONE = "Nobody can be asked here whose conversations these are: say --mine or --foreign once."


@click.command(short_help="Learn from your conversations with another agent.")
@click.argument("source", metavar="claude-code|codex|hermes|opencode|PATH")
@click.option("--from", "path", type=click.Path(path_type=Path), help="Where that agent keeps its files.")
@click.option("--mine/--foreign", "mine", default=None, help="Whose conversations these are; asked once.")
@click.option("--dry-run", is_flag=True, help="Show what is new and what it would cost. Store nothing.")
@click.option("--later", is_flag=True, help="Leave the reviews to the next chat or to hone worker.")
@click.option("--watch", is_flag=True, help="Stay, and learn from what is new, until Ctrl-C or SIGTERM.")
@click.option(
    *("--every", "pause"),
    type=click.IntRange(1),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How often --watch looks.",
)
@click.pass_obj
def learn(
    options: Options,
    source: str,
    path: Path | None,
    mine: bool | None,
    dry_run: bool,
    later: bool,
    watch: bool,
    pause: int,
) -> int:
    """Import what is new in another agent's conversations, and review it as Hone's own.

    The first time you are asked whose conversations they are; the answer is remembered. What you typed there
    counts as said by you, everything else as foreign: lessons from it wait for you. You see what is new and
    what the reviews would cost. They stay within the budget of a day, learning.daily.
    """
    if dry_run and watch:
        raise click.UsageError("--dry-run stores nothing, and --watch goes on: use one of them.")
    agent, place = _find(source, path)

    async def act(hone: Hone) -> int:
        learning = SourceLearner(hone, agent, place, mine=mine)
        if watch:
            return await _watch(hone, learning, pause)
        return await _learn(hone, learning, dry_run=dry_run, later=later)

    return with_home(options, act)


def _find(source: str, path: Path | None) -> tuple[str, Path]:
    """Return the agent, and where its conversations are."""
    if source in AGENTS:
        return source, (path.expanduser() if path else default_folder(source))
    if path is not None:
        raise click.UsageError(f"--from goes with one of {', '.join(AGENTS)}.")
    place = Path(source).expanduser()
    return recognize(place), place


async def _learn(hone: Hone, learning: SourceLearner, *, dry_run: bool, later: bool) -> int:
    writable_keeper(hone)
    files = learning.find_files()
    with progress("Reading", sum(file.size for file in files)) as told:
        plan = await learning.plan(files, told)
    _tell_plan(plan, len(files))
    if not plan.is_empty:
        _tell_estimate(await learning.estimate(plan), hone.settings.learning.daily)
    if dry_run:
        return FAILED if plan.found.unreadable else 0
    if plan.is_empty and learning.mine is None:
        return FAILED if plan.found.unreadable else 0
    if not plan.is_empty:
        if not _is_answered(learning):
            click.echo("Nothing was stored.")
            return FAILED
        if not learning.mine:
            plan = await learning.plan(files, lambda _: None)
    stored = await _store(learning, plan)
    reviewed = True if later else await _review(hone, learning, await learning.due())
    return 0 if stored and reviewed else FAILED


def _is_answered(learning: SourceLearner) -> bool:
    """Ask whose conversations they are, unless that is known. Tell whether to continue."""
    mine = learning.mine
    if mine is None:
        if not at_terminal():
            raise click.UsageError(ALONE)
        click.echo(ASKED.format(path=one_line(str(learning.path), 200)))
        answer = click.prompt(
            "?", default="n", show_default=False, type=click.Choice("yfn"), show_choices=False
        )
        if answer == "n":
            return False
        mine = answer == "y"
    learning.answer(mine=mine)
    return True


def _tell_plan(plan: LearnPlan, files: int) -> None:
    found, counts = plan.found, plan.found.counts
    longer = counts[ImportState.LONGER] + counts[ImportState.CHANGED]
    if plan.is_empty:
        click.echo("There is nothing new.")
    else:
        read = f"in {number_of(files, 'file')} that changed since the last time"
        click.echo(
            f"{number_of(counts[ImportState.NEW], 'new conversation')}, {longer:,} with more than here, "
            f"{number_of(found.added, 'message')} to add, {read}."
        )
        if found.unread:
            click.echo(
                f"{number_of(len(found.unread), 'conversation')} imported before and not reviewed yet."
            )
    if counts[ImportState.OTHER]:
        others = number_of(counts[ImportState.OTHER], "conversation")
        click.echo(f"{others} went on in another way here and stay as they are.")
    tell_left(found)


def _tell_estimate(made: Estimate, daily: float) -> None:
    if made.reviews:
        tokens = f"about {made.input:,} tokens in and {made.output:,} out"
        click.echo(f"{number_of(made.reviews, 'review')}: {tokens}, {_cost(made)}.")
        click.echo(f"Reviews cost at most ${daily:.2f} a day (learning.daily); the rest waits for tomorrow.")
    if made.waiting:
        one, many = "conversation is", "conversations are"
        wait = "too short to be reviewed alone, or may still go on"
        click.echo(f"{number_of(made.waiting, one, many)} {wait}.")


def _cost(made: Estimate) -> str:
    if not made.model:
        return "price unknown, because no model is set up yet"
    if made.cost is None:
        return f"price unknown: set prices for {one_line(made.model, 80)} in hone.toml"
    return f"about {price(made.cost)} with {one_line(made.model, 80)}"


async def _store(learning: SourceLearner, plan: LearnPlan) -> bool:
    found = plan.found
    with progress("Storing", sum(found.wanted.values())) as told:
        stored, met = await learning.store(plan, told)
    if stored:
        click.echo(f"Stored {number_of(stored, 'conversation')}. See them: hone sessions list")
    for id in met:
        click.echo(f"{id} has changed here in the meantime and stays as it is.", err=True)
    return stored == found.due and not found.unreadable


async def _review(hone: Hone, learning: SourceLearner, jobs: list[Job]) -> bool:
    """Run the reviews, and tell whether none failed. Ctrl-C and SIGTERM leave the rest in the queue."""
    if not jobs:
        return True
    task = asyncio.ensure_future(_run(hone, learning, jobs))
    await until_told(task)
    if not task.cancelled():
        return task.result()
    left = len(await learning.due())
    complain(f"{number_of(left, 'review')} left in the queue. To run them: hone worker --once", FAILED)
    return False


async def _run(hone: Hone, learning: SourceLearner, jobs: list[Job]) -> bool:
    """Do the reviews as long as the day's budget allows. Tell whether none failed. Raises SettingsError if
    there is no model to review; then they stay queued."""
    await hone.models.find(hone.settings.learning.model)
    fine, count = True, 0

    async def work(job: Job) -> str:
        if await learning.over_budget():
            return ""
        return await outcome(hone, job.id, await attempt(hone, job.id))

    async with aclosing(in_parallel(jobs, hone, work)) as done:
        async for job, said in done:
            if said:
                count += 1
                click.echo(f"[{count}/{len(jobs)}] {job.session}: {said}")
                fine = fine and not (await hone.jobs.job(job.id)).error
    if left := len(jobs) - count:
        reason = await learning.over_budget()
        click.echo(f"{reason} {number_of(left, 'review')} left in the queue.".lstrip(), err=True)
    tell(hone)
    return fine


async def _watch(hone: Hone, learning: SourceLearner, pause: int) -> int:
    """Check again and again. An error in one check is reported, and tried again in the next."""
    writable_keeper(hone)
    if learning.mine is None and not _is_answered(learning):
        return FAILED
    learning.answer(mine=bool(learning.mine))
    click.echo(f"Learning from {one_line(str(learning.path), 200)}. Ctrl-C ends.", err=True)

    async def look() -> None:
        while True:
            try:
                await _look_once(hone, learning)
            except HoneError as error:
                click.echo(visible(str(error)), err=True)
            await hone.clock.sleep(pause)

    task = asyncio.ensure_future(look())
    await until_told(task)
    if not task.cancelled():
        task.result()
    click.echo("Ended. What is not reviewed yet waits in the queue.", err=True)
    return 0


async def _look_once(hone: Hone, learning: SourceLearner) -> None:
    files = learning.find_files()
    plan = await learning.plan(files, lambda _: None)
    if not plan.is_empty:
        stored, _ = await learning.store(plan, lambda _: None)
        click.echo(f"Stored {number_of(stored, 'conversation')}.")
    elif files:
        await learning.store(plan, lambda _: None)
    jobs = await learning.due()
    if jobs and not await learning.over_budget():
        await _run(hone, learning, jobs)
