"""Restore a home from a backup, which anybody may have modified."""

import asyncio
import errno
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import apsw
from msgspec import Struct

from hone.cli.settings_file import find_written, write_settings
from hone.core.documents import is_document
from hone.core.errors import Refused, SettingsError, StoreError
from hone.core.holding import Holding
from hone.core.loading import import_object
from hone.core.visible import visible
from hone.features.backups.archive import BackupArchive, Report, open_archive
from hone.features.backups.erasures import apply_later_erasures
from hone.features.backups.settings_text import remove_rules
from hone.features.backups.staging import finish, make_place, open_stage, sweep_stages
from hone.features.backups.swapping import find_free_name, is_vacant, put_in_place
from hone.features.backups.values import (
    SETTINGS,
    BackupManifest,
    BackupMember,
    check_manifest,
    choose_members,
    find_holding,
    is_database,
    top_of,
)
from hone.features.backups.writing import check_database_at, check_room
from hone.files.atomic import create_file, open_file
from hone.runtime.alone import alone_in
from hone.stores.database import MIGRATIONS, PATIENCE, connect, create, plainly, version
from hone.stores.home import FILE

if TYPE_CHECKING:
    from hone.features.backups.elsewhere import RowReplacement

PREFIX = ".hone-restore-"
REPLACING = "hone.features.backups.elsewhere:replacing_rows"
"""Loaded where the database is elsewhere."""
DATABASE = ("database",)
KEYS = "keys"
"""The holding that no backup has, and that a replaced home keeps."""
PROVENANCE = "provenance.db"
LATEST = 2**62
"""A time in nanoseconds that every file system can store."""
RENUMBER = "UPDATE prints SET inode = ?, modified = ? WHERE path = ? AND inode = ? AND modified = ?"
"""A published file is recognized by its inode and time: the copy counts as the published file, like the
original."""
PUBLISHED = "journal and skills"
"""The holding of files that are written from the ledger."""
UNTRUST = "DELETE FROM trusted WHERE why = 'named'"


class RestoreOptions(Struct, frozen=True):
    """`address` is that of the home's remote database, if there is one: the rows are restored there."""

    replace: bool = False
    with_rules: bool = False
    address: str = ""


class RestoredHome(Struct, frozen=True):
    """`kept` is where the former home is; `left` lists what was left out, by holding; `notes` are
    sentences."""

    manifest: BackupManifest
    files: int
    kept: Path | None
    left: Mapping[str, Sequence[str]]
    notes: tuple[str, ...]


def restore_backup(
    file: Path,
    home: Path,
    holdings: Sequence[Holding],
    options: RestoreOptions,
    now: datetime,
    report: Report,
) -> RestoredHome:
    """Make a home from a backup. It gets its name when it is complete. Raises Refused or StoreError; then the
    home is unchanged."""
    home = Path(os.path.realpath(home))
    with _plainly(home):
        home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        rescued = sweep_stages(home.parent, PREFIX)
        vacant = is_vacant(home)
        _check_home(home, vacant=vacant, replace=options.replace)
        with open_archive(file) as archive:
            check_manifest(archive.manifest, len(MIGRATIONS), visible(str(file)))
            check_room(home.parent, archive.manifest.size)
            with open_stage(home.parent, PREFIX) as stage, ExitStack() as held:
                former = None if vacant else held.enter_context(alone_in(home))
                rows = _replace_rows(options, stage, home, held) if options.address else None
                if rows:
                    former = held.enter_context(rows.former(replace=options.replace, report=report))
                builder = HomeBuilder(archive, stage, holdings, options)
                builder.unpack(report)
                builder.adjust()
                builder.point_to(home / SETTINGS)
                builder.take_over(home, former, rows.documents if rows else home)
                if rows:
                    rows.put(stage, report)
                finish(stage)
                kept = put_in_place(stage, home, now)
                if rows and former:
                    kept = rows.keep(kept or find_free_name(home, now))
    notes = (*(f"{path} was left by a restore that was cut off." for path in rescued), *builder.notes)
    return RestoredHome(archive.manifest, len(builder.chosen), kept, builder.left, notes)


def _replace_rows(options: RestoreOptions, stage: Path, home: Path, held: ExitStack) -> "RowReplacement":
    """Hold the rows of a remote database exclusively until the home is in place."""
    aside = held.enter_context(open_stage(home.parent, PREFIX))
    opened = import_object(REPLACING)(options.address, stage, home, aside / FILE)
    made: RowReplacement = held.enter_context(opened)
    return made


def _check_home(home: Path, *, vacant: bool, replace: bool) -> None:
    if not vacant and not home.is_dir():
        raise Refused(f"{visible(str(home))} is a file, and a home is a folder. Nothing was changed.")
    if not vacant and not replace:
        raise Refused(
            f"{visible(str(home))} is not empty; nothing was changed. Say --replace to restore in its place: "
            "what is there now is kept under another name."
        )


class HomeBuilder:
    """Makes a home in a stage, from a backup."""

    def __init__(
        self, archive: BackupArchive, stage: Path, holdings: Sequence[Holding], options: RestoreOptions
    ) -> None:
        self._archive, self._stage = archive, stage
        self._holdings, self._with_rules = holdings, options.with_rules
        self._address = options.address
        self.chosen, self.left = choose_members(archive.manifest, holdings, with_rules=options.with_rules)
        self.notes: list[str] = []

    def unpack(self, report: Report) -> None:
        """Write the chosen members, and compare all of them with the manifest."""
        self._archive.read(self._open_sink, report)

    def adjust(self) -> None:
        """Check the databases, and adapt the copies to a home of this machine."""
        databases = [path for path in sorted(self.chosen) if is_database(path)]
        for path in databases:
            check_database_at(self._stage / path, Path(path))
        files = list(self._date_files())
        if FILE in databases:
            self._adopt_files(files)
        if not self._with_rules:
            if PROVENANCE in databases:
                self._forget_trust()
            if SETTINGS in self.chosen:
                self._remove_rules()

    def point_to(self, settings: Path) -> None:
        """Let the restored settings name the database that the home's current settings name, or none: the
        rows are restored there."""
        place, named = self._stage / SETTINGS, None
        with suppress(SettingsError):
            named = find_written(settings, DATABASE)
        wanted = named if isinstance(named, str) and named else None
        try:
            before = find_written(place, DATABASE)
            if before == wanted:
                return
            write_settings(make_place(self._stage, SETTINGS), {DATABASE: wanted})
        except SettingsError:
            self.notes.append(f"Check what {SETTINGS} says about database: it could not be changed.")
            return
        if not wanted:
            self.notes.append(
                f"{SETTINGS} of the backup names a PostgreSQL database. That line was left out, because the "
                f"data is in {FILE} now."
                if not self._address
                else f"{SETTINGS} of the backup names another database. That line was left out."
            )

    def take_over(self, home: Path, former: apsw.Connection | None, documents: Path) -> None:
        """Copy the keys of the former home, which no backup has, and erase what was erased there. `documents`
        is where the former home's documents are."""
        lying = list(os.scandir(home)) if home.is_dir() else []
        for entry in sorted(lying, key=lambda entry: entry.name):
            holding = find_holding(entry.name, self._holdings)
            if holding and holding.name == KEYS and entry.is_file(follow_symlinks=False):
                with open_file(home / entry.name) as source, self._create(entry.name) as target:
                    target.write(source.read())
        if former and FILE in self.chosen:
            self._erase_again(home, former, documents)

    def _erase_again(self, home: Path, former: apsw.Connection, documents: Path) -> None:
        """Copy what erasures left in the former home: rows, and the files of other holdings."""
        try:
            made = asyncio.run(apply_later_erasures(former, self._stage))
        except apsw.Error as error:
            self.notes.append(
                f"The former {FILE} cannot be read ({error}), so what was erased there since may be back."
            )
            return
        if not made:
            return
        beside = {name for each in made for name in each.holdings} - {PUBLISHED}
        for path in self._chosen_of(beside):
            self._take_from(documents if is_document(path) else home, path)
        if PROVENANCE in self._chosen_of(beside) and not self._with_rules:
            self._forget_trust()
        taken = f" Taken from the home that was replaced: {', '.join(sorted(beside))}." if beside else ""
        self.notes.append(f"What was erased since the backup was erased again.{taken}")

    def _chosen_of(self, names: Collection[str]) -> list[str]:
        """Return the restored files of these holdings."""
        found = ((path, find_holding(top_of(path), self._holdings)) for path in sorted(self.chosen))
        return [path for path, holding in found if holding and holding.name in names]

    def _take_from(self, home: Path, path: str) -> None:
        """Replace the backup's file with that of the former home, or remove it if there is none."""
        place = self._stage / path
        place.unlink()
        with suppress(FileNotFoundError), open_file(home / path) as source:
            executable = bool(os.fstat(source.fileno()).st_mode & 0o100)
            if is_database(path):
                create(place)
                with (
                    plainly(home / path),
                    closing(connect(home / path, PATIENCE)) as old,
                    self._open(path) as new,
                    new.backup("main", old, "main") as copying,
                ):
                    copying.step()
            else:
                with self._create(path, executable) as target:
                    target.write(source.read())

    def _open_sink(self, member: BackupMember) -> BinaryIO | None:
        return self._create(member.path, member.executable) if member.path in self.chosen else None

    def _create(self, path: str, executable: bool = False) -> BinaryIO:
        place = make_place(self._stage, path)
        return open(create_file(place, 0o700 if executable else 0o600), "wb")

    def _date_files(self) -> Iterator[tuple[str, ...]]:
        """Give each file the time of its original. Yield its new identity, its path, and the original's
        identity."""
        for member in self._archive.manifest.members:
            if member.path in self.chosen and 0 < member.modified < LATEST:
                place = self._stage / member.path
                os.utime(place, ns=(member.modified, member.modified))
                now = os.stat(place)
                old = (str(member.inode), str(member.modified))
                yield str(now.st_ino), str(now.st_mtime_ns), member.path, *old

    def _adopt_files(self, files: Sequence[tuple[str, ...]]) -> None:
        """Refuse a database that is too new, and tell the ledger which files are the published ones."""
        with self._open(FILE) as connection:
            version(connection, Path(FILE))
            if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'prints'").get:
                with connection:
                    connection.executemany(RENUMBER, files)

    def _forget_trust(self) -> None:
        """Forget that the owner vouched for files: they are labeled by what else is known about them."""
        with self._open(PROVENANCE) as connection:
            connection.execute(UNTRUST)
            if connection.changes():
                self.left = {**self.left, "trust in files": [PROVENANCE]}

    @contextmanager
    def _open(self, path: str) -> Iterator[apsw.Connection]:
        """Open a database of the stage. When it is closed, everything is in one file."""
        with plainly(Path(path)), closing(apsw.Connection(str(self._stage / path))) as connection:
            yield connection

    def _remove_rules(self) -> None:
        path = self._stage / SETTINGS
        try:
            text, names = remove_rules(path.read_text("utf-8"))
        except ValueError:  # neither UTF-8 nor TOML
            path.unlink()
            self.left = {**self.left, "settings": [SETTINGS]}
            return
        if names:
            path.write_text(text, "utf-8")
            self.left = {**self.left, f"settings in {SETTINGS}": names}


@contextmanager
def _plainly(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(
                f"There is no space left beside {visible(str(home))}. The home is as it was; make room and "
                "try again."
            ) from error
        raise StoreError(
            f"{visible(str(home))} cannot be restored: {error.strerror}. The home is as it was."
        ) from error
