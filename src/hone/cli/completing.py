"""Complete names for a shell, and print the completion scripts.

Nothing here uses the network or loads a plugin. The values are ids and names; titles are only shown next to
them, on one line and with control characters escaped.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from hone.app import Hone
from hone.cli.config_keys import list_keys
from hone.cli.listing import title_of
from hone.cli.output import day
from hone.core.errors import HoneError
from hone.core.toml_faults import spell
from hone.core.visible import one_line
from hone.knowledge.places import SKILLS
from hone.knowledge.skills import bundled
from hone.knowledge.skills.naming import SHAPE
from hone.settings import Settings, home_folder

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_HONE_COMPLETE"
SEARCHED, MOST = 1_000, 100
"""How many conversations to search, and how many names to offer."""
SHOWN = 60
"""The most characters to show next to a name."""
Found = Mapping[str, str]
EPILOG = """\b
Install it in bash:
  cd ~/.local/share/bash-completion/completions
  hone completion bash > hone

\b
Install it in zsh:
  hone completion zsh > "${fpath[1]}/_hone"

\b
Install it in fish:
  cd ~/.config/fish/completions
  hone completion fish > hone.fish

Create the folder if there is none. Start a new shell afterwards.
"""


@click.command(epilog=EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes commands in bash, zsh or fish.

    It completes commands, options, conversations, skills and settings.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    # The template alone: what bash would add runs a bash to ask for its version.
    click.echo(ShellComplete.source(kind(root, {}, "hone", VARIABLE)))


def find_names(what: str, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    """Return the names with this prefix. Anything unreadable completes nothing."""
    try:
        found = _FINDERS[what](_find_home(ctx))
    except (HoneError, OSError):
        return []
    fitting = [(name, about) for name, about in found.items() if name.startswith(incomplete)]
    return [CompletionItem(name, help=one_line(about, SHOWN)) for name, about in fitting[:MOST]]


def _find_home(ctx: click.Context) -> Path:
    home: Path | None = ctx.find_root().params.get("home")
    return home.expanduser() if home else home_folder()


async def _list_sessions(home: Path) -> Found:
    """Return ids with titles, latest first. This needs no settings of the owner's, and loads no plugins."""
    async with Hone(home=home, settings=Settings(), learning="queue") as hone:
        every = await hone.sessions.list(SEARCHED)
    return {each.header.id: f"{day(each.updated)} {title_of(each)}" for each in every}


def _find_sessions(home: Path) -> Found:
    return asyncio.run(_list_sessions(home)) if (home / "hone.db").exists() else {}


def _find_skills(home: Path) -> Found:
    """Return the folders of the owner's skills, and the bundled skills."""
    folder = home / SKILLS
    own = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
    return {name: "" for name in (*own, *bundled.names()) if SHAPE.fullmatch(name)}


def _find_keys(_: Path) -> Found:
    return {spell(key): "" for key in list_keys()}


_FINDERS: Mapping[str, Callable[[Path], Found]] = {
    "sessions": _find_sessions,
    "skills": _find_skills,
    "keys": _find_keys,
}
