"""`hone skills`: list, read, install and manage skills."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from hone.app import Hone
from hone.cli import changes, skill_text
from hone.cli.context import in_home, ledger_of, open_editor, with_home
from hone.cli.editing import MUST_WAIT, edit_document
from hone.cli.help_formatter import ExtendedGroup
from hone.cli.inspecting import Inspected, inspect, inspect_all, states
from hone.cli.installing import fetched, installed
from hone.cli.options import FAILED, Options, at_terminal, complete, read_piped
from hone.cli.output import echo, screen_width, to_json
from hone.cli.render import paint_for
from hone.cli.skill_text import find_skills, heading, readable
from hone.core.errors import Missing, Refused
from hone.core.ledger import Entry, skill
from hone.core.skill import DOCUMENT, ListedSkill, SkillOrigin, UsageCounts
from hone.core.visible import one_line, visible
from hone.files.tree import FileTree
from hone.knowledge.folding import steps
from hone.knowledge.keeper import OWNER
from hone.knowledge.places import folder_of
from hone.knowledge.skills.document import decode, parse, write_document
from hone.knowledge.skills.facts import content_digest, digest_files, facts, split_facts
from hone.knowledge.skills.folder import Archive, Create, Edit, Pin, Restore, Uninstall, Unpin
from hone.knowledge.skills.naming import advise, check_name

SKELETON = """\
# When to use this
Say it here and in the description above: by the description it is found again.

# Steps
1. What to do first, and how to see that it worked.

# Pitfalls
- What went wrong before, and what to do instead."""
DESCRIPTION = "What this does, and when to use it."


@click.group(cls=ExtendedGroup)
def skills() -> None:
    """List, read, write, install and archive skills.

    A skill is a folder with a SKILL.md: how to do a class of tasks. Skills are in Hone's home, below skills/,
    and you may edit them there; with a database elsewhere, hone pull brings them to a folder. hone log lists
    every change, and hone undo undoes one.
    """


@skills.command("list")
@click.argument("query", nargs=-1)
@click.option("--archived", is_flag=True, help="List archived skills.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@in_home
async def list_(hone: Hone, query: tuple[str, ...], archived: bool, as_json: bool) -> str:
    """List all skills by name, or the best matches for QUERY."""
    found = await find_skills(hone.library, " ".join(query), archived=archived)
    if as_json:
        return to_json([skill_text.to_object(each) for each in found])
    if found:
        return skill_text.table(found, screen_width())
    return "No skill matches." if query or archived else "There are no skills yet."


@skills.command()
@click.argument("name", shell_complete=complete("skills"))
@click.option("--file", "file", default="", metavar="FILE", help="Print only this file.")
@in_home
async def show(hone: Hone, name: str, file: str) -> Iterable[str]:
    """Print the skill NAME as it is now. This does not count as a use."""
    files = await hone.library.files(name)
    paths, wanted = sorted(split_facts(files)[0]), file or DOCUMENT
    if wanted not in paths:
        raise Missing(f"{name} has no file {one_line(file, 100)!r}; it has {', '.join(paths)}.")
    text = readable(files[wanted])
    if text is None:
        raise Missing(f"{wanted} is not text ({len(files[wanted]):,} bytes).")
    text = visible(text).rstrip("\n")
    if file:
        return text
    counts = (await hone.library.usage_counts()).get(name, UsageCounts())
    head = heading(name, facts(files), counts, paint_for(sys.stdout), digest_files(files))
    measured = await hone.findings("skill", name, content_digest(files))
    sizes = [f"  {path}  {len(files[path]):,} bytes" for path in paths]
    return (*head, *measured, "", text, *(("", "Files:", *sizes) if len(paths) > 1 else ()))


@skills.command()
@click.argument("name", shell_complete=complete("skills"))
@click.option(
    "--from", "source", default="", metavar="FILE", help="Use this SKILL.md; - reads standard input."
)
@click.pass_obj
def new(options: Options, name: str, source: str) -> int:
    """Write the new skill NAME.

    The name is a class of task, such as release-notes. At a terminal, your editor opens with a skeleton.
    """
    text = _taken(source) if source else write_document(check_name(name), DESCRIPTION, SKELETON)

    async def act(hone: Hone) -> tuple[Entry, Sequence[ListedSkill], str]:
        near = await hone.library.find_similar(name, parse(text).description) if source else ()
        entry = await hone.keeper.edit_skill(name, Create(text, SkillOrigin.USER), OWNER)
        return entry, near, "in the database" if hone.settings.database else str(_place(hone, name))

    entry, near, place = with_home(options, act)
    if advice := advise(name):
        click.echo(advice, err=True)
    if near:
        click.echo(f"Similar skills: {', '.join(each.name for each in near)}.", err=True)
    click.echo(f"{name} is written (change {entry.id}): {one_line(place, 500)}")
    return _edited(options, name) if at_terminal() and not source else 0


def _taken(source: str) -> str:
    if source == "-":
        return read_piped()
    try:
        data = Path(source).expanduser().read_bytes()
    except OSError as error:
        raise Refused(f"{source} cannot be read: {error.strerror}. Nothing was written.") from error
    return decode(source, data)


@skills.command(short_help="Open a skill in an editor, and record what you changed.")
@click.argument("name", shell_complete=complete("skills"))
@click.pass_obj
def edit(options: Options, name: str) -> int:
    """Open the SKILL.md of NAME in your editor ($VISUAL, $EDITOR).

    You edit a copy. Hone merges what you save with changes made meanwhile and records it as your change. If
    that fails, the copy stays, and Hone says where it is.
    """

    async def act(hone: Hone) -> None:
        known = facts(await hone.library.files(name))
        if known.origin is SkillOrigin.BUNDLED:
            raise Refused(
                f"{name} comes with Hone and cannot be edited. Write your own: hone skills new NAME"
            )
        if known.archived and not known.failed:
            raise Refused(f"{name} is archived. Restore it first: hone skills restore {name}")

    with_home(options, act)
    return _edited(options, name)


def _edited(options: Options, name: str) -> int:
    """Let the owner edit the document, and return the exit code."""

    async def read(hone: Hone) -> tuple[Inspected, Path, str]:
        keeper, disk = ledger_of(hone), _disk(hone)
        found = await inspect(keeper, disk, name) if disk else Inspected(name)
        files = await hone.library.files(name)
        return found, _place(hone, name), decode(DOCUMENT, files[DOCUMENT])

    found, place, text = with_home(options, read)
    echo(_taken_in(found))
    if found.problems:
        return _mended(options, name, place)
    edited = edit_document(options, name, place, text)
    echo(edited.notices)
    if edited.entry is None:
        click.echo(f"{name}: nothing was changed.")
        click.echo(MUST_WAIT, err=True)
    else:
        echo(_taken_in(Inspected(name, (edited.entry,))))
    return 0


def _mended(options: Options, name: str, place: Path) -> int:
    """Let the owner edit a skill whose files are unusable on disk. Return the exit code."""
    open_editor(place)
    found = with_home(options, lambda hone: inspect(hone.keeper, _disk(hone), name))
    for problem in found.problems:
        click.echo(f"✗ {visible(problem)}", err=True)
    echo(_taken_in(found))
    return FAILED if found.problems else 0


def _shelving(command: str, edit: Edit, done: str, help: str, short_help: str = "") -> click.Command:
    """Return a command that does one thing to a whole skill."""

    @skills.command(command, help=help, short_help=short_help or None)
    @click.argument("name", shell_complete=complete("skills"))
    @in_home
    async def shelve(hone: Hone, name: str) -> str:
        await hone.library.files(name)
        entry = await hone.keeper.edit_skill(name, edit, OWNER)
        return f"{name} {done}. Undo it with: hone undo {entry.id}"

    return shelve


pin = _shelving(
    "pin",
    Pin(),
    "is pinned",
    "Pin NAME: neither a review nor the curator changes it, and it ranks first.",
    "Keep a skill first in the prompt and out of reviews.",
)
unpin = _shelving("unpin", Unpin(), "is no longer pinned", "Unpin NAME.")
archive = _shelving(
    "archive", Archive(), "is archived", "Archive NAME: Hone keeps it, but no prompt or list has it."
)
restore = _shelving("restore", Restore(), "is back", "Restore NAME from the archive.")
_shelving(
    "uninstall",
    Uninstall(),
    "is removed",
    "Remove the installed skill NAME. If it is a corrected copy of one that comes with Hone, the original "
    "returns.",
    "Remove an installed skill or a corrected copy.",
)


def _taken_in(found: Inspected) -> Iterator[str]:
    for entry in found.taken:
        yield f"{found.name}: your edit is change {entry.id}. Undo it with: hone undo {entry.id}"


@skills.command(short_help="Install a skill from a folder, an archive or a repository.")
@click.argument("source")
@click.option(
    "--path", "folder", default="", metavar="FOLDER", help="Where in the archive or repository it is."
)
@click.option("--ref", default="", metavar="NAME", help="The branch or tag of the repository.")
@click.option("--name", default="", help="Use this name, not the one in SKILL.md.")
@click.option("--hash", "seal", default="", metavar="SHA256", help="Install exactly this digest, or nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def install(options: Options, source: str, folder: str, ref: str, name: str, seal: str, yes: bool) -> int:
    """Install the skill in SOURCE: a folder, a zip or tar.gz archive, the address of a git repository, or an
    MCP server as mcp:NAME.

    Hone first shows the files and anything odd about them, then asks. Exactly what it showed is installed. If
    an earlier version is installed, Hone shows what changed.
    """
    return installed(options, *fetched(options, source, folder, ref, name), seal, yes=yes)


@skills.command(short_help="Show how a skill has changed.")
@click.argument("name", shell_complete=complete("skills"))
@click.argument("change", type=int, required=False)
@in_home
async def diff(hone: Hone, name: str, change: int | None) -> str:
    """Print how NAME has changed since it was made or installed, or what one CHANGE did to it."""
    made = steps(*await states(hone.library, name, change))
    lines = changes.diff(skill(name), made, paint_for(sys.stdout))
    return "\n".join(lines) or f"{name} has not changed."


@skills.command()
@click.argument("name", required=False)
@click.pass_obj
def check(options: Options, name: str | None) -> int:
    """Check the skills in Hone's home, or the skill NAME.

    Hone records what you edited by hand, and runs the checks that skills carry below checks/, in the sandbox.
    It names each skill that cannot be used, with the reason; then the exit code is 1.
    """

    async def act(hone: Hone) -> tuple[Sequence[Inspected], Sequence[str], Sequence[tuple[bool, str]]]:
        found, problems = await _inspected(hone, name)
        wanted = [name] if name else []
        checked = [line for part in hone.parts("check_skills") for line in await part.check_skills(wanted)]
        return found, problems, checked

    found, problems, checked = with_home(options, act)
    for each in found:
        echo(_taken_in(each))
        problems = [*problems, *(f"{each.name}: {problem}" for problem in each.problems)]
    fine = sum(not each.problems for each in found)
    echo(f"✓ {visible(line)}" for passed, line in checked if passed)
    problems = [*problems, *(line for passed, line in checked if not passed)]
    echo(f"✗ {visible(problem)}" for problem in problems)
    click.echo("1 skill is fine." if fine == 1 else f"{fine:,} skills are fine.")
    return FAILED if problems else 0


async def _inspected(hone: Hone, name: str | None) -> tuple[Sequence[Inspected], Sequence[str]]:
    keeper, disk = ledger_of(hone), _disk(hone)
    if name is None:
        return await inspect_all(keeper, disk)
    await hone.library.files(name)
    is_kept = bool(await keeper.ledger.held(skill(name)))
    return [await inspect(keeper, disk, name) if is_kept else Inspected(name)], ()


def _disk(hone: Hone) -> FileTree | None:
    """Return the home, unless its files do not count."""
    return None if hone.settings.database else FileTree(hone.home)


def _place(hone: Hone, name: str) -> Path:
    return hone.home / folder_of(skill(name)) / DOCUMENT
