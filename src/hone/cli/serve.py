"""`hone serve`: serve the web page and an API for other programs."""

import asyncio
import os
import sys
import threading
import webbrowser
from pathlib import Path

import click

from hone.cli.help_formatter import CommandGroup
from hone.cli.modes import WARNING
from hone.cli.options import Options
from hone.cli.serve_keys import keys
from hone.cli.serve_logins import link, logins
from hone.core.permissions import Mode
from hone.settings import home_folder, read
from hone.web.keys import password
from hone.web.processes import MOST
from hone.web.serving import Address, run_processes
from hone.web.serving import serve as run

EPILOG = """\b
Other programs talk to it as to OpenAI. Give each a key:
  export OPENAI_BASE_URL=http://127.0.0.1:8420/v1
  export OPENAI_API_KEY="$(hone serve keys add my-editor)"
"""


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    short_help="Serve the page, and an endpoint for other programs.",
    epilog=EPILOG,
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8420, show_default=True, help="The port.")
@click.option(
    "--password-file",
    type=click.Path(path_type=Path),
    help="A file whose first line is the password; needed where other machines can reach the address.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST[:PORT]",
    help="A further name that browsers reach it by, such as that of a proxy; repeatable.",
)
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    help="Seconds that running turns have to finish when the server stops.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, MOST),
    default=1,
    show_default=True,
    help="Server processes on this port; more than one need a PostgreSQL database.",
)
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    password_file: Path | None,
    names: tuple[str, ...],
    no_open: bool,
    grace: float,
    processes: int,
) -> int:
    """Serve the page, and an endpoint that OpenAI clients can talk to, until Ctrl-C.

    Only this machine can reach it unless you say otherwise. The address that is printed lets one browser in,
    once. One home is one person: for a team, see docs/teams.md.
    """
    if ctx.invoked_subcommand:
        return 0
    options: Options = ctx.obj
    word = password(password_file.expanduser()) if password_file else ""

    def ready(url: str, home: Path) -> None:
        click.echo(f"Open in your browser (works once): {url}")
        click.echo(
            f"For other programs: {url.partition('/login')[0]}/v1, with a key: hone serve keys add NAME"
        )
        click.echo(f"Your own key is in {home}/serve.key. A link for another browser: hone serve link")
        if Mode(read(home).mode) is Mode.FULL:
            click.echo(WARNING, err=True)
        if not read(home).database:
            click.echo("This home is one person's. For several people: docs/teams.md", err=True)
        click.echo("Ctrl-C ends.", err=True)
        if not no_open and _has_screen():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    address, code = Address(host, port, names, word), 0
    if processes > 1:
        code, late = run_processes(
            options.home or home_folder(), address, ready, grace=grace, count=processes
        )
        if code:
            return code
    else:
        late = asyncio.run(run(options.home, address, ready, grace=grace))
    turns = "1 turn was" if late == 1 else f"{late} turns were"
    click.echo(f"Ended. {turns} interrupted." if late else "Ended.", err=True)
    return code


for command in (keys, link, logins):
    serve.add_command(command)


def _has_screen() -> bool:
    """Tell whether there is a screen. Without one a browser would take over the terminal, if there is any.
    The address is printed anyway."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
