"""`hone undo`: one change taken back, and nothing that came later."""

import sys
from typing import TYPE_CHECKING

import click

from hone.cli.main import Options

if TYPE_CHECKING:
    from hone.app import Hone
    from hone.core.ledger import ChangeId
    from hone.knowledge.keeper import Keeper


@click.command()
@click.argument("id", type=click.IntRange(1))
@click.pass_obj
def undo(options: Options, id: "ChangeId") -> None:
    """Take the change ID back, and nothing that came later.

    The undo is a change of its own and can be undone. What the curator did in one go is taken back in one
    go. Where a later change met the same place, both are
    shown and nothing happens.
    """
    from hone.cli import changes
    from hone.cli.home import with_keeper
    from hone.cli.paint import paint_for
    from hone.core.ledger import ChangeState

    paint = paint_for(sys.stdout)

    async def act(_: "Hone", keeper: "Keeper") -> None:
        entry = await keeper.ledger.entry(id)
        if entry.change.standing is ChangeState.ACTIVE and await keeper.is_standing(entry):
            [change] = await changes.describe_groups(keeper, [entry])
            for each in (change, *change.others):
                back = [step.reverse for step in each.steps]
                for row in changes.heading(each, paint):
                    click.echo(row)
                for row in changes.indented(changes.diff(each.entry.change.target, back, paint)):
                    click.echo(row)
            if change.others:
                click.echo(f"These {len(change.others) + 1} changes were made as one and go as one.")
        made = await keeper.undo(id)
        click.echo(f"Change {id} is undone by change {made.id}. Take that back with: hone undo {made.id}")

    with_keeper(options, act)
