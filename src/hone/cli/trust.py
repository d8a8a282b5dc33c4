"""`hone trust`: list and change the trusted folders and files, and approve the files that steer Hone."""

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import Struct

from hone.app import Hone
from hone.cli.context import unopened_home, with_home
from hone.cli.options import FAILED, Options, confirm
from hone.cli.output import echo
from hone.core.errors import Refused
from hone.core.visible import one_line, visible
from hone.knowledge.wording import SHELL, find_lessons, tell
from hone.learning.reconsider import reconsider
from hone.runtime.instructions import FoundInstructions, Instructions, UnusedInstructions, look
from hone.runtime.permissions.approval import HOOKS_FILE, MCP_FILES, ProjectApprovals, ProjectFile
from hone.runtime.permissions.project import FILE, ProjectRules, read_project
from hone.runtime.project_files import find_files
from hone.runtime.provenance.trusting import (
    ForeignFile,
    find_foreign,
    has_records,
    list_foreign,
    trust_files,
    trust_folder,
)

IN_SHORT = """\
In a trusted folder, Hone learns from what its tools read and follows AGENTS.md as you have seen it.
Elsewhere such lessons wait for you. Trusting sends nothing anywhere. More: hone trust --help"""
MEANING = """\
Tool output from a trusted folder counts as local: Hone may learn from it without asking. Hone also
follows the instructions there (the first of AGENTS.md, CLAUDE.md and .hone/instructions.md) as you
have seen them; after a change it asks you again. All other tool output is foreign. So is a file that
Hone wrote in a trusted folder after reading something foreign, or that a command with network wrote,
until you edit it, commit it, or name it here. Trusting a folder sends nothing anywhere. It gives no
further rights, except those that a .hone/permissions.toml in it asks for, and the commands in its
.hone/hooks.toml and the servers in its .mcp.json and .hone/mcp.json; you see these files first, and
the agents in .hone/agents and .claude/agents."""
LINES = 400
"""The most lines of a file to show."""


class ShownFile(Struct, frozen=True):
    """A file that the owner sees before it counts. `effect` completes "its FILE …"."""

    name: str
    text: str
    effect: str

    def lines(self) -> list[str]:
        """Return the exact file; nothing in it can control the terminal or imitate a line of ours."""
        lines = visible(self.text).rstrip("\n").split("\n")
        count = "1 line" if len(lines) == 1 else f"{len(lines):,} lines"
        return [f"{self.name}, {count}:", *(f"  │ {line}" for line in lines)]


class TrustFiles(Struct, frozen=True):
    """The files of a folder that steer Hone, as they were shown. `unused` lists unusable ones, with the
    reason."""

    instructions: FoundInstructions | None
    rules: ProjectRules | None
    unused: tuple[str, ...] = ()
    others: tuple[ProjectFile, ...] = ()
    """Hooks, agents and servers."""

    @classmethod
    def find(cls, folder: Path) -> "TrustFiles":
        found, unused = look(folder), []
        if isinstance(found, UnusedInstructions):
            unused.append(found.why)
        try:
            rules = read_project(folder)
        except Refused as refusal:
            rules = None
            unused.append(str(refusal))
        file = found if isinstance(found, FoundInstructions) else None
        others, wrong = find_files(folder)
        unused += wrong
        return cls(file, rules if rules and rules.texts.allow else None, tuple(unused), tuple(others))

    def shown(self) -> Sequence[ShownFile]:
        files = []
        if self.instructions:
            effect = "is read by the model and followed as it is now"
            files.append(ShownFile(self.instructions.name, self.instructions.text, effect))
        if self.rules:
            files.append(ShownFile(FILE, self.rules.text, "decides what Hone does without asking"))
        for other in self.others:
            effects = {HOOKS_FILE: "runs commands at events", **dict.fromkeys(MCP_FILES, "starts servers")}
            effect = effects.get(other.name, "instructs a helper")
            files.append(ShownFile(other.name, other.text, effect))
        return files

    def trust(self, folder: Path, instructions: Instructions, approvals: ProjectApprovals) -> None:
        """Trust the folder with these exact files. Raises Refused if one has changed since."""
        if [*self.others] != find_files(folder)[0]:
            raise Refused(
                "Hooks, agents or servers have changed meanwhile; nothing was trusted. Look again: hone trust"
            )
        instructions.trust(folder, self.instructions)
        approvals.files.approve(folder, self.others)
        if self.rules:
            approvals.approve(folder, self.rules)


@click.command(epilog=MEANING)
@click.argument("paths", metavar="[FOLDER | FILE...]", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--forget", is_flag=True, help="Stop trusting it.")
@click.option("--list", "listing", is_flag=True, help="Print the trusted folders.")
@click.option("--foreign", is_flag=True, help="Print the foreign files that Hone wrote there.")
@click.option("--yes", is_flag=True, help="Do not ask about what is shown.")
@click.pass_obj
def trust(
    options: Options, paths: tuple[Path, ...], forget: bool, listing: bool, foreign: bool, yes: bool
) -> int:
    """Trust FOLDER, the folder you are in, or each FILE as shown.

    If it has instructions, permission rules, hooks, agents or servers, Hone shows them and asks about them.
    """
    named_files = [path for path in paths if not path.is_dir()]
    if (len(paths) > 1 and named_files != [*paths]) or (forget and named_files):
        raise click.UsageError("Name one folder, or files to trust.")
    place = (paths[0] if paths else Path.cwd()).resolve()
    with unopened_home(options) as hone:
        if named_files and not listing:
            return _trust_files(hone, named_files, yes=yes)
        if listing:
            trusted = (one_line(each, 500) for each in hone.folders.all())
            click.echo("\n".join(trusted) or "No folder is trusted yet.")
            return 0
        if foreign:
            return _list_foreign(hone, place)
        if forget:
            return _forget(hone, place)
        if not _trust_folder(hone, place, yes=yes):
            return FAILED
        recorded = has_records(hone.home)
    if recorded:
        echo(with_home(options, lambda hone: _reconsider(hone, place)))
    return 0


def _forget(hone: Hone, place: Path) -> int:
    hone.instructions.forget(place)
    hone.permissions.approvals.forget(place)
    hone.permissions.approvals.files.forget(place)
    click.echo(f"{one_line(str(place), 500)} is no longer trusted.")
    return 0


def _trust_folder(hone: Hone, place: Path, *, yes: bool) -> bool:
    """Tell whether the folder is trusted now."""
    called = one_line(str(place), 500)
    files = TrustFiles.find(place)
    if files.shown() and not _agreed(files.shown(), called, yes=yes):
        click.echo("Nothing was changed.")
        return False
    files.trust(place, hone.instructions, hone.permissions.approvals)
    trust_folder(hone.home, place)
    click.echo(f"{called} is trusted now{_followed(files)}. Undo it with: hone trust --forget")
    for why in files.unused:
        click.echo(why)
    return True


async def _reconsider(hone: Hone, place: Path) -> Sequence[str]:
    """Judge again what waited for trust in a folder, and report what took effect."""
    if hone.keeper.rules.closed:
        return ()
    made = await reconsider(hone, place)
    return tell(await find_lessons(hone.ledger, made.entries), SHELL)


def _list_foreign(hone: Hone, place: Path) -> int:
    found = list_foreign(hone.home, hone.folders, place)
    names = [one_line(str(path.relative_to(place)), 500) for path in found]
    click.echo("\n".join(names) or "No file that Hone wrote here is foreign.")
    return 0


def _trust_files(hone: Hone, paths: list[Path], *, yes: bool) -> int:
    """Trust exactly what was shown, by its bytes."""
    found = [(path, find_foreign(hone.home, hone.folders, path)) for path in paths]
    for path in [path for path, file in found if file is None]:
        click.echo(f"{one_line(str(path), 300)} is not foreign.")
    files = [file for _, file in found if file]
    if not files:
        return 0
    for file in files:
        click.echo("\n".join(_excerpt(file)))
    alone = "Hone cannot ask here. Read what is shown, then run this again with --yes."
    count = "this file" if len(files) == 1 else f"these {len(files)} files"
    if not confirm(f"Trust {count} as shown?", alone, yes=yes):
        click.echo("Nothing was changed.")
        return FAILED
    trust_files(hone.home, hone.folders, files)
    click.echo(f"Trusted {count} as shown. A later change by Hone can make it foreign again.")
    return 0


def _excerpt(file: ForeignFile) -> list[str]:
    """Return the exact file; nothing in it can control the terminal or imitate a line of ours."""
    lines = visible(file.text).rstrip("\n").split("\n")
    count = "1 line" if len(lines) == 1 else f"{len(lines):,} lines"
    rows = [f"  │ {line}" for line in lines[:LINES]]
    more = [f"  … {len(lines) - LINES:,} more lines, which you trust, too"] if len(lines) > LINES else []
    return [f"{one_line(str(file.path), 300)}, {count}, {len(file.data):,} bytes:", *rows, *more]


def _agreed(files: Sequence[ShownFile], called: str, *, yes: bool) -> bool:
    for file in files:
        click.echo("\n".join(file.lines()))
    names = " and ".join(file.name for file in files)
    alone = f"Hone cannot ask here about {names}. Read what is shown, then run this again with --yes."
    return confirm(f"Trust {called}, and its {names} as shown?", alone, yes=yes)


def _followed(files: TrustFiles) -> str:
    name = files.instructions.name if files.instructions else ""
    followed = f", and its {name} is followed as shown" if name else ""
    rules = f", and the rules in {FILE} count" if files.rules else ""
    hooks = ", and its hooks run" if any(each.name == HOOKS_FILE for each in files.others) else ""
    servers = ", and its servers may be used" if any(each.name in MCP_FILES for each in files.others) else ""
    agents = [each for each in files.others if each.name not in (HOOKS_FILE, *MCP_FILES)]
    count = "1 agent" if len(agents) == 1 else f"{len(agents)} agents"
    return followed + rules + hooks + servers + (f", and the model may use its {count}" if agents else "")
