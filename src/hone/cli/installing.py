"""Install a skill: fetch it, scan it, show it, and write it only after the owner agrees."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.changes import diff
from hone.cli.context import with_home
from hone.cli.options import FAILED, Options, confirm
from hone.cli.render import paint_for
from hone.cli.skill_text import report, secrets
from hone.core.errors import Refused
from hone.core.ledger import Entry, skill
from hone.core.secrets import mask_password
from hone.core.skill import SkillOrigin
from hone.core.visible import one_line
from hone.knowledge.folding import Files, steps
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills import git
from hone.knowledge.skills.archive import open_archive
from hone.knowledge.skills.facts import digest_files, facts, is_copy, split_facts
from hone.knowledge.skills.folder import Install
from hone.knowledge.skills.install import InstallPlan, plan_folder
from hone.knowledge.skills.source_tree import SourceTree, find_fault, pick

SERVER = "mcp:"
ALONE = "Hone cannot ask here. Add --yes."


def installed(options: Options, plan: InstallPlan, source: str, seal: str, *, yes: bool) -> int:
    """`seal` is the digest it must have, if one was given."""
    if kept := list(secrets(plan)):
        raise Refused(
            f"Nothing was installed: there seem to be secrets in {', '.join(kept)}. Remove them first."
        )
    made = digest_files(plan.files)
    if seal and seal.lower() != made:
        raise Refused(f"Nothing was installed: the digest is {made}, not {seal}.")
    before = with_home(options, lambda hone: hone.keeper.files(skill(plan.name)))
    known = facts(before) if before else None
    is_installed = known and (known.origin is SkillOrigin.INSTALLED or is_copy(known, SkillOrigin.INSTALLED))
    old = before if is_installed else {}
    if known and old and not known.archived and digest_files(old) == made:
        click.echo(f"{plan.name} is already installed, byte for byte.")
        return 0
    click.echo("\n".join((*report(plan, source), f"sha256 {made}", *_changed(plan, old))))
    if not confirm(f"{'Replace' if old else 'Install'} {plan.name}?", ALONE, yes=yes):
        click.echo("Nothing was installed.")
        return FAILED
    edit = Install(plan.files, source)

    async def install(hone: Hone) -> Entry:
        made = await hone.keeper.edit_skill(plan.name, edit, OWNER)
        await hone.library.settle_checks()
        return made

    entry = with_home(options, install)
    click.echo(
        f"{plan.name} is installed (change {entry.id}). Remove it with: hone skills uninstall {plan.name}"
    )
    return 0


def _changed(plan: InstallPlan, old: Files) -> Iterator[str]:
    if old:
        yield "It is already installed. This would change:"
        yield from diff(skill(plan.name), steps(split_facts(old)[0], plan.files), paint_for(sys.stdout))


def fetched(options: Options, source: str, folder: str, ref: str, name: str) -> tuple[InstallPlan, str]:
    """Return what would be installed, and its source: the skill in the `folder` of a source, as of `ref`,
    under a name. Raises Refused."""
    if source.startswith(SERVER):
        return _fetch_from_server(options, source, folder, name)
    if url := git.address(source):
        with git.fetch(url, ref) as (tree, commit):
            place = f" in {folder}" if folder else ""
            return pick(tree, folder, name), f"{mask_password(url)} at {commit[:12]}{place}"
    path = Path(source).expanduser()
    if path.is_dir():
        return plan_folder(path / folder, name), str((path / folder).resolve())
    if path.is_file():
        return pick(open_archive(path), folder, name), str(path.resolve())
    raise click.UsageError(
        f"{one_line(source, 200)} does not exist. Name a folder, an archive, a repository as https://…, "
        "ssh://… or file://…, or an MCP server as mcp:NAME."
    )


def _fetch_from_server(options: Options, source: str, folder: str, name: str) -> tuple[InstallPlan, str]:
    async def fetch(hone: Hone) -> Mapping[str, bytes] | None:
        for part in hone.parts("fetch_skill"):
            if (files := await part.fetch_skill(source, folder)) is not None:
                return files
        return None

    files = with_home(options, fetch)
    if files is None:
        raise Refused("This installation of Hone has no MCP.")
    faults = {path: fault for path in files if (fault := find_fault(path))}
    sizes = {path: len(data) for path, data in files.items() if path not in faults}
    tree = SourceTree(sizes, faults, lambda paths: {path: files[path] for path in paths})
    return pick(tree, "", name), f"{source}/{folder}" if folder else source
