"""`hone mcp`: serve what Hone knows to other agents, and use the tools of their servers."""

import asyncio
import os
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import tell
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import FAILED, Options, at_terminal, confirm
from hone.core.visible import path_to_text, visible
from hone.features.mcp.client.commands import COMMANDS
from hone.features.mcp.server.clients import UNNAMED, find_client
from hone.features.mcp.server.installing import FilePlan, apply, plan_install, plan_removal
from hone.features.mcp.server.programs import NAME, PROGRAMS, Program, find_command
from hone.features.mcp.server.stdio import serve

PLATFORM = "mcp"
"""The platform recorded with changes that are made here."""
FOLDER_VARIABLE = "CLAUDE_PROJECT_DIR"
"""The variable in which Claude Code names its project."""
BY_HAND = "An agent starts this command and talks to it. To set that up: hone mcp install NAME. Ctrl-C ends."
WHICH = click.argument("program", metavar="NAME", type=click.Choice(list(PROGRAMS)))
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    short_help="Serve other agents over MCP, and use the tools of MCP servers.",
)
@click.option(
    "--client",
    default=UNNAMED,
    metavar="NAME",
    help="What you call the agent that is served: its name in the log and in hone.toml.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The project whose entries it gets. [default: this folder]",
)
@click.pass_context
def mcp(ctx: click.Context, client: str, folder: Path | None) -> None:
    """Serve skills and journal entries to another agent, over its standard input and output.

    The agent starts this command itself: hone mcp install NAME sets that up for Claude Code, Codex, Cursor
    and Zed. What the agent sends waits for your approval.

    The other commands are for servers whose tools Hone uses: hone mcp add NAME -- COMMAND, then hone mcp
    approve NAME.
    """
    if ctx.invoked_subcommand is None:
        options: Options = ctx.obj
        named = os.environ.get(FOLDER_VARIABLE, "")
        place = folder or (Path(named) if named and Path(named).is_dir() else None)
        if at_terminal():
            click.echo(BY_HAND, err=True)
        asyncio.run(_serve(options.home, client, place))


async def _serve(home: Path | None, name: str, folder: Path | None) -> None:
    async with Hone(home=home, folder=folder, learning="queue", platform=PLATFORM) as hone:
        await serve(hone, find_client(hone.settings, name, path_to_text(hone.folder)))
        tell(hone)


@click.command(short_help="Set Hone up in another agent's program.")
@WHICH
@click.option("--print", "only_print", is_flag=True, help="Print the lines, and change nothing.")
@YES
@click.pass_obj
def install(options: Options, program: str, only_print: bool, yes: bool) -> int:
    """Add Hone to the MCP servers of NAME: claude-code, codex, cursor or zed.

    You see the lines first. Everything else in the file stays as it is.
    """
    chosen = PROGRAMS[program]
    entry = chosen.entry(find_command(program, options.home))
    path = visible(str(chosen.path()))
    click.echo(f"{path}:\n")
    click.echo(chosen.form.put("", chosen.table, NAME, entry).rstrip())
    if only_print:
        return 0
    plan = plan_install(chosen, entry)
    if plan.after == plan.before:
        click.echo("\nThese lines are there already.")
        return 0
    click.echo()
    alone = "The lines would be added. Nobody can be asked here: say --yes, or --print to see them only."
    if not confirm("Add these lines?", alone, yes=yes):
        click.echo("Nothing was changed.")
        return FAILED
    apply(plan)
    click.echo(f"Hone is set up in {path}. Start {program} again. To undo it: hone mcp uninstall {program}")
    return 0


@click.command(short_help="Take Hone out of another agent's program.")
@WHICH
@YES
def uninstall(program: str, yes: bool) -> int:
    """Take Hone out of the MCP servers of NAME: claude-code, codex, cursor or zed.

    The file becomes what it was before hone mcp install, if nothing else has changed in it since. Otherwise
    only Hone's entry goes.
    """
    chosen = PROGRAMS[program]
    plan = plan_removal(chosen)
    click.echo(_describe_removal(chosen, plan))
    alone = "Nobody can be asked here: say --yes."
    if not confirm("Do it?", alone, yes=yes):
        click.echo("Nothing was changed.")
        return FAILED
    apply(plan)
    click.echo(f"Hone is no longer set up in {program}.")
    return 0


def _describe_removal(program: Program, plan: FilePlan) -> str:
    path = visible(str(program.path()))
    if plan.after is None:
        return f"{path} was made by hone mcp install and is deleted."
    return f"The entry {NAME} goes from {path}; everything else stays."


for _command in (install, uninstall, *COMMANDS):
    mcp.add_command(_command)
