"""`hone skills sync` and `hone skills export`: share a skill with other agents and with people."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from msgspec import Struct

from hone.app import Hone
from hone.cli.changes import diff
from hone.cli.context import in_home, with_home, writable_keeper
from hone.cli.options import FAILED, Options, at_terminal, complete, confirm
from hone.cli.output import echo
from hone.cli.render import paint_for
from hone.core.errors import Missing, Refused
from hone.core.ledger import COPY, SECTION, USER, Target
from hone.core.skill import DOCUMENT
from hone.core.visible import one_line
from hone.features.sharing.grants import Grant, find_grants
from hone.features.sharing.leaks import Leak, find_leaks
from hone.features.sharing.packing import pack, save
from hone.features.sharing.rendering import find_target, render_folder, render_section
from hone.files.exports import note_export
from hone.knowledge import journal, places
from hone.knowledge.folding import Files, steps
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.document import decode
from hone.knowledge.skills.facts import digest_files, facts, split_facts

ALONE = "Nobody can be asked here: say --yes."


class Share(Struct, frozen=True):
    """What would be written, and which questions it raises."""

    target: Target
    files: Files
    before: Files
    grants: Sequence[Grant] = ()
    leaks: Sequence[Leak] = ()
    left: Sequence[str] = ()


@click.command(short_help="Write a skill where another agent reads it.")
@click.argument("name", required=False, shell_complete=complete("skills"))
@click.option("--to", "agents", multiple=True, metavar="claude-code|codex|agents-md[:PATH]", help="For whom.")
@click.option("--keep", multiple=True, metavar="KEY", help="Leave this grant in: allowed-tools, command-1 …")
@click.option("--leaks-ok", is_flag=True, help="Write paths and names into AGENTS.md although they show.")
@click.option("--remove", is_flag=True, help="Take away what was written there.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def sync(
    options: Options,
    name: str | None,
    agents: tuple[str, ...],
    keep: tuple[str, ...],
    leaks_ok: bool,
    remove: bool,
    yes: bool,
) -> int:
    """Write the skill NAME where another agent reads it; without a NAME, list what was written.

    claude-code is ~/.claude/skills, codex is ~/.agents/skills, agents-md is a section of AGENTS.md in this
    folder or at PATH. You see what would be written first. Nothing that a person wrote is touched. What
    would grant the other agent something is left out unless you keep it. Each copy is a change: hone undo
    takes it back.
    """
    if name is None:
        echo(with_home(options, _list))
        return 0
    if not agents:
        raise click.UsageError("Say for whom: --to claude-code, --to codex or --to agents-md.")
    chosen = name
    done = [_share(options, chosen, to, keep, leaks_ok=leaks_ok, remove=remove, yes=yes) for to in agents]
    return 0 if all(done) else FAILED


def _share(
    options: Options, name: str, to: str, keep: Sequence[str], *, leaks_ok: bool, remove: bool, yes: bool
) -> bool:
    share = with_home(options, lambda hone: _plan(hone, name, to, keep, remove=remove))
    kept = {*keep, *(() if yes or remove else _ask_grants(share.grants, keep))}
    if kept != set(keep):
        share = with_home(options, lambda hone: _plan(hone, name, to, sorted(kept), remove=remove))
    echo(_show(share, kept))
    if any(leak.kind == "secret" for leak in share.leaks):
        raise Refused(f"{name} holds a secret. Nothing was written: take it out first.")
    if share.leaks and yes and not leaks_ok:
        raise Refused(
            "Nothing was written: this shows paths or names. Say --leaks-ok if everybody may see them."
        )
    verb = "Take this away?" if remove else "Write this?"
    if not confirm(verb, ALONE, yes=yes):
        click.echo("Nothing was written.")
        return False
    return with_home(options, lambda hone: _write(hone, share))


async def _plan(hone: Hone, name: str, to: str, kept: Sequence[str], *, remove: bool) -> Share:
    """Return the plan. Raises Refused if a person wrote what is there."""
    target = find_target(to, name, hone.folder)
    keeper = writable_keeper(hone)
    async with keeper.lock():
        before = await keeper.sync(target)
    if remove:
        if not before:
            raise Missing(f"Hone wrote nothing to {one_line(places.folder_of(target), 300)}.")
        return Share(target, {}, before)
    held = await hone.library.files(name)
    if facts(held).archived:
        raise Refused(f"{name} is archived. Take it out first: hone skills restore {name}")
    grants = find_grants(decode(DOCUMENT, held[DOCUMENT]))
    if not target.startswith(SECTION):
        return Share(target, render_folder(held, kept), before, grants)
    files = render_section(held)
    text = "".join(each.decode() for each in files.values())
    leaks = find_leaks(text, journal.entries(await keeper.text(USER)))
    left = sorted(set(split_facts(held)[0]) - {DOCUMENT})
    return Share(target, files, before, (), leaks, left)


def _ask_grants(grants: Sequence[Grant], keep: Sequence[str]) -> Iterator[str]:
    """Ask about each grant separately. If nobody is there, the answer is no."""
    for grant in grants if at_terminal() else ():
        if grant.key not in keep and click.confirm(f"{_line(grant)}. Keep it?"):
            yield grant.key


def _line(grant: Grant) -> str:
    return f"{grant.key}: {one_line(grant.text, 200)} ({grant.effect})"


def _show(share: Share, kept: set[str]) -> Iterator[str]:
    yield f"In {one_line(places.folder_of(share.target), 300)}:"
    yield from diff(share.target, steps(share.before, share.files), paint_for(sys.stdout))
    for grant in share.grants:
        yield f"{'Kept' if grant.key in kept else 'Left out'}: {_line(grant)}"
    if share.left:
        yield f"Not in the section: {one_line(', '.join(share.left), 300)}"
    if share.leaks:
        yield "Everybody who reads this file sees:"
        yield from (f"  {leak.kind}: {one_line(leak.text, 200)}" for leak in share.leaks)


async def _write(hone: Hone, share: Share) -> bool:
    keeper = writable_keeper(hone)
    entry = await keeper.share(share.target, share.files, OWNER)
    place = one_line(places.folder_of(share.target), 300)
    if entry is None:
        click.echo(f"{place} is as it should be.")
    else:
        done = "is written" if share.files else "is taken away"
        click.echo(f"{place} {done} (change {entry.id}). Take it back with: hone undo {entry.id}")
    return True


async def _list(hone: Hone) -> list[str]:
    """List what was written for others, and whether the skill has changed since."""
    ledger = writable_keeper(hone).ledger
    held = {**await ledger.held_below(COPY), **await ledger.held_below(SECTION)}
    names = {each.name for each in await hone.library.listed()}
    rows = []
    for target in sorted(held):
        name = places.name_of(target)
        gone = "" if name in names else "  (the skill is gone: hone skills sync NAME --to … --remove)"
        rows.append(f"{name}  {one_line(places.folder_of(target), 300)}{gone}")
    return rows or [
        "No skill was written for another agent. Write one: hone skills sync NAME --to claude-code"
    ]


@click.command(short_help="Save a skill as an archive in the open format.")
@click.argument("name", shell_complete=complete("skills"))
@click.argument("file", type=click.Path(path_type=Path))
@in_home
async def export(hone: Hone, name: str, file: Path) -> str:
    """Save the skill NAME to FILE, a zip archive that ends with .skill or .zip.

    The same skill gives the same bytes. Take it back with hone skills install FILE.
    """
    held = split_facts(await hone.library.files(name))[0]
    save(file, pack(name, held))
    note_export(hone.home, file)
    return f"{name} is saved to {one_line(str(file), 300)}, sha256 {digest_files(held)} of its files."
