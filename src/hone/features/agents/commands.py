"""`hone agents`: list, show and check the named helpers that tasks can go to."""

from pathlib import Path

import click

from hone.app import Hone
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import FAILED, Options
from hone.cli.output import echo_prose
from hone.core.errors import Missing
from hone.core.visible import one_line, visible
from hone.features.agents.parsing import AgentFile
from hone.features.agents.part import AgentsPart


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    short_help="List, show and check the named helpers that tasks can go to.",
)
@click.pass_context
def agents(ctx: click.Context) -> None:
    """List the named helpers that tasks can go to in this folder.

    Each is a file: agents/NAME.md in Hone's home, or .hone/agents/NAME.md and .claude/agents/NAME.md in a
    folder that you trust, after `hone trust` has shown it to you.
    """
    if ctx.invoked_subcommand is not None:
        return
    found, problems = _part(ctx.obj).find_all(Path.cwd().resolve())
    for agent in found:
        click.echo(f"{agent.helper.name}: {one_line(agent.helper.description, 200)}\n    {_facts(agent)}")
    for problem in problems:
        click.echo(one_line(problem.split("\n")[0], 300))
    if not found and not problems:
        echo_prose(["There are no agents here. docs/agents.md shows how to write one."])


@agents.command()
@click.argument("name")
@click.pass_obj
def show(options: Options, name: str) -> None:
    """Print what the helper NAME may do and what it is told."""
    found, _ = _part(options).find_all(Path.cwd().resolve())
    agent = next((each for each in found if each.helper.name == name), None)
    if agent is None:
        known = ", ".join(each.helper.name for each in found) or "none"
        raise Missing(f"There is no agent named {one_line(name, 100)} here. These exist: {known}.")
    helper = agent.helper
    click.echo(f"{helper.name}: {visible(helper.description)}\n{_facts(agent)}\n")
    click.echo(visible(helper.instructions))


@agents.command(short_help="Check every agent file.")
@click.pass_obj
def check(options: Options) -> int:
    """Check every agent file: whether it counts, and which parts of it are not used.

    It ends with 1 if there is something to fix.
    """
    part = _part(options)
    found, problems = part.find_all(Path.cwd().resolve())
    known = part.list_tools()
    remarks = [line for agent in found for line in _remark(agent, known)]
    for line in (*problems, *remarks):
        click.echo(f"✗ {visible(line)}")
    click.echo(f"{len(found)} of {len(found) + len(problems)} agents can be used here.")
    return FAILED if problems or remarks else 0


def _part(options: Options) -> AgentsPart:
    return AgentsPart(Hone(home=options.home, learning="queue"))


def _facts(agent: AgentFile) -> str:
    helper = agent.helper
    tools = "all tools" if helper.tools is None else ", ".join(sorted(helper.tools)) or "no tools"
    return one_line(f"{agent.source} · {helper.model or 'the same model'} · {tools}", 300)


def _remark(agent: AgentFile, known: frozenset[str]) -> list[str]:
    unknown = sorted((agent.helper.tools or frozenset()) - known)
    missing = [f"there is no tool {', '.join(unknown)}"] if unknown else []
    return [f"{agent.source}: {remark}" for remark in (*agent.remarks, *missing)]
