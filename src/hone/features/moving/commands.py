"""`hone move`: bring the data of a home to a PostgreSQL database, and back."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.config import settings_path
from hone.cli.options import Options, at_terminal
from hone.cli.output import number_of
from hone.cli.progress import ProgressLine
from hone.cli.settings_file import Changes, find_written, write_settings
from hone.core.errors import Refused, StoreError
from hone.core.holding import Holding
from hone.core.secrets.known import mask_password
from hone.core.visible import one_line, visible
from hone.features.moving.plan import describe_rows, list_made_again, list_staying
from hone.features.moving.values import Copied, Forecast, MovePlan
from hone.holdings import all_holdings
from hone.settings import Settings, home_folder, read
from hone.stores.home import FILE

SQLITE = "sqlite"
VARIABLE = "HONE_DATABASE"
DATABASE = ("database",)
EXTRA = "PostgreSQL needs an extra: pip install 'hone-agent[postgres]'"


@click.command(short_help="Move your data to a PostgreSQL database, or back.")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="ADDRESS",
    help="postgresql://…, or sqlite: the file of this home.",
)
@click.option(
    "--from", "source", default="", metavar="ADDRESS", help="With --to sqlite: where the data is now."
)
@click.option("--keep", is_flag=True, help="Only copy, and keep using the source.")
@click.option("--dry-run", is_flag=True, help="Count what would move, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Change the setting in hone.toml without asking.")
@click.pass_obj
def move(options: Options, target: str, source: str, *, keep: bool, dry_run: bool, yes: bool) -> None:
    """Move conversations, lessons and everything else in Hone's database to PostgreSQL, or back to this home.

    \b
      hone move --to postgresql://me@host/hone
      hone move --to sqlite

    End every other hone first. All rows are compared at both ends before the source is marked as moved; it
    keeps its data. If a move is cut off, run it again.
    """
    try:
        from hone.features.moving import service  # noqa: PLC0415  psycopg is an extra
    except ImportError as error:
        raise StoreError(EXTRA) from error

    plan = make_plan(options.home or home_folder(), target, source, keep=keep)
    holdings = all_holdings(Hone(home=plan.home, settings=Settings()).parts("holdings"))
    if dry_run:
        tell_forecast(plan, service.forecast(plan), holdings)
        return
    with ProgressLine() as progress:
        copied = service.move_data(plan, progress.show)
    tell_done(plan, copied, holdings)
    if not keep:
        switch(settings_path(options), "" if plan.to_sqlite else plan.url, yes=yes)


def make_plan(home: Path, target: str, source: str, *, keep: bool) -> MovePlan:
    """Return the plan. Raises Refused for a move from a place to itself, or between two databases."""
    configured = read(home).database
    to_sqlite = target == SQLITE
    address = source or configured if to_sqlite else target
    if to_sqlite and not address:
        raise Refused(
            "The data of this home is in SQLite already. If it is in a database that hone.toml does not "
            "name: hone move --to sqlite --from postgresql://…"
        )
    if not address.startswith(("postgresql://", "postgres://")):
        raise click.UsageError(
            "Name a database such as postgresql://user@host/name, or sqlite for this home."
        )
    if not to_sqlite and configured:
        raise Refused(
            f"The data of this home is in {mask_password(configured)}. Bring it home first: "
            "hone move --to sqlite"
        )
    return MovePlan(home, address, to_sqlite, datetime.now().astimezone(), keep)


def tell_forecast(plan: MovePlan, forecast: Forecast, holdings: Sequence[Holding]) -> None:
    click.echo(f"Would {'copy' if plan.keep else 'move'} {_name_way(plan, forecast.where)}:")
    _tell_rows(forecast.counts, holdings)
    click.echo(f"Made again there: {'; '.join(list_made_again(holdings))}.")
    click.echo("Stays in this home:")
    _tell(f"{name}: {why}" for name, why in list_staying(plan.home, holdings))
    click.echo(f"{forecast.obstacle} It would be refused." if forecast.obstacle else "Nothing was changed.")


def tell_done(plan: MovePlan, copied: Copied, holdings: Sequence[Holding]) -> None:
    way = _name_way(plan, copied.where)
    if not copied.made:
        click.echo(f"Everything was there already; finished the move {way}.")
    else:
        click.echo(f"{'Copied' if plan.keep else 'Moved'} {way}:")
        _tell_rows(copied.counts, holdings)
        click.echo(f"Made again there: {'; '.join(list_made_again(holdings))}.")
    click.echo(f"Both ends hold the same rows: SHA-256 {copied.digest}")
    if plan.keep:
        click.echo(f"Hone still uses {copied.where if plan.to_sqlite else plan.home / FILE}.")
    elif plan.to_sqlite:
        click.echo(f"{copied.where} keeps its rows, and refuses to be used for them.")
    else:
        click.echo(f"{visible(str(plan.home / FILE))} is kept as it was and is no longer used.")
        click.echo("Journal and skills are read from there. To edit them as files: hone pull and hone push")


def switch(file: Path, address: str, *, yes: bool) -> None:
    """Write the address to the settings file, or remove it, if the owner wants that; or say how to."""
    shown = mask_password(address)
    written = find_written(file, DATABASE)
    if os.environ.get(VARIABLE):
        click.echo(f"Next: {f'set ${VARIABLE} to {shown}' if address else f'unset ${VARIABLE}'}")
        return
    if written == (address or None):
        return
    deed = f'Write database = "{shown}" to' if address else "Take database out of"
    if yes or (at_terminal() and click.confirm(f"{deed} {visible(str(file))}?", default=True)):
        changes: Changes = {DATABASE: address or None}
        write_settings(file, changes)
        click.echo(f"{'Wrote database to' if address else 'Removed database from'} {visible(str(file))}.")
    else:
        click.echo(f"Next: hone config {f'set database {shown}' if address else 'unset database'}")


def _name_way(plan: MovePlan, where: str) -> str:
    here = visible(str(plan.home / FILE))
    return f"from {where} to {here}" if plan.to_sqlite else f"from {here} to {where}"


def _tell_rows(counts: Mapping[str, int], holdings: Sequence[Holding]) -> None:
    _tell(f"{name}: {number_of(rows, 'row')}" for name, rows in describe_rows(holdings, counts))
    talks, messages = number_of(counts["sessions"], "conversation"), number_of(counts["nodes"], "message")
    lessons = number_of(counts["changes"], "change")
    click.echo(f"  {talks} with {messages}, {lessons} of what is known")


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"  {one_line(line, 200)}")
