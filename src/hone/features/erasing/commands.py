"""`hone erase`: remove a conversation, a lesson, a memory or words for good, and prove it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import click

from hone.app import Hone
from hone.cli.context import ledger_of, with_home
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import FAILED, Options, confirm
from hone.cli.output import lay_out, number_of, screen_width
from hone.core.erasure import Erasure
from hone.core.errors import Missing
from hone.core.holding import Occurrence
from hone.core.ids import SessionId
from hone.core.value import replace
from hone.core.visible import one_line, visible
from hone.features.erasing.plan import (
    find_change,
    find_keys,
    plan_lesson,
    plan_memory,
    plan_session,
    plan_words,
)
from hone.features.erasing.service import Erasing, ErasureOutcome
from hone.knowledge.sources import find_derived

Command = TypeVar("Command", bound=Callable[..., object])
MEBIBYTE = 2**20
WHOLE = " (all of it)"
BEYOND = (
    "What left this machine stays where it is: logs of model providers, copies and backups elsewhere, "
    "snapshots of the file system."
)
SERVERS = "The log and the backups of the database's server are its operator's."


def _options(command: Command) -> Command:
    command = click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)
    return click.option("--dry-run", is_flag=True, help="Only show what holds it.")(command)


@click.group(cls=CommandGroup, short_help="Erase a conversation, a lesson, a memory or words for good.")
def erase() -> None:
    """Erase something for good, wherever Hone stores it, and prove it.

    Hone first lists everything that holds it. Undo, the log and search cannot bring it back.
    """


@erase.command(short_help="Erase a conversation and what only it has.")
@click.argument("id")
@click.option("--lessons", is_flag=True, help="Erase what was learned from it, too.")
@_options
@click.pass_obj
def session(options: Options, id: str, lessons: bool, dry_run: bool, yes: bool) -> int:
    """Erase the session ID: its messages, the lines you typed for it, its spilled results, checkpoints,
    templates and experiments. What was learned from it loses its quotes and stays, unless you say --lessons.
    """

    async def plan(hone: Hone) -> Erasure:
        found = await hone.sessions.find(id)
        what = await plan_session(hone, found)
        return await _with_lessons(hone, what) if lessons else what

    return _erase(options, plan, dry_run=dry_run, yes=yes)


@erase.command(short_help="Erase what a change taught, in all its versions.")
@click.argument("change")
@_options
@click.pass_obj
def lesson(options: Options, change: str, dry_run: bool, yes: bool) -> int:
    """Erase what the change CHANGE taught (hone log lists changes): from the journal or the skill, from every
    earlier version, and wherever conversations quote it. It leaves the list of withdrawn lessons, too.
    """

    async def plan(hone: Hone) -> Erasure:
        ledger_of(hone)
        return await plan_lesson(hone, await find_change(hone, change))

    return _erase(options, plan, dry_run=dry_run, yes=yes)


@erase.command(short_help="Erase a memory item of a backend by its key.")
@click.argument("key")
@_options
@click.pass_obj
def memory(options: Options, key: str, dry_run: bool, yes: bool) -> int:
    """Erase the memory item KEY (hone backends keys lists them), with everything that was stored under it."""

    async def plan(hone: Hone) -> Erasure:
        ledger_of(hone)
        what = await plan_memory(hone, key)
        if not what.changes and not await Erasing(hone).find(what):
            keys = await find_keys(hone, key)
            more = (
                f"It is in {', '.join(keys)}: give a key"
                if keys
                else "hone backends keys lists what there is"
            )
            raise Missing(f"There is nothing under {key!r}. {more}.")
        return what

    return _erase(options, plan, dry_run=dry_run, yes=yes)


@erase.command(short_help="Erase words wherever they are.")
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True)
@_options
@click.pass_obj
def words(options: Options, texts: tuple[str, ...], dry_run: bool, yes: bool) -> int:
    """Erase each TEXT wherever it is, in any case and across line breaks. Messages, lessons and files keep
    the rest of their text.
    """

    async def plan(_: Hone) -> Erasure:
        return plan_words(texts)

    return _erase(options, plan, dry_run=dry_run, yes=yes)


async def _with_lessons(hone: Hone, what: Erasure) -> Erasure:
    """Add what was learned from conversations."""
    keeper = ledger_of(hone)
    found = {entry.id for id in what.sessions for entry in await find_derived(keeper, SessionId(id))}
    plans = [await plan_lesson(hone, change) for change in sorted(found)]
    words = tuple(dict.fromkeys(word for each in plans for word in each.words))
    changes = tuple(dict.fromkeys(change for each in plans for change in each.changes))
    contents = frozenset(name for each in plans for name in each.contents)
    return replace(what, words=words, changes=changes, contents=contents)


def _erase(options: Options, plan: Callable[[Hone], Awaitable[Erasure]], *, dry_run: bool, yes: bool) -> int:
    """Finish an interrupted erasure, show where it is found, ask, erase and prove. Return the exit code."""
    if not dry_run and with_home(options, _resume):
        click.echo("An erase was cut off before. Its files are done now; repeat it to prove that.")
    what = with_home(options, plan)
    found = with_home(options, lambda hone: Erasing(hone).find(what))
    if not found:
        click.echo("Nothing holds it.")
        return 0
    click.echo("\n".join(_table(found)))
    if dry_run:
        return 0
    places = number_of(len(found), "place")
    alone = f"It would be erased in {places}. Hone cannot ask here. Add --yes."
    if not confirm(f"Erase it in {places} for good? Nothing can bring it back.", alone, yes=yes):
        click.echo("Nothing was erased.")
        return FAILED
    return _tell(with_home(options, lambda hone: Erasing(hone).erase(what)), what)


async def _resume(hone: Hone) -> bool:
    erasing = Erasing(hone)
    if not await erasing.is_cut_off():
        return False
    await erasing.resume()
    return True


def _table(found: Sequence[Occurrence]) -> list[str]:
    rows = [
        (one_line(each.holding, 30), f"{each.count:,}", f"{visible(each.place)}{WHOLE if each.whole else ''}")
        for each in found
    ]
    return lay_out(("kept as", "times", "where"), rows, screen_width(), right=("times",))


def _tell(outcome: ErasureOutcome, what: Erasure) -> int:
    for note in outcome.notes:
        click.echo(visible(note))
    proof = outcome.proof
    if proof.left:
        named = ", ".join(map(visible, proof.left))
        click.echo(f"Erased, but not everywhere: {named} still has it. Close other programs and repeat this.")
    elif what.words or what.probes:
        searched = f"{number_of(proof.files, 'file')}, {proof.size / MEBIBYTE:,.1f} MiB"
        where = "every byte of this home"
        if proof.rows:
            where, searched = f"{where} and of all its rows", f"{searched}, {number_of(proof.rows, 'row')}"
        click.echo(f"Erased. A search of {where} finds nothing ({searched}).")
    else:
        click.echo("Erased.")
    for name in proof.owners:
        click.echo(f"{visible(name)} is yours: it has these words, too. Edit it yourself.")
    click.echo(f"{BEYOND} {SERVERS}" if proof.rows else BEYOND)
    return 0 if outcome.is_clean else FAILED
