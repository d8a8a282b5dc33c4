"""`hone pull` and `hone push`: edit journal and skills as files where a database elsewhere serves them."""

from collections.abc import Iterator
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import in_home, writable_keeper
from hone.cli.options import FAILED
from hone.cli.output import echo, number_of, to_json
from hone.core.visible import one_line, visible
from hone.features.checkouts.opening import find_folder, open_checkout
from hone.features.checkouts.values import SyncAction, SyncReport

FOLDER = click.argument("folder", type=click.Path(path_type=Path), required=False)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
SHOWN = 20


@click.command(short_help="Write journal and skills to a folder, to edit them there.")
@FOLDER
@DRY_RUN
@JSON
@in_home
async def pull(hone: Hone, folder: Path | None, *, dry_run: bool, as_json: bool) -> int:
    """Write the journal and the active skills to FOLDER, or bring the files there up to date.

    \b
      hone pull ~/hone-files
      hone push ~/hone-files

    What you edited there stays, merged with what was learned meanwhile; hone push records it. Without FOLDER
    it is the checkout that you are in, or else Hone's home. This is for a database elsewhere: with SQLite the
    files in Hone's home are always up to date.
    """
    writable_keeper(hone)
    place = find_folder(hone, folder)
    report = await open_checkout(hone, place, make=True, dry_run=dry_run).pull(dry_run=dry_run)
    echo(
        [_to_json(place, report, dry_run=dry_run)] if as_json else _tell_pull(place, report, dry_run=dry_run)
    )
    return FAILED if report.problems else 0


@click.command(short_help="Record what you edited in a folder that hone pull wrote.")
@FOLDER
@DRY_RUN
@JSON
@in_home
async def push(hone: Hone, folder: Path | None, *, dry_run: bool, as_json: bool) -> int:
    """Record what you edited in FOLDER, merged with what was learned since you pulled.

    Each file of the journal and each skill is one change of yours: hone log lists it, hone undo undoes it.
    A file that is missing removes nothing. What cannot be recorded stays in FOLDER as it is, with the reason.
    """
    writable_keeper(hone)
    place = find_folder(hone, folder)
    report = await open_checkout(hone, place, make=False).push(dry_run=dry_run)
    echo(
        [_to_json(place, report, dry_run=dry_run)] if as_json else _tell_push(place, report, dry_run=dry_run)
    )
    return FAILED if report.problems else 0


def _tell_pull(place: Path, report: SyncReport, *, dry_run: bool) -> Iterator[str]:
    yield from _tell_files(report)
    shown = visible(str(place))
    if not report.actions and not report.upto:
        yield "Nothing is known yet. Write MEMORY.md, USER.md or skills/NAME/SKILL.md there, then push:"
        yield f"hone push {shown}"
    elif not report.actions:
        yield f"{shown} is up to date (change {report.upto})."
    else:
        count = number_of(len(report.actions), "file")
        yield f"{'Would change' if dry_run else 'Changed'} {count} in {shown} (change {report.upto})."
    if report.edited:
        yield f"{number_of(len(report.edited), 'file')} with edits of yours: hone push {shown}"


def _tell_push(place: Path, report: SyncReport, *, dry_run: bool) -> Iterator[str]:
    yield from _tell_files(report)
    changes = list(dict.fromkeys(each.change for each in report.actions if each.change))
    if dry_run and report.actions:
        yield f"Would record {number_of(len(report.actions), 'file')}. Nothing was changed."
    elif changes:
        yield f"Undo with: hone undo {' or '.join(map(str, changes[:3]))}"
    elif not report.problems:
        yield f"There is nothing to push from {visible(str(place))}."
    if report.waiting:
        yield f"{number_of(report.waiting, 'file')} newer in the database: hone pull {visible(str(place))}"


def _tell_files(report: SyncReport) -> Iterator[str]:
    for each in report.actions[:SHOWN]:
        what = f"recorded as change {each.change}" if each.change else each.action
        yield f"{visible(each.place)}: {'to be recorded' if what == SyncAction.RECORDED else what}"
    if report.actions[SHOWN:]:
        yield f"… and {number_of(len(report.actions) - SHOWN, 'file')} more"
    yield from (visible(each) for each in report.notices)
    yield from (f"✗ {one_line(visible(each), 500)}" for each in report.problems)


def _to_json(place: Path, report: SyncReport, *, dry_run: bool) -> str:
    return to_json(
        {
            "folder": str(place),
            "upto": report.upto,
            "dry_run": dry_run,
            "files": [
                {"file": each.place, "action": each.action.name.lower(), "change": each.change}
                for each in report.actions
            ],
            "edited": report.edited,
            "waiting": report.waiting,
            "notices": report.notices,
            "problems": report.problems,
        }
    )
