"""`hone serve link` and `hone serve logins`: let a browser in, list those that are in, and sign them out."""

import click

from hone.cli.help_formatter import CommandGroup
from hone.cli.options import Options
from hone.cli.output import echo_json, lay_out, moment, screen_width
from hone.core.clock import SystemClock
from hone.settings import home_folder, read
from hone.web.access import open_place
from hone.web.address_file import find_server
from hone.web.logins import Logins
from hone.web.tickets import Tickets

DEFAULT = "http://127.0.0.1:8420"


@click.command(short_help="Print a link that lets one more browser in, once.")
@click.option("--url", help="The server's address as the browser will reach it, if that is another one.")
@click.pass_obj
def link(options: Options, url: str | None) -> None:
    """Print a link that lets one more browser in. It works once, within an hour.

    If no server of this home is running, the link works with the next one.
    """
    home = options.home or home_folder()
    running = find_server(home)
    address = (url or (running.url if running else DEFAULT)).rstrip("/")
    click.echo(
        f"{address}/login?ticket={Tickets(SystemClock(), open_place(home, read(home).database)).add()}"
    )
    click.echo("It works once, within an hour.", err=True)
    if running is None:
        click.echo("No server is running. Start it first: hone serve", err=True)


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    short_help="List the browsers that are signed in; sign them out.",
)
@click.pass_context
def logins(ctx: click.Context) -> None:
    """List the browsers that are signed in, and sign them out."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@logins.command("list", short_help="List the browsers that are signed in.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_(options: Options, as_json: bool = False) -> None:
    """List the browsers: what each is, when it signed in and when it last asked for something."""
    found = _logins(options).list()
    if as_json:
        echo_json(
            [
                {
                    "login": each.id,
                    "label": each.label,
                    "created": each.created.isoformat(),
                    "used": each.used.isoformat(),
                    "until": each.until.isoformat(),
                }
                for each in found
            ]
        )
    elif found:
        rows = [
            (each.id, each.label, moment(each.created), moment(each.used), moment(each.until))
            for each in found
        ]
        titles = ("login", "browser", "signed in", "last seen", "until")
        click.echo("\n".join(lay_out(titles, rows, screen_width())))
    else:
        click.echo("No browser is signed in. Let one in: hone serve link")


@logins.command(short_help="Sign browsers out; they stop at once.")
@click.argument("ids", nargs=-1, metavar="[LOGIN]...")
@click.option("--all", "all_", is_flag=True, help="Sign out every browser.")
@click.pass_obj
def remove(options: Options, ids: tuple[str, ...], all_: bool) -> None:
    """Sign browsers out. A running server refuses them from now on and closes their streams."""
    if bool(ids) == all_:
        raise click.UsageError("Name the browsers to sign out, or use --all. List them: hone serve logins")
    known = _logins(options)
    chosen = [each.id for each in known.list()] if all_ else ids
    for id in chosen:
        click.echo(f"Signed out {known.remove(id).label}.")
    if not chosen:
        click.echo("No browser is signed in.")


def _logins(options: Options) -> Logins:
    home = options.home or home_folder()
    return Logins(SystemClock(), open_place(home, read(home).database))
