"""`hone forget`: withdraw what was learned from a conversation, or from one message of it."""

from collections.abc import Iterable, Sequence

import click

from hone.app import Hone
from hone.cli import changes
from hone.cli.context import with_home, writable_keeper
from hone.cli.options import FAILED, Options, complain, confirm
from hone.cli.output import screen_width
from hone.core.errors import Missing
from hone.core.ids import SessionId
from hone.core.ledger import ChangeKind, ChangeQuery, Entry
from hone.knowledge.descriptions import DescribedChange, describe
from hone.knowledge.keeper import Keeper
from hone.knowledge.sources import find_derived, withdraw

ERASE = "What was withdrawn is still in the log and its earlier versions. hone erase removes it for good."


@click.command(short_help="Withdraw what was learned from a session or a message.")
@click.argument("source", metavar="SESSION[:MESSAGE]")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def forget(options: Options, source: str, yes: bool) -> int:
    """Withdraw what was learned from a session, or from one message of it.

    Hone lists the lessons first. The conversation itself stays: hone sessions delete removes it.
    """
    beginning, message = parsed(source)

    async def look(hone: Hone) -> list[DescribedChange]:
        keeper = writable_keeper(hone)
        return await resting(keeper, [await _session(hone, keeper, beginning)], message)

    found = with_home(options, look)
    if not found:
        click.echo("Hone learned nothing from it.")
        return 0
    click.echo(changes.table(found, screen_width()))
    alone = f"{counted(found)} would be withdrawn. Hone cannot ask here. Add --yes."
    if not confirm(f"Withdraw {counted(found)}?", alone, yes=yes):
        click.echo("Nothing was withdrawn.")
        return FAILED
    return with_home(options, lambda hone: withdrawn(writable_keeper(hone), [each.entry for each in found]))


def parsed(source: str) -> tuple[str, int | None]:
    session, colon, message = source.partition(":")
    if not session or (colon and not (message.isascii() and message.isdigit() and len(message) < 10)):
        raise click.UsageError(f"{source!r} is neither SESSION nor SESSION:MESSAGE, as in 3f2a:7.")
    return session, int(message) if colon else None


async def _session(hone: Hone, keeper: Keeper, beginning: str) -> SessionId:
    """Return a session: an existing one by the start of its id, or a deleted one, which the ledger knows, by
    its full id."""
    try:
        return await hone.sessions.find(beginning)
    except Missing:
        if await keeper.ledger.entries(ChangeQuery(session=beginning, limit=1)):
            return SessionId(beginning)
        raise


async def resting(
    keeper: Keeper, sessions: Iterable[SessionId], message: int | None = None
) -> list[DescribedChange]:
    """Return what rests on any of them, newest first."""
    found = {entry.id: entry for each in sessions for entry in await find_derived(keeper, each, message)}
    return await describe(keeper, [found[id] for id in sorted(found, reverse=True)])


async def withdrawn(keeper: Keeper, entries: Sequence[Entry]) -> int:
    """Withdraw changes, report that, and return the exit code."""
    result = await withdraw(keeper, entries)
    for made in result.entries:
        answered = "undone" if made.change.kind is ChangeKind.UNDO else "rejected"
        click.echo(f"Change {made.change.about} was {answered} by change {made.id}.")
    for entry, reason in result.left:
        complain(f"Change {entry.id} could not be withdrawn: {reason}", FAILED)
    if result.entries:
        click.echo(ERASE)
    return FAILED if result.left else 0


def counted(found: Sequence[DescribedChange]) -> str:
    return "1 change" if len(found) == 1 else f"{len(found):,} changes"
