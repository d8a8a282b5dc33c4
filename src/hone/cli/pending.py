"""`hone pending`, `hone approve`, `hone reject`, `hone undo`: decide about changes."""

import sys
from collections.abc import Iterable, Iterator, Sequence

import click

from hone.app import Hone
from hone.cli import changes
from hone.cli.context import in_home, ledger_of, trust_hint, with_home, writable_keeper
from hone.cli.options import FAILED, Options, at_terminal, complain
from hone.cli.output import echo, to_json
from hone.cli.render import paint_for
from hone.core.errors import Refused
from hone.core.ledger import ChangeId, ChangeState
from hone.core.visible import one_line
from hone.knowledge import descriptions
from hone.knowledge.descriptions import DescribedChange
from hone.knowledge.keeper import Keeper
from hone.knowledge.sections import find_past

ID = click.IntRange(1)


@click.command(short_help="Show the lessons that wait for you.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@in_home
async def pending(hone: Hone, as_json: bool) -> Iterable[str]:
    """Show the changes that wait for you, the oldest first.

    They have no effect: they are in no file and in no prompt until you approve them.
    """
    keeper = ledger_of(hone)
    entries = await keeper.ledger.pending()
    if as_json:
        return to_json([descriptions.data(each) for each in await descriptions.describe(keeper, entries)])
    found = await descriptions.describe_groups(keeper, entries)
    past = await find_past(keeper, hone.folder, hone.library.today)
    return (*_pending(found, trust_hint(hone)), *_past(past))


def _past(found: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Ask about entries whose last day is over."""
    if found:
        yield "\nPast their date, and no longer used. Still true? Answer with: hone recheck"
        yield from (f"  {part}: {one_line(entry, 500)}" for part, entry in found)


def _pending(found: Sequence[DescribedChange], hint: str) -> Iterator[str]:
    for change in found:
        yield from changes.account(change, paint_for(sys.stdout))
        yield f"hone approve {change.entry.id}   or   hone reject {change.entry.id}\n"
    waits = sum(1 + len(change.others) for change in found)
    wait = "1 change waits" if waits == 1 else f"{waits:,} changes wait"
    yield f"{wait} for you." if found else "Nothing waits for you."
    if found and hint:
        yield f"Lessons from what Hone reads here wait: {hint}"


@click.command()
@click.argument("ids", metavar="ID...", type=ID, nargs=-1, required=True)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def approve(options: Options, ids: tuple[ChangeId, ...], yes: bool) -> int:
    """Approve changes that wait for you.

    Hone shows each change first, byte for byte. Exactly what it showed takes effect, or nothing does.
    """
    found = with_home(options, lambda hone: waiting(writable_keeper(hone), ids))
    if not yes and not at_terminal():
        raise click.UsageError("Hone cannot ask here whether to approve this. Add --yes.")
    agreed = [change for change in found if _agreed(change, yes=yes)]

    async def act(hone: Hone) -> bool:
        done = [await _settled(writable_keeper(hone), change, approved=True) for change in agreed]
        await hone.library.settle_checks()
        return all(done)

    done = with_home(options, act) if agreed else False
    return 0 if done and len(agreed) == len(found) else FAILED


def _agreed(change: DescribedChange, *, yes: bool) -> bool:
    echo(changes.account(change, paint_for(sys.stdout)))
    if yes or click.confirm(f"Approve change {change.entry.id} as shown?"):
        return True
    click.echo(f"Change {change.entry.id} still waits.")
    return False


@click.command()
@click.argument("ids", metavar="ID...", type=ID, nargs=-1, required=True)
@in_home
async def reject(hone: Hone, ids: tuple[ChangeId, ...]) -> int:
    """Reject changes that wait for you; they stay in the log."""
    keeper, code = writable_keeper(hone), 0
    for change in await waiting(keeper, ids):
        echo(map(changes.line, (change, *change.others)))
        if not await _settled(keeper, change, approved=False):
            code = FAILED
    return code


async def waiting(keeper: Keeper, ids: Iterable[ChangeId]) -> list[DescribedChange]:
    """Return the pending changes. Raises Missing or Refused if one of them is not pending: then none is
    answered."""
    found = await descriptions.describe_groups(
        keeper, [await keeper.ledger.entry(id) for id in dict.fromkeys(ids)]
    )
    for change in found:
        if change.fate != "waits":
            became = f"was {change.fate}" if change.fate else "took effect when it was made"
            raise Refused(f"Change {change.entry.id} does not wait: it {became}. Nothing was changed.")
    return found


async def _settled(keeper: Keeper, change: DescribedChange, *, approved: bool) -> bool:
    id, word = change.entry.id, "approved" if approved else "rejected"
    try:
        if await keeper.ledger.entry(id) != change.entry:
            raise Refused("it is no longer what was shown.")
        made = await (keeper.approve if approved else keeper.reject)(id)
    except Refused as error:
        complain(f"Change {id} was not {word}: {error}", FAILED)
        return False
    back = f" Undo it with: hone undo {made.id}" if approved else ""
    click.echo(f"Change {id} is {word} by change {made.id}.{back}")
    return True


@click.command()
@click.argument("id", type=ID)
@in_home
async def undo(hone: Hone, id: ChangeId) -> None:
    """Undo the change ID, and nothing that came later.

    The undo is a change, too, and can be undone. Changes that the curator made together are undone together.
    If a later change touched the same place, Hone shows both and changes nothing.
    """
    keeper, paint = writable_keeper(hone), paint_for(sys.stdout)
    entry = await keeper.ledger.entry(id)
    if entry.change.standing is ChangeState.ACTIVE and await keeper.is_standing(entry):
        [change] = await descriptions.describe_groups(keeper, [entry])
        for each in (change, *change.others):
            back = [step.reverse for step in each.steps]
            echo(changes.heading(each, paint))
            echo(changes.indented(changes.diff(each.entry.change.target, back, paint)))
        if change.others:
            click.echo(f"These {len(change.others) + 1} changes were made together and are undone together.")
    made = await keeper.undo(id)
    await hone.library.settle_checks()
    click.echo(f"Change {id} is undone by change {made.id}. Restore it with: hone undo {made.id}")
