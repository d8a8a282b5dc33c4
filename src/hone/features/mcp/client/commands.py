"""`hone mcp list, show, add, remove, approve, check`: the servers whose tools Hone uses."""

from collections.abc import Sequence

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.options import FAILED, Options, confirm
from hone.cli.output import echo, lay_out, screen_width
from hone.cli.settings_file import write_settings
from hone.core.errors import Refused
from hone.core.visible import one_line, visible
from hone.features.mcp.client.catalog import CatalogEntry, ToolState, approve, find_flags
from hone.features.mcp.client.describing import count_states, describe_server, describe_tools, describe_whole
from hone.features.mcp.client.settings_text import remove_server
from hone.features.mcp.client.tokens import TokenFile
from hone.features.mcp.client.values import OWN, McpServer, check_name, warn_of_runner
from hone.features.mcp.part import McpPart
from hone.settings import home_folder, read

_WAITING = (ToolState.NEW, ToolState.CHANGED)


@click.command("list", short_help="List the servers and the state of their tools.")
@click.pass_obj
def list_(options: Options) -> None:
    """List the servers that count in this folder. None is started."""

    async def act(hone: Hone) -> list[str]:
        part = hone.part(McpPart)
        found = part.find(hone.folder)
        entries = part.catalog.read()
        rows = [
            (name, server.source, server.line, count_states(entries.get(server.key) or _unseen(server)))
            for name, server in found.servers.items()
        ]
        lines = lay_out(("name", "from", "starts or reaches", "tools"), rows, screen_width()) if rows else []
        return [*map(visible, (*lines, *found.problems))] or [
            "There are no MCP servers here. Add one: hone mcp add NAME -- COMMAND"
        ]

    echo(with_home(options, act))


@click.command(short_help="Show a server: what it starts, its tools, and what changed.")
@click.argument("name")
@click.pass_obj
def show(options: Options, name: str) -> None:
    """Show the server NAME as it was last seen. It is not started.

    A tool that changed since you approved it is shown with the difference.
    """

    async def act(hone: Hone) -> list[str]:
        part = hone.part(McpPart)
        server = part.get(name, hone.folder)
        entry = part.catalog.get(server)
        said = ["", "what it printed when it last failed:", entry.errors.rstrip()] if entry.errors else []
        return [*describe_server(server, entry), *describe_tools(entry), *said]

    echo(with_home(options, act))


@click.command(short_help="Write a server into hone.toml.")
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", default="", help="The address of a server that runs elsewhere.")
@click.option("--env", multiple=True, metavar="NAME", help="Pass on this variable or stored key; repeatable.")
@click.option("--header", multiple=True, metavar="NAME=TEXT", help="Send this; ${VARIABLE} is filled in.")
@click.option("--folder", multiple=True, help="Let it read and write this folder; repeatable.")
@click.option("--host", multiple=True, help="Let it reach this host; repeatable.")
@click.option("--about", default="", help="What it is for, in a few words.")
@click.pass_obj
def add(
    options: Options, /, name: str, command: tuple[str, ...], url: str, about: str, **lists: tuple[str, ...]
) -> None:
    """Write the server NAME into hone.toml. COMMAND follows two hyphens:

    \b
      hone mcp add git --folder . -- uvx mcp-server-git
    """
    home = options.home or home_folder()
    if check_name(name) in read(home).mcp.servers:
        raise click.UsageError(f"There is a server {name} already. Remove it first: hone mcp remove {name}")
    if bool(url) == bool(command):
        raise click.UsageError("Name either a command, after two hyphens, or --url.")
    keys: dict[str, str | tuple[str, ...]] = {
        "command": command[0] if command else "",
        "args": command[1:],
        "url": url,
        "folders": lists["folder"],
        "hosts": lists["host"],
        "about": about,
    }
    table = ("mcp", "servers", name)
    changes: dict[tuple[str, ...], str | tuple[str, ...]] = {
        (*table, key): value for key, value in keys.items() if value
    }
    changes |= {(*table, "env", each): f"${{{each}}}" for each in lists["env"]}
    for each in lists["header"]:
        key, _, text = each.partition("=")
        changes[*table, "headers", key] = text
    write_settings(home / "hone.toml", changes)
    click.echo(
        f"Added {name} to {home / 'hone.toml'}. Look at its tools and approve them: hone mcp approve {name}"
    )
    server = McpServer(name, read(home).mcp.servers[name], OWN, home)
    if warning := warn_of_runner(server):
        click.echo(one_line(warning, 300), err=True)


@click.command(short_help="Remove a server, and forget what was approved of it.")
@click.argument("name")
@click.pass_obj
def remove(options: Options, name: str) -> None:
    """Remove the server NAME from hone.toml, and forget its tools."""
    home = options.home or home_folder()
    if name not in read(home).mcp.servers:
        raise click.UsageError(f"hone.toml has no MCP server {name[:40]!r}. List them: hone mcp list")

    async def act(hone: Hone) -> None:
        part = hone.part(McpPart)
        keys = [
            key for key, entry in part.catalog.read().items() if (entry.name, entry.source) == (name, OWN)
        ]
        part.catalog.remove(keys)
        for key in keys:
            TokenFile(hone.home).remove(key)

    with_home(options, act)
    remove_server(home / "hone.toml", name)
    click.echo(f"Removed {name}.")


@click.command(short_help="Look at a server's tools, and approve them.")
@click.argument("name")
@click.argument("tools", nargs=-1, metavar="[TOOL...]")
@click.option("--yes", is_flag=True, help="Do not ask about what is shown.")
@click.pass_obj
def approve_(options: Options, name: str, tools: tuple[str, ...], yes: bool) -> int:
    """Start the server NAME, show what its tools say, and approve them as shown.

    Without TOOL, all that are new or changed are shown. One whose words look odd has to be named.
    """

    async def look(hone: Hone) -> tuple[McpServer, CatalogEntry]:
        part = hone.part(McpPart)
        server, servers = part.get(name, hone.folder), part.open_servers(show_address)
        try:
            return server, await servers.look(server)
        finally:
            await servers.close()

    server, entry = with_home(options, look)
    shown, odd = _choose(entry, tools)
    echo([*describe_server(server, entry), *(line for each in shown for line in describe_whole(each, entry))])
    for each in odd:
        click.echo(
            f"{each} looks odd and is left out. To approve it: hone mcp approve {name} {each}", err=True
        )
    if not shown:
        click.echo(f"Nothing of {name} waits for you." if not odd else "Nothing was approved.")
        return FAILED if odd else 0
    count = "this tool" if len(shown) == 1 else f"these {len(shown)} tools"
    alone = "Hone cannot ask here. Read what is shown, then run this again with --yes."
    if not confirm(f"Let the model use {count} of {name}?", alone, yes=yes):
        click.echo("Nothing was approved.")
        return FAILED
    raws = {each: entry.tools[each] for each in shown}

    async def store(hone: Hone) -> None:
        catalog = hone.part(McpPart).catalog
        catalog.change(server, lambda now: approve(now, raws, entry.title))

    with_home(options, store)
    click.echo(f"Approved {count} of {name}.")
    return 0


def _choose(entry: CatalogEntry, tools: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the tools to approve, and those that must be named explicitly. Raises Refused."""
    if unknown := [each for each in tools if each not in entry.tools]:
        known = ", ".join(entry.tools) or "none"
        raise Refused(f"{entry.name} offers no tool {one_line(unknown[0], 60)!r}. It offers: {known}.")
    if tools:
        return [*tools], []
    waiting = entry.pick(*_WAITING)
    odd = [each for each in waiting if find_flags(entry.tools[each])]
    return [each for each in waiting if each not in odd], odd


@click.command(short_help="Start a server, and say what it offers now.")
@click.argument("name")
@click.pass_obj
def check(options: Options, name: str) -> int:
    """Start the server NAME, list its tools and say which of them wait for you."""

    async def act(hone: Hone) -> tuple[list[str], bool]:
        part = hone.part(McpPart)
        server = part.get(name, hone.folder)
        servers = part.open_servers(show_address)
        try:
            entry = await servers.look(server)
            counts = {kind: len(await servers.list_all(server, kind)) for kind in ("resources", "prompts")}
        finally:
            await servers.close()
        kinds = [f"{count} {kind}" for kind, count in counts.items() if count]
        offered = f"{name} answers in {entry.version}: {', '.join((count_states(entry), *kinds))}"
        return [*describe_server(server, entry), *describe_tools(entry), offered], bool(entry.pick(*_WAITING))

    lines, waits = with_home(options, act)
    echo(lines)
    if waits:
        click.echo(f"Some tools wait for you: hone mcp approve {name}", err=True)
    return 0


async def show_address(address: str) -> None:
    click.echo(f"Sign in with your browser, then come back here:\n{visible(address)}", err=True)


def _unseen(server: McpServer) -> CatalogEntry:
    return CatalogEntry(server.name, server.source)


approve_.name = "approve"
COMMANDS = (list_, show, add, remove, approve_, check)
"""The commands of the client, for the group `hone mcp`."""
