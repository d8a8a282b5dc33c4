"""Copy the files of a home into a stage while others write to it.

The moment of a backup is when a read transaction on hone.db begins, under the lock of the home. Journal and
skills are copied under the same lock, so they agree with the ledger. Other databases and files are copied
later: what they have is at least as new.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

import apsw
from msgspec import Struct

from hone.core.documents import KINDS, is_document
from hone.core.errors import Corrupt, StoreError
from hone.core.holding import Backup, Holding
from hone.core.loading import import_object
from hone.core.visible import visible
from hone.features.backups.archive import PIECE, Report, hash_file
from hone.features.backups.settings_text import remove_secrets
from hone.features.backups.staging import make_place
from hone.features.backups.values import (
    LEDGER_FILES,
    LOCKS,
    SETTINGS,
    BackupMember,
    find_holding,
    is_beside_database,
    is_database,
    is_path,
    top_of,
)
from hone.files.atomic import create_file, is_draft, open_file
from hone.files.documents import FileDocuments
from hone.files.tree import LOCK, FileTree
from hone.stores.database import PATIENCE, connect, create, plainly
from hone.stores.home import FILE

NO_ROOM = "There is no space left for the backup. Nothing was written; make room and try again."
PIN_ROWS = "hone.features.backups.elsewhere:pin_rows"
SAVE_ROWS = "hone.features.backups.elsewhere:save_rows"
"""Imported if the database is remote."""
PAGES = 1_000
"""How many pages of a database to copy at once."""


class HomeFile(Struct, frozen=True):
    """A file of the home that belongs into a backup."""

    path: str
    holding: Holding


class CollectedHome(Struct, frozen=True):
    """The contents of the stage, and sentences about what is missing."""

    members: tuple[BackupMember, ...]
    schema: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def collect(
    home: Path, holdings: Sequence[Holding], stage: Path, report: Report, address: str = ""
) -> CollectedHome:
    """Copy everything that belongs to a backup into `stage`, including the rows of a remote database. Raises
    StoreError, Corrupt for a damaged database."""
    copier = HomeCopier(home, stage, report)
    with ExitStack() as held:
        with _locked(home):
            pinned: dict[str, apsw.Connection] = {}
            rows = held.enter_context(import_object(PIN_ROWS)(address, home)) if address else None
            # The second pass sees files that appeared before the databases were pinned.
            for _ in range(2):
                found, left = survey(home, holdings)
                if rows:  # files of that name are no longer in use
                    left += [each.path for each in found if _is_elsewhere(each)]
                    found = [each for each in found if not _is_elsewhere(each)]
                for each in sorted(filter(_is_database, found), key=_main_first):
                    if each.path not in pinned:
                        pinned[each.path] = held.enter_context(_pin(home, each.path, stage.parent / "aside"))
            for each in filter(_is_published, found):
                copier.copy_file(each)
        for each in filter(_is_database, found):
            copier.copy_database(each, pinned[each.path])
        if rows:
            copier.copy_rows(rows, holdings)
    for each in found:
        if not _is_database(each) and not _is_published(each):
            copier.copy_file(each)
    members = tuple(sorted(copier.members, key=lambda member: member.path))
    return CollectedHome(members, copier.schema, tuple(left), tuple(copier.notes))


def _is_database(file: HomeFile) -> bool:
    return is_database(file.path)


def _is_elsewhere(file: HomeFile) -> bool:
    """Tell whether a remote database has what the file would hold."""
    return file.path == FILE or is_document(file.path)


def _is_published(file: HomeFile) -> bool:
    return file.holding.name == LEDGER_FILES and not is_database(file.path)


def _main_first(found: HomeFile) -> tuple[bool, str]:
    """Put hone.db first: the other databases then have what it says was done, such as a delivery to
    memories.db."""
    return found.path != FILE, found.path


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    """Keep others from changing what is known. A read-only home has no lock and no writers."""
    with FileTree(home).lock() if os.access(home, os.W_OK) else nullcontext():
        yield


@contextmanager
def _pin(home: Path, name: str, aside: Path) -> Iterator[apsw.Connection]:
    """Open a database as of now: later writes by others are not seen. SQLite cannot read a database with a
    log in a read-only folder; then a copy `aside` is read."""
    path = home / name if os.access(home, os.W_OK) else _copy_aside(home, name, aside)
    with plainly(home / name):
        connection = connect(path, PATIENCE)
    try:
        with plainly(home / name):
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield connection
    finally:
        connection.close()


def _copy_aside(home: Path, name: str, aside: Path) -> Path:
    place = make_place(aside, name)
    for each, copy in ((home / name, place), (home / f"{name}-wal", place.with_name(f"{place.name}-wal"))):
        try:
            source = open_file(each)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _unreadable(each, error) from error
        with source:
            _write(copy, _read(source, each))
    return place


def survey(home: Path, holdings: Sequence[Holding]) -> tuple[list[HomeFile], list[str]]:
    """Return the files that belong to a backup, and the names that do not, except for locks. Raises
    StoreError."""
    found: list[HomeFile] = []
    left: list[str] = []
    try:
        with os.scandir(home) as entries:
            lying = sorted(entries, key=lambda entry: entry.name)
        for entry in lying:
            is_folder = entry.is_dir(follow_symlinks=False)
            name = f"{entry.name}/" if is_folder else entry.name
            holding = find_holding(name, holdings)
            if is_draft(name) or is_beside_database(name) or (holding and holding.name == LOCKS):
                continue
            if holding is None or holding.backup is Backup.LEFT_OUT or not is_path(entry.name):
                left.append(f"{holding.name} ({name})" if holding else name)
            elif is_folder:
                _walk(home, entry.name, holding, found, left)
            elif entry.is_file(follow_symlinks=name == SETTINGS):
                found.append(HomeFile(name, holding))
            else:
                left.append(name)
    except OSError as error:
        raise _unreadable(error.filename or home, error) from error
    return found, left


def _walk(home: Path, folder: str, holding: Holding, found: list[HomeFile], left: list[str]) -> None:
    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # removed in the meantime
            raise error

    for top, folders, files, handle in os.fwalk(home / folder, onerror=fail):
        links = [name for name in folders if os.path.islink(os.path.join(top, name))]  # never entered
        for name in sorted([*files, *links]):
            path = os.path.relpath(os.path.join(top, name), home)
            if name == LOCK or is_draft(name) or is_beside_database(path):
                continue
            with suppress(FileNotFoundError):
                mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
                if stat.S_ISREG(mode) and is_path(path):
                    found.append(HomeFile(path, holding))
                else:
                    left.append(path)


class HomeCopier:
    """Copies files and databases into a stage and notes what it has copied."""

    def __init__(self, home: Path, stage: Path, report: Report) -> None:
        self._home, self._stage, self._report = home, stage, report
        self.members: list[BackupMember] = []
        self.notes: list[str] = []
        self.schema = 0

    def copy_file(self, found: HomeFile) -> None:
        """Copy a file as it is now. Skip one that was removed in the meantime."""
        path = self._home / found.path
        try:
            source = open_file(path, follow=found.path == SETTINGS)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unreadable(path, error) from error
        with source:
            status = os.fstat(source.fileno())
            if not stat.S_ISREG(status.st_mode):
                return
            data = _read(source, path)
            if found.path == SETTINGS:
                data = iter([self._without_secrets(b"".join(data))])
            size, digest = _write(make_place(self._stage, found.path), data)
        self.members.append(
            BackupMember(
                *(found.path, size, digest, found.holding.name, bool(status.st_mode & 0o100)),
                *(status.st_ino, status.st_mtime_ns),
            )
        )

    def copy_database(self, found: HomeFile, source: apsw.Connection) -> None:
        """Copy a database as it was when it was pinned, and check the copy."""
        place = make_place(self._stage, found.path)
        create(place)
        with plainly(self._home / found.path), closing(apsw.Connection(str(place))) as target:
            try:
                self._copy_pages(found, source, target)
                check_database(target, self._home / found.path)
            except apsw.FullError as error:
                raise StoreError(NO_ROOM) from error
            if found.path == FILE:
                self.schema = int(target.pragma("user_version"))
        self.members.append(BackupMember(found.path, *hash_file(place), found.holding.name))

    def copy_rows(self, rows: Any, holdings: Sequence[Holding]) -> None:
        """Write the rows of a remote database to hone.db and to files, as of the moment when they were
        pinned."""
        place = make_place(self._stage, FILE)
        import_object(SAVE_ROWS)(rows, place, self._stage, self._report)
        with plainly(place), closing(apsw.Connection(str(place))) as target:
            check_database(target, place)
            self.schema = int(target.pragma("user_version"))
        self.members.append(BackupMember(FILE, *hash_file(place), _name_holding(FILE, holdings)))
        files = FileDocuments(self._stage)
        for path in (files.path(kind, name) for kind in KINDS for name in files.names(kind)):
            name, status = str(path.relative_to(self._stage)), path.stat()
            self.members.append(
                BackupMember(
                    *(name, *hash_file(path), _name_holding(top_of(name), holdings)),
                    modified=status.st_mtime_ns,
                )
            )

    def _copy_pages(self, found: HomeFile, source: apsw.Connection, target: apsw.Connection) -> None:
        with target.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(PAGES)
                done = copying.page_count - copying.remaining
                self._report(f"Copying {found.path}", done, copying.page_count)

    def _without_secrets(self, data: bytes) -> bytes:
        text, names = remove_secrets(data.decode("utf-8", "surrogateescape"))
        if names:
            self.notes.append(f"Left out of {SETTINGS}, because of secrets in them: {', '.join(names)}.")
        return text.encode("utf-8", "surrogateescape")


def _name_holding(name: str, holdings: Sequence[Holding]) -> str:
    found = find_holding(name, holdings)
    return found.name if found else ""


def check_database(connection: apsw.Connection, path: Path) -> None:
    """Raise Corrupt unless SQLite finds no damage."""
    verdict = str(connection.pragma("integrity_check"))
    if verdict != "ok":
        raise Corrupt(f"The database {path} is damaged ({visible(verdict)[:200]}). Run hone doctor --repair.")


def _read(source: BinaryIO, path: Path) -> Iterator[bytes]:
    try:
        while data := source.read(PIECE):
            yield data
    except OSError as error:
        raise _unreadable(path, error) from error


def _write(place: Path, data: Iterator[bytes]) -> tuple[int, str]:
    found, size = hashlib.sha256(), 0
    with open(create_file(place), "wb") as file:
        for piece in data:
            file.write(piece)
            found.update(piece)
            size += len(piece)
    return size, found.hexdigest()


def _unreadable(path: object, error: OSError) -> StoreError:
    return StoreError(f"{visible(str(path))} cannot be read: {error.strerror}. No backup was written.")
