"""`hone import`: import conversations of other agents, after a preview."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import with_home, writable_keeper
from hone.cli.options import FAILED, Options, confirm
from hone.cli.output import number_of
from hone.cli.queued import QUEUED
from hone.core.loading import import_object
from hone.core.visible import one_line, visible
from hone.features.imports.plan import ImportPlan, ImportState, bring, survey
from hone.features.imports.proposals import Gathered, ImportProposal, fresh, gather, propose
from hone.features.imports.queued import queue
from hone.features.imports.sources import source_files

NAMES = ("claude-code", "openai", "codex", "hermes", "opencode")
MOVE = "hone.features.imports.knowledge_commands:move_in"
"""Imported for what another agent was taught."""
Store = Callable[[Hone, str, ImportPlan, bool], Awaitable[bool]]
REASONS = 10
"""How many items of a kind to list."""


@click.command("import", short_help="Import your conversations with another agent.")
@click.argument("source", metavar="AGENT", type=click.Choice(NAMES))
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option(
    "--knowledge", is_flag=True, help="Not conversations, but what the agent was taught: see hone pending."
)
@click.option("--approve", default="", metavar="all|1,3-5", help="With --knowledge: approve these at once.")
@click.option("--foreign", is_flag=True, help="They are not yours: everything in them counts as foreign.")
@click.option("--queue", "queued", is_flag=True, help="Read here, and leave the storing to hone worker.")
@click.option("--dry-run", is_flag=True, help="Show what there is, and store nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def import_(
    options: Options,
    /,
    source: str,
    path: Path | None,
    knowledge: bool,
    approve: str,
    foreign: bool,
    **flags: bool,
) -> int:
    """Import your conversations with another agent from PATH, a file or a folder such as ~/.claude.

    AGENT is claude-code, codex, hermes, openai or opencode.

    Hone shows first what there is. It does not store a conversation twice; one that has continued gets its
    new messages. A home of hermes also has memory and skills: they wait until you approve them.

    With --knowledge, memories, instructions, skills, MCP servers and permission rules of claude-code, codex
    or hermes come over as proposals, on one screen. None of them counts before you approve it.

    With --queue the conversations are read here and wait for a worker to store them, on any machine that
    shares the database.
    """
    queued = flags.pop("queued")
    if knowledge:
        if foreign:
            raise click.UsageError("--foreign goes with conversations. What was taught waits for you anyway.")
        if queued:
            raise click.UsageError("--queue goes with conversations.")
        move: Callable[..., int] = import_object(MOVE)
        return move(options, source, path, approve, **flags)
    if path is None:
        raise click.UsageError("Missing argument 'PATH'.")
    if approve:
        raise click.UsageError("--approve goes with --knowledge.")
    path = path.expanduser()
    store = _queue if queued else _stored
    return with_home(options, lambda hone: _import(hone, source, path, foreign, store, **flags))


async def _import(
    hone: Hone, source: str, path: Path, foreign: bool, store: Store, *, dry_run: bool, yes: bool
) -> int:
    keeper = writable_keeper(hone)
    there = source_files(source, path)
    with progress("Reading", sum(source_file.size for source_file in there)) as told:
        found = await survey(hone.sessions, source, there, told, foreign=foreign)
    _tell(found, len(there), foreign=foreign)
    learned = gather(path) if source == "hermes" else None
    news = await fresh(keeper, learned.proposals) if learned else []
    if learned:
        _tell_learned(learned, news)
    failed = bool(found.unreadable or (learned and learned.problems))
    if not found.due and not news:
        click.echo("There is nothing to import.")
        return FAILED if failed else 0
    if dry_run:
        return FAILED if failed else 0
    if not _agreed(found.due, len(news), yes=yes):
        click.echo("Nothing was imported.")
        return FAILED
    stored = await store(hone, source, found, foreign)
    proposed = await _proposed(hone, news)
    return 0 if stored and proposed and not failed else FAILED


@contextmanager
def progress(label: str, length: int) -> Iterator[Callable[[int], object]]:
    """Yield a progress bar if somebody watches; a pipe gets none."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(length=max(1, length), label=label, file=sys.stderr, hidden=hidden) as bar:
        yield bar.update


def _tell(found: ImportPlan, files: int, *, foreign: bool) -> None:
    talks = number_of(len(found.states), "conversation")
    days = f", {found.first:%Y-%m-%d} to {found.last:%Y-%m-%d}" if found.first and found.last else ""
    messages = number_of(found.messages, "message")
    click.echo(f"Found {talks} with {messages} in {number_of(files, 'file')}{days}.")
    counts = found.counts
    longer = counts[ImportState.LONGER] + counts[ImportState.CHANGED]
    here = f"{longer:,} with more than here, {counts[ImportState.SAME]:,} here already"
    click.echo(f"{counts[ImportState.NEW]:,} new, {here}; {number_of(found.added, 'message')} to add.")
    if counts[ImportState.OTHER]:
        others = [id for id, state in found.states.items() if state is ImportState.OTHER]
        click.echo(f"{number_of(len(others), 'conversation')} continued differently here and stay unchanged:")
        click.echo(f"  {' '.join(others[:REASONS])}{' …' if len(others) > REASONS else ''}")
    tell_left(found)
    if found.due and foreign:
        click.echo("All of it counts as foreign: lessons from it wait for you.")
    elif found.due:
        click.echo(
            "What the user says in them counts as your words, and tool results count as foreign. "
            "If they are not your conversations, say --foreign."
        )


def tell_left(found: ImportPlan) -> None:
    report = found.report
    if left := +report.left:
        click.echo("Not imported:")
        for kind, number in left.most_common():
            click.echo(f"  {number:,} {kind}")
    if report.malformed:
        click.echo(f"{number_of(report.malformed, 'line')} cannot be read and are left out:")
        _list(report.faults, report.malformed)
    for sentence in found.unreadable:
        click.echo(visible(sentence), err=True)


def _tell_learned(learned: Gathered, news: Sequence[ImportProposal]) -> None:
    skills = sum(proposal.target.startswith("skill:") for proposal in news)
    notes = len(news) - skills
    known = len(learned.proposals) - len(news)
    entries = f"{notes:,} new {'entry' if notes == 1 else 'entries'} of its memory"
    click.echo(f"{entries} and {number_of(skills, 'new skill')} would wait for you; {known:,} known already.")
    if learned.bundled:
        click.echo(f"{number_of(learned.bundled, 'skill')} came with it and are not imported.")
    for problem in learned.problems:
        click.echo(f"Not imported: {visible(problem)}", err=True)


def _agreed(talks: int, news: int, *, yes: bool) -> bool:
    parts = [number_of(talks, "conversation")] * bool(talks) + [number_of(news, "proposal")] * bool(news)
    what = " and ".join(parts)
    alone = f"{what} would be imported. Hone cannot ask here. Add --yes."
    return confirm(f"Import {what}?", alone, yes=yes)


async def _queue(hone: Hone, source: str, found: ImportPlan, foreign: bool) -> bool:
    if found.due:
        command = await asyncio.to_thread(queue, hone, source, found, foreign=foreign)
        click.echo(QUEUED.format(number=command.number))
    return True


async def _stored(hone: Hone, source: str, found: ImportPlan, foreign: bool) -> bool:
    if not found.due:
        return True
    with progress("Storing", sum(found.wanted.values())) as told:
        stored, met = await bring(hone.sessions, source, found, told, foreign=foreign)
    click.echo(f"Stored {number_of(stored, 'conversation')}. See them: hone sessions list")
    for id in met:
        click.echo(f"{id} has changed here meanwhile and stays unchanged.", err=True)
    if not met and stored < found.due:
        click.echo("Some files have changed in the meantime; import them once more.", err=True)
    return stored == found.due


async def _proposed(hone: Hone, news: Sequence[ImportProposal]) -> bool:
    if not news:
        return True
    entries, problems = await propose(hone.keeper, news)
    if entries:
        waits = "1 change waits" if len(entries) == 1 else f"{len(entries):,} changes wait"
        click.echo(f"{waits} for you. Read them: hone pending")
    for problem in problems:
        click.echo(f"Not imported: {visible(problem)}", err=True)
    return not problems


def _list(sentences: Sequence[str], total: int) -> None:
    for sentence in sentences[:REASONS]:
        click.echo(f"  {one_line(sentence, 200)}")
    if total > min(REASONS, len(sentences)):
        click.echo(f"  … and {total - min(REASONS, len(sentences)):,} more")
