"""Write Hone's entry into the configuration of another program, and remove it again.

The old bytes are kept next to the file. Removing the entry restores them if nothing else has changed since,
and otherwise removes only the entry.
"""

import os
import stat
from pathlib import Path

from msgspec import Struct

from hone.core.errors import Conflict, Refused, StoreError
from hone.core.visible import visible
from hone.features.mcp.server.config_text import Entry
from hone.features.mcp.server.programs import NAME, Program
from hone.files.atomic import draft, make_folder, open_file, settle, sync, write

BACKUP = ".before-hone"
LARGEST = 64 * 1024 * 1024


class FilePlan(Struct, frozen=True):
    """The new content of a file: None stands for no file. `kept` are the bytes to keep next to it."""

    path: Path
    before: bytes | None
    after: bytes | None
    kept: bytes | None = None


def plan_install(program: Program, entry: Entry) -> FilePlan:
    """Return what installing would do; nothing if the entry is there. Raises Refused."""
    path = _real(program)
    before = _read(path)
    text = _text(path, before)
    try:
        found = program.form.find(text, program.table, NAME)
        after = before if found == entry else program.form.put(text, program.table, NAME, entry).encode()
    except ValueError as error:
        raise Refused(
            f"{visible(str(path))} cannot be changed safely: {error}. Add the lines yourself."
        ) from error
    return FilePlan(path, before, after, before if found is None else _read(_backup(path)))


def plan_removal(program: Program) -> FilePlan:
    """Return what removing the entry would do. Raises Refused if it is not there."""
    path = _real(program)
    before = _read(path)
    text = _text(path, before)
    try:
        entry = program.form.find(text, program.table, NAME)
        if before is None or entry is None:
            raise Refused(f"Hone is not set up in {visible(str(path))}; nothing was changed.")
        kept = _read(_backup(path))
        if program.form.put(_text(path, kept), program.table, NAME, entry).encode() == before:
            return FilePlan(path, before, kept)
        return FilePlan(path, before, program.form.take(text, program.table, NAME).encode())
    except ValueError as error:
        raise Refused(
            f"{visible(str(path))} cannot be changed safely: {error}. Remove the entry {NAME} yourself."
        ) from error


def apply(plan: FilePlan) -> None:
    """Execute a plan. Raises Conflict if the file has changed since, StoreError if that fails."""
    try:
        make_folder(plan.path.parent)
        if _read(plan.path) != plan.before:
            raise Conflict(f"{visible(str(plan.path))} has changed meanwhile; try again.")
        _keep(_backup(plan.path), plan.kept)
        if plan.after is None:
            plan.path.unlink(missing_ok=True)
        elif plan.after != plan.before:
            _replace(plan.path, plan.after)
    except OSError as error:
        raise StoreError(f"{visible(str(plan.path))} cannot be written: {error.strerror}.") from error


def _replace(path: Path, data: bytes) -> None:
    """Rewrite a file, keeping its permissions."""
    with draft(path.parent) as (file, new):
        file.write(data)
        if path.exists():
            os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
        sync(file)
        new.replace(path)
    settle(path)


def _keep(path: Path, kept: bytes | None) -> None:
    if kept is None:
        path.unlink(missing_ok=True)
    else:
        write(path, kept)


def _real(program: Program) -> Path:
    """Return the file itself, if the owner keeps it elsewhere."""
    return Path(os.path.realpath(program.path()))


def _backup(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def _read(path: Path) -> bytes | None:
    try:
        with open_file(path) as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{visible(str(path))} cannot be read: {error.strerror}.") from error
    if len(data) > LARGEST:
        raise Refused(f"{visible(str(path))} is too large to be changed.")
    return data


def _text(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        raise Refused(f"{visible(str(path))} is not text in UTF-8; add the lines yourself.") from None
