"""`hone skills`: what Hone knows how to do, and what to do with it."""

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from hone.cli.main import FAILED, Options
from hone.core.visible import one_line, visible

if TYPE_CHECKING:
    from hone.app import Hone
    from hone.cli.inspecting import Inspected
    from hone.core.ledger import Author, Entry
    from hone.core.skill import ListedSkill, UsageCounts
    from hone.knowledge.folding import Files
    from hone.knowledge.library import Library
    from hone.knowledge.skills.folder import Edit

Result = TypeVar("Result")

FOUND = 50
"""How many a search gives."""
SKELETON = """\
# When to use this
Say it here and in the description above: by the description it is found again.

# Steps
1. What to do first, and how to see that it worked.

# Pitfalls
- What went wrong before, and what to do instead."""
DESCRIPTION = "What this does, and when to use it."


@click.group()
def skills() -> None:
    """List, read, write, install and put away skills.

    A skill is a folder with a SKILL.md: how to do a class of tasks. They lie in Hone's home, below skills/,
    where you may edit them. Every change is in hone log and can be taken back with hone undo.
    """


@skills.command("list")
@click.argument("query", nargs=-1)
@click.option("--archived", is_flag=True, help="Those that were put away.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_(options: Options, query: tuple[str, ...], archived: bool, as_json: bool) -> None:
    """List all skills by name, or those for QUERY, the best first."""
    from hone.cli import skill_text as shelf

    found = _with(options, lambda hone: listed(hone.library, " ".join(query), archived=archived))
    if as_json:
        click.echo(shelf.as_json(found))
    elif found:
        import shutil

        click.echo(shelf.table(found, shutil.get_terminal_size().columns))
    else:
        click.echo("There are no such skills." if query or archived else "There are no skills yet.")


async def listed(library: "Library", query: str, *, archived: bool = False) -> "Sequence[ListedSkill]":
    if not query.strip():
        every = await library.listed(archived=archived)
        return [each for each in every if each.archived is archived]
    if archived:
        words = query.lower().split()
        every = await listed(library, "", archived=True)
        return [
            each for each in every if any(word in f"{each.name} {each.description}".lower() for word in words)
        ]
    counts = await library.usage_counts()
    found = await library.search(query, FOUND)
    return [replace(each, counts=counts.get(each.name, each.counts)) for each in found]


@skills.command()
@click.argument("name")
@click.option("--file", "file", default="", metavar="FILE", help="One of its files, and nothing else.")
@click.pass_obj
def show(options: Options, name: str, file: str) -> None:
    """Print the skill NAME as it is now. This does not count as a use."""
    from hone.cli.paint import paint_for
    from hone.cli.skill_text import heading, readable
    from hone.core.errors import Missing
    from hone.core.skill import DOCUMENT, UsageCounts
    from hone.knowledge.skills.facts import content_digest, digest_files, facts, split_facts

    async def act(hone: "Hone") -> "tuple[Files, UsageCounts, list[str]]":
        files, counts = await hone.library.files(name), await hone.library.usage_counts()
        return (
            files,
            counts.get(name, UsageCounts()),
            await hone.findings("skill", name, content_digest(files)),
        )

    files, tally, measured = _with(options, act)
    paths = sorted(split_facts(files)[0])
    wanted = file or DOCUMENT
    if wanted not in paths:
        raise Missing(f"{name} has no file {one_line(file, 100)!r}; it has {', '.join(paths)}.")
    text = readable(files[wanted])
    if text is None:
        raise Missing(f"{wanted} is not text ({len(files[wanted]):,} bytes).")
    if not file:
        head = heading(name, facts(files), tally, paint_for(sys.stdout), digest_files(files))
        click.echo("\n".join((*head, *measured, "")))
    click.echo(visible(text).rstrip("\n"))
    if not file and len(paths) > 1:
        click.echo("\n".join(("", "Files:", *(f"  {path}  {len(files[path]):,} bytes" for path in paths))))


@skills.command()
@click.argument("name")
@click.option("--from", "source", default="", metavar="FILE", help="Take this SKILL.md; - reads a pipe.")
@click.pass_obj
def new(options: Options, name: str, source: str) -> int:
    """Write the new skill NAME.

    The name says a class of task, such as release-notes. At a terminal your editor opens on a skeleton.
    """
    from hone.cli.typed import at_terminal
    from hone.core.skill import SkillOrigin
    from hone.knowledge.skills.document import parse, write_document
    from hone.knowledge.skills.folder import Create
    from hone.knowledge.skills.naming import check_class

    text = _taken(source) if source else write_document(check_class(name), DESCRIPTION, SKELETON)

    async def act(hone: "Hone") -> "tuple[Entry, Sequence[ListedSkill], Path]":
        near = await hone.library.find_similar(name, parse(text).description) if source else ()
        entry = await hone.keeper.edit_skill(name, Create(text, SkillOrigin.USER), _owner())
        return entry, near, _place(hone, name)

    entry, near, place = _with(options, act)
    if near:
        click.echo(f"Similar skills: {', '.join(each.name for each in near)}.", err=True)
    click.echo(f"{name} is written (change {entry.id}): {one_line(str(place), 500)}")
    return _edited(options, name, place) if at_terminal() and not source else 0


def _taken(source: str) -> str:
    from hone.cli.typed import read_piped
    from hone.core.errors import Refused
    from hone.knowledge.skills.document import decode

    if source == "-":
        return read_piped()
    try:
        data = Path(source).expanduser().read_bytes()
    except OSError as error:
        raise Refused(f"{source} cannot be read: {error.strerror}. Nothing was written.") from error
    return decode(source, data)


@skills.command(short_help="Open a skill in an editor, and take in what changed.")
@click.argument("name")
@click.pass_obj
def edit(options: Options, name: str) -> int:
    """Open the SKILL.md of NAME in your editor ($VISUAL, $EDITOR), and take in what you save."""
    from hone.core.errors import Refused
    from hone.core.skill import SkillOrigin
    from hone.knowledge.skills.facts import facts

    async def act(hone: "Hone") -> Path:
        known = facts(await hone.library.files(name))
        if known.origin is SkillOrigin.BUNDLED:
            raise Refused(f"{name} comes with Hone and stays as it is. Write your own: hone skills new NAME")
        if known.archived:
            raise Refused(f"{name} is archived. Take it out first: hone skills restore {name}")
        return _place(hone, name)

    return _edited(options, name, _with(options, act))


def _edited(options: Options, name: str, place: Path) -> int:
    """What the editor left, taken in. Gives the exit code."""
    from hone.cli.editor import edit

    edit(place)

    async def act(hone: "Hone") -> "Inspected":
        from hone.cli.inspecting import inspect
        from hone.files.tree import FileTree

        return await inspect(hone.keeper, FileTree(hone.home), name)

    found = _with(options, act)
    for problem in found.problems:
        click.echo(f"✗ {visible(problem)}", err=True)
    for entry in found.taken:
        click.echo(f"{name}: your edit is change {entry.id}. Take it back with: hone undo {entry.id}")
    if not found.taken and not found.problems:
        click.echo(f"{name}: nothing was changed.")
    return FAILED if found.problems else 0


@skills.command(short_help="Keep a skill first in the prompt and out of reviews.")
@click.argument("name")
@click.pass_obj
def pin(options: Options, name: str) -> None:
    """Keep NAME as it is: neither the review nor the curator changes it, and it is first in rank."""
    from hone.knowledge.skills.folder import Pin

    _shelve(options, name, Pin(), "is pinned")


@skills.command()
@click.argument("name")
@click.pass_obj
def unpin(options: Options, name: str) -> None:
    """Pin NAME no longer."""
    from hone.knowledge.skills.folder import Unpin

    _shelve(options, name, Unpin(), "is no longer pinned")


@skills.command()
@click.argument("name")
@click.pass_obj
def archive(options: Options, name: str) -> None:
    """Put NAME away: it is kept, and in no prompt and no list."""
    from hone.knowledge.skills.folder import Archive

    _shelve(options, name, Archive(), "is archived")


@skills.command()
@click.argument("name")
@click.pass_obj
def restore(options: Options, name: str) -> None:
    """Take NAME out of the archive."""
    from hone.knowledge.skills.folder import Restore

    _shelve(options, name, Restore(), "is back")


@skills.command()
@click.argument("name")
@click.pass_obj
def uninstall(options: Options, name: str) -> None:
    """Take away the skill NAME that was installed."""
    from hone.knowledge.skills.folder import Uninstall

    _shelve(options, name, Uninstall(), "is taken away")


@skills.command(short_help="Install a skill from a folder, an archive or a repository.")
@click.argument("source")
@click.option(
    "--path", "folder", default="", metavar="FOLDER", help="Where in the archive or repository it is."
)
@click.option("--ref", default="", metavar="NAME", help="The branch or tag of the repository.")
@click.option("--name", default="", help="Another name than its SKILL.md says.")
@click.option("--hash", "seal", default="", metavar="SHA256", help="Install these very bytes, or nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def install(options: Options, source: str, folder: str, ref: str, name: str, seal: str, yes: bool) -> int:
    """Install the skill in SOURCE: a folder, a zip or tar.gz archive, or the address of a git repository.

    What would be installed is shown first, and what is odd about it. What was shown is what is installed. If
    it is installed already and its bytes are others now, you see what changed and are asked again.
    """
    from hone.cli.installing import InstallOptions, installed

    return installed(options, InstallOptions(source, folder, ref, name, seal), yes=yes)


@skills.command(short_help="Show how a skill has changed.")
@click.argument("name")
@click.argument("change", type=int, required=False)
@click.pass_obj
def diff(options: Options, name: str, change: int | None) -> None:
    """Print how NAME has changed since it was made or installed, or what one CHANGE did to it."""
    from hone.cli import changes
    from hone.cli.inspecting import states
    from hone.cli.paint import paint_for
    from hone.core.ledger import skill
    from hone.knowledge.folding import steps

    made = steps(*_with(options, lambda hone: states(hone.library, name, change)))
    lines = changes.diff(skill(name), made, paint_for(sys.stdout))
    click.echo("\n".join(lines) or f"{name} is as it was at first.")


@skills.command()
@click.argument("name", required=False)
@click.pass_obj
def check(options: Options, name: str | None) -> int:
    """Look at the skills as they lie in Hone's home, all of them or NAME.

    What you have edited by hand is taken in. What cannot be used is named, with the reason; then the exit
    code is 1.
    """
    found, problems = _with(options, lambda hone: _inspected(hone, name))
    for each in found:
        for entry in each.taken:
            click.echo(
                f"{each.name}: your edit is change {entry.id}. Take it back with: hone undo {entry.id}"
            )
        problems = [*problems, *(f"{each.name}: {problem}" for problem in each.problems)]
    fine = sum(not each.problems for each in found)
    for problem in problems:
        click.echo(f"✗ {visible(problem)}")
    click.echo("1 skill is fine." if fine == 1 else f"{fine:,} skills are fine.")
    return FAILED if problems else 0


async def _inspected(hone: "Hone", name: str | None) -> "tuple[Sequence[Inspected], Sequence[str]]":
    from hone.cli.home import ledger_of
    from hone.cli.inspecting import Inspected, inspect, names
    from hone.core.ledger import skill
    from hone.files.tree import FileTree

    keeper, disk = ledger_of(hone), FileTree(hone.home)
    if name is None:
        known, problems = await names(keeper, disk)
        return [await inspect(keeper, disk, each) for each in known], problems
    await hone.library.files(name)
    is_kept = bool(await keeper.ledger.holding(skill(name)))
    return [await inspect(keeper, disk, name) if is_kept else Inspected(name)], ()


def _shelve(options: Options, name: str, edit: "Edit", done: str) -> None:
    async def act(hone: "Hone") -> "Entry":
        await hone.library.files(name)
        return await hone.keeper.edit_skill(name, edit, _owner())

    entry = _with(options, act)
    click.echo(f"{name} {done}. Take it back with: hone undo {entry.id}")


def _place(hone: "Hone", name: str) -> Path:
    from hone.core.ledger import skill
    from hone.core.skill import DOCUMENT
    from hone.knowledge.places import folder_of

    return hone.home / folder_of(skill(name)) / DOCUMENT


def _owner() -> "Author":
    from hone.knowledge.keeper import OWNER

    return OWNER


def _with(options: Options, act: "Callable[[Hone], Awaitable[Result]]") -> Result:
    from hone.cli.home import with_home

    return with_home(options, act)
