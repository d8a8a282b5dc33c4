"""Install a skill: fetch it, scan it, show it, and write it only after the owner agrees."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from hone.cli.changes import diff
from hone.cli.context import with_home
from hone.cli.options import FAILED, Options, confirm
from hone.cli.render import paint_for
from hone.cli.skill_text import report, secrets
from hone.core.errors import Refused
from hone.core.ledger import skill
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
from hone.knowledge.skills.source_tree import pick

ALONE = "Nobody can be asked here: say --yes."


def installed(options: Options, plan: InstallPlan, source: str, seal: str, *, yes: bool) -> int:
    """`seal` is the digest it must have, if one was given."""
    if kept := list(secrets(plan)):
        raise Refused(
            f"Nothing was installed: there seem to be secrets in {', '.join(kept)}. Take them out first."
        )
    made = digest_files(plan.files)
    if seal and seal.lower() != made:
        raise Refused(f"Nothing was installed: these are other bytes than {seal}; theirs is {made}.")
    before = with_home(options, lambda hone: hone.keeper.files(skill(plan.name)))
    known = facts(before) if before else None
    is_installed = known and (known.origin is SkillOrigin.INSTALLED or is_copy(known, SkillOrigin.INSTALLED))
    old = before if is_installed else {}
    if known and old and not known.archived and digest_files(old) == made:
        click.echo(f"{plan.name} is installed already, with these very bytes.")
        return 0
    click.echo("\n".join((*report(plan, source), f"sha256 {made}", *_changed(plan, old))))
    if not confirm(f"{'Replace' if old else 'Install'} {plan.name}?", ALONE, yes=yes):
        click.echo("Nothing was installed.")
        return FAILED
    edit = Install(plan.files, source)
    entry = with_home(options, lambda hone: hone.keeper.edit_skill(plan.name, edit, OWNER))
    click.echo(
        f"{plan.name} is installed (change {entry.id}). Take it away with: hone skills uninstall {plan.name}"
    )
    return 0


def _changed(plan: InstallPlan, old: Files) -> Iterator[str]:
    if old:
        yield "It is installed already; this would change:"
        yield from diff(skill(plan.name), steps(split_facts(old)[0], plan.files), paint_for(sys.stdout))


def fetched(source: str, folder: str, ref: str, name: str) -> tuple[InstallPlan, str]:
    """What would be installed, and where it comes from: the skill in the `folder` of a source, as of `ref`,
    under a name. Raises Refused."""
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
        f"{one_line(source, 200)} does not exist. Name a folder, an archive, or a repository as "
        "https://…, ssh://… or file://…"
    )
