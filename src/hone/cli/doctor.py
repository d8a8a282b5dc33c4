"""`hone doctor`: check the installation, show what is in effect, and say how to fix what is missing."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.options import FAILED, Options
from hone.cli.output import echo_prose
from hone.cli.searching import describe_search
from hone.cli.steering import describe_hooks
from hone.core.errors import HoneError, Refused, SettingsError
from hone.core.loading import import_object
from hone.core.visible import visible
from hone.knowledge import places
from hone.runtime.provenance.trusting import find_fault
from hone.settings import home_folder
from hone.stores.damage import DamageKind, advise
from hone.stores.home import FILE
from hone.stores.keys import examine_keys
from hone.stores.maintenance import MEMORIES, examine_home, repair_home
from hone.stores.repair import Rebuilt

SERVER = "hone.stores.postgres.examine:describe_server"
ADVISE = "hone.stores.postgres.examine:advise"
"""Imported if the database is remote."""
WITHOUT = ": does not hold"
"""What the sandbox reports about a method that was not chosen."""


@click.command(short_help="Check the home folder, the model and the sandbox.")
@click.option("--deep", is_flag=True, help="Compare everything that is stored with what was written.")
@click.option("--repair", is_flag=True, help="Rebuild lost indexes; save what can be read of lost text.")
@click.pass_obj
def doctor(options: Options, *, deep: bool, repair: bool) -> int:
    """Check the home folder, the model and the sandbox, and say what to do about what is missing.

    With --deep, read everything and compare it: rows with their indexes, messages and skills with their
    digests, conversations with their chains, files with the ledger. It changes nothing. Each finding is lost
    text, a lost index, which can be rebuilt, or cosmetic.

    With --repair, rebuild lost indexes in place. If text is lost, save what can be read to a copy, say what
    is gone, and use the copy from then on; the damaged file stays beside it under another name. No other
    process may have the home open.
    """
    steps = mended(options) if repair else examine(options, deep=deep)

    async def act() -> bool:
        well = True
        async for fine, line in steps:
            well = well and fine
            echo_prose([f"{mark(line, fine=fine)} {visible(line)}"])
        return well

    return 0 if asyncio.run(act()) else FAILED


def mark(line: str, *, fine: bool) -> str:
    """Return the sign before a line. An optional check that fails is neither right nor wrong."""
    return ("·" if WITHOUT in line else "✓") if fine else "✗"


async def examine(options: Options, *, deep: bool = False) -> AsyncIterator[tuple[bool, str]]:
    """Yield the findings, line by line, and whether all is well."""
    async with Hone(home=options.home, learning="queue") as hone:
        async for found in examine_hone(hone, options.model, deep=deep):
            yield found


async def examine_hone(hone: Hone, model: str, *, deep: bool = False) -> AsyncIterator[tuple[bool, str]]:
    """Check an open home."""
    yield _home(hone.home)
    if found_keys := examine_keys(hone.home):
        yield found_keys
    if hone.settings.database:
        for found in await _describe_server(hone):
            yield found
    if deep:
        async for found in _stored(hone):
            yield found
        return
    try:
        count = len(await hone.sessions.list(None, None))
        yield True, f"sessions: {count} can be listed"
    except HoneError as error:
        yield False, f"sessions: {error}"
    try:
        session = await hone.session(model)
        yield True, f"model: {session.agent.prefix.model}"
    except HoneError as error:
        yield False, f"model: {str(error).splitlines()[0]}"
    if unreadable := find_fault(hone.home):
        yield False, f"provenance: {unreadable} Until then everything counts as foreign."
    if search := describe_search(hone.settings):
        yield True, search
    trusted = "trusted" if hone.folders.trusts(hone.folder) else "not trusted; see hone trust --help"
    yield True, f"folder: {hone.folder} is {trusted}"
    for line in describe_hooks(hone.settings.hooks, hone.folder, hone.permissions.approvals.files):
        yield True, line
    held, lines = await hone.sandbox()
    for number, line in enumerate(lines):
        yield held or number > 0, line


async def _describe_server(hone: Hone) -> list[tuple[bool, str]]:
    try:
        lines: list[tuple[bool, str]] = await import_object(SERVER)(hone.settings.database)
    except HoneError as error:
        return [(False, f"database: {error}")]
    return lines


async def _stored(hone: Hone) -> AsyncIterator[tuple[bool, str]]:
    address = hone.settings.database
    if not address and not (hone.home / FILE).exists():
        yield True, "database: nothing is stored yet"
        return
    found = await examine_home(hone.home, address)
    for file, damages in found.items():
        for damage in damages:
            yield damage.kind is DamageKind.COSMETIC, f"{_name(file)}: {damage}"
    if any(damage.kind is not DamageKind.COSMETIC for damage in found.get(MEMORIES, ())):
        yield False, f"hone doctor --repair does not repair {MEMORIES}. Restore it from a backup."
    if lost := found[FILE]:
        cosmetic = all(damage.kind is DamageKind.COSMETIC for damage in lost)
        yield cosmetic, (import_object(ADVISE) if address else advise)(lost)
        if not cosmetic:
            return
    yield True, "database: every message, change and row is what was written"
    if address:
        yield True, "files: journal and skills are read from the database; to edit them as files: hone pull"
    else:
        async for line in _compare_files(hone):
            yield line
    for check in await hone.checks():
        yield check


async def _compare_files(hone: Hone) -> AsyncIterator[tuple[bool, str]]:
    """Compare the published files with the ledger."""
    keeper, same, edited = hone.keeper, 0, 0
    for target in await keeper.ledger.held_below(""):
        if places.is_outside(target):
            continue  # it has no file here
        try:
            quiet = await keeper.is_in_sync(target)
        except HoneError as error:
            yield False, f"files: {error}"
            continue
        same, edited = same + quiet, edited + (not quiet)
    changed = f"; {edited:,} changed by hand; Hone merges them when it next reads them" if edited else ""
    yield True, f"files: journal and skills match the ledger ({same:,} checked){changed}"


def _name(file: str) -> str:
    return "database" if file == FILE else file


async def mended(options: Options) -> AsyncIterator[tuple[bool, str]]:
    """Yield what was saved and what is lost."""
    home = options.home or home_folder()
    with suppress(SettingsError):  # a home with such settings can be repaired
        if Hone(home=home).settings.database:
            raise Refused(
                "hone doctor --repair works on hone.db only. For PostgreSQL: hone doctor --deep says what is "
                "damaged and what to do."
            )
    made = await repair_home(home, datetime.now().astimezone())
    if made is None:
        yield True, "database: nothing is damaged; nothing was changed"
        return
    if isinstance(made, Rebuilt):
        for part in made.parts:
            yield True, f"rebuilt in place: {part}"
        yield True, "Nothing that was said or learned is lost."
        return
    for name, count in made.counts.items():
        gone = "nobody can say how many are gone" if count.gone is None else f"{count.gone:,} gone"
        yield True, f"{name}: {count.saved:,} saved, {gone}"
    if made.parts:
        begin = "session begins" if made.parts == 1 else "sessions begin"
        yield True, f"{made.parts:,} more {begin} where messages are gone"
    if made.doubtful:
        rows = "row was" if made.doubtful == 1 else "rows were"
        yield (
            True,
            f"{made.doubtful:,} {rows} stored twice with different contents; Hone cannot tell which is right",
        )
    for target in made.cut:
        yield True, f"{target}: earlier changes can no longer be undone"
    for line in made.left:
        yield False, f"database: {line}"
    yield True, f"The damaged database is kept as {made.kept}"


def _home(home: Path) -> tuple[bool, str]:
    if not home.exists():
        return True, f"home: {home} is created with the first message"
    mode = home.stat().st_mode & 0o077
    if mode:
        return False, f"home: {home} can be entered by others; close it with: chmod 700 {home}"
    if not os.access(home, os.W_OK):
        return False, f"home: {home} cannot be written; conversations are not kept"
    return True, f"home: {home}"
