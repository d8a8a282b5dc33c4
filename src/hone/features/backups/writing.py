"""Make a backup of a home, and check one."""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import apsw
from msgspec import Struct

from hone import __version__
from hone.core.errors import Refused, StoreError
from hone.core.holding import Holding
from hone.core.visible import visible
from hone.features.backups.archive import Report, check_archive, open_archive, write_archive
from hone.features.backups.collecting import NO_ROOM, check_database, collect
from hone.features.backups.staging import open_stage, sweep_stages
from hone.features.backups.values import (
    FORMAT,
    BackupManifest,
    BackupMember,
    check_manifest,
    is_database,
)
from hone.files.atomic import create_file, settle
from hone.stores.database import MIGRATIONS, plainly

PREFIX = ".hone-backup-"
UNLINKABLE = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""Errors by which a file system says that it does not support hard links."""


class WrittenBackup(Struct, frozen=True):
    """A backup that was written and read back. `size` is that of the file."""

    manifest: BackupManifest
    size: int
    notes: tuple[str, ...]


def write_backup(
    home: Path,
    holdings: Sequence[Holding],
    file: Path,
    now: datetime,
    report: Report,
    *,
    force: bool,
    address: str = "",
) -> WrittenBackup:
    """Write a backup of a home to a file, which gets its name when it is complete and was read back.
    `address` is that of its remote database. Raises Refused or StoreError; then nothing was written, and an
    existing file is unchanged."""
    home, folder = Path(os.path.realpath(home)), Path(os.path.realpath(file.parent))
    target = folder / file.name
    _check_target(home, target, force=force)
    with _plainly(target):
        sweep_stages(folder, PREFIX)
        with open_stage(folder, PREFIX) as stage:
            found = collect(home, holdings, stage / "home", report, address)
            left = (*found.left_out, *found.notes)
            manifest = BackupManifest(
                FORMAT, __version__, now.isoformat(timespec="seconds"), found.schema, found.members, left
            )
            draft = stage / "backup"
            with open(create_file(draft), "wb") as archive:
                write_archive(manifest, stage / "home", archive, report)
            size = draft.stat().st_size
            check_archive(draft, report)
            _publish(draft, target, force=force)
            settle(target)
    return WrittenBackup(manifest, size, found.notes)


def verify_backup(file: Path, report: Report) -> tuple[BackupManifest, int]:
    """Read a backup, compare it with its manifest and check its databases. Return its manifest and the size
    of the file. Raises StoreError, Corrupt if it is damaged, Refused if it is too new."""
    with TemporaryDirectory(prefix=PREFIX) as name, open_archive(file) as archive:
        manifest = archive.manifest
        check_manifest(manifest, len(MIGRATIONS), visible(str(file)))
        databases = [each.path for each in manifest.members if is_database(each.path)]
        check_room(Path(name), sum(each.size for each in manifest.members if each.path in databases))

        def place(path: str) -> Path:
            return Path(name, f"{databases.index(path)}.db")

        def open_sink(member: BackupMember) -> BinaryIO | None:
            return open(create_file(place(member.path)), "wb") if member.path in databases else None

        archive.read(open_sink, report)
        for path in databases:
            check_database_at(place(path), Path(path))
    return manifest, file.stat().st_size


def check_room(folder: Path, size: int) -> None:
    """Raise StoreError if this many bytes do not fit into a folder."""
    free = shutil.disk_usage(folder).free
    if size > free:
        raise StoreError(
            f"This takes {size / 1e6:,.1f} MB in {visible(str(folder))}, and {free / 1e6:,.1f} MB are free. "
            "Make room and try again."
        )


def check_database_at(path: Path, name: Path) -> None:
    """Raise Corrupt unless SQLite finds no damage; `name` is the name in the error."""
    with plainly(name):
        connection = apsw.Connection(str(path))
        try:
            check_database(connection, name)
        finally:
            connection.close()


def _check_target(home: Path, target: Path, *, force: bool) -> None:
    name = visible(str(target))
    if not home.is_dir():
        raise Refused(f"There is no home at {visible(str(home))}, so there is nothing to back up.")
    if target.is_dir():
        raise Refused(f"{name} is a folder. Name a file in it: hone backup {name}/hone-backup.tar.gz")
    if target.is_relative_to(home):
        raise Refused(f"{name} lies in the home, and would be lost together with it. Name a file elsewhere.")
    if os.path.lexists(target) and not force:
        raise Refused(f"{name} is there already and was left as it is. Name another file, or say --force.")


def _publish(draft: Path, target: Path, *, force: bool) -> None:
    if force:
        draft.replace(target)
        return
    try:
        os.link(draft, target)
    except FileExistsError:
        raise Refused(f"{visible(str(target))} was written by somebody else meanwhile and stays.") from None
    except OSError as error:
        if error.errno not in UNLINKABLE or os.path.lexists(target):
            raise
        draft.replace(target)  # a USB stick, for example


@contextmanager
def _plainly(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(NO_ROOM) from error
        raise StoreError(
            f"{visible(str(target))} cannot be written: {error.strerror}. Nothing was written."
        ) from error
