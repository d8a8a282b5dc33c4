"""`hone hooks`: list the commands that run at events in this folder, and those that do not count."""

import os
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.options import Options
from hone.cli.output import echo_prose
from hone.core.visible import one_line
from hone.features.hooks.part import HooksPart
from hone.features.hooks.values import Hook
from hone.runtime.permissions.approval import HOOKS_FILE


@click.command(short_help="List your commands that run at events, and which of them count.")
@click.pass_obj
def hooks(options: Options) -> int:
    """List the hooks of hone.toml and of this folder's .hone/hooks.toml.

    A hook is a command of yours that runs before or after a tool, at the end of a turn, or when something
    was learned. It can refuse a call and tell the model something; it cannot allow anything. Hooks of a
    folder count after you have seen the file with `hone trust`.
    """
    hone = Hone(home=options.home, learning="queue")
    folder = Path.cwd().resolve()
    found, why = HooksPart(hone).find(folder)
    if not hone.folders.trusts(folder) and os.path.lexists(folder / HOOKS_FILE):
        why = f"{HOOKS_FILE} is not used, because this folder is not trusted. `hone trust` shows it."
    for hook in found:
        click.echo(_describe(hook))
    if why:
        click.echo(one_line(why, 500))
    if not found and not why:
        echo_prose(["There are no hooks here. docs/hooks.md shows how to write one."])
    return 0


def _describe(hook: Hook) -> str:
    settings = hook.settings
    tools = f" ({', '.join(settings.tools)})" if settings.tools else ""
    facts = f"{hook.source}, {settings.timeout:g} s" + ("" if settings.sandbox else ", outside the sandbox")
    return one_line(f"{settings.event}{tools}: {settings.command} [{facts}]", 500)
